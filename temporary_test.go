package heads_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

// getFrom reads a head from a server without a retry.
func getFrom(t *testing.T, ctx context.Context, serve http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	client, err := heads.New(server.URL, "token", heads.WithRetryPolicy(heads.RetryPolicy{}))
	require.NoError(t, err)
	_, err = client.Heads.Get(ctx, convertID)
	require.Error(t, err)
	return err
}

func TestTemporaryStatuses(t *testing.T) {
	temporary := map[int]bool{408: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true, 507: true, 599: true}
	for _, status := range []int{300, 307, 400, 401, 403, 404, 405, 408, 409, 410, 413, 422, 425, 429, 500, 501, 502, 503, 504, 507, 599} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			err := getFrom(t, t.Context(), func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) })
			assert.Equal(t, temporary[status], heads.Temporary(err), err)
			assert.Equal(t, temporary[status], heads.Temporary(fmt.Errorf("wrapped: %w", err)))
		})
	}
}

func TestNoAnswerIsTemporary(t *testing.T) {
	reset := func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if assert.NoError(t, err) {
			_ = conn.Close()
		}
	}
	assert.True(t, heads.Temporary(getFrom(t, t.Context(), reset)), "no byte of an answer")
	cut := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(rw, `{"id":`)
	}
	assert.True(t, heads.Temporary(getFrom(t, t.Context(), cut)), "half an answer")

	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := heads.New(server.URL, "token", heads.WithRetryPolicy(heads.RetryPolicy{}))
	require.NoError(t, err)
	_, err = client.Heads.Get(t.Context(), convertID)
	assert.True(t, heads.Temporary(err), "connection refused: %v", err)
}

func TestTemporaryIsFalseForACallThatWasCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := getFrom(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, heads.Temporary(err))
	assert.False(t, heads.Temporary(getFrom(t, ctx, nil)), "nothing was sent")
}

func TestTemporaryIsFalseForACallThatWasCanceledBeforeItsRetry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "5")
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	client, err := heads.New(server.URL, "token", heads.WithObserver(func(context.Context, heads.Attempt) { cancel() }))
	require.NoError(t, err)
	_, err = client.Heads.Get(ctx, convertID)
	require.ErrorIs(t, err, heads.ErrServer)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, heads.Temporary(err))
}

func TestTemporaryIsFalseForAnAnswerThatCanNotBeRead(t *testing.T) {
	err := getFrom(t, t.Context(), func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "<html>") })
	require.ErrorAs(t, err, new(*heads.DecodeError))
	assert.False(t, heads.Temporary(err))
}

func TestTemporaryOfOtherErrors(t *testing.T) {
	unavailable, missing := &heads.Error{StatusCode: 503}, &heads.Error{StatusCode: 404}
	conversion := func(r heads.ConversionReason) error {
		return &heads.ConversionError{Reason: r, Err: unavailable}
	}
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"any other error", errors.New("x"), false},
		{"canceled", context.Canceled, false},
		{"deadline exceeded", context.DeadlineExceeded, true},
		{"deadline exceeded, wrapped", fmt.Errorf("x: %w", context.DeadlineExceeded), true},
		{"no answer of a token source", fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{"canceled token source", &net.OpError{Op: "dial", Err: context.Canceled}, false},
		{"invalid", &heads.InvalidError{}, false},
		{"decode error of something temporary", &heads.DecodeError{Err: context.DeadlineExceeded}, false},
		{"conversion: temporary", conversion(heads.ReasonTemporary), true},
		{"conversion: unknown outcome", conversion(heads.ReasonUnknownOutcome), true},
		{"conversion: refused", conversion(heads.ReasonRefused), false},
		{"conversion: visual", conversion(heads.ReasonVisual), false},
		{"conversion: provider", conversion(heads.ReasonProvider), false},
		{"conversion: address", conversion(heads.ReasonAddress), false},
		{"temporary conversion that was canceled", &heads.ConversionError{Reason: heads.ReasonTemporary, Err: context.Canceled}, true},
		{"joined, all temporary", errors.Join(unavailable, context.DeadlineExceeded), true},
		{"joined, one not", errors.Join(unavailable, missing), false},
		{"joined, one canceled", errors.Join(unavailable, context.Canceled), false},
		{"joined, nested", errors.Join(unavailable, fmt.Errorf("x: %w", errors.Join(unavailable, missing))), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, heads.Temporary(tt.err))
		})
	}
}
