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
	// timeSlack is how far the order of sequences may differ from the order of times. An append
	// ends long before.
	timeSlack = 10 * time.Second
)

// Query selects events. The zero Query selects all events. With a head and a session, it reads an
// index, and the times are found by halving; other conditions read what the times leave. Times are
// found among sequences, so an event whose time is more than 10 seconds out of the order of its
// sequence, since the database's clock was set back, may be missed.
type Query struct {
	From, To  time.Time         // stored in [From, To), by the database's clock; a zero time is no limit
	HeadID    string            // "" for every head
	SessionID string            // "" for every session
	Types     []heads.EventType // none for every type
	Limit     int               // of events; 0 for no limit
}

// pageOf names the statements that read pages of events.
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

// span has the sequences among which a Query's events are.
type span struct{ first, last int64 }

// span turns the times of q into sequences, which have an index, by halving. The statements still
// compare the times.
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

// sequenceAt returns the first sequence in [first, last] whose event was stored at a time or later,
// last+1 if there is none.
func (in *Inbox) sequenceAt(ctx context.Context, first, last, at int64) (int64, error) {
	low, high := first, last+1
	for low < high {
		middle := low + (high-low)/2
		sequence, received := last+1, int64(math.MaxInt64) // without an event from there on
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
