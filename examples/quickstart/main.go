// Quickstart walks through the main job of the library: read a head, change
// its greeting and voice, switch it to streaming, register a webhook, give it
// a tool.
//
// Without any setting it works on an emulator inside this program:
//
//	go run ./examples/quickstart
//
// With HEADS_BASE_URL and HEADS_TOKEN it works on that service, on the head
// given with -head. It only reads, unless -write is given.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are what the walk is to do.
type settings struct {
	head, greeting, provider, voice, webhook, tool string
	write                                          bool
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var s settings
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.StringVar(&s.head, "head", "", "id of the head, a UUID")
	flags.BoolVar(&s.write, "write", false, "change the head, not only read it")
	flags.StringVar(&s.greeting, "greeting", "Welcome! Shall we begin?", "new greeting")
	flags.StringVar(&s.provider, "provider", "elevenlabs", "text-to-speech provider, one that can stream")
	flags.StringVar(&s.voice, "voice", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5", "voice of that provider")
	flags.StringVar(&s.webhook, "webhook", "", "https address that receives events")
	flags.StringVar(&s.tool, "tool", "", "https address that answers tool calls")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if os.Getenv("HEADS_BASE_URL") != "" {
		client, err := heads.NewFromEnv()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "Working on the service at HEADS_BASE_URL.")
		return walk(ctx, out, client, s)
	}
	srv := headstest.NewServer()
	defer srv.Close()
	fmt.Fprintln(out, "No HEADS_BASE_URL is set, so this works on an emulator inside the program.")
	s.write = true
	s.head = srv.AddHead(headstest.Head{
		Name: "Ada", TTSProvider: "polly", TTSVoice: "Joanna", OperationMode: heads.OperationModeOC,
		Fields: map[string]any{"greetings": "Hello."},
	})
	if s.webhook == "" {
		s.webhook = "https://app.example.com/events"
	}
	if s.tool == "" {
		s.tool = "https://app.example.com/tools/opening_hours"
	}
	return walk(ctx, out, srv.Client(), s)
}

// walk does one step after the other and tells of each.
func walk(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	steps := []func(context.Context, io.Writer, *heads.Client, settings) error{look}
	if s.write {
		steps = append(steps, change, stream, register, giveTool)
	}
	for i, step := range steps {
		fmt.Fprintf(out, "\n%d. ", i+1)
		if err := step(ctx, out, client, s); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nWhat to do next:")
	if !s.write {
		fmt.Fprintln(out, "  - Run it again with -write to change this head.")
	}
	fmt.Fprintln(out, "  - Read examples/quickstart/main.go: every step above is a few lines of it.")
	fmt.Fprintln(out, "  - Set HEADS_BASE_URL and HEADS_TOKEN, and give -head ID, to look at a head of your own.")
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
	update := heads.NewHeadUpdate(s.head).Greetings(s.greeting).Voice(s.provider, s.voice)
	if _, err := client.Heads.Update(ctx, update); err != nil {
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
		fmt.Fprintf(out, "The head streams already. Its address stays %s\n", conversion.After)
		return nil
	}
	// The addresses print without their key; Reveal gives the whole of one.
	fmt.Fprintln(out, "Switched the head to streaming. Its address has changed:")
	fmt.Fprintf(out, "   old: %s\n   new: %s\n", conversion.Before, conversion.After)
	fmt.Fprintln(out, "   The old one no longer works, so pages that embed the head need the new one.")
	return nil
}

func register(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	if s.webhook == "" {
		fmt.Fprintln(out, "No -webhook address given, so none is registered.")
		return nil
	}
	hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: s.head,
		URL:    s.webhook,
		Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Turned the delivery of events on and made sure of a webhook.")
	fmt.Fprintf(out, "   Its events are signed with the shared key %v, which hook.SharedKey.Reveal() gives to your handler.\n", hook.SharedKey)
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
		fmt.Fprintln(out, "No -tool address given, so the head gets no tool.")
		return nil
	}
	settings, err := client.ConversationSettings.PutTool(ctx, s.head, heads.Tool{
		Name:        "opening_hours",
		Description: "Tells when the museum is open on a day.",
		URL:         s.tool,
		Parameters:  []heads.ToolParameter{{Name: "day", Type: "string", Description: "Day of the week."}},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "Gave the head a tool to call during a conversation.")
	for _, tool := range settings.Tools {
		fmt.Fprintf(out, "   tool %s: %s\n", tool.Name, tool.Description)
	}
	return nil
}

func mode(head *heads.Head) string {
	if head.VideoStreaming {
		return "streaming"
	}
	return "in legacy mode"
}
