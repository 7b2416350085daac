// Safechanges shows how to change a head and its webhooks so that nothing else changes and nothing
// is created twice: Modify, HeadUpdateFromJSON and Ensure.
//
// It uses an emulator in this process. Its journal shows the requests, and a fault of it loses a
// response:
//
//	go run ./examples/safechanges
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"

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

// story is the state that the steps share.
type story struct {
	srv      *headstest.Server
	client   *heads.Client
	head     string
	greeting string
	out      io.Writer
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("safechanges", flag.ContinueOnError)
	flags.SetOutput(out)
	greeting := flags.String("greeting", "Welcome back!", "new greeting")
	if err := flags.Parse(args); err != nil {
		return err
	}
	srv := headstest.NewServer(headstest.WithSeed(1))
	defer srv.Close()
	s := &story{srv: srv, client: srv.Client(), greeting: *greeting, out: out}
	s.head = srv.AddHead(headstest.Head{Name: "Ada", Fields: map[string]any{"greetings": "Hello.", "phrases": []string{"hello"}}})

	fmt.Fprintln(out, "An emulator inside the program stands in for the service.")
	steps := []func(context.Context) error{s.modify, s.readOnly, s.getEditPut, s.ensureTwice, s.ensureUnanswered}
	for i, step := range steps {
		fmt.Fprintf(out, "\n%d. ", i+1)
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// modify changes two of about forty fields.
func (s *story) modify(ctx context.Context) error {
	s.say("Change a greeting and the phrases. Modify reads the head and sends these two, nothing else:")
	before := len(s.srv.Requests())
	_, err := s.client.Heads.Modify(ctx, s.head, func(h *heads.Head) error {
		h.Greetings = s.greeting
		h.Phrases = append(h.Phrases, "goodbye")
		return nil
	})
	s.tell(before)
	return err
}

// readOnly tries to change fields that the service would not change.
func (s *story) readOnly(ctx context.Context) error {
	s.say("Change what an update can't change. The service would ignore it; Modify says so, and only the read is sent:")
	before := len(s.srv.Requests())
	_, err := s.client.Heads.Modify(ctx, s.head, func(h *heads.Head) error {
		h.VideoStreaming = true
		h.TTSDisplayName = "Ada's voice"
		return nil
	})
	if !errors.Is(err, heads.ErrInvalid) {
		return fmt.Errorf("the change should have been refused, but its error is %w", err)
	}
	for line := range strings.Lines(err.Error()) {
		s.say("   " + strings.TrimSpace(line))
	}
	s.tell(before)
	return nil
}

// getEditPut reads, edits and writes a document, as many scripts do.
func (s *story) getEditPut(ctx context.Context) error {
	s.say("GET, edit, PUT, for a script that has saved the answer of a GET. Only the writable fields go back:")
	saved, err := s.save(ctx)
	if err != nil {
		return err
	}
	before := len(s.srv.Requests())

	update, err := heads.HeadUpdateFromJSON(saved)
	if err != nil {
		return err
	}
	if err := s.client.Heads.Update(ctx, s.head, update.Name("Grace")); err != nil {
		return err
	}

	var fields map[string]json.RawMessage
	if err := json.Unmarshal(s.srv.Requests()[before].Body, &fields); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "   PUT /head/update with %d fields and the id: %s\n", len(fields)-1, strings.Join(update.Fields(), ", "))
	head, err := s.client.Heads.Get(ctx, s.head)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "   The head is called %q now, and still greets with %q.\n", head.Name, head.Greetings)
	return nil
}

// save returns the document of a head as sent by the service.
func (s *story) save(ctx context.Context) ([]byte, error) {
	head, err := s.client.Heads.Get(ctx, s.head)
	if err != nil {
		return nil, err
	}
	return head.Raw.Bytes(), nil
}

// ensureTwice registers a URL twice, as a program does that is started twice.
func (s *story) ensureTwice(ctx context.Context) error {
	s.say("Register a webhook at every start of a program. The first start creates it, the second finds it:")
	for _, start := range []string{"first", "second"} {
		s.say("   The " + start + " start:")
		if err := s.ensure(ctx, "https://app.example.com/events"); err != nil {
			return err
		}
	}
	return s.count(ctx)
}

// ensureUnanswered registers another URL and loses the response to the create request.
func (s *story) ensureUnanswered(ctx context.Context) error {
	s.say("Register one whose create is carried out, but whose answer is lost. Ensure looks, and does not create again:")
	s.srv.Inject(headstest.Fault{Method: http.MethodPost, Route: "/head-events", Times: 1, Cut: headstest.CutAfter})
	if err := s.ensure(ctx, "https://backup.example.com/events"); err != nil {
		return err
	}
	return s.count(ctx)
}

func (s *story) ensure(ctx context.Context, url string) error {
	before := len(s.srv.Requests())
	hook, err := s.client.Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: s.head,
		URL:    url,
		Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
	}, heads.EnsureOptions{})
	if err != nil {
		return err
	}
	s.tell(before)
	fmt.Fprintf(s.out, "   Webhook %d, whose events are signed with %v.\n", hook.ID, hook.SharedKey)
	return nil
}

func (s *story) count(ctx context.Context) error {
	hooks, err := s.client.Webhooks.List(ctx, s.head)
	if err != nil {
		return err
	}
	s.say("   The head has these registrations:")
	for _, h := range hooks {
		fmt.Fprintf(s.out, "   webhook %d: %s receives %v\n", h.ID, h.URL, h.Events())
	}
	return nil
}

func (s *story) say(text string) { fmt.Fprintln(s.out, text) }

// tell prints the journal's requests from the given index on.
func (s *story) tell(from int) {
	for _, r := range s.srv.Requests()[from:] {
		line := r.Method + " " + r.Path
		if r.Query != "" {
			line += "?" + r.Query
		}
		if len(r.Body) > 0 {
			line += " " + string(r.Body)
		}
		if r.Status == 0 {
			line += " (answer lost)"
		}
		s.say("   " + strings.ReplaceAll(line, s.head, "HEAD"))
	}
}
