package heads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fixedSource(token string) TokenSource {
	return func(context.Context, string) (string, error) { return token, nil }
}

// tokens is a source that returns a new token for each call: t1, t2 …
type tokens struct {
	mu    sync.Mutex
	asked []string // the rejected token of each call
}

func (s *tokens) next(_ context.Context, rejected string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, rejected)
	return fmt.Sprintf("t%d", len(s.asked)), nil
}

// accepting is a step that answers 401 unless the token is one of these.
func accepting(list ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		for _, token := range list {
			if r.Header.Get("Authorization") == "Bearer "+token {
				return answer(200, headJSON)(r)
			}
		}
		return answer(401, "")(r)
	}
}

func sourceClient(t testing.TB, transport http.RoundTripper, source TokenSource, opts ...Option) *Client {
	t.Helper()
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(atOncePolicy), WithTokenSource(source)}
	client, err := New(memoryURL, "", append(all, opts...)...)
	require.NoError(t, err)
	return client
}

func TestTokenSourceIsAskedOnceForManyCalls(t *testing.T) {
	source := &tokens{}
	client := sourceClient(t, newScript(accepting("t1")), source.next)
	for range 3 {
		require.NoError(t, getHead(t.Context(), client))
	}
	assert.Equal(t, []string{""}, source.asked)
}

func TestTokenSourceIsAskedAgainAfter401(t *testing.T) {
	for _, call := range calls {
		t.Run(call.method, func(t *testing.T) {
			source := &tokens{}
			tr := newScript(answer(401, ""), answer(200, `{"id":"`+testHead+`","sharedKey":"k"}`))
			var attempts []Attempt
			client := sourceClient(t, tr, source.next, WithRetryPolicy(RetryPolicy{}),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { attempts = append(attempts, a) }}))
			require.NoError(t, call.run(t.Context(), client), "with MaxRetries 0 too")
			assert.Equal(t, []string{"", "t1"}, source.asked, "with the token that was refused")
			require.Equal(t, 2, tr.sent())
			assert.Equal(t, []string{"Bearer t1"}, tr.requests[0].Header["Authorization"])
			assert.Equal(t, []string{"Bearer t2"}, tr.requests[1].Header["Authorization"])
			assert.Equal(t, tr.bodies[0], tr.bodies[1], "the body is sent again")
			require.Len(t, attempts, 2)
			assert.False(t, attempts[0].Final)
			assert.True(t, attempts[1].Final)
		})
	}
}

func TestAskingAgainIsNotARetry(t *testing.T) {
	source := &tokens{}
	tr := newScript(answer(503, ""), answer(401, ""), answer(503, ""), answer(503, ""), answer(503, ""))
	client := sourceClient(t, tr, source.next)
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), client), &failure)
	assert.Equal(t, 503, failure.StatusCode)
	assert.Equal(t, 5, failure.Attempts, "three retries and one renewal")
	assert.Equal(t, 5, tr.sent())
}

func TestTokenSourceIsAskedAgainOnlyOnceACall(t *testing.T) {
	source := &tokens{}
	tr := newScript(accepting("t4"))
	client := sourceClient(t, tr, source.next)
	err := getHead(t.Context(), client)
	require.ErrorIs(t, err, ErrUnauthorized)
	assert.Equal(t, 2, tr.sent())
	assert.Equal(t, []string{"", "t1"}, source.asked)

	require.ErrorIs(t, getHead(t.Context(), client), ErrUnauthorized, "the next call asks with the token that it had")
	assert.Equal(t, []string{"", "t1", "t2"}, source.asked)
	require.NoError(t, getHead(t.Context(), client))
}

func TestSameTokenIsNotTriedTwice(t *testing.T) {
	tr := newScript(answer(401, `{"message":"expired"}`))
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), sourceClient(t, tr, fixedSource("same"))), &failure)
	assert.Equal(t, 401, failure.StatusCode)
	assert.Equal(t, "expired", failure.Message)
	assert.Equal(t, 1, tr.sent())
}

func TestFixedTokenMakes401Final(t *testing.T) {
	tr := newScript(answer(401, ""))
	require.ErrorIs(t, getHead(t.Context(), newTestClient(t, memoryURL, tr)), ErrUnauthorized)
	assert.Equal(t, 1, tr.sent())
}

func TestFailingSourceSendsNothing(t *testing.T) {
	lost := errors.New("vault is sealed")
	for name, row := range map[string]struct {
		source TokenSource
		says   string
	}{
		"error":       {func(context.Context, string) (string, error) { return "", lost }, "vault is sealed"},
		"empty token": {fixedSource(""), "is blank"},
		"Bearer":      {fixedSource("Bearer hush-hush"), `starts with "Bearer "`},
		"line feed":   {fixedSource("hush-hush\n"), "line break"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, headJSON))
			err := getHead(t.Context(), sourceClient(t, tr, row.source))
			require.ErrorContains(t, err, "heads: Heads.Get: nothing was sent: token source: ")
			require.ErrorContains(t, err, row.says)
			assert.NotContains(t, err.Error(), "hush-hush")
			assert.Equal(t, 0, tr.sent())
			if name == "error" {
				require.ErrorIs(t, err, lost)
			}
		})
	}
}

func TestSourceIsAskedAgainByTheNextCallAfterAnError(t *testing.T) {
	asked := 0
	client := sourceClient(t, newScript(accepting("t2")), func(context.Context, string) (string, error) {
		if asked++; asked == 1 {
			return "", errors.New("not yet")
		}
		return "t2", nil
	})
	require.Error(t, getHead(t.Context(), client))
	require.NoError(t, getHead(t.Context(), client))
}

func TestFailingSourceAfter401KeepsTheAnswer(t *testing.T) {
	lost := errors.New("vault is sealed")
	for name, row := range map[string]struct {
		token string
		err   error
		says  string
	}{
		"error":      {"", lost, "vault is sealed"},
		"no token":   {"", nil, "is blank"},
		"bad token":  {"two words", nil, "a space"},
		"old in err": {"", fmt.Errorf("t1-old was revoked: %w", lost), "[redacted] was revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(401, `{"message":"expired"}`))
			err := getHead(t.Context(), sourceClient(t, tr, func(_ context.Context, rejected string) (string, error) {
				if rejected == "" {
					return "t1-old", nil
				}
				return row.token, row.err
			}))
			require.ErrorIs(t, err, ErrUnauthorized)
			var failure *Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, "expired", failure.Message)
			assert.NotEmpty(t, failure.Body)
			require.ErrorContains(t, err, row.says)
			assert.NotContains(t, err.Error(), "t1-old")
			assert.Equal(t, 1, tr.sent())
			if row.err != nil {
				require.ErrorIs(t, err, lost)
			}
		})
	}
}

func TestPanickingSourceLeavesTheClientUsable(t *testing.T) {
	for name, panicOn := range map[string]string{"first asking": "", "second asking": "t1"} {
		t.Run(name, func(t *testing.T) {
			panicked := false
			client := sourceClient(t, newScript(accepting("t2")), func(_ context.Context, rejected string) (string, error) {
				if rejected == panicOn && !panicked {
					panicked = true
					panic("source broke")
				}
				if rejected == "" && panicOn != "" {
					return "t1", nil
				}
				return "t2", nil
			})
			assert.PanicsWithValue(t, "source broke", func() { _ = getHead(t.Context(), client) })
			require.NoError(t, getHead(t.Context(), client))
		})
	}
}

func TestManyFirstCallsAskOnce(t *testing.T) {
	source := &tokens{}
	client := sourceClient(t, newScript(accepting("t1")), source.next)
	inParallel(50, func(int) { assert.NoError(t, getHead(t.Context(), client)) })
	assert.Equal(t, []string{""}, source.asked)
}

// All 50 calls have sent the old token before the first of them is refused.
func TestManyRefusedCallsAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &tokens{}
		gate := make(chan struct{})
		tr := newScript(answer(200, headJSON), func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") == "Bearer t1" {
				<-gate
			}
			return accepting("t2")(r)
		})
		client := sourceClient(t, tr, source.next)
		require.NoError(t, getHead(t.Context(), client), "t1 is in force")
		go func() {
			synctest.Wait()
			close(gate)
		}()
		inParallel(50, func(int) { assert.NoError(t, getHead(t.Context(), client)) })
		assert.Equal(t, []string{"", "t1"}, source.asked)
		assert.Equal(t, 1+50+50, tr.sent())
	})
}

func TestLateRefusalOfAnOldTokenAsksNobody(t *testing.T) {
	source := &tokens{}
	var client *Client
	first := true
	tr := newScript(answer(200, headJSON), func(r *http.Request) (*http.Response, error) {
		if first { // while this call is on its way, another one renews the token
			first = false
			assert.NoError(t, getHead(t.Context(), client))
		}
		return accepting("t2")(r)
	})
	client = sourceClient(t, tr, source.next)
	require.NoError(t, getHead(t.Context(), client), "t1 is in force")
	require.NoError(t, getHead(t.Context(), client))
	assert.Equal(t, []string{"", "t1"}, source.asked)
}

func TestWaitingForTheSourceEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := sourceClient(t, newScript(answer(200, headJSON)), func(context.Context, string) (string, error) {
			<-release
			return pathToken, nil
		})
		done := make(chan error, 1)
		go func() { done <- getHead(t.Context(), client) }()
		synctest.Wait() // until the source waits

		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() { waiting <- getHead(ctx, client) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-waiting, context.Canceled)
		close(release)
		require.NoError(t, <-done)
	})
}

func TestSourceGetsTheContextOfTheCall(t *testing.T) {
	type key struct{}
	var got []any
	tr := newScript(answer(401, ""), answer(200, headJSON))
	client := sourceClient(t, tr, func(ctx context.Context, rejected string) (string, error) {
		got = append(got, ctx.Value(key{}))
		return "token" + rejected, nil
	})
	require.NoError(t, getHead(context.WithValue(t.Context(), key{}, "mine"), client))
	assert.Equal(t, []any{"mine", "mine"}, got)
}
