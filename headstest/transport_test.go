package headstest_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestEmulatorsClientNeedsNoSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t)
		id := e.AddHead(headstest.Head{Name: "Ada"})
		e.Inject(headstest.Fault{Status: 503, RetryAfter: time.Second, Times: 2})
		start := time.Now()
		h, err := e.Client().Heads.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, "Ada", h.Name)
		assert.GreaterOrEqual(t, time.Since(start), 2*time.Second, "on the clock of the bubble")
		_, err = e.Client(heads.WithRetryPolicy(heads.RetryPolicy{})).Heads.Get(t.Context(), "22222222-2222-4222-8222-222222222222")
		assert.ErrorIs(t, err, heads.ErrNotFound)
	})
}

func TestEmulatorsClientAcceptsOptions(t *testing.T) {
	e := newEmulator(t)
	assert.Panics(t, func() { e.Client(heads.WithTokenSource(nil)) }) // a token is already set
	var seen []string
	observe := heads.WithObserver(heads.Observer[heads.Attempt]{End: func(_ context.Context, a heads.Attempt) { seen = append(seen, a.Operation) }})
	_, err := e.Client(observe).Heads.Get(t.Context(), e.AddHead(headstest.Head{}))
	require.NoError(t, err)
	assert.Equal(t, []string{"Heads.Get"}, seen)
}

// A whole program in a bubble: client, event handler and tool handler.
func TestBubbleReachesAnEventAndAToolHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		e := newEmulator(t, headstest.WithDeliveryHandler(mux))
		client := e.Client()
		id := e.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
		tools := need(heads.NewToolHandler("https://app.example.test/tools"))(t)
		type arguments struct {
			City string `json:"city" jsonschema:"The city"`
		}
		require.NoError(t, heads.AddTool(tools, "weather", "Tells the weather.", func(_ context.Context, in arguments) (string, error) {
			return "Sunny in " + in.City, nil
		}))
		mux.Handle("/tools/", tools)
		got := make(chan *heads.Event, 1)
		events, err := heads.NewEventHandler(client.Webhooks.KeySource(), func(_ context.Context, e *heads.Event) error {
			got <- e
			return nil
		})
		require.NoError(t, err)
		mux.Handle("/events", events)
		_, err = client.ConversationSettings.SetTools(t.Context(), id, tools.Tools()...)
		require.NoError(t, err)
		_, err = client.Webhooks.Ensure(t.Context(), heads.WebhookSpec{
			HeadID: id, URL: "https://app.example.test/events", Events: []heads.EventType{heads.EventStartConversation},
		}, heads.EnsureOptions{})
		require.NoError(t, err)

		session := e.StartSession(id)
		require.NoError(t, session.UserMessage("Hello"))
		assert.Equal(t, session.ID(), (<-got).SessionID)
		call := need(session.CallTool(t.Context(), "weather", map[string]any{"city": "Oslo"}))(t)
		assert.Equal(t, []any{"Sunny in Oslo", ""}, []any{call.Message, call.Problem})
		require.NoError(t, events.Shutdown(t.Context()))
	})
}

func TestDeliveryHandlerIsServedAsAServerWould(t *testing.T) {
	for _, row := range []struct {
		name   string
		handle http.HandlerFunc
		status int
		reply  string
		err    error
	}{
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, 200, "", nil},
		{"body alone", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }, 200, "ok", nil},
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); w.WriteHeader(500) }, 202, "", nil},
		{"cut", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic(http.ErrAbortHandler) }, 0, "", io.EOF},
		{"too slow", func(http.ResponseWriter, *http.Request) { <-time.After(6 * time.Second) }, 0, "", context.DeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := make(chan *http.Request, 1)
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests <- r
					row.handle(w, r)
				})
				start := time.Now()
				d, _ := deliverTo(t, "https://app.example.test/events?x=1", headstest.WithDeliveryHandler(handler))
				assert.Equal(t, []any{row.status, row.reply}, []any{d.Status, string(d.Reply)})
				require.ErrorIs(t, d.Err, row.err)
				assert.LessOrEqual(t, time.Since(start), 5*time.Second, "a handler that goes on does not hold the delivery")
				seen := <-requests
				assert.Equal(t, []any{"app.example.test", "/events?x=1"}, []any{seen.Host, seen.RequestURI})
				assert.NotEmpty(t, seen.RemoteAddr)
			})
		})
	}
}

func TestTransportRefusesAnEndedContext(t *testing.T) {
	a, id := inMemory(t).with(headstest.Head{})
	assert.ErrorIs(t, a.rename(id, 0), context.DeadlineExceeded)
	assert.Empty(t, a.Requests())
}
