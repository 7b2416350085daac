package inbox

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// Append stores an event that the caller has verified. Use Handler for events that arrive over
// HTTP. Append reports whether the event is new. It does not store an event again whose key
// (heads.Event.Key) is known.
//
// If Append returns no error, the event is on disk. After an error, the event may have been stored,
// and it is safe to append it again. Append returns within 1.5 s. The error is ErrUnavailable or
// ErrFull while the database accepts no writes, and a *heads.InvalidError if the event has no Raw,
// or if Raw is not its body.
func (in *Inbox) Append(ctx context.Context, e *heads.Event) (added bool, err error) {
	r, err := newRecord(e)
	if err != nil {
		return false, err
	}
	if !in.db.use() {
		return false, ErrClosed
	}
	defer in.db.done()
	begun := time.Now()
	high, round := in.acknowledged.before()
	sequence, err := in.append(ctx, r)
	o := Observation{Kind: KindAppended, Duration: time.Since(begun), Sequence: sequence, HeadID: e.HeadID, SessionID: e.SessionID, Err: err}
	switch {
	case err != nil:
		o.Kind = KindAppendFailed
	case sequence == 0:
		o.Kind = KindDuplicate
	default:
		if in.acknowledged.add(sequence, high, round) {
			in.noteLoss(ctx, sequence, high)
		}
		in.wakes.all()
		in.db.Notify()
	}
	in.tell(ctx, o)
	return o.Kind == KindAppended, err
}

// append retries while the database may still store the event. It does not check whether the key
// exists, since a key that is visible may be on the primary only, not yet confirmed by the standby.
func (in *Inbox) append(ctx context.Context, r *engine.Record) (int64, error) {
	if err := in.health.down(); err != nil {
		return 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	var last error
	for {
		sequence, err := in.db.Append(bounded, r)
		if err == nil {
			return sequence, nil
		}
		if kind := engine.KindOf(err); kind != engine.Failed {
			last = err
			if !kind.Retriable() {
				return 0, in.health.fail(in.db.public(err))
			}
		} else if bounded.Err() == nil {
			return 0, in.db.public(err)
		}
		if !sleep(bounded, rand.N(2*pause)) {
			break
		}
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if engine.KindOf(last) == engine.Locked {
		return 0, in.db.public(last) // other sessions' events can still be stored
	}
	if last == nil {
		last = &engine.Error{Kind: engine.Away, Text: "no commit within " + appendTimeout.String()}
	}
	return 0, in.health.fail(in.db.public(last))
}

// noteLoss logs that the database has lost events that were acknowledged.
func (in *Inbox) noteLoss(ctx context.Context, sequence, high int64) {
	in.log(ctx, slog.LevelError, "the database has lost acknowledged events: it was restored from an older backup, or a failover lost commits",
		slog.Int64("sequence", sequence), slog.Int64("acknowledged", high))
}
