package heads

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// assertTimeout checks what a caller can rely on after a timeout.
func assertTimeout(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
}

func TestObserverSeesEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		mine := context.WithValue(t.Context(), key{}, "mine")
		var attempts []Attempt
		slow := func(r *http.Request) (*http.Response, error) {
			<-time.After(3 * time.Second)
			return answer(200, headJSON, "X-Request-Id: r-3")(r)
		}
		tr := newScript(answer(503, `{"message":"busy"}`, "Retry-After: 2", "X-Request-Id: r-1"),
			fail(&url.Error{Op: "Get", URL: "https://api.example.com/x?key=hush-hush", Err: errors.New("with " + pathToken)}), slow)
		client := newTestClient(t, memoryURL, tr, WithRetryPolicy(RetryPolicy{MaxRetries: 3, MinWait: time.Second, MaxWait: 5 * time.Second}),
			WithObserver(Observer[Attempt]{End: func(ctx context.Context, a Attempt) {
				assert.Equal(t, mine, ctx, "the context of the call")
				attempts = append(attempts, a)
			}}))
		require.NoError(t, getHead(mine, client))
		require.Len(t, attempts, 3)
		for i, a := range attempts {
			assert.Equal(t, "Heads.Get", a.Operation)
			assert.Equal(t, "GET", a.Method)
			assert.Equal(t, "/head/{id}", a.Route, "the label, not the path")
			assert.Equal(t, i+1, a.Number)
		}
		first, second, third := attempts[0], attempts[1], attempts[2]
		assert.Equal(t, 503, first.StatusCode)
		assert.Equal(t, "r-1", first.RequestID)
		assert.Equal(t, 2*time.Second, first.RetryIn)
		require.ErrorIs(t, first.Err, ErrServer)
		require.ErrorContains(t, first.Err, "busy")

		assert.Zero(t, second.StatusCode, "no response came")
		assert.Empty(t, second.RequestID, "each attempt has its own")
		assert.Positive(t, second.RetryIn)
		assert.LessOrEqual(t, second.RetryIn, 2*time.Second)
		require.EqualError(t, second.Err, `Get "https://api.example.com/x": with [redacted]`)

		assert.Equal(t, 200, third.StatusCode)
		assert.Equal(t, "r-3", third.RequestID)
		assert.Equal(t, 3*time.Second, third.Duration)
		assert.Zero(t, third.RetryIn)
		require.NoError(t, third.Err)
	})
}

func TestObserverDoesNotSeeWhatWasNotSent(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(200, "")), WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { panic("told") }}))
	_, err := client.Heads.Get(t.Context(), "li-28379")
	require.ErrorIs(t, err, ErrInvalid)
}

func TestErrorOfAnAttemptHasNeitherBodyNorHeader(t *testing.T) {
	var got Attempt
	client := newTestClient(t, memoryURL, newScript(answer(400, `{"message":"no","extra":"x"}`, "Set-Cookie: a=b")),
		WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { got = a }}))
	require.Error(t, getHead(t.Context(), client))
	var failure *Error
	require.ErrorAs(t, got.Err, &failure)
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
		_, err := client.Webhooks.List(t.Context(), testHead)
		require.NoError(t, err)
		assert.Equal(t, strings.Join([]string{
			`level=WARN msg="heads: attempt" operation=Webhooks.List method=GET route=/head-events attempt=1 status=503 duration=0s request_id=r-1 error="heads: Webhooks.List: GET /head-events: 503 Service Unavailable: busy (retry after 2s) [request r-1]" retry_in=2s`,
			`level=WARN msg="heads: attempt" operation=Webhooks.List method=GET route=/head-events attempt=2 status=0 duration=0s error="lost with [redacted]" retry_in=0s`,
			`level=DEBUG msg="heads: attempt" operation=Webhooks.List method=GET route=/head-events attempt=3 status=200 duration=0s request_id=r-3`,
			``,
		}, "\n"), out.String())
	})
}

func TestAnswersAreReadUpTo8MiB(t *testing.T) {
	const limit = 8 << 20
	for name, row := range map[string]struct {
		size int
		ok   bool
	}{"8 MiB": {limit, true}, "8 MiB and a byte": {limit + 1, false}, "9 MiB": {9 << 20, false}} {
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
				var decode *DecodeError
				require.ErrorAs(t, err, &decode)
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
	var decode *DecodeError
	require.ErrorAs(t, getHead(t.Context(), client), &decode)
}

func TestLongErrorIsStillAFullError(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 9<<20))
	})
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), client), &failure)
	assert.Equal(t, 400, failure.StatusCode)
	assert.Equal(t, strings.Repeat("0", 64<<10), string(failure.Body.Bytes()))
	assert.Len(t, []rune(failure.Message), 200)
}

func TestCutOffAnswerIsRetriedUntilItIsWhole(t *testing.T) {
	cut := 0
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if cut++; cut <= 2 {
			w.Header().Set("Content-Length", "1000")
		}
		fmt.Fprint(w, headJSON)
	})
	head, err := client.Heads.Get(t.Context(), testHead)
	require.NoError(t, err)
	assert.Equal(t, "Ada", head.Name)
	assert.Equal(t, 3, cut)
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
	resp, err := client.Heads.setVideoStreaming(t.Context(), testHead, true)
	require.NoError(t, err)
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
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "dial", op.Op)
		assert.NotContains(t, err.Error(), "headId", "no query")
		var asNet net.Error
		require.ErrorAs(t, err, &asNet)
		assert.False(t, asNet.Timeout())
	})
	t.Run("deadline of the call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			tr := newScript(hang)
			assertTimeout(t, getHead(ctx, newTestClient(t, memoryURL, tr)))
			assert.Equal(t, 1, tr.sent())
		})
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
	head, err := outer.Heads.Get(t.Context(), testHead)
	require.NoError(t, err)
	assert.Equal(t, "Ada", head.Name)
	assert.Equal(t, []string{"1 200"}, attempts)
}
