package heads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type observerKey struct{}

// calledWith is one call of an observer: its name, and the value that its context
// holds.
type calledWith struct {
	name    string
	context any
}

// watcher adds observers to a kind of work.
type watcher interface {
	// add adds an observer. Its functions may be nil.
	add(start func(context.Context) context.Context, end func(context.Context))
	// run does the work once and returns the value that its context holds. It
	// fails the test if the work itself does.
	run(t *testing.T) any
	// refuse returns the error for an observer without functions.
	refuse() error
}

func observerOf[T any](start func(context.Context) context.Context, end func(context.Context)) (o Observer[T]) {
	if start != nil {
		o.Start = func(ctx context.Context, _ T) context.Context { return start(ctx) }
	}
	if end != nil {
		o.End = func(ctx context.Context, _ T) { end(ctx) }
	}
	return o
}

type attemptWatcher struct {
	opts []Option
	log  *slog.Logger
}

func (w *attemptWatcher) add(start func(context.Context) context.Context, end func(context.Context)) {
	w.opts = append(w.opts, WithObserver(observerOf[Attempt](start, end)))
}

func (w *attemptWatcher) run(t *testing.T) any {
	tr := newScript(answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, append(w.opts, WithLogger(w.log))...)))
	return tr.requests[0].Context().Value(observerKey{})
}

func (w *attemptWatcher) refuse() error {
	return ErrorOf(New(memoryURL, pathToken, WithObserver(Observer[Attempt]{})))
}

type deliveryWatcher struct {
	opts []EventHandlerOption
	log  *slog.Logger
}

func (w *deliveryWatcher) add(start func(context.Context) context.Context, end func(context.Context)) {
	w.opts = append(w.opts, WithDeliveryObserver(observerOf[DeliveryInfo](start, end)))
}

func (w *deliveryWatcher) run(t *testing.T) (held any) {
	h := newReceiver(t, func(ctx context.Context, _ *Event) error {
		held = ctx.Value(observerKey{})
		return nil
	}, append(w.opts, WithEventLogger(w.log))...)
	assert.Equal(t, 200, h.event("s"))
	return held
}

func (w *deliveryWatcher) refuse() error {
	_, err := NewEventHandler(SharedKeys(testKeyA), func(context.Context, *Event) error { return nil }, WithDeliveryObserver(Observer[DeliveryInfo]{}))
	return err
}

type toolWatcher struct {
	opts []ToolHandlerOption
	log  *slog.Logger
}

func (w *toolWatcher) add(start func(context.Context) context.Context, end func(context.Context)) {
	w.opts = append(w.opts, WithToolObserver(observerOf[ToolCallInfo](start, end)))
}

func (w *toolWatcher) run(t *testing.T) (held any) {
	h := Must(NewToolHandler("https://tools.example.com", append(w.opts, WithToolLogger(w.log))...))(t)
	require.NoError(t, AddTool(h, "find", "Finds.", func(ctx context.Context, _ struct{}) (string, error) {
		held = ctx.Value(observerKey{})
		return "found", nil
	}))
	assert.Equal(t, `{"message":"found"}`, callFind(h, "{}").Body.String())
	require.NoError(t, h.Shutdown(t.Context()), "the call has ended")
	return held
}

func (w *toolWatcher) refuse() error {
	return ErrorOf(NewToolHandler("https://tools.example.com", WithToolObserver(Observer[ToolCallInfo]{})))
}

func callFind(h *ToolHandler, body string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/find", strings.NewReader(body)))
	return recorder
}

var watchers = map[string]func(*slog.Logger) watcher{
	"attempts":   func(l *slog.Logger) watcher { return &attemptWatcher{log: l} },
	"deliveries": func(l *slog.Logger) watcher { return &deliveryWatcher{log: l} },
	"tool calls": func(l *slog.Logger) watcher { return &toolWatcher{log: l} },
}

var observerRows = map[string]struct {
	names string // of the observers, in the order of their options
	seen  []calledWith
	works any
	kinds map[string]int // how often the log speaks of a panic
}{
	"one":        {names: "a", seen: []calledWith{{"start a", nil}, {"end a", "a"}}, works: "a"},
	"two":        {names: "ab", seen: []calledWith{{"start a", nil}, {"start b", "a"}, {"end b", "b"}, {"end a", "a"}}, works: "b"},
	"three":      {names: "abc", seen: []calledWith{{"start a", nil}, {"start b", "a"}, {"start c", "b"}, {"end c", "c"}, {"end b", "b"}, {"end a", "a"}}, works: "c"},
	"start only": {names: "aS", seen: []calledWith{{"start a", nil}, {"start S", "a"}, {"end a", "a"}}, works: "S"},
	"end only":   {names: "aEb", seen: []calledWith{{"start a", nil}, {"start b", "a"}, {"end b", "b"}, {"end E", "a"}, {"end a", "a"}}, works: "b"},
	"start returns nil": {names: "aNb", seen: []calledWith{{"start a", nil}, {"start N", "a"}, {"start b", "a"}, {"end b", "b"}, {"end N", "a"}, {"end a", "a"}},
		works: "b"},
	"both panic": {names: "aPb", seen: []calledWith{{"start a", nil}, {"start P", "a"}, {"start b", "a"}, {"end b", "b"}, {"end P", "a"}, {"end a", "a"}},
		works: "b", kinds: map[string]int{"start P broke": 1, "end P broke": 1}},
	"the only one panics": {names: "P", seen: []calledWith{{"start P", nil}, {"end P", nil}}, kinds: map[string]int{"start P broke": 1, "end P broke": 1}},
}

// Attempts, deliveries and tool calls are told in one way.
func TestObserversAreCalledInOneWay(t *testing.T) {
	for kind, make := range watchers {
		for name, row := range observerRows {
			Bubble(t, kind+", "+name, func(t *testing.T) {
				var log SyncBuffer
				w := make(slog.New(slog.NewTextHandler(&log, nil)))
				seen := watch(w, row.names)
				works := w.run(t)
				assert.Equal(t, row.seen, *seen)
				assert.Equal(t, row.works, works, "the context of the work")
				for text, times := range row.kinds {
					assert.Equal(t, times, strings.Count(log.String(), "heads: panic: "+text), log.String())
				}
				assert.Equal(t, len(row.kinds), strings.Count(log.String(), "an observer panicked"), log.String())
			})
		}
	}
}

// watch adds an observer for each letter: S has a Start alone and E an End, N
// returns nil, P panics.
func watch(w watcher, names string) *[]calledWith {
	var mu sync.Mutex // a queue ends its deliveries on another goroutine
	var seen []calledWith
	for _, letter := range names {
		name := string(letter)
		called := func(ctx context.Context, what string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, calledWith{what + " " + name, ctx.Value(observerKey{})})
			if name == "P" {
				panic(what + " P broke")
			}
		}
		start := func(ctx context.Context) context.Context {
			called(ctx, "start")
			if name == "N" {
				return nil
			}
			return context.WithValue(ctx, observerKey{}, name)
		}
		end := func(ctx context.Context) { called(ctx, "end") }
		switch name {
		case "S":
			w.add(start, nil)
		case "E":
			w.add(nil, end)
		default:
			w.add(start, end)
		}
	}
	return &seen
}

func TestObserverThatIsToldNothingIsRefused(t *testing.T) {
	for kind, make := range watchers {
		t.Run(kind, func(t *testing.T) {
			faults := invalidErrors(t, make(slog.New(slog.DiscardHandler)).refuse())
			require.Len(t, faults, 1)
			assert.Equal(t, "has neither Start nor End", faults[0].Problem)
		})
	}
}

func TestAttemptSaysWhetherAnotherFollows(t *testing.T) {
	for name, row := range map[string]struct {
		policy RetryPolicy
		steps  []step
		final  []bool
		waits  bool
	}{
		"success":                {RetryPolicy{MaxRetries: 2}, []step{answer(200, headJSON)}, []bool{true}, false},
		"a retry without a wait": {RetryPolicy{MaxRetries: 2}, []step{answer(503, ""), answer(200, headJSON)}, []bool{false, true}, false},
		"a retry with a wait": {RetryPolicy{MaxRetries: 2, MaxWait: 1e10}, []step{answer(503, "", "Retry-After: 1"), answer(200, headJSON)},
			[]bool{false, true}, true},
		"no retry left": {RetryPolicy{MaxRetries: 1}, []step{answer(503, "")}, []bool{false, true}, false},
		"refused":       {RetryPolicy{MaxRetries: 1}, []step{answer(400, "")}, []bool{true}, false},
	} {
		Bubble(t, name, func(t *testing.T) {
			var final []bool
			observer := Observer[Attempt]{End: func(_ context.Context, a Attempt) {
				final = append(final, a.Final)
				assert.Equal(t, row.waits && !a.Final, a.RetryIn > 0, "the wait, 0 for none")
			}}
			_ = getHead(t.Context(), newTestClient(t, memoryURL, newScript(row.steps...), WithRetryPolicy(row.policy), WithObserver(observer)))
			assert.Equal(t, row.final, final)
		})
	}
}

func TestAttemptObserversAddToTheHeaderOfOneAttempt(t *testing.T) {
	start := func(entries ...string) Option {
		return WithObserver(Observer[Attempt]{Start: func(ctx context.Context, a Attempt) context.Context {
			assert.Equal(t, http.Header{}, a.Header, "the credential is not shown, nor what another observer adds")
			for i := 0; a.Number == 1 && i < len(entries); i += 2 {
				a.Header[entries[i]] = []string{entries[i+1]}
			}
			return ctx
		}})
	}
	tr := newScript(answer(503, ""), answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr,
		start("traceparent", "00-1", "Authorization", "Bearer other", "Accept", "text/html", "Cookie", "a=b", "Host", "evil.example.com"),
		start("Traceparent", "00-2", "Baggage", "c=d"))))
	own := http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer " + pathToken}, "User-Agent": {userAgent}}
	assert.Equal(t, own, tr.requests[1].Header)
	own["Traceparent"], own["Baggage"] = []string{"00-2"}, []string{"c=d"}
	assert.Equal(t, own, tr.requests[0].Header)
}

func TestDeliveryObserversAreToldOfEveryDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		h := newReceiver(t, returning(errors.New("broken")), WithDeliveryObserver(Observer[DeliveryInfo]{
			Start: func(ctx context.Context, info DeliveryInfo) context.Context {
				order = append(order, fmt.Sprint("start ", info == DeliveryInfo{}))
				return ctx
			},
			End: func(_ context.Context, info DeliveryInfo) { order = append(order, "end "+string(info.Outcome)) },
		}))
		serveEvent(h, httptest.NewRequest(http.MethodGet, "/webhooks", nil))
		h.post(recentEventBody(testHeadA, "s"), testKeyB)
		h.event("s")
		require.NoError(t, h.Shutdown(t.Context()))
		h.event("s")
		assert.Equal(t, []string{"start true", "end bad_method", "start true", "end unauthorized", "start true", "end failed", "start true", "end shut_down"}, order)
	})
}

// The key source, and the check of a tool call, run with the context of Start.
func TestWorkBeforeTheFunctionHasTheContextOfStart(t *testing.T) {
	mark := func(ctx context.Context) context.Context { return context.WithValue(ctx, observerKey{}, "a") }
	keys := keyFunc(func(ctx context.Context, _ KeyHint) ([]string, error) {
		assert.Equal(t, "a", ctx.Value(observerKey{}))
		return []string{testKeyA}, nil
	})
	events := newReceiverOf(t, keys, nil, WithDeliveryObserver(observerOf[DeliveryInfo](mark, nil)))
	assert.Equal(t, 200, events.event("s"))

	checked := false
	tools := Must(NewToolHandler("https://tools.example.com", WithToolObserver(observerOf[ToolCallInfo](mark, nil)), WithToolAuth(func(r *http.Request) error {
		checked = true
		assert.Equal(t, "a", r.Context().Value(observerKey{}))
		return nil
	})))(t)
	require.NoError(t, AddTool(tools, "find", "Finds.", func(context.Context, struct{}) (string, error) { return "found", nil }))
	callFind(tools, "{}")
	assert.True(t, checked)
}

func TestToolObserversStartOnceTheToolIsFound(t *testing.T) {
	var told []ToolCallInfo
	h := Must(NewToolHandler("https://tools.example.com", WithToolObserver(Observer[ToolCallInfo]{
		Start: func(ctx context.Context, i ToolCallInfo) context.Context { told = append(told, i); return ctx },
		End:   func(_ context.Context, i ToolCallInfo) { i.Duration, i.Err = 0, nil; told = append(told, i) },
	})))(t)
	require.NoError(t, AddTool(h, "find", "Finds.", func(context.Context, struct{}) (string, error) { return "found", nil }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/no_such_tool", strings.NewReader("{}")))
	assert.Empty(t, told)
	callFind(h, "{")
	callFind(h, `{"session_metadata":{"session_id":"s-1"}}`)
	require.NoError(t, h.Shutdown(t.Context()))
	callFind(h, "{}")
	assert.Equal(t, []ToolCallInfo{
		{Tool: "find"}, {Tool: "find", Outcome: ToolUnreadable},
		{Tool: "find"}, {Tool: "find", Outcome: ToolAnswered, SessionID: "s-1"},
		{Tool: "find"}, {Tool: "find", Outcome: ToolBusy},
	}, told)
}

func TestObserverSeesEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := context.WithValue(t.Context(), observerKey{}, "mine")
		var starts, ends []Attempt
		slow := func(r *http.Request) (*http.Response, error) {
			<-time.After(3 * time.Second)
			return answer(200, headJSON, "X-Request-Id: r-3")(r)
		}
		tr := newScript(answer(503, `{"message":"busy"}`, "Retry-After: 2", "X-Request-Id: r-1"),
			fail(&url.Error{Op: "Get", URL: "https://api.example.com/x?key=hush-hush", Err: errors.New("with " + pathToken)}), slow)
		client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 3, MinWait: time.Second, MaxWait: 5 * time.Second}),
			WithObserver(Observer[Attempt]{
				Start: func(_ context.Context, a Attempt) context.Context { starts = append(starts, a); return nil },
				End: func(ctx context.Context, a Attempt) {
					assert.Equal(t, mine, ctx, "the context of the call")
					ends = append(ends, a)
				},
			}))
		require.NoError(t, getHead(mine, client))

		attempt := func(number int, header http.Header) Attempt {
			return Attempt{Operation: "Heads.Get", Method: "GET", Host: "api.example.com", Route: "/head/{id}", Number: number, Header: header}
		}
		none := http.Header{}
		assert.Equal(t, []Attempt{attempt(1, none), attempt(2, none), attempt(3, none)}, starts, "the label, not the path")

		require.Len(t, ends, 3)
		first, second, third := attempt(1, nil), attempt(2, nil), attempt(3, nil)
		require.ErrorIs(t, ends[0].Err, ErrServer)
		require.ErrorContains(t, ends[0].Err, "busy")
		first.StatusCode, first.RequestID, first.RetryIn, first.Err = 503, "r-1", 2*time.Second, ends[0].Err
		require.EqualError(t, ends[1].Err, `Get "https://api.example.com/x": with [redacted]`)
		assert.Positive(t, ends[1].RetryIn)
		assert.LessOrEqual(t, ends[1].RetryIn, 2*time.Second)
		second.RetryIn, second.Err = ends[1].RetryIn, ends[1].Err
		third.StatusCode, third.RequestID, third.Duration, third.Final = 200, "r-3", 3*time.Second, true
		assert.Equal(t, []Attempt{first, second, third}, ends)
	})
}

func TestObserverDoesNotSeeWhatWasNotSent(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(200, "")), WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { panic("told") }}))
	require.ErrorIs(t, ErrorOf(client.Heads.Get(t.Context(), "li-28379")), ErrInvalid)
}

func TestErrorOfAnAttemptHasNeitherBodyNorHeader(t *testing.T) {
	var got Attempt
	client := newTestClient(t, memoryURL, newScript(answer(400, `{"message":"no","extra":"x"}`, "Set-Cookie: a=b")),
		WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { got = a }}))
	require.Error(t, getHead(t.Context(), client))
	failure := As[*Error](t, got.Err)
	assert.Equal(t, "no", failure.Message)
	assert.Zero(t, failure.Body.Len())
	assert.Nil(t, failure.Header)
}

func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		tr := newScript(answer(503, `{"message":"busy"}`, "Retry-After: 2", "X-Request-Id: r-1"),
			fail(errors.New("lost with "+pathToken)), answer(200, "[]", "X-Request-Id: r-3"))
		client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 3, MaxWait: 5 * time.Second}), WithLogger(logger))
		Must(client.Webhooks.List(t.Context(), testHead))(t)
		assert.Equal(t, strings.Join([]string{
			`level=WARN msg="heads: attempt" operation=Webhooks.List method=GET route=/head-events attempt=1 status=503 duration=0s request_id=r-1 error="heads: Webhooks.List: GET /head-events: 503 Service Unavailable: busy (retry after 2s) [request r-1]" retry_in=2s`,
			`level=WARN msg="heads: attempt" operation=Webhooks.List method=GET route=/head-events attempt=2 status=0 duration=0s error="lost with [redacted]" retry_in=0s`,
			`level=DEBUG msg="heads: attempt" operation=Webhooks.List method=GET route=/head-events attempt=3 status=200 duration=0s request_id=r-3`,
			``,
		}, "\n"), out.String())
	})
}
