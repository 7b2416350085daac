package transport

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headsapi/heads-go/internal/timing"
	"golang.org/x/time/rate"
)

// pace decides when the next attempt of a client may begin. All calls share it: the rate
// limit, and the pause that an answer with Retry-After causes.
type pace struct {
	limiter *rate.Limiter             // nil for no limit
	pause   atomic.Pointer[time.Time] // its end; nil before the first pause
}

// wait returns when an attempt may begin, and how long it has waited. It fails at once if
// the context's deadline comes first.
//
// The slot of the rate limit is reserved after a pause. If another pause begins while the
// attempt waits for its slot, it cancels the slot and reserves one after that pause.
// Otherwise all waiting attempts would begin at the moment the pause ends.
func (p *pace) wait(ctx context.Context) (waited time.Duration, err error) {
	for {
		paused, err := p.waitForPause(ctx)
		waited += paused
		if err != nil || p.limiter == nil {
			return waited, err
		}
		slot := p.limiter.Reserve()
		limited, err := waitFor(ctx, slot.Delay(), "the rate limit")
		waited += limited
		if err != nil {
			slot.Cancel()
			return waited, err
		}
		if p.pauseLeft() <= 0 {
			return waited, nil
		}
	}
}

// pauseLeft returns how long the pause still lasts.
func (p *pace) pauseLeft() time.Duration {
	until := p.pause.Load()
	if until == nil {
		return 0
	}
	left := time.Until(*until)
	if left <= 0 {
		p.pause.CompareAndSwap(until, nil)
	}
	return left
}

func (p *pace) waitForPause(ctx context.Context) (waited time.Duration, err error) {
	for {
		left := p.pauseLeft()
		if left <= 0 {
			return waited, nil
		}
		slept, err := waitFor(ctx, left, "the wait that the service asked for")
		waited += slept
		if err != nil {
			return waited, err
		}
	}
}

// pauseFor makes every attempt wait for d, unless a longer pause is under way.
func (p *pace) pauseFor(d time.Duration) {
	until := time.Now().Add(d)
	for {
		current := p.pause.Load()
		if current != nil && !until.After(*current) || p.pause.CompareAndSwap(current, &until) {
			return
		}
	}
}

// waitFor waits for d, unless the context's deadline comes first. It returns how long it has
// waited.
func waitFor(ctx context.Context, d time.Duration, reason string) (time.Duration, error) {
	if d <= 0 {
		return 0, nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return 0, fmt.Errorf("%s lasts longer than the context: %w", reason, context.DeadlineExceeded)
	}
	start := time.Now()
	err := timing.Sleep(ctx, d)
	return time.Since(start), err
}
