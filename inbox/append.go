package inbox

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	// appendTimeout is below 1.5 s, so a delivery is refused while the service still
	// waits for the answer.
	appendTimeout = 1400 * time.Millisecond
	probeInterval = 200 * time.Millisecond
	probeTimeout  = appendTimeout
	pause         = 10 * time.Millisecond // before a retry, on average
)

// Append stores an event that the caller has verified. Use Handler for events that
// arrive over HTTP. Append reports whether the event is new. It does not store an
// event again whose key (heads.Event.Key) is known.
//
// If Append returns no error, the event is on disk. After an error, the event may
// have been stored, and it is safe to append it again. Append returns within 1.5 s.
// The error is ErrUnavailable or ErrFull while the database accepts no writes, and a
// *heads.InvalidError if the event has no Raw, or if Raw is not its body.
func (in *Inbox) Append(ctx context.Context, e *heads.Event) (added bool, err error) {
	r, err := newRecord(e)
	if err != nil {
		return false, err
	}
	if !in.enter() {
		return false, ErrClosed
	}
	defer in.leave()
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

// append retries an append that may have failed. It does not look for the key, since
// a key that can be read may be on a primary only, without the confirmation of the
// standby.
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
				return 0, in.health.fail(in.public(err))
			}
		} else if bounded.Err() == nil {
			return 0, in.public(err)
		}
		if !sleep(bounded, rand.N(2*pause)) {
			break
		}
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if engine.KindOf(last) == engine.Locked {
		return 0, in.public(last) // others can be stored
	}
	if last == nil {
		last = &engine.Error{Kind: engine.Away, Text: "no commit within " + appendTimeout.String()}
	}
	return 0, in.health.fail(in.public(last))
}

// sleep waits and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// health knows whether the database accepts writes. While it does not, appends are
// refused at once, and a goroutine probes the database until it does.
type health struct {
	in    *Inbox
	mu    sync.Mutex
	fault error // nil while the database accepts writes
}

func (h *health) start(in *Inbox) { h.in = in }

func (h *health) down() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}

// fail starts a probe and returns err.
func (h *health) fail(err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault == nil && h.in.enter() {
		h.in.log(context.Background(), slog.LevelError, "events are refused", slog.String("error", err.Error()))
		go h.probe()
	}
	h.fault = err
	return err
}

// probe writes and commits until that succeeds.
func (h *health) probe() {
	defer h.in.leave()
	for {
		sleep(h.in.closed, probeInterval)
		err := h.in.touch(h.in.closed)
		if err == nil || h.in.closed.Err() != nil {
			h.mu.Lock()
			h.fault = nil
			h.mu.Unlock()
			if err == nil {
				h.in.log(context.Background(), slog.LevelInfo, "events are stored again")
			}
			return
		}
	}
}

// touch is a write with the same requirements as an append.
func (in *Inbox) touch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return in.db.Renew(ctx, func(ctx context.Context, tx engine.Tx) error {
		return tx.Send(ctx, engine.Do(engine.Touch))
	})
}

// wakes has the channels of the workers in this process.
type wakes struct {
	mu       sync.Mutex
	channels map[chan struct{}]struct{}
}

func (w *wakes) add() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels == nil {
		w.channels = make(map[chan struct{}]struct{})
	}
	c := make(chan struct{}, 1)
	w.channels[c] = struct{}{}
	return c
}

func (w *wakes) remove(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.channels, c)
}

func (w *wakes) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.channels {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
