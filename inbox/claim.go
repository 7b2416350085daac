package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// claim is the right to handle the events of one session until the lease ends.
type claim struct {
	session []byte
	fence   int64
	first   *engine.Record
	spent   bool // first has no attempt left

	ctx context.Context //nolint:containedctx // of functions; ends with the claim
	end context.CancelCauseFunc

	mu       sync.Mutex
	until    time.Time
	timer    *time.Timer
	sequence int64 // of the event whose function is running; 0 for none
	cut      bool
}

func newClaim(base context.Context, session []byte, fence int64, until time.Time) *claim {
	c := &claim{session: session, fence: fence, until: until}
	c.ctx, c.end = context.WithCancelCause(base)
	c.timer = time.AfterFunc(time.Until(until), func() { c.end(ErrFenced) })
	return c
}

// extend postpones the end of the claim. until is based on this process's monotonic clock, read
// before the statement was sent.
func (c *claim) extend(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.until = until
		c.timer.Reset(time.Until(until))
	}
}

func (c *claim) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}

// expired reports whether the lease has ended, even if the timer has not fired yet because the
// process was stopped.
func (c *claim) expired() bool {
	if !time.Now().Before(c.deadline()) {
		c.end(ErrFenced)
	}
	return errors.Is(context.Cause(c.ctx), ErrFenced)
}

func (c *claim) stop() {
	c.timer.Stop()
	c.end(nil)
}

// running records the event whose function is running, 0 for none.
func (c *claim) running(sequence int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence = sequence
}

// cutOff marks the running function as cut off and returns its event, 0 for none.
func (c *claim) cutOff() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = c.sequence != 0
	return c.sequence
}

func (c *claim) wasCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// terms are the options of Run that apply to its claims.
type terms struct {
	owner       []byte
	lease       time.Duration
	maxAttempts int
	backoff     func(attempt int) time.Duration
}

// clockGrain is the most by which a database rounds its time down.
const clockGrain = time.Millisecond

// leaseEnd returns when a lease written by a statement ends, by this process's clock. sent is when
// the statement was sent. The result is never later than the end in the database.
func (t terms) leaseEnd(sent time.Time) time.Time { return sent.Add(t.lease - clockGrain) }
