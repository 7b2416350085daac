package heads_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/jarcoal/httpmock"
)

// greet is the code under test. It takes a client.
func greet(client *heads.Client, headID, text string) error {
	return client.Heads.Update(ctx, headID, heads.NewHeadUpdate().Greetings(text))
}

// The emulator keeps state, so a test can read the head after the call.
func Example_testWithTheEmulator() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada", TTSProvider: "azure", TTSVoice: "en-GB-SoniaNeural"})

	if err := greet(srv.Client(), headID, "Welcome back!"); err != nil {
		fmt.Println(err)
		return
	}

	head, err := srv.Client().Heads.Get(ctx, headID)
	fmt.Println(head.Greetings, err)
	// Output: Welcome back! <nil>
}

// The emulator can inject faults. Here the first two requests fail.
func Example_testAFailingService() {
	srv := headstest.NewServer()
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{Name: "Ada"})
	srv.Inject(headstest.Fault{Method: http.MethodPut, Route: "/head/update", Status: http.StatusServiceUnavailable, Times: 2})

	err := greet(srv.Client(), headID, "Welcome back!")

	fmt.Println(len(srv.Requests()), "requests,", err)
	// Output: 3 requests, <nil>
}

// A handler is tested with signed deliveries. That needs neither a network nor the
// emulator.
func Example_testAHandler() {
	const sharedKey = "example-shared-key"
	var greeted []string
	handler, err := heads.NewEventHandler(heads.SharedKeys(sharedKey), func(_ context.Context, e *heads.Event) error {
		greeted = append(greeted, e.SessionID)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	event := heads.Event{Type: heads.EventStartConversation, HeadID: newHead(), SessionID: "session-1"}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, headstest.NewEventRequest("https://app.example.com/webhooks/heads", event, sharedKey))

	fmt.Println(answer.Code, greeted)
	// Output: 200 [session-1]
}

// With httpmock, a test registers each answer. The client must not retry, or it
// would try a route without a responder four times.
func Example_testWithHTTPMock() {
	transport := httpmock.NewMockTransport()
	transport.RegisterResponder("PUT", "https://api.example.com/head/update", httpmock.NewStringResponder(200, ""))
	client, err := heads.New("https://api.example.com", "token",
		heads.WithHTTPClient(&http.Client{Transport: transport}),
		heads.WithRetryPolicy(heads.RetryPolicy{}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = greet(client, "3fa85f64-5717-4562-b3fc-2c963f66afa6", "Welcome back!")

	fmt.Println(transport.GetTotalCallCount(), "request,", err)
	// Output: 1 request, <nil>
}

// The emulator calls a registered tool as the service does.
func Example_testATool() {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	tools, err := heads.NewToolHandler(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	type weatherArguments struct {
		City string `json:"city" jsonschema:"City to report on"`
	}
	err = heads.AddTool(tools, "get_weather", "Weather in a city.", func(_ context.Context, in weatherArguments) (string, error) {
		return "Sunny in " + in.City, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux.Handle("/", tools)

	srv := headstest.NewServer(headstest.WithLoopbackHTTP()) // your handler is on this machine
	defer srv.Close()
	headID := srv.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
	settings, err := srv.Client().ConversationSettings.SetTools(ctx, headID, tools.Tools()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tools of the head:", len(settings.Tools))

	called, err := srv.CallTool(ctx, headID, "get_weather", map[string]any{"city": "Lisbon"})
	fmt.Println(called.Message, err)
	called, err = srv.CallTool(ctx, headID, "get_weather", nil)
	fmt.Println(called.Message, err)
	// Output:
	// tools of the head: 1
	// Sunny in Lisbon <nil>
	// city is missing; ask the user for it <nil>
}

// The first event has a wrong signature, and all others come twice. Two minutes pass in
// no time.
func TestEventsAreHandledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		emulator := headstest.NewEmulator(headstest.WithDeliveryHandler(mux))
		defer emulator.Close()
		client := emulator.Client()
		handled := make(chan heads.EventType, 100)
		events, err := heads.NewEventHandler(client.Webhooks.KeySource(), func(_ context.Context, e *heads.Event) error {
			handled <- e.Type
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle("/events", events)
		headID := emulator.AddHead(headstest.Head{Name: "Ada"})
		hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{HeadID: headID, URL: "https://app.example.com/events",
			Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation}}, heads.EnsureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("registered as webhook", hook.ID)
		emulator.InjectDelivery(headstest.DeliveryFault{CorruptSignature: true, Times: 1})
		emulator.InjectDelivery(headstest.DeliveryFault{Duplicate: true})

		for range 2 {
			session := emulator.StartSession(headID)
			if err := errors.Join(session.UserMessage("Hello"), session.Close()); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}

		if n := len(handled); n != 3 {
			t.Error(n, "events were handled")
		}
	})
}
