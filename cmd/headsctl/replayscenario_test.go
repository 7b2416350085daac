package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// What the service sends is recorded, becomes a scenario that the back end passes, and
// that a bug in it fails.
func TestARecordedSessionIsAScenarioThatABugFails(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	var reply atomic.Value
	reply.Store(`{"message":"Order 7 has shipped."}`)
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		if strings.Contains(r.body, `"inactivity_warning"`) && refuse.Swap(false) {
			w.WriteHeader(http.StatusServiceUnavailable) // the service delivers it again
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply.Load().(string))
	})
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl")
	e := headstest.NewEmulator(headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule(1))
	defer e.Close()
	head := e.AddHead(headstest.Head{OperationMode: heads.OperationModeOC, EnableEvents: true})
	_, _, err := e.AddWebhook(head, l.url+"/events", heads.EventStartConversation, heads.EventInactivityWarning, heads.EventTimeoutConversation, heads.EventEndConversation)
	require.NoError(t, err)
	require.NoError(t, e.AddTool(head, json.RawMessage(`{"name":"order_status","description":"Tells where an order is.","url":"`+l.url+`/tools/order_status",`+
		`"parameters":[{"name":"order","type":"string","description":"Its number."}]}`)))
	s := e.StartSession(head)
	require.NoError(t, s.UserMessage("Hi"))
	l.line("start_conversation")
	_, err = s.CallTool(t.Context(), "order_status", map[string]any{"order": "7"})
	require.NoError(t, err)
	require.NoError(t, s.Inactive())
	l.line("→ 503")
	l.line("inactivity_warning")
	require.NoError(t, s.Timeout())
	l.line("end_conversation")
	require.Equal(t, 0, l.end(os.Interrupt))

	c.write("r.test.yaml", c.ok("replay", "r.jsonl", "--to", b.URL, "--as-test"))
	assert.Len(t, c.recorded("r.jsonl", "event"), 5, "a redelivery among them")
	c = c.with("HEADS_SHARED_KEY=key-of-the-scenario")
	refuse.Store(true)
	assert.Contains(t, c.ok("test", "r.test.yaml"), "1 passed, 0 failed")
	reply.Store(`{"message":"There is no order 7."}`)
	r := c.run("test", "r.test.yaml")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "There is no order 7.")
}
