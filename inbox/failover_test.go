package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// newPair starts a primary and a standby that its commits wait for.
func newPair(t *testing.T) (primary, standby *pgtest.Server) {
	primary, err := pgtest.New()
	require.NoError(t, err)
	t.Cleanup(primary.Close)
	primary.Exec(t, "postgres", "CREATE DATABASE inbox")
	standby, err = primary.Standby("second")
	require.NoError(t, err)
	t.Cleanup(standby.Close)
	primary.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'second'", "SELECT pg_reload_conf()")
	db, err := sql.Open("pgx", primary.DSN("postgres"))
	require.NoError(t, err)
	defer db.Close()
	eventually(t, "the standby is synchronous", func() bool {
		var n int
		err := db.QueryRow("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").Scan(&n)
		return err == nil && n == 1
	})
	return primary, standby
}

// serve starts the inbox's handler and returns a client that delivers to it.
func serve(t *testing.T, in *inbox.Inbox) func(body []byte) int {
	h, err := in.Handler(heads.SharedKeys(sharedKey))
	require.NoError(t, err)
	return serveHandler(t, h)
}

func newHTTPServer(t *testing.T, h http.Handler) *httptest.Server {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

func TestFailoverLosesNothingThatWasAcknowledged(t *testing.T) {
	for run := range runs(t) {
		t.Run(fmt.Sprint(run), failOver)
	}
}

func failOver(t *testing.T) {
	const publishers = 16
	primary, standby := newPair(t)
	s := store{"postgres", fmt.Sprintf("host=%s,%s port=5432,5432 user=heads dbname=inbox", standby.Host(), primary.Host())}
	in := s.open(t)
	send := serve(t, in)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	acknowledged, refused, promoted, after := map[int]bool{}, 0, false, 0
	enough := make(chan struct{}, 1)
	recovered := make(chan struct{}, 1)
	var publishing sync.WaitGroup
	for i := range publishers {
		publishing.Go(func() {
			for n := i; ctx.Err() == nil; n += publishers {
				status := send(eventBody("head", fmt.Sprint("session", i), n))
				mu.Lock()
				switch status {
				case http.StatusOK:
					acknowledged[n] = true
					if promoted {
						after++
					}
				case http.StatusServiceUnavailable:
					refused++
				default:
					assert.Fail(t, "status", "%d", status)
				}
				if len(acknowledged) > 500 {
					signalOnce(enough)
				}
				if after > 200 {
					signalOnce(recovered)
				}
				mu.Unlock()
				if status != http.StatusOK {
					pauseFor(ctx, 5*time.Millisecond)
				}
			}
		})
	}
	await(t, enough, "publishing")
	primary.Kill()
	mu.Lock()
	atKill, refusedBefore := len(acknowledged), refused
	mu.Unlock()
	eventually(t, "events are refused", func() bool { mu.Lock(); defer mu.Unlock(); return refused > refusedBefore })
	mu.Lock()
	betweenKills := len(acknowledged)
	promoted = true
	mu.Unlock()
	require.NoError(t, standby.Promote())
	await(t, recovered, "the inbox recovers by itself")
	cancel()
	publishing.Wait()
	stored := map[int]bool{}
	require.NoError(t, in.Replay(t.Context(), inbox.Query{}, func(_ context.Context, d *inbox.Delivery) error {
		stored[numberOf(d.Event)] = true
		return nil
	}))
	lost := 0
	for n := range acknowledged {
		if !stored[n] {
			lost++
		}
	}
	t.Logf("acknowledged %d, %d of them when the primary was killed and %d when refusals began; refused %d; lost %d",
		len(acknowledged), atKill, betweenKills, refused, lost)
	assert.Zero(t, lost)
	assert.Equal(t, standby.Host(), s.host(t), "the events are on the standby")
}

// host returns the socket of the server that a new connection of the pool would use.
func (s store) host(t *testing.T) string {
	db, err := sql.Open("pgx", s.name+" target_session_attrs=read-write")
	require.NoError(t, err)
	defer db.Close()
	var host string
	require.NoError(t, db.QueryRow("SHOW unix_socket_directories").Scan(&host))
	return host
}

func signalOnce(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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
	db, err := sql.Open("pgx", primary.DSN("postgres"))
	require.NoError(t, err)
	defer db.Close()
	cancelled := 0
	eventually(t, "the append ends", func() bool {
		select {
		case err = <-result:
			return true
		default:
		}
		var n int
		assert.NoError(t, db.QueryRow("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n))
		cancelled += n
		return false
	})
	assert.Positive(t, cancelled)
	assert.ErrorIs(t, err, inbox.ErrUnavailable)
}
