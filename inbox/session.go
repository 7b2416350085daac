package inbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	maxTurn     = 64          // events of a session before it yields its slot
	maxTurnTime = time.Second // time after which it yields its slot
)

// worker handles the events of claimed sessions. It is the part of a run that a session needs.
type worker struct {
	terms
	db *database
	*reporter
	wakes *wakes
	f     func(context.Context, *Delivery) error
	ctx   context.Context //nolint:containedctx // ends when nothing new may begin
}

// verdict is the outcome of an attempt.
type verdict int

const (
	handled   verdict = iota
	committed         // handled, and already stored by Commit
	failed            // to be retried
	dead              // to be moved to the dead letters
	putBack           // to be handled again immediately
	lost              // the claim has ended, so nothing may be stored
)

// outcome is a verdict and its details.
type outcome struct {
	verdict verdict
	err     error         // of a failed or dead event
	text    string        // of err, to log and store
	wait    time.Duration // before the retry of a failed event
	uncount bool          // take the attempt back
}

// session handles the events of a claimed session, until none is waiting, one has failed, maxTurn
// or maxTurnTime is reached, or the claim is lost.
func (w *worker) session(c *claim) {
	begun, event, spent := time.Now(), c.first, c.spent
	for n := 1; event != nil; n++ {
		o := w.handle(c, event, spent)
		more := n < maxTurn && time.Since(begun) < maxTurnTime && w.ctx.Err() == nil
		event, spent = w.finish(c, event, o, more)
	}
}

// handle calls the function for an event, unless the event can't be handled.
func (w *worker) handle(c *claim, e *engine.Record, spent bool) outcome {
	if c.expired() {
		return outcome{verdict: lost}
	}
	if spent {
		return outcome{verdict: dead, err: errCrashed, text: w.describe(errCrashed)}
	}
	if w.ctx.Err() != nil {
		return outcome{verdict: putBack, uncount: true}
	}
	d, err := deliveryOf(e)
	if err != nil {
		return outcome{verdict: dead, err: err, text: w.describe(err)}
	}
	d.commitment = &commitment{db: w.db, lease: w.lease, claim: c, sequence: e.Sequence}
	w.tell(c.ctx, observed(KindStarted, e))
	c.running(e.Sequence)
	begun := time.Now()
	r := w.call(c, d)
	c.running(0)
	o := w.judge(c, d.commitment, e, r)
	w.report(c, e, o, time.Since(begun), r.err)
	return o
}

var errCrashed = errors.New("inbox: the process died in the last attempt")

// result is the error of the function, and what its methods say about it.
type result struct {
	err       error
	text      string // to log and store
	permanent bool
	retry     *retryError
}

// call calls the function and examines its error, whose methods may panic as the function may.
func (w *worker) call(c *claim, d *Delivery) (r result) {
	if err := guarded(func() { r = w.examine(w.f(c.ctx, d)) }); err != nil {
		return result{err: err, text: w.describe(err)}
	}
	return r
}

func (w *worker) examine(err error) result {
	if err == nil {
		return result{}
	}
	r := result{err: err, text: w.describe(err)}
	var permanent permanentError
	var retry retryError
	r.permanent = errors.As(err, &permanent)
	if errors.As(err, &retry) {
		r.retry = &retry
	}
	return r
}

// guarded calls f and returns an error for a panic or a Goexit. f has its own goroutine, so a
// Goexit does not end the caller's.
func guarded(f func()) error {
	done := make(chan struct{})
	err := errExited
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{v}
			}
		}()
		f()
		err = nil
	}()
	<-done
	return err
}

// judge returns the outcome of an attempt. From then on, Commit returns an error.
func (w *worker) judge(c *claim, m *commitment, e *engine.Record, r result) outcome {
	o := outcome{verdict: failed, err: r.err, text: r.text}
	switch {
	case m.finish():
		o.verdict = committed
	case r.err == nil:
		o.verdict = handled
	case errors.Is(context.Cause(c.ctx), ErrFenced):
		o.verdict = lost
	case c.wasCut():
		o.verdict = putBack
	case r.permanent, int(e.Attempts) >= w.maxAttempts:
		o.verdict = dead
	case r.retry != nil:
		o.wait = r.retry.after
	default:
		o.wait = w.backoff(int(e.Attempts))
	}
	return o
}

// report calls the observer for an attempt that has ended.
func (w *worker) report(c *claim, e *engine.Record, o outcome, took time.Duration, err error) {
	kind, level := KindSucceeded, slog.LevelWarn
	switch o.verdict {
	case failed, dead:
		kind = KindFailed
	case lost:
		kind = KindFenced
	case putBack:
		return
	}
	seen := observed(kind, e)
	seen.Duration, seen.Err = took, err
	w.tell(c.ctx, seen)
	if o.verdict == dead {
		level = slog.LevelError
	}
	if err != nil {
		w.log(c.ctx, level, "an attempt ended with an error",
			slog.String("outcome", string(kind)),
			slog.Int64("sequence", e.Sequence),
			slog.Int64("attempt", e.Attempts),
			slog.String("head_id", clip(string(e.HeadID), 64)),
			slog.String("session_id", clip(string(e.SessionID), 64)),
			slog.String("error", o.text))
	}
}

// finish stores the outcome of an event. If more is set and the session has another event, finish
// begins and returns it. It retries until the claim ends; then another worker handles the event
// again.
func (w *worker) finish(c *claim, e *engine.Record, o outcome, more bool) (next *engine.Record, spent bool) {
	if o.verdict == lost {
		return nil, false
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(c.ctx), c.deadline())
	defer cancel()
	for {
		f := &finishing{worker: w, claim: c, event: e, outcome: o, more: more}
		limited, stop := context.WithTimeout(ctx, storeTimeout)
		err := w.db.Write(limited, f.store)
		stop()
		switch {
		case err == nil && f.fenced:
			if o.verdict != committed {
				w.tell(c.ctx, observed(KindFenced, e))
			}
			return nil, false
		case err == nil:
			if o.verdict == dead {
				w.died(c, e, o)
			}
			if f.due {
				w.wakes.all()
			}
			return f.next, f.spent
		case engine.KindOf(err) == engine.Failed && ctx.Err() == nil && limited.Err() == nil,
			!sleep(ctx, retryPause):
			w.log(c.ctx, slog.LevelError, "what became of an event was not stored: it is handled again",
				slog.Int64("sequence", e.Sequence), slog.String("error", w.db.public(err).Error()))
			return nil, false
		}
		ctx, cancel = w.prolong(ctx, cancel, c)
	}
}

// prolong cancels ctx and returns a context that ends with the claim, which may have been renewed.
func (w *worker) prolong(ctx context.Context, cancel context.CancelFunc, c *claim) (context.Context, context.CancelFunc) {
	cancel()
	return context.WithDeadline(context.WithoutCancel(ctx), c.deadline())
}

func (w *worker) died(c *claim, e *engine.Record, o outcome) {
	seen := observed(KindDead, e)
	seen.Err = o.err
	w.tell(c.ctx, seen)
	w.log(c.ctx, slog.LevelError, "an event went to the dead letters",
		slog.Int64("sequence", e.Sequence), slog.Int64("attempts", e.Attempts), slog.String("error", o.text))
}

// finishing is the transaction that stores an outcome, and then begins the session's next event or
// releases the session.
type finishing struct {
	worker  *worker
	claim   *claim
	event   *engine.Record
	outcome outcome
	more    bool

	fenced bool
	next   *engine.Record
	spent  bool
	due    bool // the session was released with waiting events
}

// store marks the event, then locks the session, and then reads its waiting events. If it read them
// before it has the lock, it could miss an event that is being appended.
func (f *finishing) store(ctx context.Context, tx engine.Tx) error {
	f.fenced, f.next, f.spent, f.due = false, nil, false, false
	var next engine.Record
	found := false
	mark := f.mark()
	lock := engine.Get(func(scan func(...any) error) error { var fence int64; return scan(&fence) },
		engine.LockSession, f.claim.session, f.claim.fence)
	first := engine.Get(func(scan func(...any) error) error { found = true; return engine.ScanRecord(scan, &next) },
		engine.FirstEvent, f.claim.session, f.event.Sequence)
	calls := []*engine.Call{lock, first}
	if mark != nil {
		calls = []*engine.Call{mark, lock, first}
	}
	if err := tx.Send(ctx, calls...); err != nil {
		return err
	}
	if mark != nil && mark.N == 0 {
		ours, err := f.done(ctx, tx)
		if err != nil {
			return err
		}
		if !ours {
			f.fenced = true
			return nil
		}
	}
	if lock.N == 0 {
		f.fenced = f.outcome.verdict == failed || f.outcome.verdict == putBack
		return nil
	}
	return tx.Send(ctx, f.release(found, &next)...)
}

// mark returns the statement that stores the verdict, or nil if there is nothing to store.
func (f *finishing) mark() *engine.Call {
	sequence, fence := f.event.Sequence, f.claim.fence
	switch f.outcome.verdict {
	case handled:
		return engine.Do(engine.MarkHandled, sequence, fence)
	case dead:
		return engine.Do(engine.MarkDead, sequence, fence, f.outcome.text)
	case failed:
		return engine.Do(engine.NoteFailure, sequence, fence, f.outcome.text)
	case putBack:
		if f.outcome.uncount {
			return engine.Do(engine.Uncount, sequence, fence)
		}
	}
	return nil
}

// done reports whether an earlier run of this transaction, which returned an error, has stored the
// verdict.
func (f *finishing) done(ctx context.Context, tx engine.Tx) (bool, error) {
	e, err := stateOf(ctx, tx, f.event.Sequence)
	want := engine.Handled
	if f.outcome.verdict == dead {
		want = engine.Dead
	}
	return e.fence == f.claim.fence && (e.state == want || e.state == engine.Handled), err
}

// release returns the statements that release the session.
func (f *finishing) release(found bool, next *engine.Record) []*engine.Call {
	c := f.claim
	switch {
	case f.outcome.verdict == failed:
		return []*engine.Call{engine.Do(engine.ReleaseSession, c.session, micros(f.outcome.wait))}
	case !found:
		return []*engine.Call{engine.Do(engine.DropSession, c.session)}
	case !f.more || f.outcome.verdict == putBack:
		f.due = true
		return []*engine.Call{engine.Do(engine.ReleaseSession, c.session, int64(0))}
	}
	f.next, f.spent = next, next.Attempts >= int64(f.worker.maxAttempts)
	if next.Fence == c.fence {
		return nil // an earlier run of this transaction has begun it
	}
	begun(next, c.fence, f.spent)
	return []*engine.Call{engine.Do(engine.BeginEvent, next.Sequence, c.fence, int64(f.worker.maxAttempts))}
}
