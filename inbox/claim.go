package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// claim is a session that this Run can work on until the lease ends.
type claim struct {
	session []byte
	fence   int64
	first   *engine.Record
	spent   bool // first has used all its attempts

	ctx context.Context //nolint:containedctx // of functions; ends with the claim
	end context.CancelCauseFunc

	mu       sync.Mutex
	until    time.Time
	timer    *time.Timer
	sequence int64 // of the event whose function runs; 0 for none
	cut      bool
}

func newClaim(base context.Context, session []byte, fence int64, until time.Time) *claim {
	c := &claim{session: session, fence: fence, until: until}
	c.ctx, c.end = context.WithCancelCause(base)
	c.timer = time.AfterFunc(time.Until(until), func() { c.end(ErrFenced) })
	return c
}

// extend sets a later end of the claim. The time is of the monotonic clock of this
// process, read before the statement was sent.
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

// expired reports whether the lease has ended, even if the timer has not fired yet, as
// in a process that was stopped.
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

// running records the event whose function runs, 0 for none.
func (c *claim) running(sequence int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequence = sequence
}

// cutOff returns the event whose function runs.
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

// claim claims up to n due sessions and begins the first event of each. It reports
// whether there may be more.
func (r *run) claim(ctx context.Context, n int) (claims []*claim, full bool, err error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	begun := time.Now()
	t := &taking{run: r, from: r.due.from(begun), fences: r.in.fences.Load()}
	err = r.in.db.Write(limited, func(ctx context.Context, tx engine.Tx) error { return t.take(ctx, tx, n) })
	r.due.took(time.Since(begun), time.Now())
	if err != nil {
		// If it has succeeded, these claims are taken over later.
		r.due.include(t.from)
		return nil, false, err
	}
	r.due.low = t.low
	r.mu.Lock()
	for _, d := range t.claimed {
		c := newClaim(r.base, d.session, d.fence, r.leaseEnd(t.sent))
		c.first, c.spent = &d.event, d.spent
		claims = append(claims, c)
		r.claims[c] = struct{}{}
	}
	r.mu.Unlock()
	for _, d := range t.takenOver {
		r.in.tell(ctx, observed(KindTakenOver, &d.event))
	}
	return claims, t.due == n, nil
}

// clockGrain is how much a database may round its time down.
const clockGrain = time.Millisecond

// leaseEnd returns when a lease ends that a statement has written, by the clock of this
// process. It is never later than in the database.
func (r *run) leaseEnd(sent time.Time) time.Time { return sent.Add(r.lease - clockGrain) }

// taking is one transaction that claims sessions.
type taking struct {
	run       *run
	from      int64     // the first time of the look
	low       int64     // the earliest due time that is left, or now
	fences    int64     // the highest fence that was handed out before
	sent      time.Time // before the statement whose time starts the leases
	due       int
	claimed   []*dueSession
	takenOver []*dueSession
}

// dueSession is a due session that the transaction has locked.
type dueSession struct {
	session    []byte
	held       int64 // 1 if it was claimed by a worker whose lease has ended
	was, fence int64
	event      engine.Record
	found      bool
	spent      bool // the event has used all its attempts
}

// take locks first and reads events in later statements, since a statement that has
// waited for a lock sees other tables as they were before the wait.
func (t *taking) take(ctx context.Context, tx engine.Tx, n int) error {
	t.sent, t.due, t.claimed, t.takenOver = time.Now(), 0, nil, nil
	var due []*dueSession
	err := tx.Send(ctx, engine.Get(func(scan func(...any) error) error {
		d := &dueSession{}
		due = append(due, d)
		return scan(&d.session, &d.held, &d.was, &d.fence)
	}, engine.Due, t.from, int64(n)), t.lowest())
	if err != nil || len(due) == 0 {
		return err
	}
	t.due = len(due)
	for _, d := range due {
		if d.fence <= t.fences {
			return errWentBack(d.fence, t.fences)
		}
		t.run.in.sawFence(d.fence)
	}
	calls := []*engine.Call{engine.Do(engine.SpendFences, int64(len(due)))}
	for _, d := range due {
		calls = append(calls, engine.Get(func(scan func(...any) error) error {
			d.found = true
			return engine.ScanRecord(scan, &d.event)
		}, engine.ClaimEvent, d.session))
	}
	if err := tx.Send(ctx, calls...); err != nil {
		return err
	}
	calls = calls[:0]
	for _, d := range due {
		calls = append(calls, t.decide(d)...)
	}
	return tx.Send(ctx, append(calls, t.lowest())...)
}

// lowest returns the statement that reads the earliest due time that is left. It sees
// sessions that others have locked, and must: appends that follow each other can keep a
// session locked for seconds.
func (t *taking) lowest() *engine.Call {
	return engine.Get(func(scan func(...any) error) error { return scan(&t.low) }, engine.Low, t.from)
}

// decide returns the statements for a due session.
func (t *taking) decide(d *dueSession) []*engine.Call {
	r := t.run
	if !d.found {
		// Nothing waits, or the event is being committed by a worker whose claim has ended.
		return []*engine.Call{
			engine.Do(engine.DropIdle, d.session),
			engine.Do(engine.Postpone, d.session, micros(min(r.lease/3, time.Second))),
		}
	}
	d.spent = d.event.Attempts >= int64(r.maxAttempts)
	if d.held == 1 {
		t.takenOver = append(t.takenOver, d)
	}
	if d.held == 1 && d.event.Fence == d.was && d.event.Attempts > 0 && !d.spent {
		// The worker died, or was stopped, during this event. If the event began again
		// at once, it could end the next worker with everything that runs there.
		return []*engine.Call{
			engine.Do(engine.StealEvent, d.event.Sequence, d.fence),
			engine.Do(engine.ReleaseSession, d.session, micros(r.backoff(int(d.event.Attempts)))),
		}
	}
	begun(&d.event, d.fence, d.spent)
	t.claimed = append(t.claimed, d)
	return []*engine.Call{
		engine.Do(engine.TakeSession, d.session, d.fence, r.owner, micros(r.lease)),
		engine.Do(engine.BeginEvent, d.event.Sequence, d.fence, int64(r.maxAttempts)),
	}
}

// begun changes e as BeginEvent changes the event.
func begun(e *engine.Record, fence int64, spent bool) {
	e.Fence = fence
	if !spent {
		e.Attempts++
	}
}
