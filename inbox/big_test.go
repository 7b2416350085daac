package inbox_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/console"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// bigTable fills a table with rows of the last 8 days. Rows of the first day are old enough to be
// pruned. Every seventh row is waiting, a few are dead.
func (s store) bigTable(tb testing.TB, rows int) (waiting, dead, prunable int64) {
	const days = 8
	begun := time.Now().Add(-days * 24 * time.Hour)
	step := days * 24 * time.Hour / time.Duration(rows)
	s.fill(tb, rows, func(i int) filled {
		f := filled{session: fmt.Sprint("session", i/3), state: engine.Handled, received: begun.Add(time.Duration(i) * step)}
		switch {
		case i%1000 == 500:
			f.state = engine.Dead
			dead++
		case i%7 == 3:
			f.state = engine.Waiting
			waiting++
		case i < rows/days:
			prunable++
		}
		return f
	})
	s.exec(tb, "ANALYZE heads_inbox_events")
	return waiting, dead, prunable
}

// best returns the shortest of several measurements, since other processes use the machine.
func best(f func()) (d time.Duration) {
	d = time.Hour
	for range 5 {
		begun := time.Now()
		f()
		d = min(d, time.Since(begun))
	}
	return d
}

func TestLargeTablesAreOpenedBesideTheWorkAndAnswerAtOnce(t *testing.T) {
	rows := scale(t, 100_000, 1_000_000)
	s := newOldStore(t)
	waiting, dead, prunable := s.bigTable(t, rows)

	// Two programs open the tables and build the indexes. The first also stores events.
	receiver := s.open(t)
	ctx, cancel := context.WithCancel(context.Background())
	var refused, stored atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := rows; ctx.Err() == nil; n++ {
			e, err := heads.ParseEvent(eventBody("another", fmt.Sprint("live", n%20), n))
			if err == nil {
				_, err = receiver.Append(context.Background(), e)
			}
			if err != nil {
				refused.Add(1)
			} else {
				stored.Add(1)
			}
			pauseFor(ctx, 5*time.Millisecond)
		}
	}()
	begun := time.Now()
	in := s.open(t)
	opened := time.Since(begun)
	s.awaitIndexes(t)
	built := time.Since(begun)
	cancel()
	<-ended
	t.Logf("%d rows, %d waiting: Open %v, indexes after %v, %d events stored meanwhile, %d refused", rows, waiting, opened.Round(time.Millisecond),
		built.Round(time.Millisecond), stored.Load(), refused.Load())
	assert.LessOrEqual(t, opened, 3*time.Second)
	assert.Zero(t, refused.Load())
	assert.Positive(t, stored.Load())

	limit := 50 * time.Millisecond
	if raceEnabled {
		limit *= 4 // the race detector is slow
	}
	status := statusOf(t, in)
	assert.Equal(t, waiting+stored.Load() > 10_000, status.Estimated)
	assert.InEpsilon(t, waiting+stored.Load(), status.Pending, 0.4)
	assert.Equal(t, dead, status.Dead)
	replay := func(q inbox.Query, want int) func() {
		return func() { assert.GreaterOrEqual(t, len(replayed(t, in, q)), want) }
	}
	someTime := time.Now().Add(-3 * 24 * time.Hour)
	took := map[string]time.Duration{
		"Status":       best(func() { _, err := in.Status(t.Context()); require.NoError(t, err) }),
		"a session":    best(replay(inbox.Query{HeadID: "head", SessionID: fmt.Sprint("session", rows/6)}, 3)),
		"ten minutes":  best(replay(inbox.Query{From: someTime, To: someTime.Add(10 * time.Minute)}, rows/2000)),
		"dead letters": best(func() { assert.NotEmpty(t, deadOf(t, in, inbox.Query{Limit: 100})) }),
	}
	page := need(console.New(in))(t)
	srv := httptest.NewServer(page)
	defer srv.Close()
	for _, query := range []string{
		"", "?view=waiting", "?view=waiting&head=nobody", "?view=retrying", "?view=dead", "?view=handled", "?view=handled&type=none", "?view=all",
		"?view=all&head=nobody&session=none", "?view=all&from=2020-01-01&to=2020-01-02", "?view=session&head=head&session=session7", "?view=event&sequence=77",
	} {
		took["page "+query] = best(func() {
			resp := need(http.Get(srv.URL + query))(t)
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
			assert.Equal(t, http.StatusOK, resp.StatusCode, query)
		})
	}
	for what, d := range took {
		t.Logf("%s: %v", what, d.Round(100*time.Microsecond))
		assert.LessOrEqual(t, d, limit, what)
	}

	begun = time.Now()
	n := need(in.Prune(t.Context()))(t)
	pruned := time.Since(begun)
	assert.InDelta(t, prunable, n, 100) // some reach the age while the test runs
	nothing := best(func() { _, err := in.Prune(t.Context()); require.NoError(t, err) })
	t.Logf("Prune of %d: %v, of nothing: %v", n, pruned.Round(time.Millisecond), nothing.Round(time.Millisecond))
	assert.LessOrEqual(t, pruned, 15*time.Second)
	assert.LessOrEqual(t, nothing, 4*limit)
}

// A program that is killed while it builds an index leaves an invalid index.
func TestInvalidIndexIsBuiltAgain(t *testing.T) {
	s := newOldStore(t)
	reader := s.hold(t, "SELECT count(*) FROM heads_inbox_events")
	s.use(t, func(in *inbox.Inbox) {
		appendEvents(t, in, "session", 0, 3) // events are still stored
		eventually(t, "the index is being built", func() bool {
			return s.int(t, "SELECT count(*) FROM pg_class WHERE relname = 'heads_inbox_events_oldest'") == 1
		})
		_ = statusOf(t, in)
	}) // Close ends the build
	assert.Zero(t, s.validIndexes(t))
	require.NoError(t, reader.Rollback())
	in := s.open(t)
	s.awaitIndexes(t)
	status := statusOf(t, in)
	assert.EqualValues(t, 3, status.Pending)
	assert.False(t, status.Estimated)
}

// A role with timeouts could never build the indexes of a large table.
func TestIndexesAreBuiltWithoutTimeouts(t *testing.T) {
	s := newOldStore(t)
	reader := s.hold(t, "SELECT count(*) FROM heads_inbox_events")
	for _, timeout := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		s.exec(t, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "+timeout+" = 300', current_database()); END $$")
	}
	log, option := newLog()
	s.open(t, option)
	eventually(t, "a build takes longer than the timeouts", func() bool {
		return s.int(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE INDEX%'
			AND state = 'active' AND query_start < clock_timestamp() - interval '1 second'`) == 1
	})
	require.NoError(t, reader.Rollback())
	s.awaitIndexes(t)
	assert.Zero(t, log.count("indexes were not built"), log.String())
}

func TestFailedBuildsOfIndexesAreLogged(t *testing.T) {
	s := newOldStore(t)
	role := fmt.Sprintf("stranger%d", databases.Add(1)) // it may use the tables, but does not own them
	s.exec(t, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() {
		s.exec(t, "DROP OWNED BY "+role)
		s.exec(t, "DROP ROLE "+role)
	})
	s.exec(t, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role)
	s.exec(t, "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "+role)
	log, option := newLog()
	store{"postgres", strings.Replace(s.name, "user=heads", "user="+role, 1)}.open(t, option)
	eventually(t, "each failure is logged", func() bool { return log.count("indexes were not built") == 2 })
	assert.Contains(t, log.String(), "must be owner of table")
}

func TestListPagesAndStates(t *testing.T) {
	forEachInbox(t, func(t *testing.T, _ store, in *inbox.Inbox) {
		appendEvents(t, in, "dead", 0, 3)
		appendEvents(t, in, "retrying", 3, 5)
		appendEvents(t, in, "handled", 5, 9)
		stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error {
			switch d.Event.SessionID {
			case "dead":
				return inbox.Permanent(errTest)
			case "retrying":
				return inbox.RetryAfter(time.Hour, errTest)
			}
			return nil
		})
		eventually(t, "handled, dead or retrying", statusIs(in, func(s inbox.Status) bool {
			return s.Dead == 3 && s.Retrying == 1 && s.Running == 0 && s.Sessions == 1
		}))
		stop()
		appendEvents(t, in, "waiting", 9, 12)
		deleted := need(in.DeleteDead(t.Context(), 2))(t)
		require.Equal(t, 1, deleted)
		list := func(q inbox.Query, state inbox.State) (sequences []int64) {
			for before := int64(0); ; {
				page, next, err := in.List(t.Context(), q, state, before)
				require.NoError(t, err)
				for _, e := range page {
					sequences = append(sequences, e.Sequence)
				}
				if next == 0 {
					return sequences
				}
				if before = next; len(sequences) > 100 {
					require.Fail(t, "no end")
				}
			}
		}
		for state, want := range map[inbox.State][]int64{
			"": {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, inbox.StateWaiting: {12, 11, 10, 5, 4}, inbox.StateRetrying: {4},
			inbox.StateHandled: {9, 8, 7, 6}, inbox.StateDead: {3, 1}, inbox.StateDeleted: {2},
		} {
			assert.Equal(t, want, list(inbox.Query{}, state), state)
			assert.Equal(t, want, list(inbox.Query{Limit: 2}, state), state)
		}
		assert.Equal(t, []int64{5, 4}, list(inbox.Query{HeadID: "head", SessionID: "retrying"}, ""))
		assert.Equal(t, []int64{4}, list(inbox.Query{HeadID: "head", SessionID: "retrying", Limit: 1}, inbox.StateRetrying))
		assert.Equal(t, []int64{5, 4}, list(inbox.Query{SessionID: "retrying"}, ""))
		assert.Empty(t, list(inbox.Query{To: time.Now().Add(-time.Hour)}, ""))
		assert.Len(t, list(inbox.Query{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}, ""), 12)
		for _, bad := range []struct {
			query  inbox.Query
			state  inbox.State
			before int64
		}{{state: "sleeping"}, {before: -1}, {query: inbox.Query{Limit: -1}}} {
			_, _, err := in.List(t.Context(), bad.query, bad.state, bad.before)
			assert.ErrorContains(t, err, "inbox.List")
		}

		e, event, err := in.Entry(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, inbox.StateDead, e.State)
		assert.Equal(t, errTest.Error(), e.Error)
		assert.Equal(t, 1, e.Attempts)
		assert.Zero(t, numberOf(event))
		assert.WithinDuration(t, time.Now(), e.Finished, time.Minute)
		e, event, err = in.Entry(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, inbox.StateDeleted, e.State)
		assert.Empty(t, event.Raw)
		assert.Equal(t, "dead", event.SessionID)
		_, _, err = in.Entry(t.Context(), 13)
		assert.ErrorIs(t, err, inbox.ErrNotFound)
		assert.NotErrorIs(t, err, inbox.ErrUnavailable)
	}, inbox.WithErrorText())
}

// List reads a limited number of rows, for every filter.
func TestListEndsEarlyAndSaysWhere(t *testing.T) {
	s, in := newInbox(t, "postgres")
	s.fill(t, 6000, func(i int) filled { return filled{session: fmt.Sprint(i), received: time.Now()} })
	for _, step := range []struct{ before, next int64 }{{0, 1001}, {1001, 0}} {
		page, next, err := in.List(t.Context(), inbox.Query{HeadID: "nobody"}, "", step.before)
		require.NoError(t, err)
		assert.Empty(t, page)
		assert.Equal(t, step.next, next)
	}
}

// awaitIndexes waits until both indexes that are built in the background are valid.
func (s store) awaitIndexes(tb testing.TB) {
	tb.Helper()
	eventuallyIn(tb, 3*time.Minute, "the indexes are built", func() bool { return s.validIndexes(tb) == 2 })
}

func (s store) validIndexes(tb testing.TB) int64 {
	tb.Helper()
	return s.int(tb, `SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE c.relname IN ('heads_inbox_events_oldest', 'heads_inbox_events_story') AND i.indisvalid`)
}

// newOldStore returns a database with tables of an older version, which have no such indexes.
func newOldStore(tb testing.TB) store {
	s := newStore(tb, "postgres")
	s.use(tb, func(*inbox.Inbox) {})
	s.exec(tb, "DROP INDEX heads_inbox_events_oldest")
	s.exec(tb, "DROP INDEX heads_inbox_events_story")
	return s
}
