package inbox

import (
	"context"
	"math"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// timeSlack is how far the order of sequences may differ from the order of times. An
// append ends long before.
const timeSlack = 10 * time.Second

// span has the sequences among which a Query's events are.
type span struct{ first, last int64 }

// span turns the times of q into sequences, which have an index, by halving. The
// statements still compare the times.
func (in *Inbox) span(ctx context.Context, q Query) (s span, err error) {
	s = span{1, math.MaxInt64}
	if q.From.IsZero() && q.To.IsZero() {
		return s, nil
	}
	if !in.enter() {
		return s, ErrClosed
	}
	defer in.leave()
	var first, last int64
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&first, &last) }, engine.Bounds))
	from, to := q.micros()
	if err == nil && !q.From.IsZero() {
		s.first, err = in.sequenceAt(ctx, first, last, from-micros(timeSlack))
	}
	if err == nil && !q.To.IsZero() {
		s.last, err = in.sequenceAt(ctx, first, last, to+micros(timeSlack))
	}
	return s, in.public(err)
}

// sequenceAt returns the first sequence in [first, last] whose event was stored at a
// time or later, last+1 if there is none.
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
