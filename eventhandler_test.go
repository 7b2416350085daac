package heads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go/internal/httpbody"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recentEventBody is the body of an event that happens now, in the given session.
func recentEventBody(headID, sessionID string) string {
	return eventBody(headID, sessionID, "start_conversation", time.Now().UTC().Format("2006-01-02 15:04:05"))
}

// signedEvent returns a delivery as the service sends it.
func signedEvent(body, sharedKey string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(SignatureHeader, Sign([]byte(body), sharedKey))
	return r
}

func serveEvent(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// receiver is a handler that keeps what its function and its observer see, and its log.
type receiver struct {
	*EventHandler
	calls atomic.Int32
	log   SyncBuffer

	mu   sync.Mutex
	seen []DeliveryInfo
}

// newReceiver returns a receiver of the events of two heads. If handle is nil, its
// function returns nil.
func newReceiver(t *testing.T, handle func(context.Context, *Event) error, opts ...EventHandlerOption) *receiver {
	t.Helper()
	return newReceiverOf(t, HeadKeys(map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}), handle, opts...)
}

func newReceiverOf(t *testing.T, keys KeySource, handle func(context.Context, *Event) error, opts ...EventHandlerOption) *receiver {
	t.Helper()
	r := &receiver{}
	all := []EventHandlerOption{
		WithEventLogger(slog.New(slog.NewTextHandler(&r.log, nil))),
		WithDeliveryObserver(Observer[DeliveryInfo]{End: func(_ context.Context, info DeliveryInfo) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen = append(r.seen, info)
		}}),
	}
	r.EventHandler = Must(NewEventHandler(keys, func(ctx context.Context, e *Event) error {
		r.calls.Add(1)
		if handle == nil {
			return nil
		}
		return handle(ctx, e)
	}, append(all, opts...)...))(t)
	return r
}

// post sends a delivery and returns the status of the answer.
func (r *receiver) post(body, sharedKey string) int {
	return serveEvent(r, signedEvent(body, sharedKey)).Code
}

// event posts an event of a session that happens now.
func (r *receiver) event(sessionID string) int {
	return r.post(recentEventBody(testHeadA, sessionID), testKeyA)
}

func (r *receiver) outcomes() (outcomes []DeliveryOutcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, info := range r.seen {
		outcomes = append(outcomes, info.Outcome)
	}
	return outcomes
}

// returning is a function for events that returns err.
func returning(err error) func(context.Context, *Event) error {
	return func(context.Context, *Event) error { return err }
}

// keyFunc is a key source that is a function.
type keyFunc func(context.Context, KeyHint) ([]string, error)

func (f keyFunc) Keys(ctx context.Context, hint KeyHint) ([]string, error) { return f(ctx, hint) }

func goroutineID() string {
	var buf [64]byte
	text := string(buf[:runtime.Stack(buf[:], false)])
	return strings.Fields(text)[1]
}

func TestHandlerPassesAVerifiedEvent(t *testing.T) {
	type contextKey struct{}
	body := recentEventBody(testHeadA, "session-1")
	want := Must(ParseEvent([]byte(body)))(t)
	var got *Event
	goroutine := goroutineID()
	h := newReceiver(t, func(ctx context.Context, e *Event) error {
		got = e
		assert.Equal(t, goroutine, goroutineID(), "the function runs on the goroutine of the request")
		assert.Equal(t, "of the request", ctx.Value(contextKey{}))
		return nil
	})

	r := signedEvent(body, testKeyA)
	w := serveEvent(h, r.WithContext(context.WithValue(r.Context(), contextKey{}, "of the request")))

	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, w.Body.String())
	assert.Equal(t, want, got)
	require.Len(t, h.seen, 1)
	info := h.seen[0]
	assert.Positive(t, info.Duration)
	assert.Positive(t, info.HandleDuration)
	info.Duration, info.HandleDuration = 0, 0
	assert.Equal(t, DeliveryInfo{
		Outcome: DeliveryHandled, StatusCode: 200, Type: EventStartConversation,
		HeadID: testHeadA, SessionID: "session-1", KeyPosition: 1,
	}, info)
}

// An event must not change when its buffer is used for the next body.
func TestEventKeepsItsBody(t *testing.T) {
	var events []*Event
	h := newReceiver(t, func(_ context.Context, e *Event) error {
		events = append(events, e)
		return nil
	})
	var bodies []string
	for i := range 20 {
		body := recentEventBody(testHeadA, fmt.Sprintf("session-%d", i))
		bodies = append(bodies, body)
		require.Equal(t, http.StatusOK, h.post(body, testKeyA))
	}
	require.Len(t, events, len(bodies))
	for i, e := range events {
		assert.Equal(t, bodies[i], string(e.Raw.Bytes()))
	}
}

func TestHandlerRefuses(t *testing.T) {
	good := recentEventBody(testHeadA, "s")
	request := func(change func(*http.Request)) *http.Request {
		r := signedEvent(good, testKeyA)
		change(r)
		return r
	}
	for _, row := range []struct {
		name    string
		request *http.Request
		status  int
		outcome DeliveryOutcome
		err     error
	}{
		{"GET", request(func(r *http.Request) { r.Method = http.MethodGet }), 405, DeliveryBadMethod, nil},
		{"HEAD", request(func(r *http.Request) { r.Method = http.MethodHead }), 405, DeliveryBadMethod, nil},
		{"PUT", request(func(r *http.Request) { r.Method = http.MethodPut }), 405, DeliveryBadMethod, nil},
		{"a long method", request(func(r *http.Request) { r.Method = strings.Repeat("M", 100000) }), 405, DeliveryBadMethod, nil},
		{"no body", signedEvent("", testKeyA), 400, DeliveryBadBody, httpbody.ErrEmpty},
		{"nil body", request(func(r *http.Request) { r.Body, r.ContentLength = nil, 0 }), 400, DeliveryBadBody, httpbody.ErrEmpty},
		{"empty chunked body", request(func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), -1 }), 400, DeliveryBadBody, httpbody.ErrEmpty},
		{"body eaten", request(func(r *http.Request) { _, _ = io.ReadAll(r.Body) }), 400, DeliveryBadBody, ErrBodyConsumed},
		{"body taken away", request(func(r *http.Request) { r.Body = http.NoBody }), 400, DeliveryBadBody, ErrBodyConsumed},
		{"body closed", request(func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(http.ErrBodyReadAfterClose)) }), 400, DeliveryBadBody, ErrBodyConsumed},
		{"body breaks off", request(func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) }), 400, DeliveryBadBody, io.ErrUnexpectedEOF},
		{"not JSON", signedEvent("hello", testKeyA), 400, DeliveryBadBody, nil},
		{"JSON of another shape", signedEvent(`[`+good+`]`, testKeyA), 400, DeliveryBadBody, nil},
		{"deep nesting", signedEvent(strings.Repeat("[", 60000), testKeyA), 400, DeliveryBadBody, nil},
		{"one byte too many", signedEvent(paddedBody(good, 64<<10+1), testKeyA), 413, DeliveryTooLarge, nil},
		{"one byte too many, chunked", chunkedEvent(signedEvent(paddedBody(good, 64<<10+1), testKeyA)), 413, DeliveryTooLarge, nil},
		{"no signature", request(func(r *http.Request) { r.Header.Del(SignatureHeader) }), 401, DeliveryUnauthorized, ErrSignatureMissing},
		{"empty signature", request(func(r *http.Request) { r.Header.Set(SignatureHeader, "") }), 401, DeliveryUnauthorized, ErrSignatureMissing},
		{"malformed signature", request(func(r *http.Request) { r.Header.Set(SignatureHeader, "sha256=abc") }), 401, DeliveryUnauthorized, ErrSignatureMalformed},
		{"right signature twice", request(func(r *http.Request) { r.Header.Add(SignatureHeader, Sign([]byte(good), testKeyA)) }), 401, DeliveryUnauthorized, ErrSignatureMalformed},
		{"wrong signature, then the right one", request(func(r *http.Request) {
			r.Header[SignatureHeader] = []string{Sign([]byte(good), testKeyB), Sign([]byte(good), testKeyA)}
		}), 401, DeliveryUnauthorized, ErrSignatureMalformed},
		{"signed with another key", signedEvent(good, "another key"), 401, DeliveryUnauthorized, ErrSignatureMismatch},
		{"signed with another head's key", signedEvent(good, testKeyB), 401, DeliveryUnauthorized, ErrSignatureMismatch},
		{"signed with an empty key", signedEvent(good, ""), 401, DeliveryUnauthorized, ErrSignatureMismatch},
		{"signature of another body", request(func(r *http.Request) {
			r.Header.Set(SignatureHeader, Sign([]byte(recentEventBody(testHeadA, "other")), testKeyA))
		}), 401, DeliveryUnauthorized, ErrSignatureMismatch},
		{"unknown head", signedEvent(recentEventBody("00000000-0000-4000-8000-000000000000", "s"), testKeyA), 401, DeliveryUnauthorized, ErrNoSharedKey},
		{"no head", signedEvent(`{"event_type":"start_conversation"}`, testKeyA), 401, DeliveryUnauthorized, ErrNoSharedKey},
		{"the decoy key", signedEvent(recentEventBody("unknown", "s"), decoyKeys[0]), 401, DeliveryUnauthorized, ErrNoSharedKey},
		{"two heads", signedEvent(`{"event_type":"x","head_id":"a","head_id":"b"}`, testKeyA), 400, DeliveryBadBody, nil},
		{"forged and too old", signedEvent(eventBody(testHeadA, "s", "x", "2020-01-01 00:00:00"), "wrong"), 401, DeliveryUnauthorized, ErrSignatureMismatch},
		{"too old", signedEvent(eventBody(testHeadA, "s", "x", "2020-01-01 00:00:00"), testKeyA), 400, DeliveryStale, nil},
		{"from the future", signedEvent(eventBody(testHeadA, "s", "x", "2220-01-01 00:00:00"), testKeyA), 400, DeliveryStale, nil},
		{"from a future beyond the range of a duration", signedEvent(eventBody(testHeadA, "s", "x", "9999-01-01 00:00:00"), testKeyA), 400, DeliveryStale, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked, claimed := 0, newSharedStore()
			keys := keyFunc(func(_ context.Context, hint KeyHint) ([]string, error) {
				asked++
				return map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}[hint.HeadID], nil
			})
			h := newReceiverOf(t, keys, nil, WithDeduplicator(claimed))
			w := serveEvent(h, row.request)
			assert.Equal(t, row.status, w.Code)
			assert.Equal(t, http.StatusText(row.status)+"\n", w.Body.String(), "the answer says no more than its status")
			assert.Equal(t, row.status == http.StatusMethodNotAllowed, w.Header().Get("Allow") == "POST")
			if row.status == http.StatusUnauthorized {
				header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Content-Type-Options": {"nosniff"}}
				assert.Equal(t, header, w.Header(), "an attacker does not learn which heads are known")
			}
			assert.Zero(t, h.calls.Load(), "the function must not run")
			assert.Empty(t, claimed.methods(), "nothing is claimed")
			signed := row.outcome == DeliveryUnauthorized && !errors.Is(row.err, ErrSignatureMissing) && !errors.Is(row.err, ErrSignatureMalformed)
			assert.Equal(t, signed || row.outcome == DeliveryStale, asked > 0, "asking a source may be expensive")
			require.Equal(t, []DeliveryOutcome{row.outcome}, h.outcomes())
			assert.Equal(t, row.status, h.seen[0].StatusCode)
			require.Error(t, h.seen[0].Err)
			if row.err != nil {
				assert.ErrorIs(t, h.seen[0].Err, row.err)
			}
			if row.outcome != DeliveryStale {
				assert.Empty(t, h.seen[0].HeadID, "nothing is known of who sent it")
				assert.Empty(t, h.seen[0].Type)
			}
			log := h.log.String()
			assert.Equal(t, 1, strings.Count(log, "\n"), "one line a delivery: %s", log)
			assert.Contains(t, log, "outcome="+string(row.outcome))
			assert.Equal(t, errors.Is(row.err, ErrBodyConsumed), strings.Contains(log, "before middleware that reads bodies"))
			assert.Less(t, len(log), 2000)
		})
	}
}

// paddedBody returns the body with space up to the given length.
func paddedBody(body string, length int) string { return body + strings.Repeat(" ", length-len(body)) }

func chunkedEvent(r *http.Request) *http.Request {
	r.ContentLength = -1
	return r
}

func TestBodyOfExactlyTheLimitIsAccepted(t *testing.T) {
	h := newReceiver(t, nil)
	assert.Equal(t, http.StatusOK, h.post(paddedBody(recentEventBody(testHeadA, "1"), 64<<10), testKeyA))
	assert.Equal(t, http.StatusOK, serveEvent(h, chunkedEvent(signedEvent(paddedBody(recentEventBody(testHeadA, "2"), 64<<10), testKeyA))).Code)
	assert.EqualValues(t, 2, h.calls.Load())
}

// endlessBody counts what is read from it.
type endlessBody struct{ read int }

func (r *endlessBody) Read(p []byte) (int, error) {
	r.read += len(p)
	return len(p), nil
}

func TestHugeBodyIsNotRead(t *testing.T) {
	h := newReceiver(t, nil)
	for _, length := range []int64{1 << 30, -1} {
		body := &endlessBody{}
		r := signedEvent("{}", testKeyA)
		r.Body, r.ContentLength = io.NopCloser(body), length
		w := serveEvent(h, r)
		assert.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		assert.Equal(t, "close", w.Header().Get("Connection"))
		assert.LessOrEqual(t, body.read, maxEventBody+1)
		if length > 0 {
			assert.Zero(t, body.read, "its length is enough to know")
		}
	}
}

func TestUnreadableTimeLosesNoEvent(t *testing.T) {
	for _, timestamp := range []string{`""`, `"31.08.2026, about seven"`, `1788159390`, `null`, `{}`} {
		h := newReceiver(t, nil)
		body := `{"event_type":"x","head_id":"` + testHeadA + `","timestamp":` + timestamp + `}`
		assert.Equal(t, http.StatusOK, h.post(body, testKeyA), timestamp)
		assert.EqualValues(t, 1, h.calls.Load(), timestamp)
	}
}

func TestMaxAgeIsExact(t *testing.T) {
	hours := []EventHandlerOption{WithMaxAge(time.Hour, time.Minute)}
	for _, row := range []struct {
		name   string
		offset time.Duration
		opts   []EventHandlerOption
		status int
	}{
		{"as old as allowed", -time.Hour, hours, 200},
		{"older", -time.Hour - time.Nanosecond, hours, 400},
		{"as early as allowed", time.Minute, hours, 200},
		{"earlier", time.Minute + time.Nanosecond, hours, 400},
		{"as old as the default", -24 * time.Hour, nil, 200},
		{"older than the default", -24*time.Hour - time.Nanosecond, nil, 400},
		{"as early as the default", 5 * time.Minute, nil, 200},
		{"earlier than the default", 5*time.Minute + time.Nanosecond, nil, 400},
	} {
		Bubble(t, row.name, func(t *testing.T) {
			h := newReceiver(t, nil, row.opts...)
			body := eventBody(testHeadA, "s", "x", time.Now().Add(row.offset).UTC().Format(time.RFC3339Nano))
			assert.Equal(t, row.status, h.post(body, testKeyA))
		})
	}
}

// A recorded delivery is never handled again: at first it is a duplicate, then it
// is too old. The memory must last longer than that.
func TestReplayNeverRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReceiver(t, nil)
		// As far in the future as allowed, so it can be replayed for the longest time.
		body := eventBody(testHeadA, "s", "x", time.Now().Add(5*time.Minute).UTC().Format(time.RFC3339))
		require.Equal(t, 200, h.post(body, testKeyA))
		for range 24*60 + 10 {
			<-time.After(time.Minute)
			h.post(body, testKeyA)
		}
		assert.EqualValues(t, 1, h.calls.Load())
		assert.Equal(t, 400, h.post(body, testKeyA))
	})
}

func TestKeysNeverCrossHeads(t *testing.T) {
	names := []string{"head_id", "HEAD_ID", "Head_Id", "hEAD_iD", `head\u005fid`, `\u0048ead_id`}
	values := []string{`"` + testHeadA + `"`, `"` + testHeadB + `"`, `"` + strings.ToUpper(testHeadA) + `"`, `null`, `""`, `["` + testHeadA + `"]`,
		`"\u0033` + testHeadA[1:] + `"`, `{"head_id":"` + testHeadA + `"}`}
	for name, keys := range map[string]KeySource{
		"HeadKeys": HeadKeys(map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}),
		"Webhooks.KeySource": newCachedKeys(newKeyCache(func(_ context.Context, headID string, _ bool) ([]string, error) {
			return map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}[headID], nil
		})),
	} {
		t.Run(name, func(t *testing.T) {
			delivered := 0
			h := newReceiverOf(t, keys, func(_ context.Context, e *Event) error {
				delivered++
				assert.Equal(t, testHeadB, e.HeadID)
				return nil
			})
			try := func(members ...string) {
				body := `{"event_type":"x","session_id":"` + fmt.Sprint(delivered) + `",` + strings.Join(members, ",") + `}`
				before := delivered
				code := h.post(body, testKeyB)
				if code == http.StatusOK || delivered > before {
					assert.NotContains(t, strings.ToLower(body), testHeadA, "an event of head A was handled")
				}
			}
			for _, name1 := range names {
				for _, value1 := range values {
					try(`"` + name1 + `":` + value1)
					for _, name2 := range names {
						for _, value2 := range values {
							try(`"`+name1+`":`+value1, `"`+name2+`":`+value2)
							try(`"`+name1+`":`+value1, `"`+name2+`":`+value2, `"`+name1+`":`+value1)
						}
					}
				}
			}
			assert.Equal(t, len(names), delivered, "each spelling of head B's own id, given once, is delivered")
		})
	}
}

func TestHandlerAsksForNewerKeysOnce(t *testing.T) {
	var hints []KeyHint
	keys := []string{"old key"}
	source := keyFunc(func(_ context.Context, hint KeyHint) ([]string, error) {
		hints = append(hints, hint)
		if hint.Mismatch {
			return []string{"new key", testKeyA}, nil
		}
		return keys, nil
	})
	h := newReceiverOf(t, source, nil)

	r := signedEvent(recentEventBody(testHeadA, "1"), testKeyA)
	assert.Equal(t, 200, serveEvent(h, r).Code)
	require.Len(t, hints, 2)
	assert.Equal(t, KeyHint{HeadID: testHeadA, Request: r}, hints[0])
	assert.Equal(t, KeyHint{HeadID: testHeadA, Request: r, Mismatch: true}, hints[1])
	assert.Equal(t, 2, h.seen[0].KeyPosition)

	hints = nil
	assert.Equal(t, 401, h.post(recentEventBody(testHeadA, "2"), "wrong"))
	assert.Len(t, hints, 2)

	hints = nil
	assert.Equal(t, 200, h.post(recentEventBody(testHeadA, "3"), "old key"))
	assert.Len(t, hints, 1)

	hints, keys = nil, nil
	assert.Equal(t, 401, h.post(recentEventBody(testHeadA, "4"), testKeyA))
	assert.Len(t, hints, 1, "a head without keys has no mismatch")
}

func TestFailingKeySourceAnswers503(t *testing.T) {
	broken := errors.New("source is broken")
	for name, source := range map[string]keyFunc{
		"at once":        func(context.Context, KeyHint) ([]string, error) { return nil, broken },
		"keys and error": func(context.Context, KeyHint) ([]string, error) { return []string{testKeyA}, broken },
		"after a mismatch": func(_ context.Context, hint KeyHint) ([]string, error) {
			if hint.Mismatch {
				return nil, broken
			}
			return []string{"old key"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newReceiverOf(t, source, nil)
			assert.Equal(t, 503, h.event("s"))
			assert.Zero(t, h.calls.Load())
			assert.Equal(t, []DeliveryOutcome{DeliveryKeysFailed}, h.outcomes())
			assert.ErrorIs(t, h.seen[0].Err, broken)
		})
	}
}

func TestThousandTwinsRunOnce(t *testing.T) {
	release := make(chan struct{})
	h := newReceiver(t, func(context.Context, *Event) error {
		<-release
		return nil
	})
	body := recentEventBody(testHeadA, "s")
	var statuses [1000]int
	var wg, answered sync.WaitGroup
	answered.Add(len(statuses) - 1) // all but the one that runs
	var once atomic.Int32
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = h.post(body, testKeyA)
			if once.Add(1) < int32(len(statuses)) {
				answered.Done()
			}
		})
	}
	answered.Wait()
	close(release)
	wg.Wait()
	byStatus := map[int]int{}
	for _, status := range statuses {
		byStatus[status]++
	}
	assert.Equal(t, map[int]int{200: 1, 503: 999}, byStatus)
	assert.EqualValues(t, 1, h.calls.Load())
	assert.Equal(t, 200, h.post(body, testKeyA), "twins that come later are done")
	assert.EqualValues(t, 1, h.calls.Load())
}

func TestTwinsRunAgainAfterAFailure(t *testing.T) {
	var h *receiver
	h = newReceiver(t, func(context.Context, *Event) error {
		if h.calls.Load() < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	body := recentEventBody(testHeadA, "s")
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if code := h.post(body, testKeyA); code != 200 && code != 503 {
				t.Errorf("answered %d", code)
			}
		})
	}
	wg.Wait()
	for range 3 { // all twins may have waited for the same failing run
		h.post(body, testKeyA)
	}
	assert.EqualValues(t, 3, h.calls.Load(), "two failures, one success, and never again")
	assert.Equal(t, 200, h.post(body, testKeyA))
}

// How the function ends, what the sender is answered, and what happens to the next
// delivery of the same event.
func TestCrashTable(t *testing.T) {
	for _, row := range []struct {
		name      string
		first     func(ctx context.Context) error
		status    int
		outcome   DeliveryOutcome
		after     time.Duration
		runsAgain bool
	}{
		{"returns nil", func(context.Context) error { return nil }, 200, DeliveryHandled, 0, false},
		{"returns an error", func(context.Context) error { return errors.New("failed") }, 503, DeliveryFailed, 0, true},
		{"returns an error without a text", func(context.Context) error { return (*brokenError)(nil) }, 503, DeliveryFailed, 0, true},
		{"returns ErrDuplicate", func(context.Context) error { return ErrDuplicate }, 200, DeliveryDuplicate, 0, false},
		{"wraps ErrDuplicate", func(context.Context) error { return fmt.Errorf("insert: %w", ErrDuplicate) }, 200, DeliveryDuplicate, 0, false},
		{"joins ErrDuplicate", func(context.Context) error { return errors.Join(errors.New("late"), ErrDuplicate) }, 200, DeliveryDuplicate, 0, false},
		{"panics", func(context.Context) error { panic("broken") }, 500, DeliveryPanicked, 0, true},
		{"panics with an error", func(context.Context) error { panic(http.ErrAbortHandler) }, 500, DeliveryPanicked, 0, true},
		{"heeds its deadline", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, 503, DeliveryTimedOut, 4 * time.Second, true},
		{"overruns, then returns nil", func(context.Context) error {
			<-time.After(time.Minute)
			return nil
		}, 200, DeliveryHandled, time.Minute, false},
		{"overruns, then returns an error", func(context.Context) error {
			<-time.After(time.Minute)
			return errors.New("failed")
		}, 503, DeliveryTimedOut, time.Minute, true},
		{"overruns, then panics", func(context.Context) error {
			<-time.After(time.Minute)
			panic("broken")
		}, 500, DeliveryPanicked, time.Minute, true},
	} {
		Bubble(t, row.name, func(t *testing.T) {
			var h *receiver
			h = newReceiver(t, func(ctx context.Context, _ *Event) error {
				if h.calls.Load() > 1 {
					return nil
				}
				return row.first(ctx)
			})
			body := recentEventBody(testHeadA, "s")

			begun := time.Now()
			first := serveEvent(h, signedEvent(body, testKeyA))
			assert.Equal(t, row.status, first.Code)
			assert.Equal(t, row.after, time.Since(begun))
			assert.NotContains(t, first.Body.String(), "broken")
			assert.NotContains(t, first.Body.String(), "failed")

			assert.Equal(t, 200, h.post(body, testKeyA))
			want := []DeliveryOutcome{row.outcome, DeliveryDuplicate}
			if row.runsAgain {
				want[1] = DeliveryHandled
			}
			assert.Equal(t, want, h.outcomes())
			assert.Equal(t, row.after, h.seen[0].HandleDuration)
			assert.Equal(t, row.runsAgain, h.seen[0].Err != nil)
		})
	}
}

func TestTwinOfAnOverrunningFunctionIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReceiver(t, after(time.Hour))
		body := recentEventBody(testHeadA, "s")
		go h.post(body, testKeyA)
		for range 30 {
			<-time.After(time.Minute)
			begun := time.Now()
			assert.Equal(t, 503, h.post(body, testKeyA))
			assert.Zero(t, time.Since(begun), "it is seen in memory, and not waited for")
		}
		<-time.After(time.Hour)
		assert.Equal(t, 200, h.post(body, testKeyA))
		assert.EqualValues(t, 1, h.calls.Load())
	})
}

func TestFunctionEndedByGoexitReleasesItsClaim(t *testing.T) {
	var h *receiver
	h = newReceiver(t, func(context.Context, *Event) error {
		if h.calls.Load() == 1 {
			runtime.Goexit()
		}
		return nil
	})
	body := recentEventBody(testHeadA, "s")
	var wg sync.WaitGroup
	wg.Go(func() { h.post(body, testKeyA) })
	wg.Wait()
	assert.Equal(t, 200, h.post(body, testKeyA))
	assert.EqualValues(t, 2, h.calls.Load())
	assert.NoError(t, h.Shutdown(t.Context()))
}

// The 5 seconds of the service begin when the delivery arrives, not when the
// function is called.
func TestDeadlineStartsWithTheArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		slow := keyFunc(func(ctx context.Context, _ KeyHint) ([]string, error) {
			<-time.After(time.Second)
			return []string{testKeyA}, ctx.Err()
		})
		h := Must(NewEventHandler(slow, func(ctx context.Context, _ *Event) error {
			assert.Equal(t, 3*time.Second, time.Since(begun))
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, 4*time.Second, deadline.Sub(begun))
			return nil
		}))(t)
		body := recentEventBody(testHeadA, "s")
		r := signedEvent(body, testKeyA)
		r.Body = io.NopCloser(io.MultiReader(slowBodyStart{}, strings.NewReader(body)))
		assert.Equal(t, 200, serveEvent(h, r).Code)
	})
}

// Without any time left, the function is not called.
func TestFunctionDoesNotBeginAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := keyFunc(func(context.Context, KeyHint) ([]string, error) {
			<-time.After(5 * time.Second)
			return []string{testKeyA}, nil
		})
		h := newReceiverOf(t, slow, nil)
		assert.Equal(t, 503, h.event("s"))
		assert.Zero(t, h.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryTimedOut}, h.outcomes())
	})
}

func TestFunctionSeesTheSenderLeave(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var h *receiver
	h = newReceiver(t, func(ctx context.Context, _ *Event) error {
		if h.calls.Load() == 1 {
			leave()
			<-ctx.Done()
		}
		return ctx.Err()
	})
	body := recentEventBody(testHeadA, "s")
	serveEvent(h, signedEvent(body, testKeyA).WithContext(ctx))
	assert.Equal(t, 200, h.post(body, testKeyA), "the claim was released although the request had ended")
	assert.EqualValues(t, 2, h.calls.Load())
}

func TestEveryPanicIsCaught(t *testing.T) {
	keys := keyFunc(func(context.Context, KeyHint) ([]string, error) { panic("keys are broken") })
	h := newReceiverOf(t, keys, nil,
		WithDeliveryObserver(Observer[DeliveryInfo]{End: func(context.Context, DeliveryInfo) { panic("observer is broken") }}))
	w := serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA))
	assert.Equal(t, 500, w.Code)
	assert.Equal(t, "Internal Server Error\n", w.Body.String())
	for _, part := range []string{"keys are broken", "TestEveryPanicIsCaught", "observer is broken"} {
		assert.Contains(t, h.log.String(), part)
	}

	// A recorder has no deadlines, so the body is read on another goroutine.
	r := signedEvent("{}", testKeyA)
	r.Body = io.NopCloser(readerFunc(func([]byte) (int, error) { panic("the body is broken") }))
	assert.Equal(t, 500, serveEvent(h, r).Code)
	assert.Equal(t, []DeliveryOutcome{DeliveryPanicked, DeliveryPanicked}, h.outcomes())
	assert.NoError(t, h.Shutdown(t.Context()), "no delivery is left counted")
}

// brokenError is an error whose Error method panics.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func TestLogLinesHaveALimit(t *testing.T) {
	h := newReceiver(t, returning(errors.New(strings.Repeat("x", 5000))))
	assert.Equal(t, 503, h.event("s"))
	r := signedEvent(recentEventBody(testHeadA, "s"), testKeyA)
	r.Method = strings.Repeat("M", 500)
	assert.Equal(t, 405, serveEvent(h, r).Code)
	assert.Contains(t, h.log.String(), strings.Repeat("x", 1023)+"…")
	assert.NotContains(t, h.log.String(), strings.Repeat("x", 1024))
	assert.Contains(t, h.log.String(), strings.Repeat("M", 63)+"…")
	assert.NotContains(t, h.log.String(), strings.Repeat("M", 64))
}

func TestSharedKeysRotation(t *testing.T) {
	h := newReceiverOf(t, SharedKeys("new key", "", "old key"), nil)
	assert.Equal(t, 200, h.post(recentEventBody(testHeadA, "1"), "new key"))
	assert.Equal(t, 200, h.post(recentEventBody(testHeadB, "2"), "old key"))
	assert.Equal(t, 401, h.post(recentEventBody(testHeadB, "3"), ""))
	assert.Equal(t, 1, h.seen[0].KeyPosition)
	assert.Equal(t, 2, h.seen[1].KeyPosition)
}

func TestEmptySharedKeyAcceptsNothing(t *testing.T) {
	for name, source := range map[string]KeySource{
		"SharedKeys":     SharedKeys("", testKeyB),
		"HeadKeys":       HeadKeys(map[string][]string{testHeadA: {""}, testHeadB: {testKeyB}}),
		"another source": keyFunc(func(context.Context, KeyHint) ([]string, error) { return []string{""}, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			h := newReceiverOf(t, source, nil)
			assert.Equal(t, 401, h.post(recentEventBody(testHeadA, "s"), ""))
			assert.Equal(t, 401, h.post(recentEventBody("", "s"), testKeyA))
			assert.Zero(t, h.calls.Load())
		})
	}
}

// Otherwise, refused deliveries would be the only sign of an unset variable.
func TestKeysWithoutAUsableOneAreRefused(t *testing.T) {
	for name, source := range map[string]KeySource{
		"SharedKeys without keys":        SharedKeys(),
		"SharedKeys with an empty key":   SharedKeys(""),
		"SharedKeys with empty keys":     SharedKeys("", ""),
		"HeadKeys without heads":         HeadKeys(nil),
		"HeadKeys without keys":          HeadKeys(map[string][]string{testHeadA: nil}),
		"HeadKeys with empty keys":       HeadKeys(map[string][]string{testHeadA: {""}, testHeadB: {"", ""}}),
		"HeadKeys with an empty head id": HeadKeys(map[string][]string{"": {testKeyA}}),
	} {
		t.Run(name, func(t *testing.T) {
			h, err := NewEventHandler(source, func(context.Context, *Event) error { return nil })
			assert.Nil(t, h)
			invalid := As[*InvalidError](t, err)
			assert.Equal(t, "keys", invalid.Field)
			assert.NotContains(t, err.Error(), testKeyA)
		})
	}
	for name, source := range map[string]KeySource{
		"SharedKeys": SharedKeys("", testKeyA),
		"HeadKeys":   HeadKeys(map[string][]string{testHeadA: {testKeyA}, testHeadB: nil}),
	} {
		assert.NoError(t, ErrorOf(NewEventHandler(source, func(context.Context, *Event) error { return nil })), name)
	}
}

func TestLogShowsWhatHappenedAndNoSecret(t *testing.T) {
	var log bytes.Buffer
	boom := errors.New("the function failed")
	var result error
	h := newReceiverOf(t, SharedKeys("first key", testKeyA), func(context.Context, *Event) error { return result },
		WithEventLogger(slog.New(slog.NewJSONHandler(&log, nil))))
	body := strings.Replace(recentEventBody(testHeadA, "session-1"), "{", `{"text":"what the user said",`, 1)

	h.post(body, testKeyA)
	line := log.String()
	for _, want := range []string{`"level":"INFO"`, `"outcome":"handled"`, `"status":200`, `"head_id":"` + testHeadA + `"`, `"session_id":"session-1"`,
		`"event_type":"start_conversation"`, `"key_position":2`, `"duration":`, `"handle_duration":`} {
		assert.Contains(t, line, want)
	}

	h.post(body, testKeyA)
	h.post(body, "wrong")
	result = boom
	h.post(recentEventBody(testHeadA, "session-2"), testKeyA)
	h.post(recentEventBody(testHeadA, strings.Repeat("long", 1000)), "wrong")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 5)
	assert.Contains(t, lines[1], `"outcome":"duplicate"`)
	assert.Contains(t, lines[2], `"level":"WARN"`)
	assert.Contains(t, lines[2], `"head_id":"`+testHeadA+`","session_id":"session-1","event_type":"start_conversation","key_position":0`, "as the sender wrote them")
	hint := regexp.MustCompile(`"hint":"([^"]*)"`)
	assert.Equal(t, "the keys may be those of another registration, since every registration has its own; record the body and run: "+
		"headsctl events verify --body FILE --signature TEXT --key-file FILE", hint.FindStringSubmatch(lines[2])[1])
	assert.Contains(t, DiagnoseSignature([]byte(body), Sign([]byte(body), "wrong"), testKeyA), "the keys may be those of another registration, since every registration has its own")
	assert.NotRegexp(t, hint, lines[0]+lines[1]+lines[3], "only after a mismatch")
	assert.Contains(t, lines[3], `"level":"ERROR"`)
	assert.Contains(t, lines[3], boom.Error())
	assert.Less(t, len(lines[4]), 1000, "forged deliveries do not fill the log")

	for _, secret := range []string{"first key", testKeyA, Sign([]byte(body), testKeyA), Sign([]byte(body), "first key"), Sign([]byte(body), "wrong"), "what the user said"} {
		assert.NotContains(t, log.String(), secret)
	}
}

func TestHandlerOptionsRefuseBadValues(t *testing.T) {
	handle := func(context.Context, *Event) error { return nil }
	for _, row := range []struct {
		name  string
		field string
		opt   EventHandlerOption
	}{
		{"nil logger", "WithEventLogger", WithEventLogger(nil)},
		{"nil observer", "WithDeliveryObserver", WithDeliveryObserver(Observer[DeliveryInfo]{})},
		{"nil deduplicator", "WithDeduplicator", WithDeduplicator(nil)},
		{"no age", "WithMaxAge", WithMaxAge(0, time.Minute)},
		{"negative age", "WithMaxAge", WithMaxAge(-time.Hour, time.Minute)},
		{"negative skew", "WithMaxAge", WithMaxAge(time.Hour, -time.Minute)},
		{"no timeout", "WithHandlerTimeout", WithHandlerTimeout(0)},
		{"negative timeout", "WithHandlerTimeout", WithHandlerTimeout(-time.Second)},
		{"nil option", "option", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, err := NewEventHandler(SharedKeys(testKeyA), handle, row.opt)
			assert.Nil(t, h)
			assert.Equal(t, "NewEventHandler", As[*InvalidError](t, err).Operation)
			assert.Equal(t, []string{row.field}, invalidFields(t, err))
		})
	}
	_, err := NewEventHandler(nil, nil, WithMaxAge(-1, 0), WithHandlerTimeout(0))
	assert.Equal(t, []string{"keys", "handle", "WithMaxAge", "WithHandlerTimeout"}, invalidFields(t, err), "all faults at once")
}

func TestShutdownWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReceiver(t, func(ctx context.Context, _ *Event) error {
			<-time.After(2 * time.Second)
			return ctx.Err()
		})
		status := make(chan int, 1)
		go func() { status <- h.event("s") }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.Equal(t, 200, <-status, "calls under way were finished and answered")
		assert.Equal(t, 503, h.event("another"))
		assert.EqualValues(t, 1, h.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryHandled, DeliveryShutDown}, h.outcomes())
		require.NoError(t, h.Shutdown(t.Context()), "a second call does nothing")
	})
}

// One session whose id is not UTF-8 neither hides another nor waits for it.
func TestSessionsWhoseIDsAreNotUTF8AreKeptApart(t *testing.T) {
	for name, opts := range map[string][]EventHandlerOption{
		"at once": nil,
		"a store": {WithDeduplicator(struct{ Deduplicator }{NewMemoryDeduplicator(10)})},
	} {
		Bubble(t, name, func(t *testing.T) {
			var running atomic.Int32
			h := newReceiver(t, func(context.Context, *Event) error {
				running.Add(1)
				<-time.After(time.Second)
				assert.EqualValues(t, 2, running.Load(), "both run at the same time")
				return nil
			}, opts...)
			var answers sync.WaitGroup
			for _, id := range []string{"\xff\xfe", "\xfe\xff"} {
				body := `{"timestamp":"` + time.Now().UTC().Format(time.DateTime) + `","head_id":"` + testHeadA + `","session_id":"` + id + `","event_type":"x"}`
				answers.Go(func() { assert.Equal(t, 200, h.post(body, testKeyA)) })
			}
			answers.Wait()
			require.NoError(t, h.Shutdown(t.Context()))
			assert.EqualValues(t, 2, running.Load())
		})
	}
}
