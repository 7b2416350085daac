package heads_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

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
