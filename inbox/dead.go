package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	pageSize    = 100
	redriveSize = 500
	pruneSize   = 500
)

// Query selects events. The zero Query selects all events. With a head and a session, it
// reads an index, and the times are found by halving; other conditions read what the
// times leave. Times are found among sequences, so an event whose time is more than 10
// seconds out of the order of its sequence, since the database's clock was set back, may
// be missed.
type Query struct {
	From, To  time.Time         // stored in [From, To), by the database's clock; a zero time is no limit
	HeadID    string            // "" for every head
	SessionID string            // "" for every session
	Types     []heads.EventType // none for every type
	Limit     int               // of events; 0 for no limit
}

// DeadEvent is an event in the dead letters.
type DeadEvent struct {
	Sequence int64        // its id for Redrive and DeleteDead
	Event    *heads.Event // if it is damaged, only type and ids, without Raw
	Attempts int
	Received time.Time
	Died     time.Time
	Error    string // the type of the last error; its text with WithErrorText
}

// String returns sequence, attempts, ids and error, without the body.
func (d DeadEvent) String() string {
	return fmt.Sprintf("dead event %d after %d attempts, %v: %s", d.Sequence, d.Attempts, d.Event, d.Error)
}

// Format writes the same as String, whatever the verb.
func (d DeadEvent) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue returns the same as String.
func (d DeadEvent) LogValue() slog.Value { return slog.StringValue(d.String()) }

// Dead returns the dead letters that q selects, in the order of their sequences. It
// reads pages and holds no transaction while the caller works. It ends after an
// error.
func (in *Inbox) Dead(ctx context.Context, q Query) iter.Seq2[DeadEvent, error] {
	return func(yield func(DeadEvent, error) bool) {
		for r, err := range in.pages(ctx, "Dead", deadPages, q) {
			if err != nil {
				yield(DeadEvent{}, err)
				return
			}
			event, err := eventOf(r)
			if err != nil {
				event = shellOf(r)
			}
			d := DeadEvent{
				Sequence: r.Sequence,
				Event:    event,
				Attempts: int(r.Attempts),
				Received: timeOf(r.Received),
				Died:     timeOf(r.Finished),
				Error:    string(r.Error),
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Replay calls f for the stored events that q selects, handled or not, in the order
// of their sequences. It changes nothing, and Commit returns an error. Events are
// stored until the retention ends, dead letters until they are deleted. If f returns
// an error, Replay stops and returns it. Replay skips damaged events and returns
// ErrDamaged at the end.
func (in *Inbox) Replay(ctx context.Context, q Query, f func(context.Context, *Delivery) error) error {
	if f == nil {
		return invalid("Replay", "f", "is nil", "give the function that reads an event")
	}
	var damaged error
	for r, err := range in.pages(ctx, "Replay", replayPages, q) {
		if err != nil {
			return err
		}
		event, err := eventOf(r)
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		err = f(ctx, &Delivery{
			Event:    event,
			Sequence: r.Sequence,
			Attempt:  int(r.Attempts),
			Fence:    r.Fence,
			Received: timeOf(r.Received),
			Redriven: r.Redriven != 0,
		})
		if err != nil {
			return err
		}
	}
	return damaged
}

// pageOf names the statements that read pages of events.
type pageOf struct{ all, story engine.Stmt }

var (
	deadPages   = pageOf{engine.DeadPage, engine.DeadStory}
	replayPages = pageOf{engine.ReplayPage, engine.ReplayStory}
)

// pages reads the events that q selects.
func (in *Inbox) pages(ctx context.Context, operation string, s pageOf, q Query) iter.Seq2[*engine.Record, error] {
	return func(yield func(*engine.Record, error) bool) {
		if err := q.check(operation); err != nil {
			yield(nil, err)
			return
		}
		span, err := in.span(ctx, q)
		if err != nil {
			yield(nil, err)
			return
		}
		left := q.Limit
		for after := span.first - 1; ; {
			page, err := in.page(ctx, s, q, after, span.last)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range page {
				after = r.Sequence
				if !q.selects(r) {
					continue
				}
				if !yield(r, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

func (in *Inbox) page(ctx context.Context, s pageOf, q Query, after, last int64) (page []*engine.Record, err error) {
	if !in.enter() {
		return nil, ErrClosed
	}
	defer in.leave()
	from, to := q.micros()
	args := []any{after, last, from, to, given(q.HeadID), []byte(q.HeadID), given(q.SessionID), []byte(q.SessionID), int64(pageSize)}
	stmt := s.all
	if q.isStory() {
		stmt, args = s.story, append(args, sessionOf(q.HeadID, q.SessionID))
	}
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		r := &engine.Record{}
		page = append(page, r)
		return engine.ScanRecord(scan, r)
	}, stmt, args...))
	return page, in.public(err)
}

func (q Query) check(operation string) error {
	return refuse(q.Limit < 0, operation, "Query.Limit", fmt.Sprintf("%d is negative", q.Limit), "use 0 for no limit")
}

// isStory reports whether q selects one session.
func (q Query) isStory() bool { return q.HeadID != "" && q.SessionID != "" }

// micros returns the times as the database has them.
func (q Query) micros() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if !q.From.IsZero() {
		from = ceilMicro(q.From)
	}
	if !q.To.IsZero() {
		to = ceilMicro(q.To)
	}
	return from, to
}

// ceilMicro rounds up, so a time with nanoseconds excludes earlier events.
func ceilMicro(t time.Time) int64 {
	if t.Nanosecond()%1000 != 0 {
		return t.UnixMicro() + 1
	}
	return t.UnixMicro()
}

func given(s string) int64 {
	if s == "" {
		return 0
	}
	return 1
}

// selects checks the conditions that the statement does not check.
func (q Query) selects(r *engine.Record) bool {
	return len(q.Types) == 0 || slices.ContainsFunc(q.Types, func(t heads.EventType) bool {
		return bytes.Equal(r.Type, []byte(strings.ToLower(string(t))))
	})
}

// Redrive returns dead letters to their sessions. They are handled again, out of
// order, with all their attempts. Redrive returns how many there were. The ids are
// sequences. Ids that are not in the dead letters are ignored. Without ids, Redrive
// does nothing.
func (in *Inbox) Redrive(ctx context.Context, ids ...int64) (int, error) {
	n, err := in.moveDead(ctx, ids, in.redrive)
	if n > 0 {
		in.wakes.all()
		in.db.Notify()
	}
	return n, err
}

// redrive writes first the events and then the sessions, each in order, like every
// transaction.
func (in *Inbox) redrive(ctx context.Context, tx engine.Tx, ids []int64) (n int, err error) {
	var sessions [][]byte
	var calls []*engine.Call
	for _, id := range ids {
		calls = append(calls, engine.Get(func(scan func(...any) error) error {
			var session []byte
			err := scan(&session)
			sessions = append(sessions, session)
			return err
		}, engine.RedriveEvent, id))
	}
	if err := tx.Send(ctx, calls...); err != nil {
		return 0, err
	}
	n = len(sessions)
	slices.SortFunc(sessions, bytes.Compare)
	calls = calls[:0]
	for _, session := range slices.CompactFunc(sessions, bytes.Equal) {
		calls = append(calls, engine.Do(engine.WakeSession, session))
	}
	return n, tx.Send(ctx, calls...)
}

// DeleteDead removes the bodies of dead letters and returns how many there were. The
// keys stay known until the retention ends. The ids are as for Redrive.
func (in *Inbox) DeleteDead(ctx context.Context, ids ...int64) (int, error) {
	return in.moveDead(ctx, ids, func(ctx context.Context, tx engine.Tx, ids []int64) (n int, err error) {
		var calls []*engine.Call
		for _, id := range ids {
			calls = append(calls, engine.Do(engine.DeleteDead, id))
		}
		if err := tx.Send(ctx, calls...); err != nil {
			return 0, err
		}
		for _, c := range calls {
			n += int(c.N)
		}
		return n, nil
	})
}

// moveDead runs f for the ids in order, in transactions of a limited size.
func (in *Inbox) moveDead(ctx context.Context, ids []int64, f func(context.Context, engine.Tx, []int64) (int, error)) (total int, err error) {
	if !in.enter() {
		return 0, ErrClosed
	}
	defer in.leave()
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for part := range slices.Chunk(ids, redriveSize) {
		n, err := again(ctx, in, func(ctx context.Context, tx engine.Tx) (int, error) { return f(ctx, tx, part) })
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// again runs a transaction until it succeeds, until ctx ends, or until its own time
// limit ends.
func again[T any](ctx context.Context, in *Inbox, f func(context.Context, engine.Tx) (T, error)) (result T, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		got := new(T) // a new one for each try, since an abandoned try may still write to its own
		err := in.db.Write(ctx, func(ctx context.Context, tx engine.Tx) (err error) {
			*got, err = f(ctx, tx)
			return err
		})
		if err == nil {
			return *got, nil
		}
		if !engine.KindOf(err).Retriable() || !sleep(ctx, retryPause) {
			return result, in.public(err)
		}
	}
}
