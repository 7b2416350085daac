package inbox

import (
	"context"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// Status has the numbers of events in an inbox.
type Status struct {
	Pending       int64     // neither handled nor dead; includes Running and Retrying
	Running       int64     // sessions that a worker has claimed
	Retrying      int64     // begun before, and waiting for another attempt
	Dead          int64     // in the dead letters
	Sessions      int64     // with pending events
	OldestPending time.Time // when the oldest pending event was stored; zero without one
	Healthy       bool      // the database accepts writes
}

// Status counts the events. While the database is unreachable, it returns
// ErrUnavailable and a Status that is not healthy.
func (in *Inbox) Status(ctx context.Context) (Status, error) {
	if !in.enter() {
		return Status{}, ErrClosed
	}
	defer in.leave()
	var s Status
	var oldest int64
	err := in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		return scan(&s.Pending, &s.Retrying, &s.Dead, &s.Sessions, &oldest, &s.Running)
	}, engine.Count))
	if err != nil {
		return Status{}, in.public(err)
	}
	if oldest != 0 {
		s.OldestPending = timeOf(oldest)
	}
	s.Healthy = in.health.down() == nil && in.touch(ctx) == nil
	return s, nil
}

// Prune removes handled events older than the retention and the rows of deleted dead
// letters. It returns how many it removed. Run does the same regularly.
func (in *Inbox) Prune(ctx context.Context) (int64, error) {
	if !in.enter() {
		return 0, ErrClosed
	}
	defer in.leave()
	begun := time.Now()
	var total int64
	for after := int64(0); ; {
		last, n, more, err := in.prunePage(ctx, after)
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

// prunePage reads the events by sequence, which is nearly the order of time, until a
// page has only newer events. So no index on the time is needed, and every transaction
// is short.
func (in *Inbox) prunePage(ctx context.Context, after int64) (last, deleted int64, more bool, err error) {
	var n, earliest, now int64
	err = in.db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error {
		return scan(&last, &n, &earliest, &now)
	}, engine.PruneBounds, after, int64(pruneSize)))
	if err != nil {
		return 0, 0, false, in.public(err)
	}
	cutoff := now - micros(in.retention)
	if n == 0 || earliest >= cutoff {
		return last, 0, false, nil
	}
	deleted, err = again(ctx, in, func(ctx context.Context, tx engine.Tx) (int64, error) {
		remove := engine.Do(engine.PruneEvents, after, last, cutoff)
		err := tx.Send(ctx, remove)
		return remove.N, err
	})
	return last, deleted, n == pruneSize, err
}
