package transport

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headsapi/heads-go/internal/timing"
	"golang.org/x/time/rate"
)

// pace says when the next attempt of a client may begin. All calls share it:
// the limit of WithRateLimit, and the hold that an answer with Retry-After puts
// on the client.
type pace struct {
	limiter *rate.Limiter             // nil without WithRateLimit
	hold    atomic.Pointer[time.Time] // nil before the first hold
}

// wait returns when an attempt may begin, and how long it was kept. It fails at
// once if the context's deadline comes first.
//
// The slot of the rate limit is taken after a hold. If another hold begins while
// the attempt waits for its slot, the attempt gives the slot up and takes one after
// that hold. Otherwise all attempts that waited would leave together when it ends.
func (p *pace) wait(ctx context.Context) (waited time.Duration, err error) {
	for {
		held, err := p.waitForHold(ctx)
		waited += held
		if err != nil || p.limiter == nil {
			return waited, err
		}
		slot := p.limiter.Reserve()
		limited, err := turn(ctx, slot.Delay(), "the rate limit")
		waited += limited
		if err != nil {
			slot.Cancel()
			return waited, err
		}
		if p.held() <= 0 {
			return waited, nil
		}
	}
}

// held returns how long the hold still lasts.
func (p *pace) held() time.Duration {
	until := p.hold.Load()
	if until == nil {
		return 0
	}
	left := time.Until(*until)
	if left <= 0 {
		p.hold.CompareAndSwap(until, nil)
	}
	return left
}

func (p *pace) waitForHold(ctx context.Context) (waited time.Duration, err error) {
	for {
		left := p.held()
		if left <= 0 {
			return waited, nil
		}
		kept, err := turn(ctx, left, "the wait that the service asked for")
		waited += kept
		if err != nil {
			return waited, err
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

// turn waits, unless the context's deadline comes first, and returns how long.
func turn(ctx context.Context, d time.Duration, reason string) (time.Duration, error) {
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
