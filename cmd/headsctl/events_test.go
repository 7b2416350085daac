package main

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	heads "github.com/headsapi/heads-go"
)

func TestVerifyTellsRightFromWrong(t *testing.T) {
	c := newTerminal(t)
	const body = `{"event_type":"end_conversation"}`
	key := c.write("body.json", body, "key", "shared-key\n")
	signature := heads.Sign([]byte(body), "shared-key")
	c.ok("events", "verify", "--body", "body.json", "--signature", signature, "--key-file", key)
	assert.Equal(t, 0, c.with("HEADS_SHARED_KEY=shared-key").runWith(body, "events", "verify", "--body", "-", "--signature", "sha256="+signature).code)
	r := c.runWith(body+"\n", "events", "verify", "--body", "-", "--signature", signature, "--key-file", key)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "line end")
	assert.Empty(t, r.stderr)
}

func TestSendDeliversASignedEvent(t *testing.T) {
	events, statuses := make(chan *heads.Event, 2), make(chan int, 2)
	receiver := serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.NoError(t, heads.VerifySignature(body, r.Header.Get(heads.SignatureHeader), "shared-key"))
		event, err := heads.ParseEvent(body)
		assert.NoError(t, err)
		events <- event
		w.WriteHeader(<-statuses)
	})
	c := newTerminal(t).with("HEADS_SHARED_KEY=shared-key")
	send := []string{"events", "send", receiver.URL + "/x?token=s3cret", "--type", "end_conversation", "--head", someID}
	statuses <- http.StatusNoContent
	assert.Equal(t, "204 No Content\n", c.ok(append(send, "--session", "s-1")...))
	got := <-events
	assert.Equal(t, []any{heads.EventEndConversation, someID, "s-1"}, []any{got.Type, got.HeadID, got.SessionID})
	statuses <- http.StatusServiceUnavailable
	assert.Equal(t, "503 Service Unavailable\n", c.fails(1, "answered 503", send...).stdout)
	receiver.Close()
	assert.NotContains(t, c.fails(1, "check that it is running", send...).stderr, "s3cret")
}
