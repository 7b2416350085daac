package inbox

import (
	"context"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// The distances from which a Run looks for due sessions. Sessions become visible when their
// transaction commits, which may be long after the time in next_at.
const (
	lookBack     = 50 * time.Millisecond // of every look
	farLookBack  = 2 * time.Second       // of a look every farLookEvery
	farLookEvery = 200 * time.Millisecond
	// A look from the beginning finds all, every fullLookEvery, or fullLookShare times as long as
	// it takes.
	fullLookEvery = 30 * time.Second
	fullLookShare = 100
)

// horizon knows from which time on sessions may be due. The index of due sessions is not read from
// its beginning, where an open transaction of anyone keeps every entry that there was.
type horizon struct {
	low  int64 // the database's time; no session seen is due earlier
	full bool  // the look under way reads from the beginning

	nextFar, nextFull time.Time
}

// from returns the time from which the next look reads.
func (h *horizon) from(now time.Time) int64 {
	h.full = !now.Before(h.nextFull)
	switch {
	case h.full:
		h.nextFull = now.Add(fullLookEvery)
		return 0
	case !now.Before(h.nextFar):
		h.nextFar = now.Add(farLookEvery)
		return h.low - micros(farLookBack)
	}
	return h.low - micros(lookBack)
}

// took records how long the look under way has taken.
func (h *horizon) took(d time.Duration, now time.Time) {
	if h.full {
		h.nextFull = now.Add(max(fullLookEvery, fullLookShare*d))
	}
}

// include makes the next look see a session that is due at a time.
func (h *horizon) include(due int64) { h.low = min(h.low, due) }

// taking is one transaction that claims sessions.
type taking struct {
	terms
	fences    *fences
	from      int64     // the first time of the look
	high      int64     // the highest fence that was handed out before
	low       int64     // the earliest due time that is left, or now
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

// take locks first and reads events in later statements, since a statement that has waited for a
// lock sees other tables as they were before the wait.
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
		if d.fence <= t.high {
			return errWentBack(d.fence, t.high)
		}
		t.fences.saw(d.fence)
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

// lowest returns the statement that reads the earliest due time that is left. It sees sessions that
// others have locked, and must: appends that follow each other can keep a session locked for
// seconds.
func (t *taking) lowest() *engine.Call {
	return engine.Get(func(scan func(...any) error) error { return scan(&t.low) }, engine.Low, t.from)
}

// decide returns the statements for a due session.
func (t *taking) decide(d *dueSession) []*engine.Call {
	if !d.found {
		// Nothing waits, or the event is being committed by a worker whose claim has ended.
		return []*engine.Call{
			engine.Do(engine.DropIdle, d.session),
			engine.Do(engine.Postpone, d.session, micros(min(t.lease/3, time.Second))),
		}
	}
	d.spent = d.event.Attempts >= int64(t.maxAttempts)
	if d.held == 1 {
		t.takenOver = append(t.takenOver, d)
	}
	if d.held == 1 && d.event.Fence == d.was && d.event.Attempts > 0 && !d.spent {
		// The worker died, or was stopped, during this event. If the event began again at once, it
		// could end the next worker with everything that runs there.
		return []*engine.Call{
			engine.Do(engine.StealEvent, d.event.Sequence, d.fence),
			engine.Do(engine.ReleaseSession, d.session, micros(t.backoff(int(d.event.Attempts)))),
		}
	}
	begun(&d.event, d.fence, d.spent)
	t.claimed = append(t.claimed, d)
	return []*engine.Call{
		engine.Do(engine.TakeSession, d.session, d.fence, t.owner, micros(t.lease)),
		engine.Do(engine.BeginEvent, d.event.Sequence, d.fence, int64(t.maxAttempts)),
	}
}

// begun changes e as BeginEvent changes the event.
func begun(e *engine.Record, fence int64, spent bool) {
	e.Fence = fence
	if !spent {
		e.Attempts++
	}
}
