// Tools shows two functions that a head can call: the weather and the status of an order. One value
// provides both the definition to register and the HTTP handler.
//
// Without settings, it uses an emulator in this process, which calls the tools:
//
//	go run ./examples/tools
//
// With HEADS_BASE_URL and HEADS_TOKEN, it registers the tools on the head given by -head or
// HEADS_HEAD_ID and answers calls until it is interrupted. The service must reach this program at
// the https URL given by -url.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
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

// prompt names the tools and parameters exactly as they are registered.
const prompt = "You work for a shop. When the user asks about the weather, call get_weather with city and, if a day was named, days. " +
	"When the user asks where an order is, call order_status with order_number."

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("tools", flag.ContinueOnError)
	headID := flags.String("head", os.Getenv("HEADS_HEAD_ID"), "id of the head, a UUID")
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	publicURL := flags.String("url", "", "https URL at which the service reaches this program; if empty, the URL it listens on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	if *publicURL == "" {
		*publicURL = "http://" + listener.Addr().String()
	}
	tools, err := newTools(*publicURL, out)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: tools, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		_ = tools.Shutdown(ctx) // waits for functions whose calls have timed out
		<-served
	}()
	if os.Getenv("HEADS_BASE_URL") == "" {
		return demo(ctx, out, tools)
	}
	client, err := heads.NewFromEnv()
	if err != nil {
		return err
	}
	if err := register(ctx, out, client, *headID, tools); err != nil {
		return err
	}
	fmt.Fprintln(out, "Answering tool calls until interrupted.")
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		served <- err
		return err
	}
}

// newTools returns the handler. The path token protects the tools: only callers who know the URL of
// a tool can call it.
func newTools(publicURL string, out io.Writer) (*heads.ToolHandler, error) {
	tools, err := heads.NewToolHandler(publicURL,
		heads.WithPathToken(rand.Text()),
		heads.WithToolTimeout(5*time.Second),
		heads.WithToolLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelError}))))
	if err != nil {
		return nil, err
	}
	return tools, errors.Join(
		heads.AddTool(tools, "get_weather", "Tells the weather in a city.", weather),
		heads.AddTool(tools, "order_status", "Tells where an order is.", orderStatus),
	)
}

type weatherArguments struct {
	City string `json:"city" jsonschema:"City, in English"`
	Days int    `json:"days,omitempty" jsonschema:"Days from today, 0 for today"`
}

func weather(_ context.Context, in weatherArguments) (string, error) {
	when := "today"
	if in.Days > 0 {
		when = fmt.Sprintf("in %d days", in.Days)
	}
	return fmt.Sprintf("Sunny in %s %s, 22 degrees.", in.City, when), nil
}

type orderArguments struct {
	Number int `json:"order_number" jsonschema:"Number of the order, as on the invoice"`
}

func orderStatus(ctx context.Context, in orderArguments) (string, error) {
	switch in.Number {
	case 4711:
		session, _ := heads.SessionFromContext(ctx)
		return fmt.Sprintf("The order left the warehouse this morning. (Asked in session %s.)", session.SessionID), nil
	case 13:
		return "", errors.New("the order database is locked by user shop_rw")
	default:
		return "", heads.ToolError{Message: "There is no order with that number; ask the user to check it."}
	}
}

func register(ctx context.Context, out io.Writer, client *heads.Client, headID string, tools *heads.ToolHandler) error {
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		return err
	}
	if head.PromptConfig != nil {
		for _, p := range heads.CheckPrompt(head.PromptConfig.SystemPrompt, tools.Tools()...) {
			fmt.Fprintln(out, "The prompt needs work:", p.Problem)
		}
	}
	settings, err := client.ConversationSettings.SetTools(ctx, headID, tools.Tools()...)
	if err != nil {
		return err
	}
	for _, t := range settings.Tools {
		var parameters []string
		for _, p := range t.Parameters {
			parameters = append(parameters, p.Name+" "+p.Type)
		}
		fmt.Fprintf(out, "Registered %s(%s): %s\n", t.Name, strings.Join(parameters, ", "), t.Description)
	}
	return nil
}

// demo calls the tools from an emulator, as the service does.
func demo(ctx context.Context, out io.Writer, tools *heads.ToolHandler) error {
	srv := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer srv.Close()
	fmt.Fprintln(out, "No HEADS_BASE_URL is set, so an emulator inside the program calls the tools.")
	headID := srv.AddHead(headstest.Head{
		Name: "Ada", OperationMode: heads.OperationModeOC,
		Fields: map[string]any{"promptConfig": map[string]any{"system_prompt": prompt}},
	})
	if err := register(ctx, out, srv.Client(), headID, tools); err != nil {
		return err
	}
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"get_weather", map[string]any{"city": "Lisbon"}},
		{"get_weather", map[string]any{"city": "Oslo", "days": "2"}}, // a number in a string is accepted
		{"get_weather", map[string]any{}},
		{"order_status", map[string]any{"order_number": 4711}},
		{"order_status", map[string]any{"order_number": 12}},
		{"order_status", map[string]any{"order_number": 13}}, // fails; the reason is only logged
	} {
		fmt.Fprintf(out, "\nThe head calls %s with %v\n", call.tool, call.args)
		reply, err := srv.CallTool(ctx, headID, call.tool, call.args)
		if err != nil {
			return err
		}
		if reply.Problem != "" {
			return errors.New(reply.Problem)
		}
		fmt.Fprintln(out, "  and is told:", reply.Message)
	}
	return nil
}
