package inbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// verdict is the outcome of an attempt.
type verdict int

const (
	handled   verdict = iota
	committed         // handled, which Commit has stored
	failed            // waits for another attempt
	dead              // to the dead letters
	putBack           // due again at once
	lost              // the claim has ended: nothing may be stored
)

// outcome is a verdict and its details.
type outcome struct {
	verdict verdict
	err     error         // of a failed or dead event
	wait    time.Duration // of a failed one
	uncount bool          // the attempt was not made
}

// session works on a claimed session until it has no waiting event, an event has
// failed, its turn has ended, or the claim is lost.
func (r *run) session(c *claim) {
	defer func() { <-r.slots }()
	defer r.sessions.Done()
	defer r.forget(c)
	begun, event, spent := time.Now(), c.first, c.spent
	for n := 1; event != nil; n++ {
		o := r.handle(c, event, spent)
		more := n < maxTurn && time.Since(begun) < maxTurnTime && r.ctx.Err() == nil
		event, spent = r.finish(c, event, o, more)
	}
}

func (r *run) forget(c *claim) {
	r.mu.Lock()
	delete(r.claims, c)
	r.mu.Unlock()
	c.stop()
}

// handle calls the function, unless the event can't be handled.
func (r *run) handle(c *claim, e *engine.Record, spent bool) outcome {
	if c.expired() {
		return outcome{verdict: lost}
	}
	if spent {
		return outcome{verdict: dead, err: errCrashed}
	}
	if r.ctx.Err() != nil {
		return outcome{verdict: putBack, uncount: true}
	}
	event, err := eventOf(e)
	if err != nil {
		return outcome{verdict: dead, err: err}
	}
	d := &Delivery{
		Event:    event,
		Sequence: e.Sequence,
		Attempt:  int(e.Attempts),
		Fence:    e.Fence,
		Received: timeOf(e.Received),
		Redriven: e.Redriven != 0,
	}
	d.commitment = &commitment{run: r, claim: c, sequence: e.Sequence}
	r.in.tell(c.ctx, observed(KindStarted, e))
	c.running(e.Sequence)
	begun := time.Now()
	err = r.call(c, d)
	c.running(0)
	o := r.judge(c, d.commitment, e, err)
	r.report(c, e, o, time.Since(begun), err)
	return o
}

var (
	errCrashed = errors.New("inbox: the process died in the last attempt")
)

// call calls the function and returns its error, or an error for a panic or a Goexit.
// A function that ends its goroutine keeps no slot.
func (r *run) call(c *claim, d *Delivery) (err error) {
	done := make(chan struct{})
	err = errExited
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{v}
			}
		}()
		err = r.f(c.ctx, d)
	}()
	<-done
	return err
}

// judge decides on the outcome of the event. From now on, Commit returns an error.
func (r *run) judge(c *claim, m *commitment, e *engine.Record, err error) outcome {
	if m.finish() {
		return outcome{verdict: committed, err: err}
	}
	var permanent permanentError
	var retry retryError
	switch {
	case err == nil:
		return outcome{verdict: handled}
	case errors.Is(context.Cause(c.ctx), ErrFenced):
		return outcome{verdict: lost, err: err}
	case c.wasCut():
		return outcome{verdict: putBack}
	case errors.As(err, &permanent), int(e.Attempts) >= r.maxAttempts:
		return outcome{verdict: dead, err: err}
	case errors.As(err, &retry):
		return outcome{verdict: failed, err: err, wait: retry.after}
	}
	return outcome{verdict: failed, err: err, wait: r.backoff(int(e.Attempts))}
}

// report calls the observer for an attempt that has ended.
func (r *run) report(c *claim, e *engine.Record, o outcome, took time.Duration, err error) {
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
	r.in.tell(c.ctx, seen)
	if o.verdict == dead {
		level = slog.LevelError
	}
	if err != nil {
		r.in.log(c.ctx, level, "an attempt ended with an error",
			slog.String("outcome", string(kind)),
			slog.Int64("sequence", e.Sequence),
			slog.Int64("attempt", e.Attempts),
			slog.String("head_id", clip(string(e.HeadID), 64)),
			slog.String("session_id", clip(string(e.SessionID), 64)),
			slog.String("error", r.in.describe(err)))
	}
}

// finish stores the outcome. If more is set, it also begins the session's next event,
// if there is one, and returns it. It retries until the claim ends; then another
// worker begins the event again.
func (r *run) finish(c *claim, e *engine.Record, o outcome, more bool) (next *engine.Record, spent bool) {
	if o.verdict == lost {
		return nil, false
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(c.ctx), c.deadline())
	defer cancel()
	for {
		f := &finishing{run: r, claim: c, event: e, outcome: o, more: more}
		limited, stop := context.WithTimeout(ctx, storeTimeout)
		err := r.in.db.Write(limited, f.store)
		stop()
		switch {
		case err == nil && f.fenced:
			if o.verdict != committed {
				r.in.tell(c.ctx, observed(KindFenced, e))
			}
			return nil, false
		case err == nil:
			if o.verdict == dead {
				r.died(c, e, o.err)
			}
			if f.due {
				r.in.wakes.all()
			}
			return f.next, f.spent
		case engine.KindOf(err) == engine.Failed && ctx.Err() == nil && limited.Err() == nil,
			!sleep(ctx, retryPause):
			r.in.log(c.ctx, slog.LevelError, "what became of an event was not stored: it is handled again",
				slog.Int64("sequence", e.Sequence), slog.String("error", r.in.public(err).Error()))
			return nil, false
		}
		ctx, cancel = r.prolong(ctx, cancel, c)
	}
}

// prolong returns a context that ends with the claim, also if the claim was renewed.
func (r *run) prolong(ctx context.Context, cancel context.CancelFunc, c *claim) (context.Context, context.CancelFunc) {
	cancel()
	return context.WithDeadline(context.WithoutCancel(ctx), c.deadline())
}

func (r *run) died(c *claim, e *engine.Record, err error) {
	seen := observed(KindDead, e)
	seen.Err = err
	r.in.tell(c.ctx, seen)
	r.in.log(c.ctx, slog.LevelError, "an event went to the dead letters",
		slog.Int64("sequence", e.Sequence), slog.Int64("attempts", e.Attempts), slog.String("error", r.in.describe(err)))
}

// finishing is the transaction that stores an outcome and releases the session,
// or begins its next event.
type finishing struct {
	run     *run
	claim   *claim
	event   *engine.Record
	outcome outcome
	more    bool

	fenced bool
	next   *engine.Record
	spent  bool
	due    bool // the session has more events, for anyone
}

// store marks the event, then locks the session, and only then reads its waiting
// events. Before the lock, it could miss an event that is being appended.
func (f *finishing) store(ctx context.Context, tx engine.Tx) error {
	f.fenced, f.next, f.spent, f.due = false, nil, false, false
	var next engine.Record
	found := false
	mark := f.mark()
	lock := engine.Get(func(scan func(...any) error) error { var fence int64; return scan(&fence) },
		engine.LockSession, f.claim.session, f.claim.fence)
	look := engine.Get(func(scan func(...any) error) error { found = true; return engine.ScanRecord(scan, &next) },
		engine.FirstEvent, f.claim.session, f.event.Sequence)
	calls := []*engine.Call{lock, look}
	if mark != nil {
		calls = []*engine.Call{mark, lock, look}
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

// mark returns the statement that stores the verdict, nil for none.
func (f *finishing) mark() *engine.Call {
	sequence, fence := f.event.Sequence, f.claim.fence
	switch f.outcome.verdict {
	case handled:
		return engine.Do(engine.MarkHandled, sequence, fence)
	case dead:
		return engine.Do(engine.MarkDead, sequence, fence, f.run.in.describe(f.outcome.err))
	case failed:
		return engine.Do(engine.NoteFailure, sequence, fence, f.run.in.describe(f.outcome.err))
	case putBack:
		if f.outcome.uncount {
			return engine.Do(engine.Uncount, sequence, fence)
		}
	}
	return nil
}

// done reports whether an earlier try has stored the verdict although it failed.
func (f *finishing) done(ctx context.Context, tx engine.Tx) (bool, error) {
	state, fence, err := look(ctx, tx, f.event.Sequence)
	want := engine.Handled
	if f.outcome.verdict == dead {
		want = engine.Dead
	}
	return fence == f.claim.fence && (state == want || state == engine.Handled), err
}

func look(ctx context.Context, tx engine.Tx, sequence int64) (state, fence int64, err error) {
	state = -1
	err = tx.Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&state, &fence) }, engine.Look, sequence))
	return state, fence, err
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
	f.next, f.spent = next, next.Attempts >= int64(f.run.maxAttempts)
	if next.Fence == c.fence {
		return nil // an earlier try has begun it
	}
	begun(next, c.fence, f.spent)
	return []*engine.Call{engine.Do(engine.BeginEvent, next.Sequence, c.fence, int64(f.run.maxAttempts))}
}
