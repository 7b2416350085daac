package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

const mostRuns = 5 // of an effect in one Commit

// poison is an effect that always fails, and what it needs.
type poison struct {
	kind   string // of the store, or "" for every kind
	setup  func(t *testing.T, s store) (other *sql.DB)
	effect func(ctx context.Context, tx *sql.Tx, other *sql.DB) error
	lease  time.Duration // 0 for the default
	once   bool          // each attempt runs it once
}

func execute(text string) func(context.Context, *sql.Tx, *sql.DB) error {
	return func(ctx context.Context, tx *sql.Tx, _ *sql.DB) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}
}

func elsewhere(text string) func(context.Context, *sql.Tx, *sql.DB) error {
	return func(ctx context.Context, _ *sql.Tx, other *sql.DB) error {
		_, err := other.ExecContext(ctx, text)
		return err
	}
}

// raising returns a setup with a trigger that raises an error for each row of visits.
func raising(code, when string) func(*testing.T, store) *sql.DB {
	return func(t *testing.T, s store) *sql.DB {
		s.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused'' USING ERRCODE = ''`+code+`''; END'`)
		s.exec(t, `CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON visits `+when+` FOR EACH ROW EXECUTE FUNCTION refuse()`)
		return nil
	}
}

// raisingElsewhere returns a setup with another database, whose function refuse raises an error.
func raisingElsewhere(code string) func(*testing.T, store) *sql.DB {
	return func(t *testing.T, _ store) *sql.DB {
		other := newStore(t, "postgres")
		other.exec(t, `CREATE FUNCTION refuse() RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused'' USING ERRCODE = ''`+code+`''; END'`)
		return other.sql(t)
	}
}

// cutOff returns an effect with a context that ends after 100 ms, and that hides its error.
func cutOff(f func(short context.Context, tx *sql.Tx) error) func(context.Context, *sql.Tx, *sql.DB) error {
	return func(ctx context.Context, tx *sql.Tx, _ *sql.DB) error {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return fmt.Errorf("hidden: %v", f(short, tx)) //nolint:errorlint // the connection reports it
	}
}

func readAll(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

const insertVisit = "INSERT INTO visits (number) VALUES (-1)"

var poisons = map[string]poison{
	"its statement timeout": {kind: "postgres", effect: func(ctx context.Context, tx *sql.Tx, _ *sql.DB) error {
		_, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = '20ms'")
		if err == nil {
			_, err = tx.ExecContext(ctx, "SELECT pg_sleep(10)")
		}
		return err
	}},
	"a row that another transaction has locked": {
		kind: "postgres",
		setup: func(t *testing.T, s store) *sql.DB {
			s.exec(t, insertVisit)
			s.hold(t, "SELECT number FROM visits FOR UPDATE")
			return nil
		},
		effect: execute("SELECT number FROM visits FOR UPDATE NOWAIT"),
	},
	"a trigger's serialization failure": {kind: "postgres", setup: raising("40001", ""), effect: execute(insertVisit)},
	"one at the commit":                 {kind: "postgres", setup: raising("40P01", "DEFERRABLE INITIALLY DEFERRED"), effect: execute(insertVisit)},
	"a lost connection of a trigger":    {kind: "postgres", setup: raising("08006", ""), effect: execute(insertVisit)},
	"one of a trigger at the commit":    {kind: "postgres", setup: raising("08006", "DEFERRABLE INITIALLY DEFERRED"), effect: execute(insertVisit)},
	"another database that is read-only": {
		kind: "postgres",
		setup: func(t *testing.T, _ store) *sql.DB {
			other := newStore(t, "postgres").sql(t)
			other.SetMaxOpenConns(1)
			_, err := other.Exec("SET default_transaction_read_only = on")
			require.NoError(t, err)
			return other
		},
		effect: elsewhere("CREATE TABLE t ()"), once: true,
	},
	"another database's serialization failure": {setup: raisingElsewhere("40001"), effect: elsewhere("SELECT refuse()"), once: true},
	"another database that shuts down":         {setup: raisingElsewhere("57P01"), effect: elsewhere("SELECT refuse()"), once: true},
	"another file that is busy": {
		setup: func(t *testing.T, _ store) *sql.DB {
			file := newStore(t, "sqlite")
			file.exec(t, "CREATE TABLE t (n INTEGER)")
			holder, err := file.sql(t).Begin() // immediate
			require.NoError(t, err)
			t.Cleanup(func() { _ = holder.Rollback() })
			other, err := sql.Open("sqlite", "file:"+file.name) // waits for no lock
			require.NoError(t, err)
			t.Cleanup(func() { other.Close() })
			return other
		},
		effect: elsewhere("INSERT INTO t VALUES (1)"), once: true,
	},
	"the end of another claim": {effect: func(context.Context, *sql.Tx, *sql.DB) error { return inbox.ErrFenced }, once: true},
	// pgx closes a connection whose statement is cut off by its context.
	"the end of a context of its own": {kind: "postgres", effect: cutOff(func(short context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(short, "SELECT pg_sleep(10)")
		return err
	})},
	"the end of such a context, ignored": {kind: "postgres", effect: func(ctx context.Context, tx *sql.Tx, _ *sql.DB) error {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, _ = tx.ExecContext(short, "SELECT pg_sleep(10)")
		return nil
	}},
	"the end of such a context while it reads": {kind: "postgres", effect: cutOff(func(short context.Context, tx *sql.Tx) error {
		return readAll(tx.QueryContext(short, "SELECT pg_sleep(0.02) FROM generate_series(1, 1000)"))
	})},
	"a prepared statement that is cut off": {kind: "postgres", effect: cutOff(func(short context.Context, tx *sql.Tx) error {
		prepared, err := tx.PrepareContext(context.WithoutCancel(short), "SELECT pg_sleep(10)")
		if err != nil {
			return err
		}
		_, err = prepared.ExecContext(short)
		return err
	})},
	"a wait that is longer than the lease": {
		kind: "postgres", lease: 300 * time.Millisecond, once: true, // the lease of the first run has ended
		effect: func(ctx context.Context, tx *sql.Tx, _ *sql.DB) error {
			pauseFor(ctx, 500*time.Millisecond) // the server ends the transaction
			_, err := tx.ExecContext(ctx, insertVisit)
			return err
		},
	},
}

// An effect that always fails is repeated a few times at most. Then it is an attempt that failed,
// and the event dies like any other. The inbox's connections stay open.
func TestEffectThatAlwaysFailsDies(t *testing.T) {
	for name, p := range poisons {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"sqlite", "postgres"} {
				if p.kind == "" || p.kind == kind {
					t.Run(kind, func(t *testing.T) { p.handle(t, newStore(t, kind)) })
				}
			}
		})
	}
}

func (p poison) handle(t *testing.T, s store) {
	const attempts = 2
	log, option := newLog()
	in := s.open(t, option)
	s.createVisits(t)
	var other *sql.DB
	if p.setup != nil {
		other = p.setup(t, s)
	}
	appendEvents(t, in, "session", 0, 2)
	var runs, second atomic.Int64
	lease := p.lease
	if lease == 0 {
		lease = 30 * time.Second
	}
	background(t, in, func(ctx context.Context, d *inbox.Delivery) error {
		return d.Commit(ctx, func(tx *sql.Tx) error {
			if numberOf(d.Event) == 1 {
				second.Add(1)
				return nil
			}
			runs.Add(1)
			return p.effect(ctx, tx, other)
		})
	}, inbox.MaxAttempts(attempts), inbox.Backoff(at(0)), inbox.Lease(lease))
	listener := func() int64 {
		return s.int(t, "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
	}
	var before int64
	if s.kind == "postgres" {
		eventually(t, "the inbox listens", func() bool { before = listener(); return before != 0 })
	}
	assert.Eventually(t, pendingIsZero(in), 6*time.Second, 10*time.Millisecond, "the event is dead, the next one is handled")
	t.Logf("%d runs in %d attempts", runs.Load(), attempts)
	want := attempts * mostRuns
	if p.once {
		want = attempts
	}
	assert.EqualValues(t, want, runs.Load())
	assert.EqualValues(t, 1, second.Load())
	assert.Equal(t, attempts, log.count("an attempt ended with an error"), log.String())
	if s.kind == "postgres" {
		assert.Equal(t, before, listener(), "no connection of the inbox was closed")
	}
	dead := deadEvents(t, in)
	if assert.Len(t, dead, 1) {
		assert.Equal(t, attempts, dead[0].Attempts)
	}
}

// oneAttempt handles an event whose effect fails a number of times, and asserts that this was one
// attempt.
func oneAttempt(t *testing.T, s store, failures int64, effect func(ctx context.Context, tx *sql.Tx) error) (runs int64) {
	in := s.open(t)
	s.createVisits(t)
	appendEvents(t, in, "session", 0, 1)
	var run, attempt atomic.Int64
	background(t, in, func(ctx context.Context, d *inbox.Delivery) error {
		attempt.Store(int64(d.Attempt))
		return d.Commit(ctx, func(tx *sql.Tx) error {
			if run.Add(1) <= failures {
				return effect(ctx, tx)
			}
			_, err := tx.ExecContext(ctx, insertVisit)
			return err
		})
	}, inbox.MaxAttempts(1))
	eventually(t, "handled", pendingIsZero(in))
	assert.EqualValues(t, 1, attempt.Load())
	assert.EqualValues(t, 1, s.int(t, "SELECT count(*) FROM visits"))
	assert.Empty(t, deadEvents(t, in))
	return run.Load()
}

// A connection that dies during an effect is the inbox's: the effect runs again, however often, and
// the attempt is not counted.
func TestLostConnectionOfAnEffectIsNoAttempt(t *testing.T) {
	const deaths = 3 * mostRuns
	for name, effect := range map[string]func(ctx context.Context, tx *sql.Tx) error{
		"in a statement": func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
		"in a statement with a context": func(ctx context.Context, tx *sql.Tx) error {
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_ = readAll(tx.QueryContext(short, "SELECT n, CASE n WHEN 50000 THEN pg_terminate_backend(pg_backend_pid()) END FROM generate_series(1, 100000) n"))
			return errTest
		},
		"before the commit": func(ctx context.Context, tx *sql.Tx) error {
			_, _ = tx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.EqualValues(t, deaths+1, oneAttempt(t, newStore(t, "postgres"), deaths, effect))
		})
	}
}

// The server is away for longer than a statement waits, but not for a lease.
func TestServerThatIsAwayDuringAnEffectIsNoAttempt(t *testing.T) {
	server, started := pgtest.ForTest(t), make(chan error, 1)
	oneAttempt(t, store{"postgres", server.DSN("postgres")}, 1, func(ctx context.Context, tx *sql.Tx) error {
		server.Kill()
		go func() {
			pauseFor(t.Context(), 7*time.Second)
			started <- server.Start()
		}()
		_, err := tx.ExecContext(ctx, insertVisit)
		return err
	})
	require.NoError(t, <-started)
}
