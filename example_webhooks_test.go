package heads_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func ExampleEventHandler() {
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	sharedKey := "example-shared-key"
	save := func(_ context.Context, sessionID string, t heads.EventType, _ time.Time) error {
		fmt.Println(sessionID, t)
		return nil
	}
	err := func() error {
		handler, err := heads.NewEventHandler(
			heads.SharedKeys(sharedKey),
			func(ctx context.Context, e *heads.Event) error {
				return save(ctx, e.SessionID, e.Type, e.Timestamp.Time)
			},
			heads.WithEventLogger(slog.Default()),
		)
		if err != nil {
			return err
		}
		mux.Handle("/webhooks/heads", handler)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
		return
	}
	request := headstest.NewEventRequest(server.URL+"/webhooks/heads", heads.Event{
		Type: heads.EventStartConversation, SessionID: "session-1", Timestamp: heads.Time{Time: time.Now()},
		HeadID: "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b",
	}, sharedKey)
	response, err := server.Client().Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output:
	// session-1 start_conversation
	// 200
}

func ExampleWebhooksService_Ensure() {
	headID := newHead()
	for range 3 { // at every start of the program
		hook, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
			HeadID: headID,
			URL:    "https://app.example.com/webhooks/heads",
			Events: []heads.EventType{heads.EventStartConversation, heads.EventEndConversation},
		}, heads.EnsureOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(hook.Events(), len(hook.Duplicates))
	}
	hooks, _ := client.Webhooks.List(ctx, headID)
	fmt.Println(len(hooks), "registration")
	// Output:
	// [start_conversation end_conversation] 0
	// [start_conversation end_conversation] 0
	// [start_conversation end_conversation] 0
	// 1 registration
}

func ExampleWebhooksService_KeySource() {
	handle := func(context.Context, *heads.Event) error { return nil }
	handler, err := heads.NewEventHandler(client.Webhooks.KeySource(), handle,
		heads.WithDeliveryObserver(heads.Observer[heads.DeliveryInfo]{End: func(ctx context.Context, d heads.DeliveryInfo) {
			fmt.Println(d.Outcome, d.Type)
		}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	// The emulator plays a session on a head that has a registration.
	headID := newHead()
	server := httptest.NewServer(handler)
	defer server.Close()
	if _, err := client.Webhooks.Ensure(ctx, heads.WebhookSpec{
		HeadID: headID, URL: server.URL, Events: []heads.EventType{heads.EventStartConversation},
	}, heads.EnsureOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.StartSession(headID).UserMessage("Hello"); err != nil {
		fmt.Println(err)
		return
	}
	delivered, err := srv.WaitDelivery(ctx, func(d headstest.Delivery) bool { return d.Final && d.Event.HeadID == headID })
	fmt.Println(delivered.Status, err)
	// Output:
	// handled start_conversation
	// 200 <nil>
}

// The heads of an organisation are known before their first event arrives.
func ExampleWithHeads() {
	headIDs := []string{newHead(), newHead()}
	keys := client.Webhooks.KeySource(heads.WithHeads(headIDs...))
	handler, err := heads.NewEventHandler(keys, func(context.Context, *heads.Event) error { return nil })
	fmt.Println(handler != nil, err)
	// Output: true <nil>
}

func ExampleEventHandler_Shutdown() {
	handle := func(context.Context, *heads.Event) error { return nil }
	handler, err := heads.NewEventHandler(heads.SharedKeys("example-shared-key"), handle, heads.WithQueue(4, 1000))
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Handler: handler}
	{
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := server.Shutdown(ctx) // the http.Server
		ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(err, handler.Shutdown(ctx)); err != nil { // then the queue
			log.Print(err)
		}
	}
	fmt.Println("done")
	// Output: done
}
