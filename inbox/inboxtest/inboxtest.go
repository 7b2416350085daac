// Package inboxtest opens inboxes for tests.
package inboxtest

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// Inbox is an inbox in a temporary file.
type Inbox struct {
	*inbox.Inbox
	file    *sql.DB
	attempt chan struct{} // receives a value after each attempt
}

// Open returns an inbox in a temporary SQLite file, which is closed and removed when the test ends.
// If it fails, it calls t.Fatal. Do not pass WithTablePrefix: each inbox has its own file, and
// WaitHandled reads the default tables.
func Open(t testing.TB, opts ...inbox.Option) *Inbox {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.db")
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatalf("inboxtest: open: %v", err)
	}
	opened, err := inbox.Open(t.Context(), db, opts...)
	if err != nil {
		t.Fatalf("inboxtest: open: %v", err)
	}
	file, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatalf("inboxtest: open: %v", err)
	}
	in := &Inbox{Inbox: opened, file: file, attempt: make(chan struct{}, 1)}
	in.OnAttempt(func(context.Context, time.Duration, error) {
		select {
		case in.attempt <- struct{}{}:
		default:
		}
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		_ = file.Close()
		if err := in.Close(ctx); err != nil {
			t.Errorf("inboxtest: close: %v", err)
		}
	})
	return in
}

// WaitHandled waits until at least n events are marked as handled in the file. Run must be running.
// If ctx ends first, the error reports how many events are handled, waiting and dead.
func (in *Inbox) WaitHandled(ctx context.Context, n int) error {
	for {
		var handled int
		err := in.file.QueryRowContext(ctx, "SELECT count(*) FROM heads_inbox_events WHERE state = 1").Scan(&handled)
		switch {
		case ctx.Err() != nil:
			return in.notHandled(ctx, n)
		case err != nil:
			return fmt.Errorf("inboxtest: count the handled events: %w", err)
		case handled >= n:
			return nil
		}
		select {
		case <-in.attempt:
		case <-time.After(10 * time.Millisecond): // OnAttempt reports an attempt before its outcome is stored
		case <-ctx.Done():
		}
	}
}

func (in *Inbox) notHandled(ctx context.Context, n int) error {
	var handled, waiting, dead int
	err := in.file.QueryRowContext(context.WithoutCancel(ctx), "SELECT coalesce(sum(state = 1), 0), coalesce(sum(state = 0), 0), coalesce(sum(state = 2), 0) FROM heads_inbox_events").
		Scan(&handled, &waiting, &dead)
	if err != nil {
		return fmt.Errorf("inboxtest: wait for %d handled events: %w", n, ctx.Err())
	}
	return fmt.Errorf("inboxtest: wait for %d handled events: %d are handled, %d wait and %d are dead: %w", n, handled, waiting, dead, ctx.Err())
}
