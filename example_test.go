package heads_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// An emulator stands in for the service in all examples.
var (
	srv     = headstest.NewServer(headstest.WithSeed(1), headstest.WithLoopbackHTTP())
	baseURL = srv.URL
	token   = srv.Token
	ctx     = context.Background()
	client  = srv.Client()
)

func newHead() string {
	return srv.AddHead(headstest.Head{
		Name: "Ada", TTSProvider: "azure", TTSVoice: "en-GB-SoniaNeural", OperationMode: heads.OperationModeOC,
		Fields: map[string]any{"phrases": []string{"hello"}, "voiceflowApiKey": "vf-key"},
	})
}

func Example() {
	headID := newHead()
	err := func() error {
		client, err := heads.New(baseURL, token)
		if err != nil {
			return err
		}
		update := heads.NewHeadUpdate().Greetings("Welcome back!")
		return client.Heads.Update(ctx, headID, update)
	}()
	head, _ := client.Heads.Get(ctx, headID)
	fmt.Println(head.Greetings, err)
	// Output: Welcome back! <nil>
}

func Example_quickStart() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada"})

	client, err := heads.New(srv.URL, srv.Token)
	if err != nil {
		log.Fatal(err)
	}
	update := heads.NewHeadUpdate().Greetings("Welcome back!")
	if err := client.Heads.Update(ctx, headID, update); err != nil {
		log.Fatal(err)
	}
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(head.Name, "says:", head.Greetings)
	// Output: Ada says: Welcome back!
}

func ExampleHeadsService_Get() {
	headID := newHead()
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(head.Name, "speaks with", head.TTSVoice)
	// Output: Ada speaks with en-GB-SoniaNeural
}

func ExampleHeadsService_Update() {
	headID := newHead()
	update := heads.NewHeadUpdate().
		Greetings("").          // sends ""
		ClearVoiceflowAPIKey(). // sends null
		Phrases()               // sends []
	err := client.Heads.Update(ctx, headID, update)
	fmt.Println(update.Fields(), err)
	// Output: [greetings voiceflowApiKey phrases] <nil>
}

func ExampleHeadUpdate_Validate() {
	headID := newHead()
	update := heads.NewHeadUpdate().Name("string").Voice("", "rachel")
	err := client.Heads.Update(ctx, headID, update)
	fmt.Println(errors.Is(err, heads.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// heads: Heads.Update: name holds the placeholder "string"; give a real value or don't set the field
	// heads: Heads.Update: ttsVoice "rachel" and ttsProvider "" must be set together, but the provider is blank; give both with HeadUpdate.Voice
}

func ExampleHeadsService_SetVideoStreaming() {
	headID := newHead()
	if err := client.Heads.SetVideoStreaming(ctx, headID, true); err != nil {
		fmt.Println(err)
		return
	}
	head, _ := client.Heads.Get(ctx, headID)
	fmt.Println(head.VideoStreaming, head.Splitter)
	// Output: true false
}

func ExampleHeadVisualsService_Get() {
	headID := newHead()
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		fmt.Println(err)
		return
	}
	visual, err := client.HeadVisuals.Get(ctx, head.HeadVisualID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(visual.Mode)
	// Output: default
}

func ExampleWebhooksService_Create() {
	headID := newHead()
	hook, err := client.Webhooks.Create(ctx, heads.WebhookSpec{
		HeadID: headID,
		URL:    "https://app.example.com/events",
		Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hook.Events(), hook.SharedKey)
	// Output: [start_conversation end_conversation] [redacted]
}

func ExampleConversationSettingsService_PutTool() {
	headID := newHead()
	settings, err := client.ConversationSettings.PutTool(ctx, headID, heads.Tool{
		Name:        "opening_hours",
		Description: "Tells when the museum is open on a day.",
		URL:         "https://app.example.com/tools/opening_hours",
		Parameters:  []heads.ToolParameter{{Name: "day", Type: "string", Description: "Day of the week."}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(settings.Tools), settings.Tools[0].Name)
	// Output: 1 opening_hours
}

func ExampleClient_AccessURL() {
	headID := newHead()
	head, err := client.Heads.Get(ctx, headID)
	if err != nil {
		fmt.Println(err)
		return
	}
	address, err := client.AccessURL(head)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(address.Base, address.APIKey) // address.Reveal() has the key
	// Output: https://chat.example.test [redacted]
}

func Example_errors() {
	headID := "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	_, err := client.Heads.Get(ctx, headID)

	var answer *heads.Error
	switch {
	case errors.Is(err, heads.ErrInvalid):
		fmt.Println("refused before anything was sent:", err)
	case errors.Is(err, heads.ErrNotFound):
		fmt.Println("there is no such head")
	case errors.As(err, &answer):
		fmt.Println("the service answered", answer.StatusCode, answer.Message, answer.RequestID)
	case err != nil:
		fmt.Println("no answer:", err)
	}
	// Output: there is no such head
}

func ExampleNew_options() {
	client, err := heads.New(baseURL, token,
		heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 5, MinWait: time.Second, MaxWait: time.Minute}),
		heads.WithAttemptTimeout(10*time.Second),
		heads.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		heads.WithObserver(heads.Observer[heads.Attempt]{End: func(_ context.Context, a heads.Attempt) {
			fmt.Println(a.Operation, a.Route, a.StatusCode, a.Number)
		}}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	headID := newHead()
	_, _ = client.Heads.Get(ctx, headID)
	// Output: Heads.Get /head/{id} 200 1
}

func Example_emulator() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada", TTSProvider: "azure"})

	client := srv.Client()
	head, err := client.Heads.Get(ctx, headID)
	fmt.Println(head.Name, err)
	// Output: Ada <nil>
}
