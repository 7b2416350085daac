package inbox

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	pageSize = 100
	// timeSlack is how far the order of sequences may differ from the order of times. Appends end
	// long before that.
	timeSlack = 10 * time.Second
)

// Query selects events. The zero Query selects all events. A Query with HeadID and SessionID uses
// an index. From and To are found by a binary search over the sequences; the other conditions are
// checked for each event in between. If the database's clock was set back by more than 10 seconds,
// From and To may miss events of that time.
type Query struct {
	From, To  time.Time         // stored in [From, To), by the database's clock; a zero time is no limit
	HeadID    string            // "" for every head
	SessionID string            // "" for every session
	Types     []heads.EventType // empty for every type
	Error     string            // the last error, as in Entry.Error; "" for every event, with an error or without
	Limit     int               // of events; 0 for no limit
}

// pageOf has the statements that read a page of events.
type pageOf struct{ all, ofSession engine.Stmt }

var (
	deadPages   = pageOf{engine.DeadPage, engine.DeadOfSession}
	replayPages = pageOf{engine.ReplayPage, engine.ReplayOfSession}
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
	if !in.db.use() {
		return nil, ErrClosed
	}
	defer in.db.done()
	from, to := q.micros()
	args := []any{after, last, from, to, given(q.HeadID), []byte(q.HeadID), given(q.SessionID), []byte(q.SessionID), int64(pageSize)}
	stmt := s.all
	if q.ofOneSession() {
		stmt, args = s.ofSession, append(args, sessionOf(q.HeadID, q.SessionID))
	}
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		r := &engine.Record{}
		page = append(page, r)
		return engine.ScanRecord(scan, r)
	}, stmt, args...))
	return page, in.db.public(err)
}

func (q Query) check(operation string) error {
	return refuse(q.Limit < 0, operation, "Query.Limit", fmt.Sprintf("%d is negative", q.Limit), "use 0 for no limit")
}

// ofOneSession reports whether q selects one session.
func (q Query) ofOneSession() bool { return q.HeadID != "" && q.SessionID != "" }

// micros returns From and To in the database's format.
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

// ceilMicro rounds up to microseconds, so that events stored before t are excluded.
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

// selects checks the conditions that are not part of the statement.
func (q Query) selects(r *engine.Record) bool {
	return (q.Error == "" || q.Error == string(r.Error)) && (len(q.Types) == 0 || slices.ContainsFunc(q.Types, func(t heads.EventType) bool {
		return bytes.Equal(r.Type, []byte(strings.ToLower(string(t))))
	}))
}

// span is the range of sequences that contains a Query's events.
type span struct{ first, last int64 }

// span converts From and To to sequences by a binary search, since there is no index on the time.
// The range is a little too wide, so the statements compare the times as well.
func (in *Inbox) span(ctx context.Context, q Query) (s span, err error) {
	s = span{1, math.MaxInt64}
	if q.From.IsZero() && q.To.IsZero() {
		return s, nil
	}
	if !in.db.use() {
		return s, ErrClosed
	}
	defer in.db.done()
	var first, last int64
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&first, &last) }, engine.Bounds))
	from, to := q.micros()
	if err == nil && !q.From.IsZero() {
		s.first, err = in.sequenceAt(ctx, first, last, from-micros(timeSlack))
	}
	if err == nil && !q.To.IsZero() {
		s.last, err = in.sequenceAt(ctx, first, last, to+micros(timeSlack))
	}
	return s, in.db.public(err)
}

// sequenceAt returns the first sequence in [first, last] whose event was stored at or after the
// given time, or last+1 if there is none.
func (in *Inbox) sequenceAt(ctx context.Context, first, last, at int64) (int64, error) {
	low, high := first, last+1
	for low < high {
		middle := low + (high-low)/2
		sequence, received := last+1, int64(math.MaxInt64) // if there is no later event
		err := in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&sequence, &received) },
			engine.SequenceFrom, middle))
		if err != nil {
			return 0, err
		}
		if received >= at {
			high = middle
		} else {
			low = sequence + 1
		}
	}
	return low, nil
}
