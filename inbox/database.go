package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	// appendTimeout is below 1.5 s, so a delivery is refused while the service is still waiting for
	// the response.
	appendTimeout = 1400 * time.Millisecond
	storeTimeout  = 5 * time.Second // of one transaction that stores the outcome of an event
	drainGrace    = 500 * time.Millisecond

	pause      = 10 * time.Millisecond // before a retry that a caller waits for, on average
	retryPause = 100 * time.Millisecond
)

// database is the backend of an Inbox. It counts its users, so Close can wait for them.
type database struct {
	engine.Backend

	closed  context.Context //nolint:containedctx // ends when Close begins
	close   context.CancelFunc
	aborted context.Context //nolint:containedctx // ends when Close has waited long enough
	abort   context.CancelFunc
	mu      sync.Mutex
	closing bool
	users   sync.WaitGroup // appends, runs and the prober
}

func newDatabase(b engine.Backend) *database {
	db := &database{Backend: b}
	db.closed, db.close = context.WithCancel(context.Background())
	db.aborted, db.abort = context.WithCancel(context.Background())
	return db
}

// use counts a user of the database until done is called. It returns false after shut was called.
func (db *database) use() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closing {
		return false
	}
	db.users.Add(1)
	return true
}

func (db *database) done() { db.users.Done() }

// shut implements Inbox.Close.
func (db *database) shut(ctx context.Context) error {
	db.mu.Lock()
	if db.closing {
		db.mu.Unlock()
		return nil
	}
	db.closing = true
	db.mu.Unlock()
	db.close()
	done := make(chan struct{})
	go func() {
		db.users.Wait()
		close(done)
	}()
	select {
	case <-done:
		db.abort()
		return db.Backend.Close()
	case <-ctx.Done():
	}
	db.abort()
	ended := make(chan struct{})
	go func() {
		_ = db.Backend.Close() // waits for an effect that still runs
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(drainGrace):
	}
	return ctx.Err()
}

// public returns the exported error for an error of the database. Its text contains no DSN and no
// event data.
func (db *database) public(err error) error {
	var e *engine.Error
	switch {
	case err == nil:
		return nil
	case db.closed.Err() != nil:
		return ErrClosed
	case errors.As(err, new(*engine.StatementError)):
		return fmt.Errorf("WithTables: %w", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), !errors.As(err, &e):
		return err
	}
	switch e.Kind {
	case engine.Again, engine.Locked, engine.Away, engine.ReadOnly:
		return fmt.Errorf("%w: %s", ErrUnavailable, e.Text)
	case engine.Full:
		return fmt.Errorf("%w: %s", ErrFull, e.Text)
	case engine.Damaged:
		return fmt.Errorf("%w: %s", ErrDamaged, e.Text)
	}
	return errors.New("inbox: " + e.Text)
}

// again retries a transaction until it succeeds, ctx ends or storeTimeout has passed.
func again[T any](ctx context.Context, db *database, f func(context.Context, engine.Tx) (T, error)) (result T, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		got := new(T) // one per transaction, since an abandoned one may still write to its own
		err := db.Write(ctx, func(ctx context.Context, tx engine.Tx) (err error) {
			*got, err = f(ctx, tx)
			return err
		})
		if err == nil {
			return *got, nil
		}
		if !engine.KindOf(err).Retriable() || !sleep(ctx, retryPause) {
			return result, db.public(err)
		}
	}
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
