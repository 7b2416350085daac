package inboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/database"
	"github.com/headsapi/heads-go/inbox/inboxtest"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

const (
	headID    = "3f2b8c1e-8a4d-4b7e-9c3a-1d2e3f4a5b6c"
	sharedKey = "the key of the registration"
	patience  = 10 * time.Second
	tick      = 20 * time.Millisecond
)

// store appends an event of the session.
func store(t *testing.T, in *inbox.Inbox, session string) {
	t.Helper()
	r := headstest.NewEventRequest("https://app.example.com/events", heads.Event{Type: heads.EventStartConversation, HeadID: headID, SessionID: session}, sharedKey)
	handler, err := in.Handler(heads.SharedKeys(sharedKey))
	require.NoError(t, err)
	answer := answerOf(handler, r)
	require.Equal(t, 200, answer)
}

// ending is a test whose context can end, and that keeps what Fatalf tells.
type ending struct {
	testing.TB
	ctx   context.Context //nolint:containedctx // of Context
	fatal chan string
}

func (e *ending) Context() context.Context { return e.ctx }

func (e *ending) Fatalf(format string, args ...any) {
	e.fatal <- fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// waitThatEnds calls WaitHandled in a test that ends, and returns what it tells.
func waitThatEnds(t *testing.T, in *inbox.Inbox, n int, ready func() bool) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := &ending{TB: t, ctx: ctx, fatal: make(chan string, 1)}
	go inboxtest.WaitHandled(e, in, n)
	require.Eventually(t, ready, patience, tick)
	// The wait has counted once more when two polls have passed.
	<-time.After(5 * tick)
	cancel()
	return <-e.fatal
}

func pending(t *testing.T, in *inbox.Inbox) int64 {
	t.Helper()
	status, err := in.Status(t.Context())
	require.NoError(t, err)
	return status.Pending
}

func TestWaitHandledCountsHandledEventsOfAnyDatabase(t *testing.T) {
	server := pgtest.ForTest(t)
	for name, open := range map[string]func(*testing.T) *inbox.Inbox{
		"sqlite": func(t *testing.T) *inbox.Inbox { return inboxtest.Open(t, inbox.WithTablePrefix("other_")) },
		"postgres": func(t *testing.T) *inbox.Inbox {
			in, err := database.OpenInbox(t.Context(), inboxtest.Postgres(t, server.DSN("postgres")))
			require.NoError(t, err)
			return in
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := open(t)
			for _, session := range []string{"a", "b", "c"} {
				store(t, in, session)
			}
			release := make(chan struct{})
			inboxtest.Run(t, in, func(_ context.Context, d *inbox.Delivery) error {
				if d.Event.SessionID == "c" {
					<-release
				}
				return nil
			})
			inboxtest.WaitHandled(t, in, 2)
			told := waitThatEnds(t, in, 3, func() bool { return true })
			assert.Equal(t, "inboxtest: wait for 3 handled events: 2 are handled, 1 wait and 0 are dead", told)
			close(release)
			inboxtest.WaitHandled(t, in, 3)
			assert.Zero(t, pending(t, in))
		})
	}
}

func TestWaitHandledTellsTheErrorsOfDeadEvents(t *testing.T) {
	in := inboxtest.Open(t, inbox.WithErrorText())
	store(t, in, "a")
	inboxtest.Run(t, in, func(context.Context, *inbox.Delivery) error { return inbox.Permanent(errors.New("broken")) })
	told := waitThatEnds(t, in, 1, func() bool { s, err := in.Status(t.Context()); return err == nil && s.Dead == 1 })
	assert.Contains(t, told, "0 are handled, 0 wait and 1 are dead\nstart_conversation of session \"a\": broken")
	inboxtest.WaitHandled(t, in, 0)
}

func TestRunClosesTheInboxWithTheTest(t *testing.T) {
	var in *inbox.Inbox
	t.Run("runs", func(t *testing.T) {
		in = inboxtest.Open(t)
		inboxtest.Run(t, in, func(context.Context, *inbox.Delivery) error { return nil })
	})
	_, err := in.Status(t.Context())
	require.ErrorIs(t, err, inbox.ErrClosed)
}

func TestPostgresSchemaIsEmptyAndDropped(t *testing.T) {
	server := pgtest.ForTest(t)
	for _, dsn := range []string{server.DSN("postgres"), "postgres:///postgres?user=heads&sslmode=disable&host=" + server.Host()} {
		t.Run("opens", func(t *testing.T) {
			for range 2 {
				in, err := database.OpenInbox(t.Context(), inboxtest.Postgres(t, dsn))
				require.NoError(t, err)
				store(t, in, "a")
				assert.EqualValues(t, 1, pending(t, in))
				require.NoError(t, in.Close(t.Context()))
			}
		})
	}
	server.Exec(t, "postgres", `DO $$ BEGIN ASSERT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'inboxtest%') = 0; END $$`)
	skipped := false
	t.Run("skips", func(t *testing.T) {
		t.Cleanup(func() { skipped = t.Skipped() })
		inboxtest.Postgres(t, "")
	})
	assert.True(t, skipped)
}

func TestFileIsRemovedWithTheTest(t *testing.T) {
	var dir string
	t.Run("opens", func(t *testing.T) {
		dir = t.TempDir() // in addition to the folder of Open
		in := inboxtest.Open(t)
		store(t, in, "a")
		_, err := os.Stat(dir + "/../002/inbox.db")
		require.NoError(t, err)
	})
	_, err := os.Stat(dir + "/..")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTwoInboxesShareNothing(t *testing.T) {
	a, b := inboxtest.Open(t), inboxtest.Open(t)
	store(t, a, "a")
	assert.Zero(t, pending(t, b))
}
