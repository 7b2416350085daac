package inbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// reads has the numbers of rows and pages that statements have read.
type reads struct{ entries, pages float64 }

func (r reads) since(before reads, events int) reads {
	return reads{(r.entries - before.entries) / float64(events), (r.pages - before.pages) / float64(events)}
}

func (r reads) String() string { return fmt.Sprintf("%.1f entries and %.1f pages", r.entries, r.pages) }

// reads returns the index entries, table rows and pages read so far. Connections report their
// statistics when they are closed, so reads waits until those of use are closed.
func (s store) reads(tb testing.TB) (r reads) {
	tb.Helper()
	eventually(tb, "all have disconnected", func() bool {
		return s.int(tb, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'measured'") == 0
	})
	require.NoError(tb, s.sql(tb).QueryRow(`SELECT
		(SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes) + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables),
		(SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0)) FROM pg_statio_user_tables)`).Scan(&r.entries, &r.pages))
	return r
}

// use opens an inbox, calls f and closes the inbox.
func (s store) use(tb testing.TB, f func(in *inbox.Inbox)) {
	tb.Helper()
	in := store{s.kind, s.name + " application_name=measured"}.openUnclosed(tb)
	f(in)
	require.NoError(tb, in.Close(context.Background()))
}

func TestFrozenWorkerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	const publishers, sessions = 64, 20
	freezes := scale(t, 6, 200)
	s, in := newInbox(t, "postgres")
	s.createVisits(t)
	log := logFile(t)
	ctx, cancel := context.WithCancel(context.Background())
	var next, accepted, refused atomic.Int64
	var frozen atomic.Bool
	var publishing sync.WaitGroup
	for range publishers {
		publishing.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1))
				during := frozen.Load()
				_, err := in.Append(context.Background(), newEvent(t, "head", fmt.Sprint("session", rand.N(sessions)), n))
				if during || frozen.Load() {
					if err == nil {
						accepted.Add(1)
					} else {
						refused.Add(1)
					}
				}
			}
		})
	}
	w := start(t, role{Role: "worker", Kind: s.kind, Name: s.name, Log: log, Lease: 2 * time.Second})
	w.line(t)
	defer func() { cancel(); publishing.Wait() }()
	worst := 1.0
	for range freezes {
		pauseFor(ctx, 300*time.Millisecond+rand.N(300*time.Millisecond))
		a, r := accepted.Load(), refused.Load()
		w.signal(t, pgtest.Stop)
		frozen.Store(true)
		pauseFor(ctx, 2500*time.Millisecond)
		frozen.Store(false)
		assert.Zero(t, s.int(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND state = 'idle in transaction' AND now() - state_change > interval '2.3 s'`), "a transaction outlives its time")
		w.signal(t, pgtest.Continue)
		a, r = accepted.Load()-a, refused.Load()-r
		worst = min(worst, float64(a)/float64(a+r))
	}
	share := float64(accepted.Load()) / float64(accepted.Load()+refused.Load())
	t.Logf("%d freezes: %.2f %% of the appends accepted, %.2f %% in the worst", freezes, 100*share, 100*worst)
	assert.GreaterOrEqual(t, share, 0.9)
}

// Stopping a process at a random moment rarely hits it between two statements of a transaction, so
// the test opens such a transaction itself.
func TestLockedSessionsDoNotTakeTheDatabaseForAway(t *testing.T) {
	const sessions = 20
	s, in := newInbox(t, "postgres")
	for n := range sessions {
		appendEvents(t, in, fmt.Sprint("session", n), n, n+1)
	}
	handleAll(t, in, nothing)
	holder := s.hold(t, "SELECT 1")
	for n := range 16 {
		_, err := holder.Exec("INSERT INTO heads_inbox_sessions (session, fence, next_at) VALUES ($1, 0, 0)", sessionHash(t, "head", fmt.Sprint("session", n)))
		require.NoError(t, err)
	}
	var appending sync.WaitGroup
	for i := range 64 {
		appending.Go(func() {
			n := i % sessions
			_, err := in.Append(context.Background(), newEvent(t, "head", fmt.Sprint("session", n), 1000+i))
			if n < 16 {
				assert.ErrorIs(t, err, inbox.ErrUnavailable)
			} else {
				assert.NoError(t, err)
			}
		})
	}
	appending.Wait()
	_, err := in.Append(t.Context(), newEvent(t, "head", "another", 5000))
	assert.NoError(t, err, "the database is not taken for away")
}

func sessionHash(tb testing.TB, head, session string) []byte {
	tb.Helper()
	r := need(inbox.NewRecord(newEvent(tb, head, session, 0)))(tb)
	return r.Session
}

// Handling the last events of a long backlog reads as many rows as handling the first.
func TestBacklogOfOneSessionIsFlat(t *testing.T) {
	events := scale(t, 3600, 40000)
	part := events / 6
	s := newStore(t, "postgres")
	s.use(t, func(*inbox.Inbox) {})
	s.fill(t, events, func(int) filled { return filled{session: "session", received: time.Now()} })
	// Make the planner assume an empty table, as after a vacuum when nothing was waiting.
	s.exec(t, `UPDATE pg_class SET reltuples = 0, relpages = 0 WHERE relname LIKE 'heads_inbox_%' AND relkind = 'r'`)
	s.exec(t, `ALTER TABLE heads_inbox_events SET (autovacuum_enabled = off)`)
	handle := func(n int) (r reads, rate float64) {
		before := s.reads(t)
		var took time.Duration
		s.use(t, func(in *inbox.Inbox) {
			begun, count := time.Now(), 0
			ctx, cancel := context.WithCancel(t.Context())
			assert.NoError(t, in.Run(ctx, func(context.Context, *inbox.Delivery) error {
				if count++; count == n {
					cancel()
				}
				return nil
			}))
			took = time.Since(begun)
		})
		return s.reads(t).since(before, n), float64(n) / took.Seconds()
	}
	first, firstRate := handle(part)
	handle(events - 2*part)
	last, lastRate := handle(part)
	t.Logf("%d events: %v an event and %.0f/s in the first sixth, %v and %.0f/s in the last", events, first, firstRate, last, lastRate)
	assert.LessOrEqual(t, last.entries, 1.25*first.entries+2)
	assert.LessOrEqual(t, last.pages, 1.25*first.pages+2)
}

// A session that appends keep locked for seconds is not skipped, and a session whose append commits
// late is found.
func TestSessionsThatBecomeVisibleLateAreFound(t *testing.T) {
	t.Parallel()
	// took runs workers while other events are handled, and measures the time from the end of tx to
	// the event of the session.
	took := func(t *testing.T, in *inbox.Inbox, session string, others int, end func() error) time.Duration {
		handled := make(chan time.Time, 100)
		background(t, in, func(_ context.Context, d *inbox.Delivery) error {
			if d.Event.SessionID == session {
				handled <- time.Now()
			}
			return nil
		})
		for n := range others {
			appendEvents(t, in, fmt.Sprint("other", n), 10+n, 11+n)
			pauseFor(t.Context(), 100*time.Millisecond)
		}
		require.Empty(t, handled)
		ended := time.Now()
		require.NoError(t, end())
		took := await(t, handled, "the event").Sub(ended)
		t.Logf("handled %v after the end of the transaction", took)
		return took
	}
	t.Run("locked for 5 s", func(t *testing.T) {
		s, in := newInbox(t, "postgres")
		appendEvents(t, in, "locked", 0, 1)
		holder := s.hold(t, "SELECT session FROM heads_inbox_sessions FOR UPDATE")
		assert.Less(t, took(t, in, "locked", 50, holder.Rollback), time.Second)
	})
	t.Run("a commit that takes 3 s", func(t *testing.T) {
		s, in := newInbox(t, "postgres")
		r, err := inbox.NewRecord(newEvent(t, "head", "late", 1))
		require.NoError(t, err)
		const now = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
		tx := s.hold(t, "INSERT INTO heads_inbox_sessions (session, fence, next_at) VALUES ($1, 0, "+now+")", r.Session)
		_, err = tx.Exec(`INSERT INTO heads_inbox_events (key, session, head_id, session_id, type, body, checksum, received)
			VALUES ($1, $2, $3, $4, $5, $6, $7, `+now+")", r.Key, r.Session, r.HeadID, r.SessionID, r.Type, r.Body, r.Checksum)
		require.NoError(t, err)
		assert.Less(t, took(t, in, "late", 30, tx.Commit), 31*time.Second)
	})
}

// An open transaction keeps all dead entries of the indexes. Handling must read few of them.
func TestOpenTransactionDoesNotSlowHandlingDown(t *testing.T) {
	events := scale(t, 2500, 7000)
	s := newStore(t, "postgres")
	s.use(t, func(*inbox.Inbox) {})
	s.hold(t, "SELECT count(*) FROM heads_inbox_events")
	from := 0
	publish := func(n int) reads {
		before := s.reads(t)
		s.use(t, func(in *inbox.Inbox) {
			s.use(t, func(second *inbox.Inbox) {
				var handled atomic.Int64
				count := func(context.Context, *inbox.Delivery) error { handled.Add(1); return nil }
				stopFirst, stopSecond := background(t, in, count), background(t, second, count)
				ticker := time.NewTicker(time.Second / 300)
				defer ticker.Stop()
				for range n {
					<-ticker.C
					appendEvents(t, in, fmt.Sprint("session", from/4), from, from+1)
					from++
				}
				eventually(t, "handled", func() bool { return handled.Load() >= int64(n) })
				stopFirst()
				stopSecond()
			})
		})
		return s.reads(t).since(before, n)
	}
	first := publish(300)
	publish(events)
	last := publish(600)
	t.Logf("an event reads %v at first, %v after %d events beside an open transaction", first, last, events)
	assert.LessOrEqual(t, last.entries, 400.0)
}

func TestAppendsUpdateNoRow(t *testing.T) {
	s := newStore(t, "postgres")
	updates := func() int64 {
		s.reads(t) // waits for the statistics
		return s.int(t, "SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname IN ('heads_inbox_sessions', 'heads_inbox_events')")
	}
	s.use(t, func(in *inbox.Inbox) { appendEvents(t, in, "session", 0, 1) })
	before := updates()
	s.use(t, func(in *inbox.Inbox) {
		appendEvents(t, in, "session", 1, 101)
		added := need(in.Append(t.Context(), newEvent(t, "head", "session", 5)))(t)
		require.False(t, added)
	})
	assert.Zero(t, updates()-before)
}
