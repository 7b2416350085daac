package inbox_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// newPair starts a primary and a standby that its commits wait for.
func newPair(t *testing.T) (primary, standby *pgtest.Server) {
	primary = pgtest.ForTest(t)
	primary.Exec(t, "postgres", "CREATE DATABASE inbox")
	standby = need(primary.Standby("second"))(t)
	t.Cleanup(standby.Close)
	primary.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'second'", "SELECT pg_reload_conf()")
	s := store{"postgres", primary.DSN("postgres")}
	eventually(t, "the standby is synchronous", func() bool {
		return s.int(t, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
	})
	return primary, standby
}

func TestFailoverLosesNothingThatWasAcknowledged(t *testing.T) {
	for run := range runs(t) {
		t.Run(fmt.Sprint(run), failOver)
	}
}

func failOver(t *testing.T) {
	primary, standby := newPair(t)
	s := store{"postgres", fmt.Sprintf("host=%s,%s port=5432,5432 user=heads dbname=inbox", standby.Host(), primary.Host())}
	in := s.open(t)
	l := publish(t, 16, time.Millisecond, receiverOf(t, in))
	l.reach(t, 500)
	atKill, killed := l.count(), time.Now()
	primary.Kill()
	eventually(t, "events are refused", func() bool { refused, _ := l.refusals(killed); return refused > 0 })
	promoted := l.count()
	require.NoError(t, standby.Promote())
	l.reach(t, promoted+200) // the inbox recovers by itself
	l.stop()
	t.Logf("acknowledged %d, %d of them when the primary was killed and %d when refusals began; %d deliveries", len(l.acknowledged), atKill, promoted, len(l.answers))
	for _, a := range l.answers {
		assert.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, a.status)
	}
	assert.Zero(t, lost(t, in, l.acknowledged))
	var host string
	require.NoError(t, store{"postgres", s.name + " target_session_attrs=read-write"}.sql(t).QueryRow("SHOW unix_socket_directories").Scan(&host))
	assert.Equal(t, standby.Host(), host, "the events are on the standby")
}

func await[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(60 * time.Second):
		require.Fail(t, "not in time", what)
	}
	return v
}

func TestNothingIsAcknowledgedWithoutTheStandby(t *testing.T) {
	for _, setting := range []string{"on", "off"} {
		t.Run("synchronous_commit="+setting, func(t *testing.T) {
			primary, standby := newPair(t)
			in := store{"postgres", primary.DSN("inbox")}.open(t)
			send := serve(t, in)
			require.Equal(t, http.StatusOK, send(eventBody("head", "session", 1)))
			// Open checks this setting, so set it afterwards; it applies to new connections.
			primary.Exec(t, "postgres", "SET synchronous_commit = local", "ALTER DATABASE inbox SET synchronous_commit = "+setting,
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'inbox' AND pid <> pg_backend_pid()")
			require.Equal(t, http.StatusOK, send(eventBody("head", "session", 2)))
			standby.Signal(pgtest.Stop)
			var took []time.Duration
			for range 3 {
				begun := time.Now()
				assert.Equal(t, http.StatusServiceUnavailable, send(eventBody("head", "session", 3)))
				took = append(took, time.Since(begun))
			}
			t.Log("refused after", took)
			assert.Less(t, took[0], 1800*time.Millisecond) // 1.5 s, with room for a busy machine
			assert.Less(t, took[1]+took[2], time.Second, "the database is known to be away")
			standby.Signal(pgtest.Continue)
			eventually(t, "events are stored again", func() bool { return send(eventBody("head", "session", 3)) == http.StatusOK })
		})
	}
}

// A COMMIT that an operator cancels while it waits for the standby succeeds, with a warning.
func TestCommitWithAWarningIsNoSuccess(t *testing.T) {
	primary, standby := newPair(t)
	in := store{"postgres", primary.DSN("inbox")}.open(t)
	appendEvents(t, in, "session", 1, 2)
	standby.Signal(pgtest.Stop)
	defer standby.Signal(pgtest.Continue)
	result := make(chan error, 1)
	second := newEvent(t, "head", "session", 2)
	go func() {
		_, err := in.Append(context.Background(), second)
		result <- err
	}()
	admin, cancelled := store{"postgres", primary.DSN("postgres")}, int64(0)
	eventually(t, "the append ends", func() bool {
		cancelled += admin.int(t, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		return len(result) > 0
	})
	assert.Positive(t, cancelled)
	assert.ErrorIs(t, <-result, inbox.ErrUnavailable)
}
