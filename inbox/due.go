package inbox

import (
	"context"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// How far back a Run searches for due sessions. A session becomes visible when its transaction
// commits, which may be long after the time in next_at.
const (
	searchBack     = 50 * time.Millisecond // of every search
	farSearchBack  = 2 * time.Second       // of one search every farSearchEvery
	farSearchEvery = 200 * time.Millisecond
	// A search from the beginning finds everything. It runs every fullSearchEvery, or less often if
	// it is slow: then after fullSearchShare times its duration.
	fullSearchEvery = 30 * time.Second
	fullSearchShare = 100
)

// horizon is the time from which sessions may be due. The index of due sessions is not read from
// its beginning, since any open transaction keeps dead entries there.
type horizon struct {
	low  int64 // in the database's time; no known session is due earlier
	full bool  // the current search reads from the beginning

	nextFar, nextFull time.Time
}

// from returns the time from which the next search reads.
func (h *horizon) from(now time.Time) int64 {
	h.full = !now.Before(h.nextFull)
	switch {
	case h.full:
		h.nextFull = now.Add(fullSearchEvery)
		return 0
	case !now.Before(h.nextFar):
		h.nextFar = now.Add(farSearchEvery)
		return h.low - micros(farSearchBack)
	}
	return h.low - micros(searchBack)
}

// took records the duration of the current search.
func (h *horizon) took(d time.Duration, now time.Time) {
	if h.full {
		h.nextFull = now.Add(max(fullSearchEvery, fullSearchShare*d))
	}
}

// include makes the next search find a session that is due at the given time.
func (h *horizon) include(due int64) { h.low = min(h.low, due) }

// taking is one transaction that claims sessions.
type taking struct {
	terms
	fences    *fences
	from      int64     // where the search begins
	high      int64     // the highest fence handed out before
	low       int64     // the earliest due time that remains, or now
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

// take locks the sessions first and reads their events in later statements, since a statement that
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

// lowest returns the statement that reads the earliest due time that remains. It must include
// sessions that other transactions have locked, since a series of appends can keep a session locked
// for seconds.
func (t *taking) lowest() *engine.Call {
	return engine.Get(func(scan func(...any) error) error { return scan(&t.low) }, engine.Low, t.from)
}

// decide returns the statements for a due session.
func (t *taking) decide(d *dueSession) []*engine.Call {
	if !d.found {
		// No event is waiting, or a worker whose claim has ended is committing it.
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
		// The worker died or was paused while it handled this event. Apply Backoff before the next
		// attempt: an event that kills its process would otherwise kill the next worker at once,
		// with all functions that run there.
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

// begun applies the change of BeginEvent to e.
func begun(e *engine.Record, fence int64, spent bool) {
	e.Fence = fence
	if !spent {
		e.Attempts++
	}
}
