package headstest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

func TestRateLimitAnswers429WithRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t, headstest.WithRateLimit(0.4, 2))
		id := e.AddHead(headstest.Head{})
		send := func() (status int, retryAfter, body string) {
			req, err := http.NewRequest("PUT", "http://emulator/head/update", strings.NewReader(`{"id":"`+id+`","name":"Bea"}`))
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+e.BearerToken())
			req.Header.Set("Content-Type", "application/json")
			resp, err := e.Transport().RoundTrip(req)
			require.NoError(t, err)
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return resp.StatusCode, resp.Header.Get("Retry-After"), string(text)
		}
		for range 2 {
			status, _, _ := send()
			require.Equal(t, 200, status, "the burst")
		}
		for range 3 {
			status, retryAfter, body := send()
			assert.Equal(t, []any{429, "3"}, []any{status, retryAfter}, "2.5 s, rounded up")
			assert.Contains(t, body, `"statusCode":429`)
		}
		<-time.After(2400 * time.Millisecond)
		status, retryAfter, _ := send()
		assert.Equal(t, []any{429, "1"}, []any{status, retryAfter})
		<-time.After(100 * time.Millisecond)
		status, _, _ = send()
		assert.Equal(t, 200, status, "what was refused has taken nothing of the rate")
		assert.Len(t, e.Requests(), 7)
		assert.Equal(t, 429, e.Requests()[2].Status)
	})
}

func TestRateLimitedRequestHasNoEffectAndUsesUpNoFault(t *testing.T) {
	e := newEmulator(t, headstest.WithRateLimit(0.001, 1))
	id := e.AddHead(headstest.Head{})
	e.Inject(headstest.Fault{Route: "/head/update", Status: 500, Times: 1})
	_, _, err := inMemory(t.Context(), e, "GET", "/head/"+id, "")
	require.NoError(t, err)
	status, _, err := inMemory(t.Context(), e, "PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)
	require.NoError(t, err)
	assert.Equal(t, 429, status)
	assert.Contains(t, string(e.Snapshot().Heads[0]), `"name":"Ada"`)
	assert.Len(t, e.Snapshot().Faults, 1)
}

func TestRateLimitsThatAllowNothingAreRefused(t *testing.T) {
	for _, perSecond := range []float64{0, -1} {
		assert.Panics(t, func() { headstest.WithRateLimit(perSecond, 1) })
	}
	assert.Panics(t, func() { headstest.WithRateLimit(1, 0) })
}

func TestEmulatorsWithOneOptionHaveTheirOwnLimits(t *testing.T) {
	limit := headstest.WithRateLimit(0.001, 1)
	for range 2 {
		e := newEmulator(t, limit)
		status, _, err := inMemory(t.Context(), e, "GET", "/head/x", "")
		require.NoError(t, err)
		assert.Equal(t, 404, status)
	}
}

func TestLatencyIsWaitedByEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t, headstest.WithLatency(50*time.Millisecond), headstest.WithRateLimit(0.001, 2))
		id := e.AddHead(headstest.Head{})
		for _, want := range []int{200, 404, 429} {
			start := time.Now()
			status, _, err := inMemory(t.Context(), e, "GET", map[int]string{200: "/head/" + id, 404: "/nowhere", 429: "/head/" + id}[want], "")
			require.NoError(t, err)
			assert.Equal(t, []any{want, 50 * time.Millisecond}, []any{status, time.Since(start)})
		}
	})
}

func TestRequestCancelledInTheLatencyHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t, headstest.WithLatency(time.Minute))
		id := e.AddHead(headstest.Head{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := inMemory(ctx, e, "PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, string(e.Snapshot().Heads[0]), `"name":"Ada"`)
	})
}
