package heads

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// pace says when the next attempt of a client may begin. All calls share it:
// the limit of WithRateLimit, and the hold that an answer with Retry-After puts
// on the client.
type pace struct {
	limiter *rate.Limiter             // nil without WithRateLimit
	hold    atomic.Pointer[time.Time] // nil before the first hold
}

// wait returns when an attempt may begin, and how long that took. It fails at
// once if the context's deadline comes first.
func (p *pace) wait(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	if err := p.waitForHold(ctx); err != nil {
		return time.Since(start), err
	}
	if p.limiter != nil {
		if err := p.waitForLimit(ctx); err != nil {
			return time.Since(start), err
		}
		if err := p.waitForHold(ctx); err != nil { // one that began meanwhile
			return time.Since(start), err
		}
	}
	return time.Since(start), nil
}

func (p *pace) waitForLimit(ctx context.Context) error {
	slot := p.limiter.Reserve()
	err := turn(ctx, slot.Delay(), "the rate limit")
	if err != nil {
		slot.Cancel()
	}
	return err
}

func (p *pace) waitForHold(ctx context.Context) error {
	for {
		until := p.hold.Load()
		if until == nil {
			return nil
		}
		left := time.Until(*until)
		if left <= 0 {
			return nil
		}
		if err := turn(ctx, left, "the wait that the service asked for"); err != nil {
			return err
		}
	}
}

// holdFor keeps every attempt back for a time, if none keeps them back longer.
func (p *pace) holdFor(d time.Duration) {
	until := time.Now().Add(d)
	for {
		current := p.hold.Load()
		if current != nil && !until.After(*current) || p.hold.CompareAndSwap(current, &until) {
			return
		}
	}
}

// turn waits, but not towards a deadline that comes first.
func turn(ctx context.Context, wait time.Duration, reason string) error {
	if wait <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return fmt.Errorf("%s lasts longer than the context: %w", reason, context.DeadlineExceeded)
	}
	return sleep(ctx, wait)
}
