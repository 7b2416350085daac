package heads

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTemporaryStatuses(t *testing.T) {
	temporary := map[int]bool{408: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true, 507: true, 599: true}
	for _, status := range []int{300, 307, 400, 401, 403, 404, 405, 408, 409, 410, 413, 422, 425, 429, 500, 501, 502, 503, 504, 507, 599} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			err := getHead(t.Context(), newTestClient(t, memoryURL, answer(status, "")))
			require.Error(t, err)
			assert.Equal(t, temporary[status], Temporary(err), err)
			assert.Equal(t, temporary[status], Temporary(fmt.Errorf("wrapped: %w", err)))
		})
	}
}

func TestNoAnswerIsTemporary(t *testing.T) {
	for name, service := range map[string]*wire{
		"connection refused":   refusing(t),
		"no byte of an answer": closing("")(t),
		"half an answer":       closing("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"id\":")(t),
	} {
		err := getHead(t.Context(), service.client(t))
		require.Error(t, err)
		assert.True(t, Temporary(err), "%s: %v", name, err)
	}
}

func TestTemporaryIsFalseForACallThatWasCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	transport := newScript(func(r *http.Request) (*http.Response, error) {
		cancel()
		return hang(r)
	})
	client := newTestClient(t, memoryURL, transport)
	err := getHead(ctx, client)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Temporary(err))

	err = getHead(ctx, client)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Temporary(err))
	assert.Equal(t, 1, transport.sent(), "the second call sent nothing")
}

func TestTemporaryIsFalseForACallThatWasCanceledBeforeItsRetry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := newTestClient(t, memoryURL, answer(503, "", "Retry-After: 5"), WithRetryPolicy(DefaultRetryPolicy()),
		WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { cancel() }}))
	err := getHead(ctx, client)
	require.ErrorIs(t, err, ErrServer)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Temporary(err))
}

func TestTemporaryIsFalseForAnAnswerThatCannotBeRead(t *testing.T) {
	err := getHead(t.Context(), newTestClient(t, memoryURL, answer(200, "<html>")))
	require.ErrorAs(t, err, new(*DecodeError))
	assert.False(t, Temporary(err))
}

func TestTemporaryOfOtherErrors(t *testing.T) {
	unavailable, missing := &Error{StatusCode: 503}, &Error{StatusCode: 404}
	conversion := func(r Reason) error {
		return &ConversionError{Reason: r, Err: unavailable}
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
		{"invalid", &InvalidError{}, false},
		{"decode error of something temporary", &DecodeError{Err: context.DeadlineExceeded}, false},
		{"conversion: temporary", conversion(ReasonTemporary), true},
		{"conversion: unknown outcome", conversion(ReasonUnknownOutcome), true},
		{"conversion: refused", conversion(ReasonRefused), false},
		{"conversion: visual", conversion(ReasonVisual), false},
		{"conversion: provider", conversion(ReasonProvider), false},
		{"conversion: address", conversion(ReasonAddress), false},
		{"temporary conversion that was canceled", &ConversionError{Reason: ReasonTemporary, Err: context.Canceled}, true},
		{"joined, all temporary", errors.Join(unavailable, context.DeadlineExceeded), true},
		{"joined, one not", errors.Join(unavailable, missing), false},
		{"joined, one canceled", errors.Join(unavailable, context.Canceled), false},
		{"joined, nested", errors.Join(unavailable, fmt.Errorf("x: %w", errors.Join(unavailable, missing))), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, Temporary(tt.err))
		})
	}
}
