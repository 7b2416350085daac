package headstest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func ExampleNewServer() {
	srv := headstest.NewServer()
	defer srv.Close()
	id := srv.AddHead(headstest.Head{Name: "Ada"})

	head, err := srv.Client().Heads.Get(context.Background(), id)
	fmt.Println(head.Name, err)
	// Output: Ada <nil>
}

// A session causes events, like a user in a browser.
func ExampleEmulator_StartSession() {
	received := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string `json:"event_type"`
		}
		_ = json.NewDecoder(r.Body).Decode(&event)
		received <- event.Type
	}))
	defer receiver.Close()

	srv := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer srv.Close()
	id := srv.AddHead(headstest.Head{EnableEvents: true})
	if _, _, err := srv.AddWebhook(id, receiver.URL, heads.EventStartConversation); err != nil {
		fmt.Println(err)
		return
	}

	if err := srv.StartSession(id).UserMessage("Hello"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-received)
	// Output: start_conversation
}

// A fault shows what a program does while the service is busy.
func ExampleEmulator_Inject() {
	srv := headstest.NewServer()
	defer srv.Close()
	id := srv.AddHead(headstest.Head{Name: "Ada"})
	srv.Inject(headstest.Fault{Method: http.MethodGet, Route: "/head/{id}", Status: http.StatusServiceUnavailable, Times: 1})

	client := srv.Client(heads.WithRetryPolicy(heads.RetryPolicy{})) // no retry
	_, err := client.Heads.Get(context.Background(), id)
	fmt.Println(err != nil)
	_, err = client.Heads.Get(context.Background(), id)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// A handler is tested without an emulator.
func ExampleNewEventRequest() {
	const key = "shared key of the test"
	handler, err := heads.NewEventHandler(heads.SharedKeys(key), func(_ context.Context, e *heads.Event) error {
		fmt.Println(e.Type, e.SessionID)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	answer := httptest.NewRecorder()
	event := heads.Event{Type: heads.EventEndConversation, SessionID: "s-1"}
	handler.ServeHTTP(answer, headstest.NewEventRequest("https://app.example.com/events", event, key))
	fmt.Println(answer.Code)
	// Output:
	// end_conversation s-1
	// 200
}

// WaitDelivery waits for an attempt, so a test needs no sleep.
func ExampleEmulator_WaitDelivery() {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()
	srv := headstest.NewServer(headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule())
	defer srv.Close()
	id := srv.AddHead(headstest.Head{EnableEvents: true})
	if _, _, err := srv.AddWebhook(id, receiver.URL, heads.EventInactivityWarning); err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.StartSession(id).Inactive(); err != nil {
		fmt.Println(err)
		return
	}

	d, err := srv.WaitDelivery(context.Background(), func(d headstest.Delivery) bool { return d.Final })
	fmt.Println(d.Event.Type, d.Status, err)
	// Output: inactivity_warning 404 <nil>
}

// The records of an emulator can be stored in a file and imported into another.
func ExampleEmulator_Export() {
	e := headstest.NewEmulator()
	defer e.Close()
	e.AddHead(headstest.Head{Name: "Ada"})

	other := headstest.NewEmulator()
	defer other.Close()
	added, err := other.Import(e.Export())
	fmt.Println(len(added.Heads), err)
	// Output: 1 <nil>
}

// The console shows a running test in a browser.
func ExampleWithConsole() {
	srv := headstest.NewServer(headstest.WithConsole())
	defer srv.Close()
	fmt.Println(srv.URL + "/_emulator/")
}
