// Quickstart shows the main tasks of the library: read a head, change its greeting and voice,
// switch it to streaming, register a webhook, add a tool, and receive the events of a conversation.
//
// Without settings, it uses an emulator in this process, with its own receiver and tool:
//
//	go run ./examples/quickstart
//
// With -console, it then serves a web page with all requests and events until it is interrupted.
//
// With HEADS_BASE_URL and HEADS_TOKEN, it uses that service and the head given by -head or
// HEADS_HEAD_ID. It only reads, unless -write is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// settings are the flags.
type settings struct {
	head, greeting, provider, voice, webhook, tool string
	write, console                                 bool
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var s settings
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.StringVar(&s.head, "head", os.Getenv("HEADS_HEAD_ID"), "id of the head, a UUID")
	flags.BoolVar(&s.write, "write", false, "change the head, not only read it")
	flags.StringVar(&s.greeting, "greeting", "Welcome! Shall we begin?", "new greeting")
	flags.StringVar(&s.provider, "provider", "elevenlabs", "text-to-speech provider, one that can stream")
	flags.StringVar(&s.voice, "voice", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5", "voice of that provider")
	flags.StringVar(&s.webhook, "webhook", "", "https URL that receives the events")
	flags.StringVar(&s.tool, "tool", "", "https URL below which tool calls are answered")
	flags.BoolVar(&s.console, "console", false, "on the emulator: show what happened in a web page, until interrupted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if os.Getenv("HEADS_BASE_URL") == "" {
		fmt.Fprintln(out, "No HEADS_BASE_URL is set, so this works on an emulator inside the program.")
		return onEmulator(ctx, out, s)
	}
	client, err := heads.NewFromEnv()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Working on the service at HEADS_BASE_URL.")
	return walk(ctx, out, client, s)
}

// onEmulator starts a server with a receiver and a tool. At the end, it plays a session on the
// emulator.
func onEmulator(ctx context.Context, out io.Writer, s settings) error {
	options := []headstest.Option{headstest.WithLoopbackHTTP()}
	if s.console {
		options = append(options, headstest.WithConsole())
	}
	srv := headstest.NewServer(options...)
	defer srv.Close()
	if s.console {
		fmt.Fprintf(out, "The console is at %s/_emulator/\n", srv.URL)
	}
	mux := http.NewServeMux()
	backend := httptest.NewServer(mux)
	defer backend.Close()
	client := srv.Client()

	received := make(chan *heads.Event, 10)
	events, err := heads.NewEventHandler(client.Webhooks.KeySource(), func(_ context.Context, e *heads.Event) error {
		received <- e // its signature is verified
		return nil
	}, heads.WithEventLogger(warnings()))
	if err != nil {
		return err
	}
	mux.Handle("/events", events)
	tools, err := newTools(backend.URL + "/tools")
	if err != nil {
		return err
	}
	mux.Handle("/tools/", tools)

	s.write, s.webhook, s.tool = true, backend.URL+"/events", backend.URL+"/tools"
	s.head = srv.AddHead(headstest.Head{
		Name: "Ada", TTSProvider: "polly", TTSVoice: "Joanna", OperationMode: heads.OperationModeOC,
		Fields: map[string]any{"greetings": "Hello."},
	})
	err = walk(ctx, out, client, s, func(ctx context.Context, out io.Writer, _ *heads.Client, s settings) error {
		return talk(ctx, out, srv.StartSession(s.head), received)
	})
	if err == nil && s.console {
		fmt.Fprintln(out, "\nThe console stays until you press Ctrl-C.")
		<-ctx.Done()
	}
	return err
}

// step is one task with its description.
type step func(context.Context, io.Writer, *heads.Client, settings) error

// walk runs the steps in order.
func walk(ctx context.Context, out io.Writer, client *heads.Client, s settings, more ...step) error {
	steps := []step{look}
	if s.write {
		steps = append(steps, change, stream, register, giveTool)
	}
	for i, do := range append(steps, more...) {
		var told strings.Builder
		err := do(ctx, &told, client, s)
		if told.Len() > 0 {
			fmt.Fprintf(out, "\n%d. %s", i+1, told.String())
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nWhat to do next:")
	if !s.write {
		fmt.Fprintln(out, "  - Run it again with -write to change this head.")
	}
	fmt.Fprintln(out, "  - Read examples/quickstart/main.go: every step above is a few lines of it.")
	fmt.Fprintln(out, "  - Set HEADS_BASE_URL and HEADS_TOKEN, and pass -head ID, to look at a head of your own.")
	return nil
}

func look(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	head, err := client.Heads.Get(ctx, s.head)
	if err != nil {
		return err
	}
	visual, err := client.HeadVisuals.Get(ctx, head.HeadVisualID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Head %q greets with %q and speaks with voice %s of %s.\n", head.Name, head.Greetings, head.TTSVoice, head.TTSProvider)
	fmt.Fprintf(out, "   Its visual is in mode %q", visual.Mode)
	if visual.Mode == heads.VisualModeDefault {
		fmt.Fprint(out, ", so it can stream")
	}
	fmt.Fprintf(out, "; it is %s now.\n", mode(head))
	return nil
}

func change(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	update := heads.NewHeadUpdate().Greetings(s.greeting).Voice(s.provider, s.voice)
	if err := client.Heads.Update(ctx, s.head, update); err != nil {
		return err
	}
	head, err := client.Heads.Get(ctx, s.head)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Sent %s, and nothing else.\n", strings.Join(update.Fields(), ", "))
	fmt.Fprintf(out, "   It now greets with %q and speaks with voice %s of %s.\n", head.Greetings, head.TTSVoice, head.TTSProvider)
	return nil
}

func stream(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	conversion, err := client.Heads.ConvertToStreaming(ctx, s.head, heads.ConvertOptions{})
	if err != nil {
		return err
	}
	if conversion.AlreadyStreaming {
		fmt.Fprintf(out, "The head streams already. Its access URL stays %s\n", conversion.After)
		return nil
	}
	// An AccessURL prints without its key; Reveal returns the full URL.
	fmt.Fprintln(out, "Switched the head to streaming. Its access URL has changed:")
	fmt.Fprintf(out, "   old: %s\n   new: %s\n", conversion.Before, conversion.After)
	fmt.Fprintln(out, "   The old one no longer works, so pages that embed the head need the new one.")
	return nil
}

func register(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	if s.webhook == "" {
		fmt.Fprintln(out, "No -webhook URL given, so no webhook is registered.")
		return nil
	}
	hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: s.head,
		URL:    s.webhook,
		Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
	}, heads.EnsureOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Turned the delivery of events on and registered a webhook.")
	fmt.Fprintf(out, "   Its events are signed with the shared key %v, which hook.SharedKey.Reveal() returns for your handler.\n", hook.SharedKey)
	hooks, err := client.Webhooks.List(ctx, s.head)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		fmt.Fprintf(out, "   webhook %d: %s receives %v\n", h.ID, h.URL, h.Events())
	}
	return nil
}

func giveTool(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	if s.tool == "" {
		fmt.Fprintln(out, "No -tool URL given, so the head gets no tool.")
		return nil
	}
	tools, err := newTools(s.tool)
	if err != nil {
		return err
	}
	settings, err := client.ConversationSettings.PutTool(ctx, s.head, tools.Tools()[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Gave the head a tool to call during a conversation.")
	for _, tool := range settings.Tools {
		fmt.Fprintf(out, "   tool %s: %s\n", tool.Name, tool.Description)
	}
	return nil
}

// warnings logs warnings and errors to stderr.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type openingHours struct {
	Day string `json:"day" jsonschema:"Day of the week"`
}

// newTools returns a handler with one tool below a URL.
func newTools(url string) (*heads.ToolHandler, error) {
	tools, err := heads.NewToolHandler(url, heads.WithToolLogger(warnings()))
	if err != nil {
		return nil, err
	}
	return tools, heads.AddTool(tools, "opening_hours", "Tells when the museum is open on a day.",
		func(_ context.Context, in openingHours) (string, error) {
			return "On " + in.Day + " the museum is open from 9 to 17.", nil
		})
}

// talk plays a session: a message, a tool call, the end.
func talk(ctx context.Context, out io.Writer, session *headstest.Session, received <-chan *heads.Event) error {
	fmt.Fprintln(out, "Played a session on the emulator. This program received and answered:")
	if err := session.UserMessage("When are you open on Monday?"); err != nil {
		return err
	}
	if err := tell(ctx, out, received); err != nil {
		return err
	}
	call, err := session.CallTool(ctx, "opening_hours", map[string]any{"day": "Monday"})
	if err != nil {
		return err
	}
	if call.Problem != "" {
		return errors.New(call.Problem)
	}
	fmt.Fprintf(out, "   tool call opening_hours, answered with %q\n", call.Message)
	if err := session.Close(); err != nil {
		return err
	}
	return tell(ctx, out, received)
}

// tell waits for an event.
func tell(ctx context.Context, out io.Writer, received <-chan *heads.Event) error {
	select {
	case e := <-received:
		fmt.Fprintf(out, "   event %s at %s, its signature verified\n", e.Type, e.Timestamp.Text)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func mode(head *heads.Head) string {
	if head.VideoStreaming {
		return "streaming"
	}
	return "in legacy mode"
}
