package inboxtest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/inboxtest"
)

func answerOf(h http.Handler, r *http.Request) int {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer.Code
}

// testVisit tests a function that is called for each event.
func testVisit(t *testing.T, visit func(context.Context, *inbox.Delivery) error) {
	in := inboxtest.Open(t)
	handler, err := in.Handler(heads.SharedKeys(sharedKey))
	if err != nil {
		t.Fatal(err)
	}
	inboxtest.Run(t, in, visit)

	event := heads.Event{Type: heads.EventStartConversation, HeadID: headID, SessionID: "session-1"}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, headstest.NewEventRequest("https://app.example.com/events", event, sharedKey))
	inboxtest.WaitHandled(t, in, 1)
}

func TestExample(t *testing.T) {
	visits := 0
	testVisit(t, func(context.Context, *inbox.Delivery) error { visits++; return nil })
	if visits != 1 {
		t.Error(visits, "visits")
	}
}
