package inbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	probeInterval = 200 * time.Millisecond
	probeTimeout  = appendTimeout
)

// health records whether the database accepts writes. While it does not, appends fail immediately,
// and a goroutine probes the database until a write succeeds.
type health struct {
	db *database
	*reporter

	mu    sync.Mutex
	fault error // nil while the database accepts writes
}

func (h *health) down() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fault
}

// fail records err, starts the probe and returns err.
func (h *health) fail(err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault == nil && h.db.use() {
		h.log(context.Background(), slog.LevelError, "events are refused", slog.String("error", err.Error()))
		go h.probe()
	}
	h.fault = err
	return err
}

// probe writes to the database until a commit succeeds.
func (h *health) probe() {
	defer h.db.done()
	for {
		sleep(h.db.closed, probeInterval)
		err := h.touch(h.db.closed)
		if err == nil || h.db.closed.Err() != nil {
			h.mu.Lock()
			h.fault = nil
			h.mu.Unlock()
			if err == nil {
				h.log(context.Background(), slog.LevelInfo, "events are stored again")
			}
			return
		}
	}
}

// touch commits a write with the same durability as an append.
func (h *health) touch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return h.db.Renew(ctx, func(ctx context.Context, tx engine.Tx) error {
		return tx.Send(ctx, engine.Do(engine.Touch))
	})
}

// probed is the last result of Health.
type probed struct {
	mu      sync.Mutex
	at      time.Time // when the write began
	healthy bool
}
