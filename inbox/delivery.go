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

// Delivery is the argument of the function passed to Run or Replay: an event and the attempt to
// handle it.
type Delivery struct {
	Event    *heads.Event
	Sequence int64 // grows within a session
	Attempt  int   // 1 for the first
	// Fence grows with every claim of any session. An effect outside the database should store the
	// highest fence of each session and refuse smaller ones. Then a worker that was paused and
	// continues after its lease has no effect.
	Fence    int64
	Received time.Time // when the event was stored, by the database's clock
	Redriven bool      // moved back from the dead letters by Redrive

	commitment *commitment // nil outside of Run
}

// deliveryOf returns ErrDamaged if the record does not match its checksum.
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

// String returns the sequence, the attempt and the ids, without the body.
func (d *Delivery) String() string {
	return fmt.Sprintf("event %d, attempt %d, %v", d.Sequence, d.Attempt, d.Event)
}

// Format writes the result of String for every verb.
func (d *Delivery) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue returns the same as String.
func (d *Delivery) LogValue() slog.Value { return slog.StringValue(d.String()) }

var (
	errNoCommit  = errors.New("inbox: Commit works inside the function passed to Run")
	errCommitted = errors.New("inbox: the event is committed; call Commit once, with all effects in it")
	errReturned  = errors.New("inbox: the function has returned; call Commit before")
)

// Commit runs effect and marks the event as handled in one transaction: either both are committed
// or neither is. If effect returns an error, Commit rolls back and returns it.
//
// Commit marks the event first. If the claim on the event has ended, Commit returns ErrFenced and
// does not run effect, so a worker that was paused for longer than its lease changes nothing.
//
// If the connection of the transaction is lost, Commit runs effect again, until the claim or ctx
// ends. After a serialization failure, a deadlock, a timeout or a lock that tx has reported, Commit
// runs effect up to 5 times, within the lease of its first run. After any other error, such as one
// of another database, it does not run effect again.
//
// effect must give its statements the function's context: a statement without it may wait for a
// stopped database longer than the claim. effect must return the errors of its statements. It must
// not commit or roll back tx. It must not wait for anything else, since SQLite stores no events in
// the meantime, and PostgreSQL ends a transaction that is idle for longer than the lease.
//
// Once Commit has returned nil, the event is handled, even if the function returns an error. Commit
// returns an error if it is called again after it succeeded, after the function has returned, or in
// Replay.
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
	return err
}

// commitment is what Commit needs to know of the delivery in Run.
type commitment struct {
	db       *database
	lease    time.Duration
	claim    *claim
	sequence int64

	mu       sync.Mutex
	done     bool
	returned bool
}

// finish makes later calls of Commit fail, and reports whether one has succeeded.
func (m *commitment) finish() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returned = true
	return m.done
}

// maxRuns is how often Commit runs an effect that fails or whose transaction fails.
const maxRuns = 5

// commit retries while the connection fails, until the claim ends. It retries other temporary
// failures maxRuns times, within the present lease.
func (m *commitment) commit(ctx context.Context, effect func(*sql.Tx) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.claim.ctx, func() { cancel(context.Cause(m.claim.ctx)) })()
	until := m.claim.deadline()
	for failures := 0; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := m.db.Effect(ctx, m.lease, m.mark, effect)
		if err == nil {
			return nil
		}
		var failed *engine.EffectError
		kind := engine.KindOf(err)
		last := false
		switch {
		case errors.As(err, &failed):
			err, last = failed.Err, !failed.Again
		case kind == engine.Failed && ctx.Err() == nil:
			return m.db.public(err)
		default:
			// The commit may have succeeded.
			otherwise := errUnsettled
			if kind == engine.Stale {
				otherwise = ErrFenced
			}
			if settled := m.settle(otherwise); !errors.Is(settled, errUnsettled) {
				return settled
			}
			err = m.db.public(err)
		}
		wait := rand.N(2 * pause)
		if kind != engine.Away {
			failures++
			last = last || failures == maxRuns || !time.Now().Add(wait).Before(until)
		}
		switch {
		case m.claim.expired():
			return errors.Join(ErrFenced, err)
		case last:
			return err
		case !sleep(ctx, wait):
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

var (
	errStale     = &engine.Error{Kind: engine.Stale, Text: "the event is no longer the claim's"}
	errUnsettled = errors.New("inbox: unsettled")
)

// mark marks the event as handled. It is the first statement of the transaction.
func (m *commitment) mark(ctx context.Context, tx engine.Tx) error {
	mark := engine.Do(engine.MarkHandled, m.sequence, m.claim.fence)
	err := tx.Send(ctx, mark)
	if err == nil && mark.N == 0 {
		return errStale
	}
	return err
}

// settle finds out whether a commit with an unknown outcome succeeded, by reading the event's row.
// The read is part of a write transaction, so what it reads is committed. settle returns nil if the
// event was handled under this claim, the given error if it is still waiting under this claim,
// ErrFenced if another worker has claimed it, which ends the claim, and errUnsettled if the
// database does not answer. It gives up when the claim ends, since the function must not run at the
// same time as the next worker's.
func (m *commitment) settle(otherwise error) (err error) {
	defer func() {
		if errors.Is(err, ErrFenced) {
			m.claim.end(ErrFenced)
		}
	}()
	ctx, cancel := context.WithTimeout(m.claim.ctx, storeTimeout)
	defer cancel()
	row, err := again(ctx, m.db, func(ctx context.Context, tx engine.Tx) (eventState, error) {
		return stateOf(ctx, tx, m.sequence)
	})
	switch {
	case m.claim.ctx.Err() != nil: // the next worker reads the outcome from the database
		return context.Cause(m.claim.ctx)
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return errUnsettled
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

// stateOf reads the event's row and locks it until the transaction ends. If there is no row, the
// state is -1.
func stateOf(ctx context.Context, tx engine.Tx, sequence int64) (e eventState, err error) {
	e.state = -1
	err = tx.Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&e.state, &e.fence) }, engine.EventState, sequence))
	return e, err
}
