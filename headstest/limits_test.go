package headstest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

func TestRateLimitAnswers429WithRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, id := inMemory(t, headstest.WithRateLimit(0.4, 2)).with(headstest.Head{})
		refused := func(retryAfter string) {
			ans := a.do("GET", "/head/"+id, "")
			ans.refused(t, 429, "too many")
			assert.Equal(t, retryAfter, ans.header.Get("Retry-After"))
		}
		for range 2 {
			a.head(id) // the burst
		}
		for range 3 {
			refused("3") // 2.5 s, rounded up
		}
		<-time.After(2400 * time.Millisecond)
		refused("1")
		<-time.After(100 * time.Millisecond)
		a.head(id) // what was refused has taken nothing of the rate
		assert.Len(t, a.Requests(), 7)
		assert.Equal(t, 429, a.Requests()[2].Status)
	})
}

func TestRateLimitedRequestHasNoEffectAndUsesUpNoFault(t *testing.T) {
	a, id := inMemory(t, headstest.WithRateLimit(0.001, 1)).with(headstest.Head{})
	a.Inject(headstest.Fault{Route: "/head/update", Status: 500, Times: 1})
	a.head(id)
	assert.Equal(t, 429, a.do("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`).status)
	assert.Contains(t, string(a.Snapshot().Heads[0]), `"name":"Ada"`)
	assert.Len(t, a.Snapshot().Faults, 1)
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
		assert.Equal(t, 404, inMemory(t, limit).do("GET", "/head/x", "").status)
	}
}

func TestLatencyIsWaitedByEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, id := inMemory(t, headstest.WithLatency(50*time.Millisecond), headstest.WithRateLimit(0.001, 2)).with(headstest.Head{})
		for _, want := range []int{200, 404, 429} {
			start := time.Now()
			status := a.do("GET", map[int]string{200: "/head/" + id, 404: "/nowhere", 429: "/head/" + id}[want], "").status
			assert.Equal(t, []any{want, 50 * time.Millisecond}, []any{status, time.Since(start)})
		}
	})
}

func TestRequestCancelledInTheLatencyHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, id := inMemory(t, headstest.WithLatency(time.Minute)).with(headstest.Head{})
		require.ErrorIs(t, a.rename(id, time.Second), context.DeadlineExceeded)
		assert.Contains(t, string(a.Snapshot().Heads[0]), `"name":"Ada"`)
	})
}
