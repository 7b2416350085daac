package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
	"github.com/headsapi/heads-go/inbox/postgres"
)

// lines is a log that a test can read during writes.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(text string) int { return strings.Count(l.String(), text) }

func newLog() (*lines, inbox.Option) {
	l := &lines{}
	return l, inbox.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

func TestLossIsNoticedOnce(t *testing.T) {
	s := newStore(t, "postgres")
	log, option := newLog()
	in := s.open(t, option)
	appendEvents(t, in, "session", 0, 20)
	assert.Zero(t, log.count("lost"))
	// The state after a failover that lost the last commits.
	s.exec(t, "DELETE FROM heads_inbox_events WHERE sequence > 12")
	s.exec(t, "ALTER TABLE heads_inbox_events ALTER COLUMN sequence RESTART WITH 13")
	var appending sync.WaitGroup
	for i := range 8 {
		appending.Go(func() { appendEvents(t, in, fmt.Sprint("session", i), 100+i*10, 110+i*10) })
	}
	appending.Wait()
	assert.Equal(t, 1, log.count("the database has lost acknowledged events"), log.String())
	assert.Regexp(t, `sequence=1\d acknowledged=20`, log.String())
}

// A database that was restored from an older backup hands out the same fences again.
func TestFencesThatWentBackAreRefused(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		log, option := newLog()
		in := s.open(t, option)
		var fence atomic.Int64
		stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error { fence.Store(d.Fence); return nil })
		for n := range 5 {
			appendEvents(t, in, fmt.Sprint("session", n), n, n+1)
		}
		eventually(t, "handled", pendingIsZero(in))
		back, raise := "UPDATE heads_inbox_meta SET value = '1' WHERE name = 'fence'",
			"UPDATE heads_inbox_meta SET value = CAST(value AS INTEGER) + 1000000000 WHERE name = 'fence'"
		if s.kind == "postgres" {
			back, raise = "SELECT setval('heads_inbox_fence', 1)", "SELECT setval('heads_inbox_fence', (SELECT last_value FROM heads_inbox_fence) + 1000000000)"
		}
		s.exec(t, back)
		appendEvents(t, in, "session", 10, 11)
		eventually(t, "the worker refuses", func() bool { return log.count("was restored from an older backup") > 0 })
		assert.EqualValues(t, 1, statusOf(t, in).Pending)

		// Another program notices it too, since an event has a higher fence.
		_, err := s.try(t.Context())
		assert.ErrorIs(t, err, inbox.ErrDamaged)
		assert.ErrorContains(t, err, "counter of fences")

		s.exec(t, raise) // as in docs/inbox-operations.md
		eventually(t, "handled", pendingIsZero(in))
		stop()
		assert.Greater(t, fence.Load(), int64(1000000000))
	})
}

func TestHostsOfTwoClustersAreRefused(t *testing.T) {
	t.Parallel()
	one, two := pgtest.ForTest(t), pgtest.ForTest(t)
	dsn := fmt.Sprintf("host=%s,%s port=5432,5432 user=heads dbname=postgres", one.Host(), two.Host())
	_, err := postgres.Open(t.Context(), dsn)
	assert.ErrorContains(t, err, "hosts of different clusters")

	// A host that is unreachable during Open is refused later.
	two.Kill()
	in := store{"postgres", dsn}.open(t)
	appendEvents(t, in, "session", 0, 1)
	require.NoError(t, two.Start())
	one.Kill()
	_, err = in.Append(t.Context(), newEvent(t, "head", "session", 1))
	assert.ErrorIs(t, err, inbox.ErrUnavailable)
	require.NoError(t, one.Start())
	eventually(t, "the first is back", func() bool {
		_, err := in.Append(t.Context(), newEvent(t, "head", "session", 1))
		return err == nil
	})
}

// A host that is stopped accepts connections and does not answer. It is tried last.
func TestStoppedHostIsTriedLast(t *testing.T) {
	t.Parallel()
	primary, standby := newPair(t)
	primary.Exec(t, "postgres", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	standby.Signal(pgtest.Stop)
	defer standby.Signal(pgtest.Continue)
	s := store{"postgres", fmt.Sprintf("host=%s,%s port=5432,5432 user=heads dbname=inbox pool_max_conns=4", standby.Host(), primary.Host())}
	in := s.open(t)
	for n := range 3 {
		// Each of these opens new connections.
		primary.Exec(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'inbox'")
		begun := time.Now()
		eventually(t, "stored", func() bool {
			_, err := in.Append(t.Context(), newEvent(t, "head", "session", n))
			return err == nil
		})
		assert.Less(t, time.Since(begun), 900*time.Millisecond, "no connection waits for the stopped host")
	}
}
