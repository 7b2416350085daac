package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// Delivery is the argument of the function passed to Run or Replay: an event and its attempt.
type Delivery struct {
	Event    *heads.Event
	Sequence int64 // grows within a session
	Attempt  int   // 1 for the first
	// Fence grows with every claim of any session. An effect outside the database should store the
	// highest fence of each session and refuse smaller ones. Then a worker that was stopped and
	// continues too late changes nothing.
	Fence    int64
	Received time.Time // when the event was stored, by the database's clock
	Redriven bool      // it was returned from the dead letters

	commitment *commitment // nil outside of Run
}

// deliveryOf returns ErrDamaged if the record was changed in the database.
func deliveryOf(r *engine.Record) (*Delivery, error) {
	event, err := eventOf(r)
	if err != nil {
		return nil, err
	}
	return &Delivery{
		Event:    event,
		Sequence: r.Sequence,
		Attempt:  int(r.Attempts),
		Fence:    r.Fence,
		Received: timeOf(r.Received),
		Redriven: r.Redriven != 0,
	}, nil
}

// String returns sequence, attempt and ids, without the body.
func (d *Delivery) String() string {
	return fmt.Sprintf("event %d, attempt %d, %v", d.Sequence, d.Attempt, d.Event)
}

// Format writes the same as String, whatever the verb.
func (d *Delivery) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue returns the same as String.
func (d *Delivery) LogValue() slog.Value { return slog.StringValue(d.String()) }

var (
	errNoCommit  = errors.New("inbox: Commit works inside the function passed to Run")
	errCommitted = errors.New("inbox: the event is committed; call Commit once, with all effects in it")
	errReturned  = errors.New("inbox: the function has returned; call Commit before")
)

// Commit runs effect and marks the event as handled in one transaction, so either both are in the
// database or neither is. If effect returns an error, Commit rolls back and returns it.
//
// Commit marks the event first. If the claim on the event has ended, Commit returns ErrFenced and
// does not run effect, so a worker that was stopped for too long changes nothing. After a failed
// serialisation, a deadlock, a busy database or a lost connection, Commit runs effect again, until
// the claim or ctx ends. effect must return the errors of its statements. It must not end tx, and
// must not wait for anything else, since SQLite stores nothing in the meantime.
//
// After Commit has returned nil, the event is handled, even if the function returns an error.
// Commit returns an error if it is called a second time after that, after the function has
// returned, or in Replay.
func (d *Delivery) Commit(ctx context.Context, effect func(tx *sql.Tx) error) error {
	m := d.commitment
	if m == nil {
		return errNoCommit
	}
	if effect == nil {
		return invalid("Commit", "effect", "is nil", "give a function, or return nil without Commit to mark the event")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.returned:
		return errReturned
	case m.done:
		return errCommitted
	}
	err := m.commit(ctx, effect)
	m.done = err == nil
	if errors.Is(err, ErrFenced) {
		m.claim.end(ErrFenced)
	}
	return err
}

// commitment is the state of a Delivery in Run.
type commitment struct {
	db       *database
	lease    time.Duration
	claim    *claim
	sequence int64

	mu       sync.Mutex
	done     bool
	returned bool
}

// finish makes every later Commit fail, and reports whether there was one.
func (m *commitment) finish() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returned = true
	return m.done
}

// commit retries what may succeed the next time, until the claim ends.
func (m *commitment) commit(ctx context.Context, effect func(*sql.Tx) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.claim.ctx, func() { cancel(context.Cause(m.claim.ctx)) })()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := m.db.Effect(ctx, m.lease, m.mark, effect)
		if err == nil {
			return nil
		}
		var own *engine.EffectError
		switch {
		case engine.KindOf(err) == engine.Stale:
			return m.settle(ErrFenced)
		case errors.As(err, &own):
			if !own.Kind.Retriable() {
				return own.Err
			}
			err = own.Err
		case engine.KindOf(err) == engine.Failed && ctx.Err() == nil:
			return m.db.public(err)
		default:
			// The commit may have succeeded.
			settled := m.settle(errUnsettled)
			if !errors.Is(settled, errUnsettled) {
				return settled
			}
			err = m.db.public(err)
		}
		if !sleep(ctx, rand.N(2*pause)) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

var (
	errStale     = &engine.Error{Kind: engine.Stale, Text: "the event is no longer the claim's"}
	errUnsettled = errors.New("inbox: unsettled")
)

// mark is the first statement of the transaction.
func (m *commitment) mark(ctx context.Context, tx engine.Tx) error {
	mark := engine.Do(engine.MarkHandled, m.sequence, m.claim.fence)
	err := tx.Send(ctx, mark)
	if err == nil && mark.N == 0 {
		return errStale
	}
	return err
}

// settle finds out how a commit ended by reading the event's row. The read is part of a write, so
// what it has read is committed. If the event is handled under this claim, settle returns nil; if
// it still waits under this claim, the given error. settle ends with the claim, since the function
// must not run beside its successor.
func (m *commitment) settle(otherwise error) error {
	ctx, cancel := context.WithTimeout(m.claim.ctx, storeTimeout)
	defer cancel()
	row, err := again(ctx, m.db, func(ctx context.Context, tx engine.Tx) (eventState, error) {
		return stateOf(ctx, tx, m.sequence)
	})
	switch {
	case m.claim.ctx.Err() != nil: // the next worker reads what is in the database
		return context.Cause(m.claim.ctx)
	case err != nil:
		return err
	case row.fence == m.claim.fence && row.state == engine.Handled:
		return nil
	case row.fence == m.claim.fence && row.state == engine.Waiting:
		return otherwise
	}
	return ErrFenced
}

type eventState struct{ state, fence int64 }

// stateOf reads the event's row and locks it until the transaction ends. Without the row, the state
// is -1.
func stateOf(ctx context.Context, tx engine.Tx, sequence int64) (e eventState, err error) {
	e.state = -1
	err = tx.Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&e.state, &e.fence) }, engine.EventState, sequence))
	return e, err
}
