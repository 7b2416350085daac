package transport

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

func TestShorterPauseDoesNotEndALongerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		start := time.Now()
		p.pauseFor(5 * time.Second)
		p.pauseFor(time.Second)
		waited, err := p.wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []time.Duration{5 * time.Second, 5 * time.Second}, []time.Duration{waited, time.Since(start)})
	})
}

func TestPauseThatBeginsDuringTheWaitForASlotIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{limiter: rate.NewLimiter(0.5, 1)}
		start := time.Now()
		require.True(t, p.limiter.Allow()) // the next slot comes after 2 s
		p.pauseFor(time.Second)
		time.AfterFunc(1500*time.Millisecond, func() { p.pauseFor(5 * time.Second) })
		waited, err := p.wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 6500*time.Millisecond, time.Since(start))
		assert.Equal(t, 6500*time.Millisecond, waited, "for the pause, the slot and the other pause")
	})
}

// Nothing begins during the pause, and not all that waited for their slot begin when it ends:
// no second has more than the burst and what the rate adds in it.
func TestAttemptsAfterAPauseKeepTheRateLimit(t *testing.T) {
	const perSecond, burst, calls = 100, 20, 400
	for name, pause := range map[string]time.Duration{"shorter than the queue": 500 * time.Millisecond, "longer than the queue": 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := pace{limiter: rate.NewLimiter(perSecond, burst)}
			begun := make(chan time.Time, calls)
			for range calls {
				go func() {
					if _, err := p.wait(t.Context()); assert.NoError(t, err) {
						begun <- time.Now()
					}
				}()
			}
			<-time.After(time.Second)
			p.pauseFor(pause)
			end := time.Now().Add(pause)
			var times []time.Time
			for range calls {
				times = append(times, <-begun)
			}
			assert.LessOrEqual(t, mostInASecond(times), perSecond+burst, name)
			assert.False(t, slices.ContainsFunc(times, func(at time.Time) bool { return at.After(end.Add(-pause)) && at.Before(end) }), name)
		})
	}
}

// mostInASecond returns how many of the times, which are in order, lie within one second.
func mostInASecond(times []time.Time) (most int) {
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
