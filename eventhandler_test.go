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

func newTestHandler(t *testing.T, handle func(context.Context, *Event) error, opts ...EventHandlerOption) *EventHandler {
	t.Helper()
	h, err := NewEventHandler(HeadKeys(map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}), handle, opts...)
	require.NoError(t, err)
	return h
}

// eventCounter is a function for events that counts its calls and returns err.
type eventCounter struct {
	calls atomic.Int32
	err   error
}

func (c *eventCounter) handle(context.Context, *Event) error {
	c.calls.Add(1)
	return c.err
}

// deliveryObserver is an observer that keeps its arguments.
type deliveryObserver struct {
	mu    sync.Mutex
	infos []DeliveryInfo
}

func (o *deliveryObserver) observe(_ context.Context, info DeliveryInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.infos = append(o.infos, info)
}

func (o *deliveryObserver) outcomes() []DeliveryOutcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	var outcomes []DeliveryOutcome
	for _, info := range o.infos {
		outcomes = append(outcomes, info.Outcome)
	}
	return outcomes
}

// keyFunc and fakeDeduplicator are a key source and a store made of functions.
type keyFunc func(context.Context, KeyHint) ([]string, error)

func (f keyFunc) Keys(ctx context.Context, hint KeyHint) ([]string, error) { return f(ctx, hint) }

type fakeDeduplicator struct {
	claim         func(ctx context.Context, key, owner string, lease time.Duration) (Claim, error)
	done, release func(ctx context.Context, key, owner string) error
}

func (d fakeDeduplicator) Claim(ctx context.Context, key, owner string, lease time.Duration) (Claim, error) {
	if d.claim == nil {
		return ClaimNew, nil
	}
	return d.claim(ctx, key, owner, lease)
}

func (d fakeDeduplicator) Done(ctx context.Context, key, owner string, _ time.Duration) error {
	if d.done == nil {
		return nil
	}
	return d.done(ctx, key, owner)
}

func (d fakeDeduplicator) Release(ctx context.Context, key, owner string) error {
	if d.release == nil {
		return nil
	}
	return d.release(ctx, key, owner)
}

func goroutineID() string {
	var buf [64]byte
	text := string(buf[:runtime.Stack(buf[:], false)])
	return strings.Fields(text)[1]
}

func TestHandlerPassesAVerifiedEvent(t *testing.T) {
	type contextKey struct{}
	body := recentEventBody(testHeadA, "session-1")
	want, err := ParseEvent([]byte(body))
	require.NoError(t, err)
	var got *Event
	var seen deliveryObserver
	h := newTestHandler(t, func(ctx context.Context, e *Event) error {
		got = e
		assert.Equal(t, "of the request", ctx.Value(contextKey{}))
		return nil
	}, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))

	r := signedEvent(body, testKeyA)
	w := serveEvent(h, r.WithContext(context.WithValue(r.Context(), contextKey{}, "of the request")))

	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, w.Body.String())
	assert.Equal(t, want, got)
	require.Len(t, seen.infos, 1)
	info := seen.infos[0]
	assert.Positive(t, info.Duration)
	assert.Positive(t, info.HandleDuration)
	info.Duration, info.HandleDuration = 0, 0
	assert.Equal(t, DeliveryInfo{
		Outcome: DeliveryHandled, StatusCode: 200, Type: EventStartConversation,
		HeadID: testHeadA, SessionID: "session-1", KeyPosition: 1,
	}, info)
}

func TestFunctionRunsOnTheRequestsGoroutine(t *testing.T) {
	var inside string
	h := newTestHandler(t, func(context.Context, *Event) error {
		inside = goroutineID()
		return nil
	})
	require.Equal(t, http.StatusOK, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
	assert.Equal(t, goroutineID(), inside)
}

// An event must not change when its buffer is used for the next body.
func TestEventKeepsItsBody(t *testing.T) {
	var events []*Event
	h := newTestHandler(t, func(_ context.Context, e *Event) error {
		events = append(events, e)
		return nil
	})
	var bodies []string
	for i := range 20 {
		body := recentEventBody(testHeadA, fmt.Sprintf("session-%d", i))
		bodies = append(bodies, body)
		require.Equal(t, http.StatusOK, serveEvent(h, signedEvent(body, testKeyA)).Code)
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
		{"too old", signedEvent(eventBody(testHeadA, "s", "x", "2020-01-01 00:00:00"), testKeyA), 400, DeliveryStale, nil},
		{"from the future", signedEvent(eventBody(testHeadA, "s", "x", "2220-01-01 00:00:00"), testKeyA), 400, DeliveryStale, nil},
		{"from a future beyond the range of a duration", signedEvent(eventBody(testHeadA, "s", "x", "9999-01-01 00:00:00"), testKeyA), 400, DeliveryStale, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var c eventCounter
			var seen deliveryObserver
			var log bytes.Buffer
			h := newTestHandler(t, c.handle, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}),
				WithEventLogger(slog.New(slog.NewJSONHandler(&log, nil))))

			w := serveEvent(h, row.request)

			assert.Equal(t, row.status, w.Code)
			assert.Equal(t, http.StatusText(row.status)+"\n", w.Body.String(), "the answer says no more than its status")
			assert.Zero(t, c.calls.Load(), "the function must not run")
			require.Len(t, seen.infos, 1)
			assert.Equal(t, row.outcome, seen.infos[0].Outcome)
			assert.Equal(t, row.status, seen.infos[0].StatusCode)
			require.Error(t, seen.infos[0].Err)
			if row.err != nil {
				assert.ErrorIs(t, seen.infos[0].Err, row.err)
			}
			if row.outcome != DeliveryStale {
				assert.Empty(t, seen.infos[0].HeadID, "nothing is known of who sent it")
				assert.Empty(t, seen.infos[0].Type)
			}
			if row.status == 405 {
				assert.Equal(t, "POST", w.Header().Get("Allow"))
			}
			assert.Equal(t, 1, strings.Count(log.String(), "\n"), "one line a delivery: %s", log.String())
			assert.Contains(t, log.String(), `"outcome":"`+string(row.outcome)+`"`)
			assert.Less(t, log.Len(), 2000)
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
	var c eventCounter
	h := newTestHandler(t, c.handle)
	assert.Equal(t, http.StatusOK, serveEvent(h, signedEvent(paddedBody(recentEventBody(testHeadA, "1"), 64<<10), testKeyA)).Code)
	assert.Equal(t, http.StatusOK, serveEvent(h, chunkedEvent(signedEvent(paddedBody(recentEventBody(testHeadA, "2"), 64<<10), testKeyA))).Code)
	assert.EqualValues(t, 2, c.calls.Load())
}

// endlessBody counts what is read from it.
type endlessBody struct{ read int }

func (r *endlessBody) Read(p []byte) (int, error) {
	r.read += len(p)
	return len(p), nil
}

func TestHugeBodyIsNotRead(t *testing.T) {
	var c eventCounter
	h := newTestHandler(t, c.handle)
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

// An attacker who asks about heads must not learn which ones are known.
func TestUnknownHeadAndWrongSignatureAnswerAlike(t *testing.T) {
	var c eventCounter
	h := newTestHandler(t, c.handle)
	known := serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), "guess"))
	unknown := serveEvent(h, signedEvent(recentEventBody("00000000-0000-4000-8000-000000000000", "s"), "guess"))
	assert.Equal(t, 401, known.Code)
	assert.Equal(t, known.Code, unknown.Code)
	assert.Equal(t, known.Header(), unknown.Header())
	assert.Equal(t, known.Body.String(), unknown.Body.String())
}

func TestUnknownTypesAreDelivered(t *testing.T) {
	var got EventType
	h := newTestHandler(t, func(_ context.Context, e *Event) error {
		got = e.Type
		return nil
	})
	body := eventBody(testHeadA, "s", "HEAD_REPAINTED", time.Now().UTC().Format(time.RFC3339))
	assert.Equal(t, http.StatusOK, serveEvent(h, signedEvent(body, testKeyA)).Code)
	assert.EqualValues(t, "head_repainted", got)
	assert.Equal(t, http.StatusUnauthorized, serveEvent(h, signedEvent(body, testKeyB)).Code, "and verified")
}

func TestUnreadableTimeLosesNoEvent(t *testing.T) {
	for _, timestamp := range []string{`""`, `"31.08.2026, about seven"`, `1788159390`, `null`, `{}`} {
		var c eventCounter
		h := newTestHandler(t, c.handle)
		body := `{"event_type":"x","head_id":"` + testHeadA + `","timestamp":` + timestamp + `}`
		assert.Equal(t, http.StatusOK, serveEvent(h, signedEvent(body, testKeyA)).Code, timestamp)
		assert.EqualValues(t, 1, c.calls.Load(), timestamp)
	}
}

func TestEventsWithoutATimeDoNotCollide(t *testing.T) {
	var c eventCounter
	h := newTestHandler(t, c.handle)
	for range 2 {
		for n := range 3 {
			body := fmt.Sprintf(`{"event_type":"x","head_id":"%s","session_id":"s","n":%d}`, testHeadA, n)
			assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
		}
	}
	assert.EqualValues(t, 3, c.calls.Load(), "three events, each delivered twice")
}

func TestMaxAgeIsExact(t *testing.T) {
	for _, row := range []struct {
		name   string
		offset time.Duration
		status int
	}{
		{"as old as allowed", -time.Hour, 200},
		{"older", -time.Hour - time.Nanosecond, 400},
		{"as early as allowed", time.Minute, 200},
		{"earlier", time.Minute + time.Nanosecond, 400},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c eventCounter
				h := newTestHandler(t, c.handle, WithMaxAge(time.Hour, time.Minute))
				body := eventBody(testHeadA, "s", "x", time.Now().Add(row.offset).UTC().Format(time.RFC3339Nano))
				assert.Equal(t, row.status, serveEvent(h, signedEvent(body, testKeyA)).Code)
			})
		})
	}
}

func TestDefaultMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		h := newTestHandler(t, c.handle)
		for offset, status := range map[time.Duration]int{
			-24 * time.Hour:             200,
			-24*time.Hour - time.Second: 400,
			5 * time.Minute:             200,
			5*time.Minute + time.Second: 400,
			-100 * 365 * 24 * time.Hour: 400,
			100 * 365 * 24 * time.Hour:  400,
		} {
			body := eventBody(testHeadA, "s", "x", time.Now().Add(offset).UTC().Format(time.RFC3339))
			assert.Equal(t, status, serveEvent(h, signedEvent(body, testKeyA)).Code, "%v", offset)
		}
	})
}

// A recorded delivery is never handled again: at first it is a duplicate, then it
// is too old. The memory must last longer than that.
func TestReplayNeverRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		h := newTestHandler(t, c.handle)
		// As far in the future as allowed, so it can be replayed for the longest time.
		body := eventBody(testHeadA, "s", "x", time.Now().Add(5*time.Minute).UTC().Format(time.RFC3339))
		require.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
		for range 24*60 + 10 {
			<-time.After(time.Minute)
			serveEvent(h, signedEvent(body, testKeyA))
		}
		assert.EqualValues(t, 1, c.calls.Load())
		assert.Equal(t, 400, serveEvent(h, signedEvent(body, testKeyA)).Code)
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
			h, err := NewEventHandler(keys, func(_ context.Context, e *Event) error {
				delivered++
				assert.Equal(t, testHeadB, e.HeadID)
				return nil
			})
			require.NoError(t, err)
			try := func(members ...string) {
				body := `{"event_type":"x","session_id":"` + fmt.Sprint(delivered) + `",` + strings.Join(members, ",") + `}`
				before := delivered
				code := serveEvent(h, signedEvent(body, testKeyB)).Code
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
	var c eventCounter
	var seen deliveryObserver
	h, err := NewEventHandler(source, c.handle, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
	require.NoError(t, err)

	r := signedEvent(recentEventBody(testHeadA, "1"), testKeyA)
	assert.Equal(t, 200, serveEvent(h, r).Code)
	require.Len(t, hints, 2)
	assert.Equal(t, KeyHint{HeadID: testHeadA, Request: r}, hints[0])
	assert.Equal(t, KeyHint{HeadID: testHeadA, Request: r, Mismatch: true}, hints[1])
	assert.Equal(t, 2, seen.infos[0].KeyPosition)

	hints = nil
	assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, "2"), "wrong")).Code)
	assert.Len(t, hints, 2)

	hints = nil
	assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "3"), "old key")).Code)
	assert.Len(t, hints, 1)

	hints, keys = nil, nil
	assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, "4"), testKeyA)).Code)
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
			var c eventCounter
			var seen deliveryObserver
			h, err := NewEventHandler(source, c.handle, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
			require.NoError(t, err)
			assert.Equal(t, 503, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
			assert.Zero(t, c.calls.Load())
			assert.Equal(t, []DeliveryOutcome{DeliveryKeysFailed}, seen.outcomes())
			assert.ErrorIs(t, seen.infos[0].Err, broken)
		})
	}
}

// Asking a source may be expensive, so requests that can't be deliveries must not
// reach it.
func TestKeySourceIsNotAskedForMalformedDeliveries(t *testing.T) {
	source := keyFunc(func(context.Context, KeyHint) ([]string, error) {
		t.Error("the source was asked")
		return nil, nil
	})
	h, err := NewEventHandler(source, func(context.Context, *Event) error { return nil })
	require.NoError(t, err)
	unsigned := signedEvent(recentEventBody(testHeadA, "s"), testKeyA)
	unsigned.Header.Del(SignatureHeader)
	assert.Equal(t, 401, serveEvent(h, unsigned).Code)
	assert.Equal(t, 400, serveEvent(h, signedEvent("{", testKeyA)).Code)
	assert.Equal(t, 400, serveEvent(h, signedEvent(`{"event_type":"x","head_id":"a","head_id":"b"}`, testKeyA)).Code)
}

// The age of an event can't be trusted before the signature is verified, so an old
// forged event is answered as a forged one.
func TestNothingIsTrustedBeforeTheSignature(t *testing.T) {
	claims := 0
	dedup := fakeDeduplicator{claim: func(context.Context, string, string, time.Duration) (Claim, error) {
		claims++
		return ClaimNew, nil
	}}
	var c eventCounter
	h := newTestHandler(t, c.handle, WithDeduplicator(dedup))
	assert.Equal(t, 401, serveEvent(h, signedEvent(eventBody(testHeadA, "s", "x", "2001-01-01 00:00:00"), "wrong")).Code)
	assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), "wrong")).Code)
	assert.Equal(t, 400, serveEvent(h, signedEvent(eventBody(testHeadA, "s", "x", "2001-01-01 00:00:00"), testKeyA)).Code)
	assert.Zero(t, claims, "nothing is claimed for a delivery that is refused")
}

func TestDuplicateIsAnsweredWithoutRunning(t *testing.T) {
	var c eventCounter
	var seen deliveryObserver
	h := newTestHandler(t, c.handle, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
	body := recentEventBody(testHeadA, "s")
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
	assert.Equal(t, 200, serveEvent(h, signedEvent(strings.Replace(body, `{`, `{ "attempt":"2",`, 1), testKeyA)).Code)
	assert.EqualValues(t, 1, c.calls.Load())
	assert.Equal(t, []DeliveryOutcome{DeliveryHandled, DeliveryDuplicate, DeliveryDuplicate}, seen.outcomes())
}

func TestThousandTwinsRunOnce(t *testing.T) {
	var c eventCounter
	release := make(chan struct{})
	h := newTestHandler(t, func(ctx context.Context, e *Event) error {
		<-release
		return c.handle(ctx, e)
	})
	body := recentEventBody(testHeadA, "s")
	var statuses [1000]int
	var wg, answered sync.WaitGroup
	answered.Add(len(statuses) - 1) // all but the one that runs
	var once atomic.Int32
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = serveEvent(h, signedEvent(body, testKeyA)).Code
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
	assert.EqualValues(t, 1, c.calls.Load())
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code, "twins that come later are done")
	assert.EqualValues(t, 1, c.calls.Load())
}

func TestTwinsRunAgainAfterAFailure(t *testing.T) {
	var c eventCounter
	h := newTestHandler(t, func(ctx context.Context, e *Event) error {
		_ = c.handle(ctx, e)
		if c.calls.Load() < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	body := recentEventBody(testHeadA, "s")
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if code := serveEvent(h, signedEvent(body, testKeyA)).Code; code != 200 && code != 503 {
				t.Errorf("answered %d", code)
			}
		})
	}
	wg.Wait()
	for range 3 { // all twins may have waited for the same failing run
		serveEvent(h, signedEvent(body, testKeyA))
	}
	assert.EqualValues(t, 3, c.calls.Load(), "two failures, one success, and never again")
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
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
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c eventCounter
				var seen deliveryObserver
				h := newTestHandler(t, func(ctx context.Context, e *Event) error {
					_ = c.handle(ctx, e)
					if c.calls.Load() > 1 {
						return nil
					}
					return row.first(ctx)
				}, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
				body := recentEventBody(testHeadA, "s")

				begun := time.Now()
				first := serveEvent(h, signedEvent(body, testKeyA))
				assert.Equal(t, row.status, first.Code)
				assert.Equal(t, row.after, time.Since(begun))
				assert.NotContains(t, first.Body.String(), "broken")
				assert.NotContains(t, first.Body.String(), "failed")

				assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
				want := []DeliveryOutcome{row.outcome, DeliveryDuplicate}
				if row.runsAgain {
					want[1] = DeliveryHandled
				}
				assert.Equal(t, want, seen.outcomes())
				assert.Equal(t, row.after, seen.infos[0].HandleDuration)
				assert.Equal(t, row.runsAgain, seen.infos[0].Err != nil)
			})
		})
	}
}

func TestTwinOfAnOverrunningFunctionIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		h := newTestHandler(t, func(ctx context.Context, e *Event) error {
			_ = c.handle(ctx, e)
			<-time.After(time.Hour)
			return nil
		})
		body := recentEventBody(testHeadA, "s")
		go serveEvent(h, signedEvent(body, testKeyA))
		for range 30 {
			<-time.After(time.Minute)
			assert.Equal(t, 503, serveEvent(h, signedEvent(body, testKeyA)).Code)
		}
		<-time.After(time.Hour)
		assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
		assert.EqualValues(t, 1, c.calls.Load())
	})
}

func TestFunctionEndedByGoexitReleasesItsClaim(t *testing.T) {
	var c eventCounter
	h := newTestHandler(t, func(ctx context.Context, e *Event) error {
		_ = c.handle(ctx, e)
		if c.calls.Load() == 1 {
			runtime.Goexit()
		}
		return nil
	})
	body := recentEventBody(testHeadA, "s")
	var wg sync.WaitGroup
	wg.Go(func() { serveEvent(h, signedEvent(body, testKeyA)) })
	wg.Wait()
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
	assert.EqualValues(t, 2, c.calls.Load())
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
		h, err := NewEventHandler(slow, func(ctx context.Context, _ *Event) error {
			assert.Equal(t, 3*time.Second, time.Since(begun))
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, 4*time.Second, deadline.Sub(begun))
			return nil
		})
		require.NoError(t, err)
		body := recentEventBody(testHeadA, "s")
		r := signedEvent(body, testKeyA)
		r.Body = io.NopCloser(io.MultiReader(slowBodyStart{}, strings.NewReader(body)))
		assert.Equal(t, 200, serveEvent(h, r).Code)
	})
}

func TestHandlerTimeoutIsSettable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			<-ctx.Done()
			return ctx.Err()
		}, WithHandlerTimeout(1500*time.Millisecond))
		assert.Equal(t, 503, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
		assert.Equal(t, 1500*time.Millisecond, time.Since(begun))
	})
}

// Without any time left, the function is not called.
func TestFunctionDoesNotBeginAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := keyFunc(func(context.Context, KeyHint) ([]string, error) {
			<-time.After(5 * time.Second)
			return []string{testKeyA}, nil
		})
		var c eventCounter
		var seen deliveryObserver
		h, err := NewEventHandler(slow, c.handle, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		require.NoError(t, err)
		assert.Equal(t, 503, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
		assert.Zero(t, c.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryTimedOut}, seen.outcomes())
	})
}

func TestFunctionSeesTheSenderLeave(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var c eventCounter
	h := newTestHandler(t, func(ctx context.Context, e *Event) error {
		if c.calls.Add(1) == 1 {
			leave()
			<-ctx.Done()
		}
		return ctx.Err()
	})
	body := recentEventBody(testHeadA, "s")
	serveEvent(h, signedEvent(body, testKeyA).WithContext(ctx))
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code, "the claim was released although the request had ended")
	assert.EqualValues(t, 2, c.calls.Load())
}

func TestFailingDeduplicator(t *testing.T) {
	broken := errors.New("store is broken")
	for _, row := range []struct {
		name    string
		dedup   fakeDeduplicator
		handle  error
		status  int
		outcome DeliveryOutcome
		runs    int32
	}{
		{"claim fails", fakeDeduplicator{claim: func(context.Context, string, string, time.Duration) (Claim, error) { return ClaimNew, broken }}, nil, 503, DeliveryClaimFailed, 0},
		{"claim is no claim", fakeDeduplicator{claim: func(context.Context, string, string, time.Duration) (Claim, error) { return 0, nil }}, nil, 503, DeliveryClaimFailed, 0},
		{"claim is of an unknown kind", fakeDeduplicator{claim: func(context.Context, string, string, time.Duration) (Claim, error) { return ClaimDone + 1, nil }}, nil, 503, DeliveryClaimFailed, 0},
		{"claim panics", fakeDeduplicator{claim: func(context.Context, string, string, time.Duration) (Claim, error) { panic("broken") }}, nil, 500, DeliveryPanicked, 0},
		{"done fails", fakeDeduplicator{done: func(context.Context, string, string) error { return broken }}, nil, 200, DeliveryHandled, 1},
		{"done panics", fakeDeduplicator{done: func(context.Context, string, string) error { panic("broken") }}, nil, 200, DeliveryHandled, 1},
		{"release fails", fakeDeduplicator{release: func(context.Context, string, string) error { return broken }}, errors.New("failed"), 503, DeliveryFailed, 1},
		{"release panics", fakeDeduplicator{release: func(context.Context, string, string) error { panic("broken") }}, errors.New("failed"), 503, DeliveryFailed, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := eventCounter{err: row.handle}
				var seen deliveryObserver
				var log bytes.Buffer
				h := newTestHandler(t, c.handle, WithDeduplicator(row.dedup), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}),
					WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))))
				assert.Equal(t, row.status, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
				require.NoError(t, h.Shutdown(t.Context()))
				assert.Equal(t, row.runs, c.calls.Load())
				assert.Equal(t, []DeliveryOutcome{row.outcome}, seen.outcomes())
				if !strings.HasPrefix(row.name, "claim is ") {
					assert.Contains(t, log.String(), "broken", "it is logged")
				}
			})
		})
	}
}

// A store must learn how the function ended even if no one waits for the answer.
func TestDeduplicatorHasItsOwnTimeToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		told := func(name string) func(context.Context, string, string) error {
			return func(ctx context.Context, _, _ string) error {
				assert.NoError(t, ctx.Err())
				deadline, ok := ctx.Deadline()
				assert.True(t, ok)
				assert.Equal(t, time.Second, time.Until(deadline))
				ended = append(ended, name)
				return nil
			}
		}
		result := error(nil)
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			<-ctx.Done()
			return result
		}, WithDeduplicator(fakeDeduplicator{done: told("done"), release: told("release")}))
		assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
		result = errors.New("failed")
		assert.Equal(t, 503, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
		assert.Equal(t, []string{"done", "release"}, ended)
	})
}

func TestEveryPanicIsCaught(t *testing.T) {
	panicking := keyFunc(func(context.Context, KeyHint) ([]string, error) { panic("keys are broken") })
	var log bytes.Buffer
	h, err := NewEventHandler(panicking, func(context.Context, *Event) error { return nil },
		WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))),
		WithDeliveryObserver(Observer[DeliveryInfo]{End: func(context.Context, DeliveryInfo) { panic("observer is broken") }}))
	require.NoError(t, err)
	w := serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA))
	assert.Equal(t, 500, w.Code)
	assert.Equal(t, "Internal Server Error\n", w.Body.String())
	assert.Contains(t, log.String(), "keys are broken")
	assert.Contains(t, log.String(), "TestEveryPanicIsCaught", "the stack shows the place")
	assert.Contains(t, log.String(), "observer is broken")
	assert.NoError(t, h.Shutdown(t.Context()), "no delivery is left counted")
}

// brokenError is an error whose Error method panics.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func TestErrorWithoutATextIsAFailure(t *testing.T) {
	var log bytes.Buffer
	var seen deliveryObserver
	h := newTestHandler(t, func(context.Context, *Event) error {
		var none *brokenError
		return none
	}, WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
	postEvent(h, "s")
	assert.Equal(t, []DeliveryOutcome{DeliveryFailed}, seen.outcomes())
	assert.Contains(t, log.String(), "failed")
}

func TestLogLinesHaveALimit(t *testing.T) {
	var log bytes.Buffer
	h := newTestHandler(t, func(context.Context, *Event) error { return errors.New(strings.Repeat("x", 5000)) },
		WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))))
	assert.Equal(t, 503, postEvent(h, "s"))
	r := signedEvent(recentEventBody(testHeadA, "s"), testKeyA)
	r.Method = strings.Repeat("M", 500)
	assert.Equal(t, 405, serveEvent(h, r).Code)
	assert.Contains(t, log.String(), strings.Repeat("x", 1023)+"…")
	assert.NotContains(t, log.String(), strings.Repeat("x", 1024))
	assert.Contains(t, log.String(), strings.Repeat("M", 63)+"…")
	assert.NotContains(t, log.String(), strings.Repeat("M", 64))
}

// A recorder has no deadlines, so the body is read on another goroutine.
func TestPanicOfABodyIsCaught(t *testing.T) {
	var seen deliveryObserver
	h := newTestHandler(t, func(context.Context, *Event) error { return nil }, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
	r := signedEvent("{}", testKeyA)
	r.Body = io.NopCloser(readerFunc(func([]byte) (int, error) { panic("the body is broken") }))
	assert.Equal(t, 500, serveEvent(h, r).Code)
	assert.Equal(t, []DeliveryOutcome{DeliveryPanicked}, seen.outcomes())
}

func TestSharedKeysRotation(t *testing.T) {
	var seen deliveryObserver
	h, err := NewEventHandler(SharedKeys("new key", "", "old key"), func(context.Context, *Event) error { return nil },
		WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
	require.NoError(t, err)
	assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "1"), "new key")).Code)
	assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadB, "2"), "old key")).Code)
	assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadB, "3"), "")).Code)
	assert.Equal(t, 1, seen.infos[0].KeyPosition)
	assert.Equal(t, 2, seen.infos[1].KeyPosition)
}

func TestEmptySharedKeyAcceptsNothing(t *testing.T) {
	for name, source := range map[string]KeySource{
		"SharedKeys":     SharedKeys("", testKeyB),
		"HeadKeys":       HeadKeys(map[string][]string{testHeadA: {""}, testHeadB: {testKeyB}}),
		"another source": keyFunc(func(context.Context, KeyHint) ([]string, error) { return []string{""}, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			var c eventCounter
			h, err := NewEventHandler(source, c.handle)
			require.NoError(t, err)
			assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), "")).Code)
			assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody("", "s"), testKeyA)).Code)
			assert.Zero(t, c.calls.Load())
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
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, "keys", invalid.Field)
			assert.NotContains(t, err.Error(), testKeyA)
		})
	}
	for name, source := range map[string]KeySource{
		"SharedKeys": SharedKeys("", testKeyA),
		"HeadKeys":   HeadKeys(map[string][]string{testHeadA: {testKeyA}, testHeadB: nil}),
	} {
		_, err := NewEventHandler(source, func(context.Context, *Event) error { return nil })
		assert.NoError(t, err, name)
	}
}

func TestLogShowsWhatHappenedAndNoSecret(t *testing.T) {
	var log bytes.Buffer
	boom := errors.New("the function failed")
	c := eventCounter{}
	h, err := NewEventHandler(SharedKeys("first key", testKeyA), c.handle,
		WithEventLogger(slog.New(slog.NewJSONHandler(&log, nil))))
	require.NoError(t, err)
	body := strings.Replace(recentEventBody(testHeadA, "session-1"), "{", `{"text":"what the user said",`, 1)

	serveEvent(h, signedEvent(body, testKeyA))
	line := log.String()
	for _, want := range []string{`"level":"INFO"`, `"outcome":"handled"`, `"status":200`, `"head_id":"` + testHeadA + `"`, `"session_id":"session-1"`,
		`"event_type":"start_conversation"`, `"key_position":2`, `"duration":`, `"handle_duration":`} {
		assert.Contains(t, line, want)
	}

	serveEvent(h, signedEvent(body, testKeyA))
	serveEvent(h, signedEvent(body, "wrong"))
	c.err = boom
	serveEvent(h, signedEvent(recentEventBody(testHeadA, "session-2"), testKeyA))
	serveEvent(h, signedEvent(recentEventBody(testHeadA, strings.Repeat("long", 1000)), "wrong"))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 5)
	assert.Contains(t, lines[1], `"outcome":"duplicate"`)
	assert.Contains(t, lines[2], `"level":"WARN"`)
	assert.Contains(t, lines[2], `"key_position":0`)
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

func TestLogOfAnUnverifiedDeliveryShowsTheSendersIDs(t *testing.T) {
	var log bytes.Buffer
	h := newTestHandler(t, func(context.Context, *Event) error { return nil }, WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, "session-1"), "wrong")).Code)
	assert.Contains(t, log.String(), "head_id="+testHeadA+" session_id=session-1 event_type=start_conversation")
}

func TestConsumedBodyIsExplainedInTheLog(t *testing.T) {
	var log bytes.Buffer
	h := newTestHandler(t, func(context.Context, *Event) error { return nil }, WithEventLogger(slog.New(slog.NewTextHandler(&log, nil))))
	eater := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		h.ServeHTTP(w, r)
	})
	assert.Equal(t, 400, serveEvent(eater, signedEvent(recentEventBody(testHeadA, "s"), testKeyA)).Code)
	assert.Contains(t, log.String(), "before middleware that reads bodies")
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
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, "NewEventHandler", invalid.Operation)
			assert.Equal(t, row.field, invalid.Field)
			assert.ErrorIs(t, err, ErrInvalid)
		})
	}
}

func TestNewEventHandlerReturnsAllFaultsAtOnce(t *testing.T) {
	_, err := NewEventHandler(nil, nil, WithMaxAge(-1, 0), WithHandlerTimeout(0))
	require.ErrorIs(t, err, ErrInvalid)
	for _, field := range []string{"keys", "handle", "WithMaxAge", "WithHandlerTimeout"} {
		assert.ErrorContains(t, err, ": "+field+" ")
	}
}

func TestMemoryOfEventsDoesNotOverflow(t *testing.T) {
	var c eventCounter
	const longest = time.Duration(1<<63 - 1)
	h := newTestHandler(t, c.handle, WithMaxAge(longest, longest))
	assert.Equal(t, longest, h.Memory())
	body := recentEventBody(testHeadA, "s")
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
	assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code)
	assert.EqualValues(t, 1, c.calls.Load())
}

func TestOutcomesAreAnsweredAsDocumented(t *testing.T) {
	for outcome, status := range map[DeliveryOutcome]int{
		DeliveryHandled: 200, DeliveryDuplicate: 200,
		DeliveryBadBody: 400, DeliveryStale: 400, DeliveryUnauthorized: 401, DeliveryBadMethod: 405, DeliveryTooSlow: 408, DeliveryTooLarge: 413,
		DeliveryPanicked: 500,
		DeliveryBusy:     503, DeliveryFailed: 503, DeliveryTimedOut: 503, DeliveryKeysFailed: 503, DeliveryClaimFailed: 503, DeliveryShutDown: 503,
	} {
		assert.Equal(t, status, outcome.status(), outcome)
	}
}

func postEvent(h http.Handler, sessionID string) int {
	return serveEvent(h, signedEvent(recentEventBody(testHeadA, sessionID), testKeyA)).Code
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newTestHandler(t, func(context.Context, *Event) error {
			<-release
			return nil
		})
		answered := make(chan int)
		go func() { answered <- postEvent(h, "1") }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, h.Shutdown(ctx), context.Canceled)
		close(release)
		assert.Equal(t, 200, <-answered)
		require.NoError(t, h.Shutdown(t.Context()))
	})
}

func TestShutdownRefusesFurtherDeliveries(t *testing.T) {
	var c eventCounter
	var seen deliveryObserver
	h := newTestHandler(t, c.handle, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Equal(t, 503, postEvent(h, "s"))
	assert.Zero(t, c.calls.Load())
	assert.Equal(t, []DeliveryOutcome{DeliveryShutDown}, seen.outcomes())
	require.NoError(t, h.Shutdown(t.Context()), "a second call does nothing")
}

func TestShutdownWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			<-time.After(2 * time.Second)
			return ctx.Err()
		})
		status := make(chan int, 1)
		go func() { status <- postEvent(h, "s") }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.Equal(t, 200, <-status, "calls under way were finished and answered")
	})
}

func TestShutdownWithAnEndedContextReturnsNilWhenNothingRuns(t *testing.T) {
	h := newTestHandler(t, func(context.Context, *Event) error { return nil })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, h.Shutdown(ended), "there was nothing to wait for")
}

// One session whose id is not UTF-8 neither hides another nor waits for it.
func TestSessionsWhoseIDsAreNotUTF8AreKeptApart(t *testing.T) {
	for name, opts := range map[string][]EventHandlerOption{
		"at once": nil,
		"a store": {WithDeduplicator(struct{ Deduplicator }{NewMemoryDeduplicator(10)})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running atomic.Int32
				h := newTestHandler(t, func(context.Context, *Event) error {
					running.Add(1)
					<-time.After(time.Second)
					assert.EqualValues(t, 2, running.Load(), "both run at the same time")
					return nil
				}, opts...)
				var answers sync.WaitGroup
				for _, id := range []string{"\xff\xfe", "\xfe\xff"} {
					body := `{"timestamp":"` + time.Now().UTC().Format(time.DateTime) + `","head_id":"` + testHeadA + `","session_id":"` + id + `","event_type":"x"}`
					answers.Go(func() { assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code) })
				}
				answers.Wait()
				require.NoError(t, h.Shutdown(t.Context()))
				assert.EqualValues(t, 2, running.Load())
			})
		})
	}
}
