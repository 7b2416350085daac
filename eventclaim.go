package heads

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/headsapi/heads-go/internal/panics"
	"github.com/headsapi/heads-go/internal/timing"
)

const (
	// Both start with the arrival. The service waits 5 s. The time after claimTime is
	// for releasing a claim, and the time after answerTime for the answer to arrive.
	claimTime  = 4 * time.Second
	answerTime = 4900 * time.Millisecond

	leaseMargin  = 5 * time.Second
	storeTimeout = time.Second            // for one call of the deduplicator
	storeGrace   = 100 * time.Millisecond // for a call to return after its context ended
	minStoreWait = 25 * time.Millisecond  // between two calls
	maxStoreWait = 400 * time.Millisecond
)

var errStoreTooSlow = errors.New("heads: the deduplicator did not return in time")

// eventClaim is the claim of one delivery on the key of its event.
//
// A MemoryDeduplicator is called directly. Any other store may fail, be slow or ignore its
// context. So its calls run in a goroutine of their own, and the delivery waits for them
// only as long as the service waits for the answer.
type eventClaim struct {
	h     *EventHandler
	ctx   context.Context //nolint:containedctx // of the delivery
	key   string
	owner string

	calling chan struct{} // full during a call, so that no Claim overtakes a Release
	settled bool
	renewal *time.Timer // nil until the claim is taken
}

func (h *EventHandler) newClaim(ctx context.Context, key string) *eventClaim {
	return &eventClaim{h: h, ctx: ctx, key: key, owner: rand.Text(), calling: make(chan struct{}, 1)}
}

// take claims the key. Until the limit it retries a store that fails, and waits for a key
// that another receiver has claimed. If that receiver has crashed, this delivery may be the
// last one before its lease ends.
func (c *eventClaim) take(limit time.Time) (Claim, error) {
	switch {
	case c.h.dedup == nil:
		return ClaimNew, nil
	case c.h.local:
		return c.takeNow(c.ctx)
	}
	type answer struct {
		claim Claim
		err   error
	}
	answers := make(chan answer, 1)
	c.h.inBackground(time.Until(limit)+storeGrace, func() {
		ctx, cancel := context.WithDeadline(c.ctx, limit)
		defer cancel()
		claim, err := c.takeNow(ctx)
		answers <- answer{claim, err}
	})
	select {
	case a := <-answers:
		return a.claim, a.err
	default:
		return 0, errStoreTooSlow
	}
}

func (c *eventClaim) takeNow(ctx context.Context) (claim Claim, err error) {
	c.calling <- struct{}{}
	defer func() { <-c.calling }()
	for wait := minStoreWait; ; wait = min(2*wait, maxStoreWait) {
		claim, err = c.claim(ctx)
		if again := claim == ClaimBusy || isHiccup(err); !again || c.h.local || timing.Sleep(ctx, wait) != nil {
			break
		}
	}
	if err == nil && claim == ClaimNew {
		c.renewal = time.AfterFunc(c.h.lease()/2, c.renew)
	}
	return claim, err
}

// claim makes one call, which takes the key or extends the lease.
func (c *eventClaim) claim(ctx context.Context) (claim Claim, err error) {
	err = c.call(ctx, func(ctx context.Context) (err error) {
		claim, err = c.h.dedup.Claim(ctx, c.key, c.owner, c.h.lease())
		return err
	})
	if err != nil {
		return 0, err
	}
	if claim < ClaimNew || claim > ClaimDone {
		return 0, fmt.Errorf("heads: the deduplicator returned %v", claim)
	}
	return claim, nil
}

// renew extends the lease and sets the timer for the next time.
func (c *eventClaim) renew() {
	c.calling <- struct{}{}
	defer func() { <-c.calling }()
	if c.settled {
		return
	}
	ctx := context.WithoutCancel(c.ctx)
	claim, err := c.claim(ctx)
	switch {
	case err != nil:
		c.h.complain(ctx, "the claim can't be extended", err)
		c.renewal.Reset(maxStoreWait)
	case claim == ClaimNew:
		c.renewal.Reset(c.h.lease() / 2)
	default:
		c.h.complain(ctx, "the claim ended before the event was handled", fmt.Errorf("heads: the deduplicator returned %v", claim))
	}
}

// settle stores that the event is done, or else releases the key. It returns at the limit.
// The calls of the store then continue in the background.
func (c *eventClaim) settle(done bool, limit time.Time) {
	switch {
	case c.h.dedup == nil:
		return
	case c.h.local:
		c.settleNow(c.ctx, done, nil)
		return
	}
	wait := min(time.Until(limit), storeTimeout)
	failures := make(chan error, 1)
	ended := c.h.inBackground(wait, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), c.h.lease())
		defer cancel()
		c.settleNow(ctx, done, failures)
	})
	if ended || wait <= 0 {
		return
	}
	err := errStoreTooSlow
	select {
	case err = <-failures:
	default:
	}
	c.h.complain(c.ctx, "the answer no longer waits for the deduplicator", err)
}

// settleNow retries until the store succeeds or ctx ends. It sends the first
// failure to failures.
func (c *eventClaim) settleNow(ctx context.Context, done bool, failures chan<- error) {
	c.calling <- struct{}{}
	defer func() { <-c.calling }()
	c.settled = true
	if c.renewal != nil {
		c.renewal.Stop()
	}
	for wait := minStoreWait; ; wait = min(2*wait, maxStoreWait) {
		err := c.call(ctx, func(ctx context.Context) error {
			if done {
				return c.h.dedup.Done(ctx, c.key, c.owner, c.h.Memory())
			}
			return c.h.dedup.Release(ctx, c.key, c.owner)
		})
		if err == nil {
			return
		}
		select {
		case failures <- err:
		default:
		}
		if !isHiccup(err) || timing.Sleep(ctx, wait) != nil {
			c.h.complain(ctx, "the deduplicator failed", err)
			return
		}
	}
}

// call makes one call of the store, whose panic is an error.
func (c *eventClaim) call(ctx context.Context, f func(context.Context) error) error {
	if !c.h.local {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, storeTimeout)
		defer cancel()
	}
	return panics.Try(func() error { return f(ctx) })
}

// isHiccup reports whether a store that returned err may succeed soon. One that
// panics has a bug.
func isHiccup(err error) bool { return err != nil && !isPanic(err) }

// inBackground runs f in a goroutine of its own and reports whether it returned within wait.
// If not, f continues, and Shutdown waits for it.
func (h *EventHandler) inBackground(wait time.Duration, f func()) bool {
	ended := make(chan struct{})
	h.gate.Stay()
	go func() {
		defer h.gate.Leave()
		defer close(ended)
		f()
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
