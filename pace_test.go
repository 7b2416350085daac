package heads

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func TestRateLimitIsSharedByAllGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client := newTestClient(t, memoryURL, newScript(answer(200, headJSON)), WithRateLimit(10, 5))
		var calls sync.WaitGroup
		for range 25 {
			calls.Go(func() { assert.NoError(t, getHead(t.Context(), client)) })
		}
		calls.Wait()
		assert.InDelta(t, 2*time.Second, time.Since(start), float64(time.Millisecond), "5 at once, then 10 a second")
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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

func TestRateLimitRefusesInvalidLimits(t *testing.T) {
	for name, opt := range map[string]Option{
		"zero":     WithRateLimit(0, 1),
		"negative": WithRateLimit(-1, 1),
		"no burst": WithRateLimit(1, 0),
	} {
		_, err := New(memoryURL, pathToken, opt)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}
