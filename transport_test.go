package heads

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requestFaults are the ways in which a request can fail. The golden file retries.txt states
// how often each is sent.
var requestFaults = []struct {
	name   string
	server func(testing.TB) *wire
}{
	{"400", status(400)},
	{"401", status(401)},
	{"403", status(403)},
	{"404", status(404)},
	{"408", status(408)},
	{"409", status(409)},
	{"422", status(422)},
	{"425", status(425)},
	{"429", status(429)},
	{"500", status(500)},
	{"500 with Retry-After", status(500, "Retry-After: 0")},
	{"501", status(501)},
	{"501 with Retry-After", status(501, "Retry-After: 0")},
	{"502", status(502)},
	{"503", status(503)},
	{"503 with Retry-After", status(503, "Retry-After: 0")},
	{"503 with an unreadable Retry-After", status(503, "Retry-After: soon")},
	{"504", status(504)},
	{"505", status(505)},
	{"connection refused", refusing},
	{"unknown host", unknownHost},
	{"TLS handshake failed", untrusted},
	{"reset before the request was read", resetting(false)},
	{"reset after the request was read", resetting(true)},
	{"closed after the request was read", closing("")},
	{"cut off in the header", closing("HTTP/1.1 200 OK\r\nContent-Le")},
	{"cut off in the body", closing("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":")},
	{"cut off in a chunk", closing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"id\":")},
	{"cut off in the body of a 404", closing("HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno")},
	{"no HTTP", closing("SSH-2.0-OpenSSH_9.9\r\n")},
}

// status is a service that answers every request with a status.
func status(code int, headers ...string) func(testing.TB) *wire {
	return func(t testing.TB) *wire { return serveWire(t, code, "", headers...) }
}

// closing is a service that answers every request with a few bytes and closes the
// connection.
func closing(answer string) func(testing.TB) *wire {
	return func(t testing.TB) *wire { return serveBytes(t, answer) }
}

// Not every transport supports httptrace. Without it, the error must prove that
// nothing was written.
func TestPostOverATransportWithoutTrace(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want int
	}{
		"dial":        {&net.OpError{Op: "dial", Err: errors.New("refused")}, 4},
		"DNS":         {&net.DNSError{Err: "no such host"}, 4},
		"certificate": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, 4},
		"wrapped":     {fmt.Errorf("proxy: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), 4},
		"read":        {&net.OpError{Op: "read", Err: errors.New("reset")}, 1},
		"write":       {&net.OpError{Op: "write", Err: errors.New("broken pipe")}, 1},
		"EOF":         {io.ErrUnexpectedEOF, 1},
		"anything":    {errors.New("gone"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(fail(row.err))
			err := postHook(t.Context(), newTestClient(t, memoryURL, tr))
			require.ErrorIs(t, err, row.err)
			assert.Equal(t, row.want, tr.sent())
			const doubt = "the request was not retried and may have been carried out"
			if row.want == 1 {
				assert.ErrorContains(t, err, doubt)
			} else {
				assert.NotContains(t, err.Error(), doubt)
			}
		})
	}
}

// A POST that timed out while dialling was not written. One that timed out later
// may have been.
func TestPostAfterATimeout(t *testing.T) {
	for name, row := range map[string]struct {
		connected bool
		want      int
	}{"dialling": {false, 4}, "connected": {true, 1}} {
		Bubble(t, name, func(t *testing.T) {
			end := make(chan struct{})
			transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				if !row.connected {
					<-end
					return nil, errors.New("too late")
				}
				near, far := net.Pipe()
				go func() { // reads the request and never answers
					_, _ = io.Copy(io.Discard, far)
					far.Close()
				}()
				return near, nil
			}}
			attempts := 0
			client := newTestClient(t, "http://localhost"+prefix, transport, WithAttemptTimeout(time.Second),
				WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { attempts++ }}))
			assertTimeout(t, postHook(t.Context(), client))
			assert.Equal(t, row.want, attempts)
			close(end)
		})
	}
}

// Whether the attempt before has written anything does not matter.
func TestPostIsRetriedWhenOnlyTheLastConnectionFailed(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			w.Header().Set("Connection", "close")
			w.WriteHeader(429)
			return
		}
		fmt.Fprint(w, `{"sharedKey":"k"}`)
	}))
	t.Cleanup(server.Close)
	transport, dials := newTransport(t), 0
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials++; dials == 2 {
			return nil, errors.New("no route")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	require.NoError(t, postHook(t.Context(), newTestClient(t, server.URL+prefix, transport)))
	assert.Equal(t, 3, dials)
	assert.Equal(t, 2, requests)
}

func TestDefaultPolicy(t *testing.T) {
	assert.Equal(t, RetryPolicy{MaxRetries: 3, MinWait: 200 * time.Millisecond, MaxWait: 10 * time.Second}, DefaultRetryPolicy())
	for name, row := range map[string]struct {
		retryAfter string
		sent       int
		waits      [3]time.Duration // at most
	}{
		"no Retry-After":   {"", 4, [3]time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}},
		"the longest wait": {"10", 4, [3]time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}},
		"longer":           {"11", 1, [3]time.Duration{}},
	} {
		Bubble(t, name, func(t *testing.T) {
			tr := newScript(answer(503, "", "Retry-After: "+row.retryAfter))
			var waits []time.Duration
			client := Must(New(memoryURL, pathToken, WithHTTPClient(&http.Client{Transport: tr}),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { waits = append(waits, a.RetryIn) }})))(t)
			require.Error(t, getHead(t.Context(), client))
			assert.Equal(t, row.sent, tr.sent())
			for i, wait := range waits[:row.sent-1] {
				assert.LessOrEqual(t, wait, row.waits[i])
				if row.retryAfter != "" {
					assert.Equal(t, row.waits[i], wait)
				}
			}
		})
	}
}

func TestLastAnswerIsAFullErrorWhenAttemptsRunOut(t *testing.T) {
	for _, retries := range []int{0, 3} {
		for _, code := range []int{429, 500, 502, 503, 504} {
			t.Run(fmt.Sprint(retries, " retries ", code), func(t *testing.T) {
				body := fmt.Sprintf(`{"message":"no luck with %d","code":"E%d"}`, code, code)
				steps := slices.Repeat([]step{answer(code, `{"message":"first"}`)}, retries)
				tr := newScript(append(steps, answer(code, body, "X-Request-Id: r-9", "X-Other: yes"))...)
				client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: retries}))
				err := getHead(t.Context(), client)
				failure := As[*Error](t, err)
				assert.Equal(t, "yes", failure.Header.Get("X-Other"))
				assert.JSONEq(t, body, string(failure.Body.Bytes()))
				assert.NotContains(t, err.Error(), "giving up")
				failure.Header, failure.Body = nil, Raw{}
				assert.Equal(t, &Error{
					Operation: "Heads.Get", Method: "GET", Path: "/head/" + testHead, StatusCode: code, Attempts: 1 + retries,
					Message: fmt.Sprint("no luck with ", code), Code: fmt.Sprint("E", code), RequestID: "r-9",
				}, failure)
			})
		}
	}
}

func TestSuccessAfterRetries(t *testing.T) {
	tr := newScript(fail(io.EOF), answer(503, "busy"), answer(429, "slow down"), cutOff(200), answer(200, headJSON))
	head := Must(newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 4})).Heads.Get(t.Context(), testHead))(t)
	assert.Equal(t, "Ada", head.Name)

	tr = newScript(answer(500, ""), answer(204, ""))
	resp := Must(newTestClient(t, memoryURL, tr).Heads.setVideoStreaming(t.Context(), testHead, true))(t)
	assert.Equal(t, 2, resp.Attempts)
}

// Every attempt sends the whole body, and the transport can read it again, as
// HTTP/2 needs.
func TestEveryAttemptSendsTheWholeBody(t *testing.T) {
	for _, call := range calls {
		t.Run(call.method, func(t *testing.T) {
			tr := newScript(answer(429, ""))
			require.Error(t, call.run(t.Context(), newTestClient(t, memoryURL, tr)))
			require.Equal(t, 4, tr.sent())
			for i, r := range tr.requests {
				assert.Equal(t, tr.bodies[0], tr.bodies[i])
				assert.EqualValues(t, len(tr.bodies[0]), r.ContentLength)
				if call.method == "GET" || call.method == "DELETE" {
					assert.Empty(t, tr.bodies[i])
					assert.Empty(t, r.Header["Content-Type"])
					continue
				}
				assert.NotEmpty(t, tr.bodies[i])
				require.NotNil(t, r.GetBody)
				again := Must(r.GetBody())(t)
				raw := Must(io.ReadAll(again))(t)
				assert.Equal(t, tr.bodies[0], string(raw))
			}
		})
	}
}

// A transport may still read the body of an attempt that has ended.
func TestAttemptsShareNoReader(t *testing.T) {
	var bodies []io.Reader
	unread := httpmock.NewMockTransport()
	unread.RegisterNoResponder(func(r *http.Request) (*http.Response, error) {
		bodies = append(bodies, r.Body)
		return answer(429, "")(r)
	})
	client := newTestClient(t, memoryURL, unread)
	require.Error(t, postHook(t.Context(), client))
	require.Len(t, bodies, 4)
	for i, body := range bodies {
		raw := Must(io.ReadAll(body))(t)
		assert.NotEmpty(t, raw, "body %d was not read by another attempt", i)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	const maxWait = time.Minute
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when a bubble begins
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	const final = -1
	for name, row := range map[string]struct {
		value string
		wait  time.Duration // final: the call returns at once
		asked time.Duration // as the error shows it
	}{
		"5 s":           {"5", 5 * time.Second, 5 * time.Second},
		"the cap":       {"60", maxWait, maxWait},
		"over the cap":  {"61", final, 61 * time.Second},
		"an hour":       {"3600", final, time.Hour},
		"for ever":      {"99999999999999999999", final, math.MaxInt64},
		"longest":       {"9223372036", final, 9223372036 * time.Second},
		"spaces":        {" 5\t", 5 * time.Second, 5 * time.Second},
		"no Duration":   {"9223372037", final, math.MaxInt64},
		"date":          {date(30 * time.Second), 30 * time.Second, 30 * time.Second},
		"date over cap": {date(2 * time.Hour), final, 2 * time.Hour},
		"date, RFC 850": {now.Add(7 * time.Second).Format("Monday, 02-Jan-06 15:04:05 GMT"), 7 * time.Second, 7 * time.Second},
		"date, asctime": {now.Add(7 * time.Second).Format(time.ANSIC), 7 * time.Second, 7 * time.Second},
	} {
		for _, code := range []int{429, 500, 503} {
			Bubble(t, fmt.Sprint(name, " ", code), func(t *testing.T) {
				tr := newScript(answer(code, "the body", "Retry-After: "+row.value), answer(200, headJSON))
				var waits []time.Duration
				client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 3, MinWait: maxWait, MaxWait: maxWait}),
					WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { waits = append(waits, a.RetryIn) }}))
				require.Equal(t, now, time.Now().UTC())
				err := getHead(t.Context(), client)
				elapsed := time.Since(now)
				if row.wait != final {
					require.NoError(t, err)
					assert.Equal(t, 2, tr.sent())
					assert.Equal(t, max(row.wait, time.Nanosecond), elapsed)
					assert.Equal(t, []time.Duration{max(row.wait, time.Nanosecond), 0}, waits)
					return
				}
				failure := As[*Error](t, err)
				assert.Equal(t, code, failure.StatusCode)
				assert.Equal(t, "the body", string(failure.Body.Bytes()))
				assert.Equal(t, row.asked, failure.RetryAfter)
				assert.Equal(t, 1, tr.sent())
				assert.Zero(t, elapsed)
				assert.Equal(t, []time.Duration{0}, waits)
			})
		}
	}
}

// A Retry-After of 0 does not shorten the backoff.
func TestRetryAfterOfNoTimeWaitsTheBackoff(t *testing.T) {
	for name, value := range map[string]string{"0": "0", "00": "00", "date gone by": "Fri, 31 Dec 1999 23:00:00 GMT", "now": "Sat, 01 Jan 2000 00:00:00 GMT"} {
		for _, code := range []int{429, 500, 503} {
			Bubble(t, fmt.Sprint(name, " ", code), func(t *testing.T) {
				tr := newScript(answer(code, "", "Retry-After: "+value))
				var waits []time.Duration
				client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 8, MinWait: time.Hour, MaxWait: time.Hour}),
					WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { waits = append(waits, a.RetryIn) }}))
				start := time.Now()
				require.Error(t, getHead(t.Context(), client))
				assert.Equal(t, 9, tr.sent())
				assert.Greater(t, time.Since(start), time.Second, "eight random waits of up to an hour")
				for _, wait := range waits[:8] {
					assert.Greater(t, wait, time.Nanosecond)
				}
			})
		}
	}
}

// A wait that ends after the deadline does not begin, even if the service asked
// for it.
func TestWaitBeyondTheDeadlineReturnsAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		step    step
		timeout time.Duration
	}{
		"asked for":           {answer(503, "busy", "Retry-After: 30"), 10 * time.Second},
		"asked for, to the s": {answer(503, "busy", "Retry-After: 10"), 10 * time.Second},
		"own backoff":         {answer(503, "busy"), time.Nanosecond},
		"after an error":      {fail(io.ErrUnexpectedEOF), time.Nanosecond},
	} {
		Bubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.timeout)
			defer cancel()
			tr := newScript(row.step)
			client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 3, MinWait: time.Hour, MaxWait: time.Hour}))
			start := time.Now()
			err := getHead(ctx, client)
			assert.Zero(t, time.Since(start))
			assert.Equal(t, 1, tr.sent())
			if name == "after an error" {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				return
			}
			failure := As[*Error](t, err)
			assert.Equal(t, "busy", string(failure.Body.Bytes()))
			assert.NotErrorIs(t, err, context.DeadlineExceeded, "the wait is not over")
		})
	}
}

func TestCancellingEndsAWaitAtOnce(t *testing.T) {
	busy := answer(503, "busy", "Retry-After: 30")
	for name, row := range map[string]struct {
		steps  []step
		status int // of the last answer; 0 for none
	}{
		"after a 503":                  {[]step{busy}, 503},
		"after a 429":                  {[]step{answer(429, "busy", "Retry-After: 30")}, 429},
		"after an error":               {[]step{fail(io.ErrUnexpectedEOF)}, 0},
		"after a 500 and an error":     {[]step{answer(500, "busy", "Retry-After: 0"), fail(io.ErrUnexpectedEOF)}, 500},
		"after an error and a 503":     {[]step{fail(io.ErrUnexpectedEOF), busy}, 503},
		"after a cut off answer (200)": {[]step{cutOff(200)}, 0},
	} {
		Bubble(t, name, func(t *testing.T) {
			mine := errors.New("user went away")
			ctx, cancel := context.WithCancelCause(t.Context())
			tr := newScript(row.steps...)
			client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 9, MinWait: time.Hour, MaxWait: time.Hour}),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) {
					if a.Number == len(row.steps) {
						time.AfterFunc(time.Nanosecond, func() { cancel(mine) })
					}
				}}))
			done := make(chan error, 1)
			go func() { done <- getHead(ctx, client) }()
			<-ctx.Done()
			cancelled := time.Now()
			err := <-done
			assert.Zero(t, time.Since(cancelled))
			assert.Equal(t, len(row.steps), tr.sent())
			require.ErrorIs(t, err, context.Canceled)
			var failure *Error
			if row.status == 0 {
				require.NotErrorAs(t, err, &failure)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				return
			}
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, row.status, failure.StatusCode)
			assert.Equal(t, "busy", string(failure.Body.Bytes()))
			assert.Contains(t, err.Error(), fmt.Sprint(row.status))
			assert.Contains(t, err.Error(), "context canceled")
		})
	}
}

func TestCancellingDuringAnAttemptKeepsTheStatusBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		tr := newScript(answer(503, "busy"), func(r *http.Request) (*http.Response, error) {
			cancel()
			return hang(r)
		})
		err := getHead(ctx, newTestClient(t, memoryURL, tr))
		require.ErrorIs(t, err, context.Canceled)
		failure := As[*Error](t, err)
		assert.Equal(t, 503, failure.StatusCode)
		assert.Equal(t, "busy", string(failure.Body.Bytes()))
		assert.ErrorContains(t, err, "the last status was 503")
		assert.Equal(t, 2, tr.sent(), "a cancelled attempt is not retried")
	})
}

func TestCancellingBeforeTheWaitKeepsTheAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tr := newScript(func(r *http.Request) (*http.Response, error) {
		cancel()
		return answer(503, "busy")(r)
	})
	var seen []Attempt
	err := getHead(ctx, newTestClient(t, memoryURL, tr, WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { seen = append(seen, a) }})))
	require.ErrorIs(t, err, context.Canceled)
	failure := As[*Error](t, err)
	assert.Equal(t, "busy", string(failure.Body.Bytes()))
	assert.Equal(t, 1, tr.sent())
	require.Len(t, seen, 1)
	assert.Zero(t, seen[0].RetryIn, "no next attempt is announced")
}

func TestCancellingAfterAFinalAnswerIsNotItsCause(t *testing.T) {
	for status, policy := range map[int]RetryPolicy{404: atOncePolicy, 503: {}} {
		ctx, cancel := context.WithCancel(t.Context())
		tr := newScript(func(r *http.Request) (*http.Response, error) {
			cancel()
			return answer(status, "")(r)
		})
		err := getHead(ctx, newTestClient(t, memoryURL, tr, WithRetryPolicy(policy)))
		require.ErrorAs(t, err, new(*Error))
		assert.NotErrorIs(t, err, context.Canceled)
	}
}

func TestCancellingWhileATokenIsFetchedKeepsThe401(t *testing.T) {
	for range 20 { // the loop may or may not notice before the next attempt
		ctx, cancel := context.WithCancel(t.Context())
		client := sourceClient(t, newScript(answer(401, "expired"), hang), func(_ context.Context, rejected string) (string, error) {
			if rejected != "" {
				cancel()
			}
			return "token" + rejected, nil
		})
		err := getHead(ctx, client)
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, ErrUnauthorized)
		failure := As[*Error](t, err)
		assert.Equal(t, "expired", string(failure.Body.Bytes()))
	}
}

// Full jitter: the wait before retry n is random between 0 and MinWait·2ⁿ⁻¹, and
// never longer than MaxWait.
func TestBackoffHasFullJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 400
		limits := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond}
		waits := make([][]time.Duration, len(limits))
		var ended time.Time
		var announced time.Duration
		tr := newScript(func(r *http.Request) (*http.Response, error) {
			if announced > 0 {
				assert.Equal(t, announced, time.Since(ended), "RetryIn is the wait")
			}
			return answer(503, "")(r)
		})
		client := newTestClient(t, memoryURL, tr,
			WithRetryPolicy(RetryPolicy{MaxRetries: len(limits), MinWait: limits[0], MaxWait: limits[len(limits)-1]}),
			WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) {
				ended, announced = time.Now(), a.RetryIn
				if a.Number <= len(limits) {
					waits[a.Number-1] = append(waits[a.Number-1], a.RetryIn)
				}
			}}))
		for range calls {
			require.Error(t, getHead(t.Context(), client))
		}
		for n, limit := range limits {
			require.Len(t, waits[n], calls)
			low, high := 0, 0
			for _, wait := range waits[n] {
				assert.Positive(t, wait)
				assert.LessOrEqual(t, wait, limit)
				if wait < limit/10 {
					low++
				}
				if wait > limit*9/10 {
					high++
				}
			}
			assert.NotZero(t, low, "some of the waits before retry %d are short", n+1)
			assert.NotZero(t, high, "some of the waits before retry %d are long", n+1)
		}
	})
}

func TestDeleteAnswered404(t *testing.T) {
	gone, busy := answer(404, "gone"), answer(503, "")
	for name, row := range map[string]struct {
		steps []step
		err   error // nil: the delete succeeded
	}{
		"at once":                 {[]step{gone}, ErrNotFound},
		"after a 500":             {[]step{answer(500, ""), gone}, nil},
		"after a 502":             {[]step{answer(502, ""), gone}, nil},
		"after a 503":             {[]step{busy, gone}, nil},
		"after a 504":             {[]step{answer(504, ""), gone}, nil},
		"after no answer":         {[]step{fail(io.EOF), gone}, nil},
		"after a time-out":        {[]step{hang, gone}, nil},
		"after a cut off answer":  {[]step{cutOff(200), gone}, nil},
		"after a 429":             {[]step{answer(429, ""), gone}, ErrNotFound},
		"after two 429":           {[]step{answer(429, ""), answer(429, ""), gone}, ErrNotFound},
		"after a 429 and a 503":   {[]step{answer(429, ""), busy, gone}, nil},
		"after a 503 and a 429":   {[]step{busy, answer(429, ""), gone}, nil},
		"403 after a 503":         {[]step{busy, answer(403, "")}, ErrForbidden},
		"no 404 in the end":       {[]step{busy}, ErrServer},
		"the next call at a time": {[]step{busy, answer(204, "")}, nil},
	} {
		Bubble(t, name, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(row.steps...))
			err := client.Webhooks.Delete(t.Context(), 7)
			require.ErrorIs(t, err, row.err)
		})
	}
	t.Run("after a 401", func(t *testing.T) {
		client := sourceClient(t, newScript(answer(401, ""), gone), (&tokens{}).next)
		require.ErrorIs(t, client.Webhooks.Delete(t.Context(), 7), ErrNotFound)
	})
	t.Run("the doubt ends with the call", func(t *testing.T) {
		client := newTestClient(t, memoryURL, newScript(busy, gone, gone))
		require.NoError(t, client.Webhooks.Delete(t.Context(), 7))
		require.ErrorIs(t, client.Webhooks.Delete(t.Context(), 7), ErrNotFound)
	})
}

func TestOnlyADeleteIsDoneWithA404(t *testing.T) {
	for _, call := range calls {
		if call.method == "DELETE" || call.method == "POST" {
			continue
		}
		t.Run(call.method, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(fail(io.EOF), answer(503, ""), answer(404, "")))
			require.ErrorIs(t, call.run(t.Context(), client), ErrNotFound)
		})
	}
}

// The retry loop closes idle connections after each failure. Those of other calls
// must stay open.
func TestFailuresLeaveTheConnectionsOfOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := WithRetryPolicy(RetryPolicy{MaxRetries: 1, MinWait: time.Second, MaxWait: time.Second})
		for name, step := range map[string]step{"status": answer(500, ""), "error": fail(io.EOF), "final": answer(400, "")} {
			tr := newScript(step)
			require.Error(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, policy)))
			assert.Zero(t, tr.closed.Load(), name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		tr := newScript(answer(503, "", "Retry-After: 1"))
		client := newTestClient(t, memoryURL, tr, policy, WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { time.AfterFunc(1, cancel) }}))
		require.ErrorIs(t, getHead(ctx, client), context.Canceled)
		assert.Zero(t, tr.closed.Load(), "cancelled in a wait")
	})
}

// The logger of go-retryablehttp would write URLs to standard error.
func TestRetryLoopHasNoLogger(t *testing.T) {
	written := Must(os.Create(filepath.Join(t.TempDir(), "stderr")))(t)
	defer written.Close()
	stderr := os.Stderr
	os.Stderr = written
	defer func() { os.Stderr = stderr }()
	client := newTestClient(t, memoryURL, newScript(answer(503, "")))
	require.ErrorIs(t, getHead(t.Context(), client), ErrServer)
	text := Must(os.ReadFile(written.Name()))(t)
	assert.Empty(t, string(text))
}

// assertTimeout checks what a caller can rely on after a timeout.
func assertTimeout(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	timeout := As[net.Error](t, err)
	assert.True(t, timeout.Timeout())
}

func TestAnswersAreReadUpTo8MiB(t *testing.T) {
	const limit = 8 << 20
	for name, row := range map[string]struct {
		size int
		ok   bool
	}{"8 MiB": {limit, true}, "8 MiB and a byte": {limit + 1, false}} {
		for _, call := range calls {
			t.Run(name+" "+call.method, func(t *testing.T) {
				// As JSON the answer is an object with white space before it.
				body := `{"id":"` + testHead + `","sharedKey":"k"}`
				if call.method == "DELETE" {
					body = `{"id":7}`
				}
				tr := newScript(answer(200, strings.Repeat(" ", row.size-len(body))+body))
				err := call.run(t.Context(), newTestClient(t, memoryURL, tr))
				assert.Equal(t, 1, tr.sent(), "it was done")
				if row.ok {
					require.NoError(t, err)
					return
				}
				decode := As[*DecodeError](t, err)
				assert.Equal(t, 4<<10, decode.Body.Len())
				assert.ErrorContains(t, err, "the answer is longer than 8388608 bytes")
			})
		}
	}
}

// A compressed answer is short on the wire and can be long when it is read.
func TestUnpackedAnswersAreLimitedToo(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = io.Copy(packed, io.LimitReader(zeros{}, 9<<20))
		packed.Close()
	})
	As[*DecodeError](t, getHead(t.Context(), client))
}

func TestLongErrorIsStillAFullError(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 9<<20))
	})
	failure := As[*Error](t, getHead(t.Context(), client))
	assert.Equal(t, 400, failure.StatusCode)
	assert.Equal(t, strings.Repeat("0", 64<<10), string(failure.Body.Bytes()))
	assert.Len(t, []rune(failure.Message), 200)
}

func TestCutOffAnswerIsNoAnswer(t *testing.T) {
	for _, code := range []int{200, 404, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			var got Attempt
			client := newTestClient(t, memoryURL, newScript(cutOff(code)), WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { got = a }}))
			err := getHead(t.Context(), client)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorContains(t, err, "no answer")
			require.ErrorContains(t, err, fmt.Sprintf("status %d, but the answer broke off", code), "the status is not lost")
			assert.Zero(t, got.StatusCode)
			var failure *Error
			if code == 200 {
				require.NotErrorAs(t, err, &failure, "an *Error is never a success")
				return
			}
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, code, failure.StatusCode)
		})
	}
}

// Transports of tests often don't set the fields that http.Client fills in.
func TestIncompleteResponsesOfATransport(t *testing.T) {
	bare := func(r *http.Request) (*http.Response, error) { return &http.Response{StatusCode: 204}, nil }
	client := newTestClient(t, memoryURL, newScript(bare))
	resp := Must(client.Heads.setVideoStreaming(t.Context(), testHead, true))(t)
	assert.Equal(t, 204, resp.StatusCode)
	assert.Zero(t, resp.Body.Len())

	client = newTestClient(t, memoryURL, newScript(func(*http.Request) (*http.Response, error) { return nil, nil }))
	require.ErrorContains(t, getHead(t.Context(), client), "neither a response nor an error")
}

// trackedBody counts how often a body is closed and how much of it was not read.
type trackedBody struct {
	io.Reader
	closed *int
}

func (b trackedBody) Close() error { *b.closed++; return nil }

func TestBodiesAreReadAndClosedOnEveryPath(t *testing.T) {
	for name, row := range map[string]struct {
		step  step
		whole bool // the body is read to its end
	}{
		"success":       {answer(200, headJSON), true},
		"error":         {answer(400, strings.Repeat("x", 100<<10)), true},
		"repeated":      {answer(500, strings.Repeat("x", 100<<10)), true},
		"redirect":      {answer(302, "moved", "Location: /x"), true},
		"refused token": {answer(401, "no"), true},
		"undecodable":   {answer(200, "text"), true},
		"cut off":       {cutOff(200), true},
		"too long":      {answer(200, strings.Repeat(" ", 9<<20)), false},
	} {
		for _, call := range calls {
			t.Run(name+" "+call.method, func(t *testing.T) {
				opened, closed := 0, 0
				var bodies []io.Reader
				client := newTestClient(t, memoryURL, newScript(func(r *http.Request) (*http.Response, error) {
					resp, err := row.step(r)
					opened++
					bodies = append(bodies, resp.Body)
					resp.Body = trackedBody{resp.Body, &closed}
					return resp, err
				}))
				_ = call.run(t.Context(), client)
				assert.Positive(t, opened)
				assert.Equal(t, opened, closed, "each is closed once")
				for _, body := range bodies {
					rest, _ := io.ReadAll(body)
					assert.Equal(t, row.whole, len(rest) == 0)
				}
			})
		}
	}
}

// The text of a transport's error may hold anything.
func TestTransportErrorsAreRedactedAndUnwrap(t *testing.T) {
	lost := errors.New("connection lost")
	for name, row := range map[string]struct {
		err  error
		says string
	}{
		"plain":    {lost, "connection lost"},
		"URL":      {&url.Error{Op: "Get", URL: "https://me:hush-hush@api.example.com/head-events?headId=hush-hush#hush-hush", Err: lost}, `Get "https://api.example.com/head-events": connection lost`},
		"in text":  {fmt.Errorf("proxy https://me:hush-hush@proxy.example.com said no to https://api.example.com/x?api_key=hush-hush: %w", lost), "proxy https://proxy.example.com said no to https://api.example.com/x connection lost"},
		"token":    {fmt.Errorf("header Bearer %s: %w", pathToken, lost), "header Bearer [redacted]: connection lost"},
		"two URLs": {&url.Error{Op: "Get", URL: "https://a.example.com?k=hush-hush", Err: &url.Error{Op: "proxyconnect", URL: "https://b.example.com/?k=hush-hush", Err: lost}}, `Get "https://a.example.com": proxyconnect "https://b.example.com/": connection lost`},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(fail(row.err)))
			_, err := client.Webhooks.List(t.Context(), testHead)
			require.ErrorIs(t, err, lost)
			assert.Equal(t, "heads: Webhooks.List: GET /head-events: no answer: "+row.says+" (4 attempts)", err.Error())
			var asURL *url.Error
			if errors.As(err, &asURL) {
				assert.NotContains(t, asURL.Error(), "hush-hush")
			}
		})
	}
}

func TestTransportErrorsUnwrapToTheirKind(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		server := refusing(t)
		_, err := newTestClient(t, server.url+prefix, server.transport).Webhooks.List(t.Context(), testHead)
		op := As[*net.OpError](t, err)
		assert.Equal(t, "dial", op.Op)
		assert.NotContains(t, err.Error(), "headId", "no query")
		asNet := As[net.Error](t, err)
		assert.False(t, asNet.Timeout())
	})
	Bubble(t, "deadline of the call", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tr := newScript(hang)
		assertTimeout(t, getHead(ctx, newTestClient(t, memoryURL, tr)))
		assert.Equal(t, 1, tr.sent())
	})
	t.Run("cause of the caller", func(t *testing.T) {
		mine := errors.New("user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := getHead(ctx, newTestClient(t, memoryURL, newScript(func(r *http.Request) (*http.Response, error) {
			cancel(mine)
			return nil, context.Cause(r.Context())
		})))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, mine)
	})
}

// An attempt ends when the context of its call ends. A finished attempt leaves
// no timer.
func TestAttemptsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		tr := newScript(func(r *http.Request) (*http.Response, error) {
			contexts = append(contexts, r.Context())
			return answer(503, "")(r)
		})
		require.Error(t, getHead(t.Context(), newTestClient(t, memoryURL, tr)))
		require.Len(t, contexts, 4)
		for _, ctx := range contexts {
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
	})
}

// A transport may call the service while it serves a call. The two calls must
// not be confused.
func TestCallWithinACall(t *testing.T) {
	inner := newTestClient(t, memoryURL, newScript(answer(500, ""), answer(200, `{"id":"`+testHead+`","name":"inner"}`)))
	var attempts []string
	outer := newTestClient(t, memoryURL, newScript(func(r *http.Request) (*http.Response, error) {
		head, err := inner.Heads.Get(r.Context(), testHead)
		if assert.NoError(t, err) {
			assert.Equal(t, "inner", head.Name)
		}
		return answer(200, headJSON)(r)
	}), WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { attempts = append(attempts, fmt.Sprint(a.Number, a.StatusCode)) }}))
	head := Must(outer.Heads.Get(t.Context(), testHead))(t)
	assert.Equal(t, "Ada", head.Name)
	assert.Equal(t, []string{"1 200"}, attempts)
}

func TestRateLimitCountsEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tr := newScript(answer(500, ""), answer(500, ""), answer(200, headJSON))
		client := newTestClient(t, memoryURL, tr, WithRateLimit(1, 1))
		require.NoError(t, getHead(t.Context(), client))
		require.NoError(t, getHead(t.Context(), client))
		assert.Equal(t, 4, tr.sent())
		assert.InDelta(t, 3*time.Second, time.Since(start), float64(time.Millisecond))
	})
}

func TestRateLimitFailsAtOnceWhereTheDeadlineComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newScript(answer(200, headJSON))
		client := newTestClient(t, memoryURL, tr, WithRateLimit(0.1, 1))
		require.NoError(t, getHead(t.Context(), client))

		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := getHead(ctx, client)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, err.Error(), "nothing was sent")
		assert.Zero(t, time.Since(start))

		require.NoError(t, getHead(t.Context(), client), "the turn was released")
		assert.Equal(t, 10*time.Second, time.Since(start))
		assert.Equal(t, 2, tr.sent())
	})
}

func TestRateLimitKeepsTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTestClient(t, memoryURL, newScript(answer(500, "")), WithRateLimit(0.1, 1))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := getHead(ctx, client)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, ErrServer)

		client = newTestClient(t, memoryURL, newScript(fail(io.ErrUnexpectedEOF)), WithRateLimit(0.1, 1))
		err = getHead(ctx, client)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

func TestCancelEndsTheWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newTestClient(t, memoryURL, newScript(answer(200, headJSON)), WithRateLimit(0.001, 1))
		require.NoError(t, getHead(t.Context(), client))
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, getHead(ctx, client), context.Canceled)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestRetryAfterHoldsTheWholeClientBack(t *testing.T) {
	for name, row := range map[string]struct {
		status     int
		retryAfter string
		held       time.Duration
	}{
		"429":             {http.StatusTooManyRequests, "3", 3 * time.Second},
		"503":             {http.StatusServiceUnavailable, "3", 3 * time.Second},
		"at most MaxWait": {http.StatusTooManyRequests, "3600", 10 * time.Second},
		"429 without":     {http.StatusTooManyRequests, "", 0},
		"429 with 0":      {http.StatusTooManyRequests, "0", 0},
		"another status":  {http.StatusInternalServerError, "3", 0},
		"a final answer":  {http.StatusNotFound, "3", 0},
		"a success":       {http.StatusOK, "3", 0},
	} {
		Bubble(t, name, func(t *testing.T) {
			first := answer(row.status, headJSON)
			if row.retryAfter != "" {
				first = answer(row.status, headJSON, "Retry-After: "+row.retryAfter)
			}
			// A call that returns at once holds the others back, too.
			var waited time.Duration
			client := newTestClient(t, memoryURL, newScript(first, answer(200, headJSON)),
				WithRetryPolicy(RetryPolicy{MaxWait: 10 * time.Second}),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { waited = a.Waited }}))
			_ = getHead(t.Context(), client)
			start := time.Now()
			require.NoError(t, getHead(t.Context(), client))
			assert.Equal(t, row.held, time.Since(start))
			assert.Equal(t, row.held, waited)
		})
	}
}

func TestHoldFailsAtOnceWhereTheDeadlineComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newScript(answer(429, "", "Retry-After: 8"), answer(200, headJSON))
		client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxWait: 10 * time.Second}))
		require.ErrorIs(t, getHead(t.Context(), client), ErrRateLimited)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, getHead(ctx, client), context.DeadlineExceeded)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, 1, tr.sent())
	})
}
