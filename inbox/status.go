package inbox

import (
	"context"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	maxCount   = 10000 // the limit of every count in Status
	sampleSize = 1000
	pruneSize  = 500 // events in one transaction
)

// Status has the numbers of events in an inbox. Every number except Pending is at most 10,000.
type Status struct {
	Pending       int64     // neither handled nor dead; includes Running and Retrying
	Running       int64     // sessions claimed by a worker
	Retrying      int64     // sessions waiting for another attempt
	Dead          int64     // in the dead letters
	Sessions      int64     // sessions with pending events
	OldestPending time.Time // when the oldest pending event was stored; zero without one
	Estimated     bool      // Pending is above 10,000 and estimated from a sample
	Healthy       bool      // the database accepts writes
}

// Status counts events, up to 10,000 of each kind. If Pending is larger, Status estimates it from a
// thousand random sequences between the oldest pending event and the latest event. While the
// database is unreachable, Status returns ErrUnavailable and a zero Status.
func (in *Inbox) Status(ctx context.Context) (Status, error) {
	if !in.db.use() {
		return Status{}, ErrClosed
	}
	defer in.db.done()
	s, err := in.count(ctx)
	if err != nil {
		return Status{}, in.db.public(err)
	}
	s.Healthy = in.health.down() == nil && in.health.touch(ctx) == nil
	return s, nil
}

func (in *Inbox) count(ctx context.Context) (s Status, err error) {
	var oldest, received int64
	err = in.db.Read().Send(ctx,
		engine.Get(func(scan func(...any) error) error { return scan(&s.Pending) }, engine.CountWaiting, int64(maxCount+1)),
		engine.Get(func(scan func(...any) error) error { return scan(&s.Dead) }, engine.CountDead, int64(maxCount)),
		engine.Get(func(scan func(...any) error) error { return scan(&s.Sessions) }, engine.CountSessions, int64(maxCount)),
		engine.Get(func(scan func(...any) error) error { return scan(&s.Running, &s.Retrying) }, engine.CountClaims, int64(maxCount)),
		engine.Get(func(scan func(...any) error) error { return scan(&oldest, &received) }, engine.OldestWaiting))
	if err != nil {
		return s, err
	}
	if received != 0 {
		s.OldestPending = timeOf(received)
	}
	if s.Pending > maxCount {
		s.Estimated = true
		s.Pending, err = in.estimate(ctx, oldest)
	}
	return s, err
}

// estimate estimates the number of waiting events. A sequence without an event, such as that of a
// duplicate, is not waiting.
func (in *Inbox) estimate(ctx context.Context, oldest int64) (int64, error) {
	var first, last, hits int64
	read := in.db.Read()
	err := read.Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&first, &last) }, engine.Bounds))
	if err == nil {
		err = read.Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&hits) }, engine.Sample, oldest, last, int64(sampleSize)))
	}
	return max(int64(float64(last-oldest+1)*float64(hits)/sampleSize), maxCount+1), err
}

// Prune removes handled events older than the retention, and deleted dead letters of that age. It
// returns the number of events removed. Run calls it about every 10 minutes.
func (in *Inbox) Prune(ctx context.Context) (int64, error) {
	if !in.db.use() {
		return 0, ErrClosed
	}
	defer in.db.done()
	begun := time.Now()
	var total, now int64
	if err := in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&now) }, engine.Now)); err != nil {
		return 0, in.db.public(err)
	}
	for after := int64(0); ; {
		last, n, more, err := in.prunePage(ctx, after, now-micros(in.retention))
		total += n
		if err != nil {
			return total, err
		}
		if !more {
			break
		}
		after = last
	}
	if total > 0 {
		in.tell(ctx, Observation{Kind: KindPruned, Duration: time.Since(begun), Count: total})
	}
	return total, nil
}

// prunePage removes the old events of one page. Pages are read by sequence, which is nearly the
// order of time, so no index on the time is needed, and every transaction is short. more reports
// whether a later page may have old events.
func (in *Inbox) prunePage(ctx context.Context, after, cutoff int64) (last, deleted int64, more bool, err error) {
	var n, earliest, old int64
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		return scan(&last, &n, &earliest, &old)
	}, engine.PruneBounds, after, int64(pruneSize), cutoff))
	if err != nil {
		return 0, 0, false, in.db.public(err)
	}
	if n == 0 || earliest >= cutoff {
		return last, 0, false, nil
	}
	if old == 0 {
		return last, 0, n == pruneSize, nil
	}
	deleted, err = again(ctx, in.db, func(ctx context.Context, tx engine.Tx) (int64, error) {
		remove := engine.Do(engine.PruneEvents, after, last, cutoff)
		err := tx.Send(ctx, remove)
		return remove.N, err
	})
	return last, deleted, n == pruneSize, err
}
