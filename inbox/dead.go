package inbox

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	redriveSize = 500 // ids in one transaction
	deadGroups  = 100 // that DeadGroups returns
)

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

// Format writes the result of String for every verb.
func (d DeadEvent) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(d.String())) }

// LogValue returns the same as String.
func (d DeadEvent) LogValue() slog.Value { return slog.StringValue(d.String()) }

// Dead returns the dead letters that q selects, ordered by sequence. It reads in pages, and no
// transaction is open while the loop body runs. The iteration ends after an error.
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

// DeadGroup has the numbers of the dead letters with one error.
type DeadGroup struct {
	Error    string // cut after 1,024 characters
	Count    int
	Heads    int
	Types    []heads.EventType
	LastDied time.Time
	Latest   int64 // the sequence of the latest of them
}

// DeadGroups groups the latest 10,000 dead letters by their error, in one statement. It returns at
// most 100 groups, the largest first.
func (in *Inbox) DeadGroups(ctx context.Context) (groups []DeadGroup, err error) {
	if !in.db.use() {
		return nil, ErrClosed
	}
	defer in.db.done()
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		var text, types []byte
		var count, ofHeads, died, latest int64
		if err := scan(&text, &count, &ofHeads, &types, &died, &latest); err != nil {
			return err
		}
		g := DeadGroup{Error: string(text), Count: int(count), Heads: int(ofHeads), LastDied: timeOf(died), Latest: latest}
		for name := range strings.SplitSeq(string(types), ",") {
			if t, err := hex.DecodeString(name); err == nil {
				g.Types = append(g.Types, heads.EventType(t))
			}
		}
		slices.Sort(g.Types)
		groups = append(groups, g)
		return nil
	}, engine.DeadGroups, int64(maxCount), int64(deadGroups)))
	return groups, in.db.public(err)
}

// Redrive moves dead letters back to their sessions. They are handled again, out of order, with
// MaxAttempts new attempts. ids are values of DeadEvent.Sequence; ids that are not in the dead
// letters are ignored. Redrive returns the number of events moved. Without ids, it does nothing.
func (in *Inbox) Redrive(ctx context.Context, ids ...int64) (int, error) {
	n, err := in.moveDead(ctx, ids, in.redrive)
	if n > 0 {
		in.wakes.all()
		in.db.Notify()
	}
	return n, err
}

// redrive writes the events first and then the sessions, each in ascending order. Every transaction
// locks rows in this order.
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

// DeleteDead removes the bodies of dead letters and returns their number. Their keys are kept until
// the retention ends, to recognize redeliveries. ids are as for Redrive.
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

// moveDead runs f for the sorted ids, in transactions of at most redriveSize ids.
func (in *Inbox) moveDead(ctx context.Context, ids []int64, f func(context.Context, engine.Tx, []int64) (int, error)) (total int, err error) {
	if !in.db.use() {
		return 0, ErrClosed
	}
	defer in.db.done()
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for part := range slices.Chunk(ids, redriveSize) {
		n, err := again(ctx, in.db, func(ctx context.Context, tx engine.Tx) (int, error) { return f(ctx, tx, part) })
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
