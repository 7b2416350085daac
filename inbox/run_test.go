package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

func TestEventsOfASessionRunInTheirOrder(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		for n := range 100 {
			appendEvents(t, in, fmt.Sprint("session", n%7), n, n+1)
		}
		seen := map[string][]int{}
		all := handleAll(t, in, nothing)
		for _, d := range all {
			seen[d.Event.SessionID] = append(seen[d.Event.SessionID], numberOf(d.Event))
		}
		for session, numbers := range seen {
			assert.IsIncreasing(t, numbers, session)
		}
		assert.Len(t, all, 100)
		assert.Zero(t, s.int(t, "SELECT count(*) FROM heads_inbox_sessions"), "idle sessions leave no row")
	})
}

func TestCommitStoresEffectAndMarkTogether(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		s.createVisits(t)
		appendEvents(t, in, "one", 0, 20)
		attempts := handleAll(t, in, func(ctx context.Context, d *inbox.Delivery) error {
			return d.Commit(ctx, func(tx *sql.Tx) error {
				if err := s.visit(ctx, tx, d); err != nil {
					return err
				}
				if d.Attempt == 1 && numberOf(d.Event)%5 == 0 {
					return errTest // after the insert
				}
				return nil
			})
		}, inbox.Backoff(at(time.Millisecond)))
		assert.Len(t, attempts, 24)
		assert.EqualValues(t, 20, s.int(t, "SELECT count(*) FROM visits"))
		assert.EqualValues(t, 20, s.int(t, "SELECT count(DISTINCT number) FROM visits"))
	})
}

var errTest = errors.New("the function fails")

func TestFailedEventDiesAfterMaxAttemptsAndItsSessionGoesOn(t *testing.T) {
	forEachInbox(t, func(t *testing.T, _ store, in *inbox.Inbox) {
		const attempts = 4
		appendEvents(t, in, "session", 0, 2)
		var seen []string
		for _, d := range handleAll(t, in, func(_ context.Context, d *inbox.Delivery) error {
			if numberOf(d.Event) == 0 {
				return fmt.Errorf("a session id is %s: %w", d.Event.SessionID, errTest)
			}
			return nil
		}, inbox.MaxAttempts(attempts), inbox.Backoff(at(time.Millisecond))) {
			seen = append(seen, fmt.Sprintf("%d/%d", numberOf(d.Event), d.Attempt))
		}
		assert.Equal(t, []string{"0/1", "0/2", "0/3", "0/4", "1/1"}, seen)
		dead := deadEvents(t, in)
		require.Len(t, dead, 1)
		assert.Equal(t, attempts, dead[0].Attempts)
		assert.Equal(t, "*fmt.wrapError", dead[0].Error, "its type only")
		assert.WithinDuration(t, time.Now(), dead[0].Died, time.Minute)
		redriveOnce(t, in, dead[0].Sequence)
	})
}

func TestPermanentAndRetryAfter(t *testing.T) {
	assert.NoError(t, inbox.Permanent(nil))
	assert.NoError(t, inbox.RetryAfter(time.Hour, nil))
	assert.ErrorIs(t, inbox.Permanent(inbox.RetryAfter(0, errTest)), errTest)
	forEachInbox(t, func(t *testing.T, _ store, in *inbox.Inbox) {
		appendEvents(t, in, "one", 0, 1)
		appendEvents(t, in, "two", 1, 2)
		handleAll(t, in, func(_ context.Context, d *inbox.Delivery) error {
			if d.Attempt == 3 {
				return fmt.Errorf("wrapped: %w", inbox.Permanent(errTest))
			}
			return fmt.Errorf("wrapped: %w", inbox.RetryAfter(time.Millisecond, errTest))
		}, inbox.Backoff(at(time.Hour)))
		dead := deadEvents(t, in)
		require.Len(t, dead, 2)
		for _, d := range dead {
			assert.Equal(t, 3, d.Attempts)
			assert.Equal(t, "wrapped: the function fails", d.Error)
		}
	}, inbox.WithErrorText())
}

func TestPanicAndGoexitAreFailures(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	appendEvents(t, in, "session", 0, 1)
	handleAll(t, in, func(_ context.Context, d *inbox.Delivery) error {
		switch d.Attempt {
		case 1:
			panic("a function panics")
		case 2:
			runtime.Goexit()
		}
		return nil
	}, inbox.Backoff(at(0)), inbox.Concurrency(1))
}

func TestCommitIsRefusedOutsideOfItsTime(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		appendEvents(t, in, "session", 0, 1)
		nothing := func(*sql.Tx) error { return nil }
		seen := handleAll(t, in, func(ctx context.Context, d *inbox.Delivery) error {
			assert.NoError(t, d.Commit(ctx, nothing))
			assert.ErrorContains(t, d.Commit(ctx, nothing), "call Commit once")
			return errTest // has no effect after Commit
		}, inbox.Backoff(at(0)))
		require.Len(t, seen, 1)
		assert.Error(t, seen[0].Commit(t.Context(), nothing), "after the return")
		assert.Empty(t, deadEvents(t, in))
		again := 0
		require.NoError(t, in.Replay(t.Context(), inbox.Query{}, func(ctx context.Context, d *inbox.Delivery) error {
			again++
			assert.ErrorContains(t, d.Commit(ctx, nothing), "inside the function passed to Run")
			return nil
		}))
		assert.Equal(t, 1, again)
	})
}

func TestEffectMustNotEndItsTransaction(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	appendEvents(t, in, "session", 0, 1)
	attempts := handleAll(t, in, func(ctx context.Context, d *inbox.Delivery) error {
		if d.Attempt > 1 {
			return nil
		}
		err := d.Commit(ctx, func(tx *sql.Tx) error {
			_, err := tx.Exec("ROLLBACK")
			return err
		})
		assert.ErrorContains(t, err, "ended inside the effect")
		return err
	}, inbox.Backoff(at(0)))
	assert.Len(t, attempts, 2)
}

func TestFailingSessionsDelayNoOther(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		round := 0
		median := func(failing int) time.Duration {
			round++
			const sessions, each = 150, 3
			var mu sync.Mutex
			var took []time.Duration
			sent, bad, base := map[int]time.Time{}, map[int]bool{}, round*10000
			stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error {
				mu.Lock()
				defer mu.Unlock()
				n := numberOf(d.Event)
				if bad[n] {
					return errTest
				}
				if when, ok := sent[n]; ok { // sent in this round
					took = append(took, time.Since(when))
				}
				return nil
			}, inbox.Backoff(at(50*time.Millisecond)), inbox.MaxAttempts(1000))
			for i := range sessions * each {
				n := base + i
				mu.Lock()
				sent[n], bad[n] = time.Now(), i%sessions < failing
				mu.Unlock()
				appendEvents(t, in, fmt.Sprint(round, "/", i%sessions), n, n+1)
			}
			eventually(t, "the others are handled", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(took) == (sessions-failing)*each
			})
			stop()
			slices.Sort(took)
			return took[len(took)/2]
		}
		// On a busy machine, one of the rounds may fail, but not all.
		for range 5 {
			without, with := median(0), median(10)
			t.Logf("%s: p50 without failing sessions %v, with ten %v", s.kind, without, with)
			if with <= without*3/2 {
				return
			}
		}
		assert.Fail(t, "failing sessions delay the others in every round")
	})
}

func TestNextSessionWaitsNoLongerThanTurns(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		var appending sync.WaitGroup
		for part := range 3 { // 1,200 events of one session, in parallel since one at a time is slow
			appending.Go(func() { appendEvents(t, in, "long", part*400, part*400+400) })
		}
		appending.Wait()
		appendEvents(t, in, "short", 1200, 1201)
		waited, count := make(chan int, 1), 0
		running := int32(0)
		stop := background(t, in, func(_ context.Context, d *inbox.Delivery) error {
			assert.Zero(t, atomic.AddInt32(&running, 1)-1, "one at a time")
			defer atomic.AddInt32(&running, -1)
			if d.Event.SessionID == "short" {
				waited <- count
			}
			count++
			return nil
		}, inbox.Concurrency(1))
		n := await(t, waited, "the short session")
		stop()
		t.Logf("%s: the next session waited for %d events", s.kind, n)
		assert.LessOrEqual(t, n, 600)
	})
}

// A function that continues after Commit keeps its session.
func TestSessionIsReleasedOnlyWhenTheFunctionHasReturned(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		appendEvents(t, in, "session", 0, 5)
		var running atomic.Int32
		background(t, in, func(ctx context.Context, d *inbox.Delivery) error {
			assert.EqualValues(t, 1, running.Add(1))
			defer running.Add(-1)
			err := d.Commit(ctx, func(*sql.Tx) error { return nil })
			pauseFor(ctx, 50*time.Millisecond)
			return err
		})
		background(t, in, func(context.Context, *inbox.Delivery) error {
			assert.EqualValues(t, 1, running.Add(1))
			defer running.Add(-1)
			return nil
		})
		eventually(t, "handled", pendingIsZero(in))
	})
}

func TestOrderIsThatOfTheCommits(t *testing.T) {
	s := newStore(t, "postgres")
	first, second := s.open(t), s.open(t)
	// Inserts take between 0 and 30 ms: if a sequence were assigned before the session is locked,
	// another event could be stored first.
	s.exec(t, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(random() * 0.03); RETURN NEW; END'`)
	s.exec(t, `CREATE TRIGGER slow AFTER INSERT ON heads_inbox_events FOR EACH ROW EXECUTE FUNCTION slow()`)
	var mu sync.Mutex
	var seen = map[string][]int64{}
	stop := background(t, first, func(_ context.Context, d *inbox.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		seen[d.Event.SessionID] = append(seen[d.Event.SessionID], d.Sequence)
		return nil
	})
	const events, sessions = 480, 8
	var appending sync.WaitGroup
	for i := range 16 {
		appending.Go(func() {
			in := []*inbox.Inbox{first, second}[i%2]
			for n := i; n < events; n += 16 {
				_, err := in.Append(context.Background(), newEvent(t, "head", fmt.Sprint("session", n/16%sessions), n))
				assert.NoError(t, err)
			}
		})
	}
	appending.Wait()
	eventually(t, "nothing is stranded", pendingIsZero(first))
	stop()
	total := 0
	for session, sequences := range seen {
		total += len(sequences)
		assert.IsIncreasing(t, sequences, session)
	}
	assert.Equal(t, events, total)
}

// The worker has handled the session's last event and releases the session while an append has
// written but not committed.
func TestAppendUnderWayWhileItsSessionIsReleasedIsNotStranded(t *testing.T) {
	s, in := newInbox(t, "postgres")
	s.exec(t, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'`)
	handled, release := make(chan int, 10), make(chan struct{})
	background(t, in, func(_ context.Context, d *inbox.Delivery) error {
		handled <- numberOf(d.Event)
		<-release
		return nil
	}, inbox.Lease(20*time.Second))
	appendEvents(t, in, "session", 0, 1)
	require.Zero(t, await(t, handled, "the first event"))

	holder := s.hold(t, "SELECT pg_advisory_xact_lock(1)")
	s.exec(t, `CREATE TRIGGER hold AFTER INSERT ON heads_inbox_events FOR EACH ROW EXECUTE FUNCTION hold()`)
	second, appended := newEvent(t, "head", "session", 1), make(chan error, 1)
	go func() { appended <- appendUntilStored(t.Context(), in, second) }() // the steps below may take longer than an append
	waits := func(event string) func() bool {
		return func() bool {
			return s.int(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = $1", event) > 0
		}
	}
	eventually(t, "the append is under way", waits("advisory"))
	close(release)
	eventually(t, "the worker waits for the session", waits("transactionid"))
	require.NoError(t, holder.Rollback())
	require.NoError(t, await(t, appended, "the append"))
	select {
	case n := <-handled:
		assert.Equal(t, 1, n)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "the event is stranded")
	}
}

func TestClaimsOutliveFunctionsThatUseUpThePool(t *testing.T) {
	s := newStore(t, "postgres")
	pool := newPool(t, s.name, 4)
	in := openPool(t, pool)
	for n := range 4 {
		appendEvents(t, in, fmt.Sprint("session", n), n, n+1)
	}
	var calls atomic.Int32
	held, release := make(chan struct{}, 4), make(chan struct{})
	background(t, in, func(ctx context.Context, d *inbox.Delivery) error {
		calls.Add(1)
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		held <- struct{}{}
		<-release
		conn.Release()
		assert.NoError(t, ctx.Err())
		return nil
	}, inbox.Lease(600*time.Millisecond))
	for range 4 {
		await(t, held, "a connection")
	}
	appendEvents(t, in, "other", 4, 5) // appends have connections of their own
	pauseFor(t.Context(), 1500*time.Millisecond)
	assert.Zero(t, s.int(t, "SELECT count(*) FROM heads_inbox_sessions WHERE owner IS NOT NULL AND next_at < extract(epoch FROM now()) * 1000000"))
	close(release)
	eventually(t, "handled", pendingIsZero(in))
	assert.EqualValues(t, 5, calls.Load(), "no claim was lost")
}

func TestFunctionsSeeTheEndOfTheirClaim(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		kinds := make(chan inbox.ObservationKind, 100)
		in := s.open(t, inbox.WithObserver(func(_ context.Context, o inbox.Observation) { kinds <- o.Kind }))
		appendEvents(t, in, "session", 0, 1)
		causes := make(chan error, 1)
		stop := background(t, in, func(ctx context.Context, d *inbox.Delivery) error {
			if d.Attempt > 1 {
				return nil
			}
			// Act as another worker that has taken the session over.
			s.exec(t, "UPDATE heads_inbox_sessions SET fence = fence + 1000")
			s.exec(t, "UPDATE heads_inbox_events SET fence = fence + 1000")
			<-ctx.Done()
			causes <- context.Cause(ctx)
			assert.ErrorIs(t, d.Commit(context.Background(), func(*sql.Tx) error { t.Error("a stale effect runs"); return nil }), inbox.ErrFenced)
			return ctx.Err()
		}, inbox.Lease(600*time.Millisecond), inbox.Backoff(at(0)))
		assert.ErrorIs(t, await(t, causes, "the end of the claim"), inbox.ErrFenced)
		eventually(t, "handled by the next", pendingIsZero(in))
		stop()
		close(kinds)
		seen := map[inbox.ObservationKind]int{}
		for k := range kinds {
			seen[k]++
		}
		assert.Equal(t, 1, seen[inbox.KindFenced])
		assert.Equal(t, 1, seen[inbox.KindTakenOver])
		assert.Equal(t, 2, seen[inbox.KindStarted])
	})
}

func TestDrainLetsFunctionsFinishAndCountsNoneThatItCutsOff(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		appendEvents(t, in, "quick", 0, 2)
		appendEvents(t, in, "slow", 2, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var begun sync.WaitGroup
		begun.Add(2)
		cut := make(chan error, 1)
		go func() { begun.Wait(); cancel() }()
		started := time.Now()
		require.NoError(t, in.Run(ctx, func(fctx context.Context, d *inbox.Delivery) error {
			begun.Done()
			if d.Event.SessionID == "slow" {
				<-fctx.Done()
				cut <- context.Cause(fctx)
				return fctx.Err()
			}
			<-ctx.Done()
			assert.NoError(t, fctx.Err(), "a running function is let finish")
			return nil
		}, inbox.DrainTimeout(300*time.Millisecond)))
		assert.Less(t, time.Since(started), 10*time.Second)
		assert.NotErrorIs(t, await(t, cut, "the slow function"), inbox.ErrFenced)
		status := statusOf(t, in)
		assert.EqualValues(t, 2, status.Pending, "one of the two quick ones, and the slow one")
		assert.Zero(t, status.Running)
		for _, d := range handleAll(t, in, nothing) {
			assert.Equal(t, 1, d.Attempt, "event %d", numberOf(d.Event))
		}
	})
}

func TestFunctionThatIgnoresTheDrainKeepsItsClaim(t *testing.T) {
	s, in := newInbox(t, "sqlite")
	appendEvents(t, in, "session", 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	require.NoError(t, in.Run(ctx, func(context.Context, *inbox.Delivery) error {
		cancel()
		<-release
		return nil
	}, inbox.DrainTimeout(0)))
	assert.EqualValues(t, 1, s.int(t, "SELECT count(*) FROM heads_inbox_sessions WHERE owner IS NOT NULL"))
}

func TestRunRefusesContradictions(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	for name, opt := range map[string]inbox.RunOption{
		"Concurrency": inbox.Concurrency(0), "MaxAttempts": inbox.MaxAttempts(0), "Backoff": inbox.Backoff(nil),
		"Lease": inbox.Lease(0), "DrainTimeout": inbox.DrainTimeout(-1), "option": nil,
	} {
		err := in.Run(t.Context(), nothing, opt)
		assert.ErrorIs(t, err, heads.ErrInvalid, name)
		assert.ErrorContains(t, err, name)
	}
	assert.ErrorIs(t, in.Run(t.Context(), nil), heads.ErrInvalid)
}
