package inbox

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// State is the state of a stored event.
type State string

// The states of an event.
const (
	StateWaiting  State = "waiting"  // not handled
	StateRetrying State = "retrying" // waiting, after at least one attempt
	StateHandled  State = "handled"
	StateDead     State = "dead"    // in the dead letters
	StateDeleted  State = "deleted" // a dead letter whose body was removed
)

// Entry describes an event without its body. List cuts ids, type and error after 1,024 bytes.
type Entry struct {
	Sequence  int64
	State     State // StateRetrying for a waiting event with an earlier attempt
	Type      heads.EventType
	HeadID    string
	SessionID string
	Attempts  int
	Redriven  bool // moved back from the dead letters by Redrive
	Received  time.Time
	Finished  time.Time // when it was handled or died; zero before
	Error     string    // the type of the last error; its text with WithErrorText
}

const (
	listLimit = 100  // entries of a page without a limit
	listReads = 5000 // rows that List reads for one page
)

// List returns a page of the events that q selects, the latest first. next is the value of before
// for the next page, or 0 at the end. Call it with before 0 for the first page.
//
// s selects events by state. StateWaiting includes StateRetrying, and "" selects all states. A page
// has q.Limit entries, or 100 if q.Limit is 0. List reads at most 5,000 rows, so a page may have
// fewer entries, or none, even if next is not 0. For an unknown state, a negative limit or a
// negative before, List returns a *heads.InvalidError.
func (in *Inbox) List(ctx context.Context, q Query, s State, before int64) (page []Entry, next int64, err error) {
	if err := checkList(q, s, before); err != nil {
		return nil, 0, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = listLimit
	}
	bounds, err := in.span(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	if bounds.last < math.MaxInt64 && (before == 0 || before > bounds.last) {
		before = bounds.last + 1
	}
	if before == 0 {
		before = math.MaxInt64
	}
	for left, reads := listReads, limit; left > 0; reads = left {
		reads = min(reads, left)
		left -= reads
		rows, err := in.listRows(ctx, q, s, before, bounds.first, reads)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range rows {
			before = r.Sequence
			if e := entryOf(&r.Record); e.is(s) && q.matches(r) {
				page = append(page, e)
			}
			if len(page) == limit {
				return page, before, nil
			}
		}
		if len(rows) < reads {
			return page, 0, nil
		}
	}
	return page, before, nil
}

func checkList(q Query, s State, before int64) error {
	if err := q.check("List"); err != nil {
		return err
	}
	if !slices.Contains([]State{"", StateWaiting, StateRetrying, StateHandled, StateDead, StateDeleted}, s) {
		return invalid("List", "state", fmt.Sprintf("is %q", clip(string(s), 64)), "give waiting, retrying, handled, dead or deleted, or nothing for all")
	}
	return refuse(before < 0, "List", "before", fmt.Sprintf("%d is negative", before), "use 0 to begin with the latest event")
}

// listRows reads n rows below a sequence, the latest first, without bodies.
func (in *Inbox) listRows(ctx context.Context, q Query, s State, before, first int64, n int) (rows []*engine.Light, err error) {
	if !in.db.use() {
		return nil, ErrClosed
	}
	defer in.db.done()
	stmt, args := engine.ListAll, []any{before, first, int64(n), []byte(q.HeadID), []byte(q.SessionID)}
	switch {
	case q.ofOneSession():
		stmt, args = engine.ListOfSession, append(args, sessionOf(q.HeadID, q.SessionID))
	case s == StateWaiting, s == StateRetrying:
		stmt = engine.ListWaiting
	case s == StateDead:
		stmt = engine.ListDead
	}
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		r := &engine.Light{}
		rows = append(rows, r)
		return engine.ScanLight(scan, r)
	}, stmt, args...))
	return rows, in.db.public(err)
}

// matches checks every condition of q.
func (q Query) matches(r *engine.Light) bool {
	from, to := q.micros()
	return r.Received >= from && r.Received < to &&
		(q.HeadID == "" || r.OfHead == 1) && (q.SessionID == "" || r.OfSession == 1) && q.selects(&r.Record)
}

func (e Entry) is(s State) bool {
	return s == "" || s == e.State || s == StateWaiting && e.State == StateRetrying
}

func entryOf(r *engine.Record) Entry {
	e := Entry{
		Sequence:  r.Sequence,
		State:     StateWaiting,
		Type:      heads.EventType(r.Type),
		HeadID:    string(r.HeadID),
		SessionID: string(r.SessionID),
		Attempts:  int(r.Attempts),
		Redriven:  r.Redriven != 0,
		Received:  timeOf(r.Received),
		Error:     string(r.Error),
	}
	switch {
	case r.State == engine.Handled:
		e.State = StateHandled
	case r.State == engine.Dead:
		e.State = StateDead
	case r.State == engine.Deleted:
		e.State = StateDeleted
	case r.Attempts > 0:
		e.State = StateRetrying
	}
	if r.Finished != 0 {
		e.Finished = timeOf(r.Finished)
	}
	return e
}

// Entry returns one event and its description. If the event is a deleted dead letter or was changed
// in the database, it has no Raw. If no stored event has the sequence, Entry returns ErrNotFound.
func (in *Inbox) Entry(ctx context.Context, sequence int64) (Entry, *heads.Event, error) {
	if !in.db.use() {
		return Entry{}, nil, ErrClosed
	}
	defer in.db.done()
	var r engine.Record
	one := engine.Get(func(scan func(...any) error) error { return engine.ScanRecord(scan, &r) }, engine.OneEvent, sequence)
	if err := in.db.Read().Send(ctx, one); err != nil {
		return Entry{}, nil, in.db.public(err)
	}
	if one.N == 0 {
		return Entry{}, nil, fmt.Errorf("%w: %d", ErrNotFound, sequence)
	}
	event, err := eventOf(&r)
	if err != nil {
		event = shellOf(&r)
	}
	return entryOf(&r), event, nil
}
