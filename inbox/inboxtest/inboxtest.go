// Package inboxtest opens inboxes for tests.
package inboxtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/postgres"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

const (
	patience = 30 * time.Second
	poll     = 10 * time.Millisecond
	maxDead  = 10 // dead letters in a message
)

// Open returns an inbox in a temporary SQLite file, which is closed and removed when the test ends.
// If it fails, it calls t.Fatal.
func Open(t testing.TB, opts ...inbox.Option) *inbox.Inbox {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "inbox.db"))
	if err != nil {
		t.Fatalf("inboxtest: open: %v", err)
	}
	in, err := inbox.Open(t.Context(), db, opts...)
	if err != nil {
		t.Fatalf("inboxtest: open: %v", err)
	}
	t.Cleanup(func() { closeInbox(t, in) })
	return in
}

func closeInbox(t testing.TB, in *inbox.Inbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := in.Close(ctx); err != nil {
		t.Errorf("inboxtest: close: %v", err)
	}
}

// Run calls in.Run in the background until the test ends, and then closes the inbox.
func Run(t testing.TB, in *inbox.Inbox, f func(context.Context, *inbox.Delivery) error, opts ...inbox.RunOption) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- in.Run(ctx, f, opts...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("inboxtest: run: %v", err)
		}
		closeInbox(t, in)
	})
}

// WaitHandled waits until at least n events of the inbox are handled, whichever process handles
// them. After 30 seconds, or when the context of the test ends, it calls t.Fatal and tells how many
// events are handled and waiting, and the errors of the dead letters.
func WaitHandled(t testing.TB, in *inbox.Inbox, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var states map[inbox.State]int
	var dead []string
	for {
		counted, errs, err := count(ctx, in)
		switch {
		case err == nil && counted[inbox.StateHandled] >= n:
			return
		case err == nil:
			states, dead = counted, errs
		case ctx.Err() == nil:
			t.Fatalf("inboxtest: wait for %d handled events: %v", n, err)
		}
		select {
		case <-time.After(poll):
			continue
		case <-ctx.Done():
		}
		t.Fatalf("inboxtest: wait for %d handled events: %d are handled, %d wait and %d are dead%s",
			n, states[inbox.StateHandled], states[inbox.StateWaiting]+states[inbox.StateRetrying], states[inbox.StateDead], strings.Join(dead, ""))
	}
}

// count returns the number of events in each state, and a line for each of the latest dead letters.
func count(ctx context.Context, in *inbox.Inbox) (states map[inbox.State]int, dead []string, err error) {
	states = map[inbox.State]int{}
	for before := int64(0); ; {
		page, next, err := in.List(ctx, inbox.Query{Limit: 1000}, "", before)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range page {
			states[e.State]++
			if e.State == inbox.StateDead && len(dead) < maxDead {
				dead = append(dead, fmt.Sprintf("\n%s of session %q: %s", e.Type, e.SessionID, e.Error))
			}
		}
		if next == 0 {
			return states, dead, nil
		}
		before = next
	}
}

// Postgres returns a DSN for an empty schema of its own in the database of dsn, which it drops when
// the test ends. If dsn is empty, it skips the test.
func Postgres(t testing.TB, dsn string) string {
	t.Helper()
	if dsn == "" {
		t.Skip("inboxtest: no PostgreSQL DSN is given")
	}
	schema := "inboxtest_" + strings.ToLower(rand.Text())
	execute(t, dsn, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, dsn, "DROP SCHEMA "+schema+" CASCADE") })
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		q := u.Query()
		q.Set("search_path", schema)
		u.RawQuery = q.Encode()
		return u.String()
	}
	return dsn + " search_path=" + schema
}

// execute calls t.Fatal with an error that does not show the DSN.
func execute(t testing.TB, dsn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := postgres.Open(ctx, dsn)
	if err != nil {
		t.Fatalf("inboxtest: %v", err)
	}
	_ = db.Close()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal("inboxtest: postgres: the server can't be reached any more")
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, text); err != nil {
		t.Fatalf("inboxtest: postgres: %v", err)
	}
}
