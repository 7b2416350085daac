// Webhooks is a server that registers a webhook for a head, verifies and prints its events, and
// shuts down cleanly.
//
// Without settings, it uses an emulator in this process, which plays a session and delivers its
// events over TLS:
//
//	go run ./examples/webhooks
//
// With HEADS_BASE_URL and HEADS_TOKEN, it registers a webhook for the head given by -head or
// HEADS_HEAD_ID and prints events until it is interrupted. The service must reach this program at
// the https URL given by -url.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const path = "/webhooks/heads"

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("webhooks", flag.ContinueOnError)
	headID := flags.String("head", os.Getenv("HEADS_HEAD_ID"), "id of the head, a UUID")
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	publicURL := flags.String("url", "", "https URL at which the service reaches this program; if empty, the URL it listens on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if os.Getenv("HEADS_BASE_URL") == "" {
		return demo(ctx, out)
	}
	client, err := heads.NewFromEnv()
	if err != nil {
		return err
	}
	return serve(ctx, out, client, *headID, *listen, *publicURL)
}

// newHandler returns a handler that prints events. The key source reads the shared keys from the
// service, so no key has to be configured.
func newHandler(out io.Writer, client *heads.Client) (*heads.EventHandler, error) {
	return heads.NewEventHandler(client.Webhooks.KeySource(),
		func(_ context.Context, e *heads.Event) error {
			fmt.Fprintf(out, "  %s: %s\n", e.SessionID, e.Type)
			return nil // handled; if it returned an error, the service would redeliver the event
		},
		heads.WithEventLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}))))
}

func register(ctx context.Context, out io.Writer, client *heads.Client, headID, url string) error {
	hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: headID,
		URL:    url,
		Events: []heads.EventType{
			heads.EventStartConversation, heads.EventEndConversation,
			heads.EventTimeoutConversation, heads.EventInactivityWarning,
		},
	}, heads.EnsureOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Registered as webhook %d for %v, with the shared key %v.\n", hook.ID, hook.Events(), hook.SharedKey)
	return nil
}

// serve receives events of the service until ctx ends.
func serve(ctx context.Context, out io.Writer, client *heads.Client, headID, listen, publicURL string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if publicURL == "" {
		publicURL = "http://" + listener.Addr().String()
	}
	handler, err := newHandler(out, client)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := register(ctx, out, client, headID, publicURL+path); err != nil {
		return errors.Join(err, server.Close())
	}
	fmt.Fprintln(out, "Receiving events until interrupted:")
	select {
	case <-ctx.Done():
	case err := <-served:
		return err
	}
	return shutdown(ctx, out, server, handler)
}

// shutdown waits for running deliveries. Server and handler have separate deadlines, so a slow
// connection takes no time from the handler.
func shutdown(ctx context.Context, out io.Writer, server *http.Server, handler *heads.EventHandler) error {
	ctx = context.WithoutCancel(ctx)
	if err := errors.Join(within(ctx, server.Shutdown), within(ctx, handler.Shutdown)); err != nil {
		return err
	}
	fmt.Fprintln(out, "Shut down; no delivery was cut off.")
	return nil
}

func within(ctx context.Context, shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return shutdown(ctx)
}

// demo plays a session on an emulator.
func demo(ctx context.Context, out io.Writer) error {
	mux := http.NewServeMux()
	receiver := httptest.NewTLSServer(mux)
	defer receiver.Close()
	srv := headstest.NewServer(headstest.WithDeliveryClient(receiver.Client()))
	defer srv.Close()
	fmt.Fprintln(out, "No HEADS_BASE_URL is set, so an emulator inside the program plays a session.")

	client := srv.Client()
	handler, err := newHandler(out, client)
	if err != nil {
		return err
	}
	mux.Handle(path, handler)
	headID := srv.AddHead(headstest.Head{Name: "Ada"})
	if err := register(ctx, out, client, headID, receiver.URL+path); err != nil {
		return err
	}
	fmt.Fprintln(out, "The user says hello, falls silent, and the session times out:")
	session := srv.StartSession(headID)
	for _, step := range []func() error{
		func() error { return session.UserMessage("Hello!") },
		session.Inactive,
		session.Timeout,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	last := func(d headstest.Delivery) bool { return d.Final && d.Event.Type == heads.EventEndConversation }
	if _, err := srv.WaitDelivery(ctx, last); err != nil {
		return err
	}
	for _, d := range srv.Deliveries() {
		fmt.Fprintf(out, "Delivered %s, attempt %d: answered %d\n", d.Event.Type, d.Attempt, d.Status)
	}
	return shutdown(ctx, out, receiver.Config, handler)
}
