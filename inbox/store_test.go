package inbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
	"github.com/headsapi/heads-go/inbox/postgres"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

func TestAppendRefusesWhatCouldNotBeReadBack(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	other := *newEvent(t, "head", "session", 1)
	bare, text := other, other
	other.SessionID = "another"
	bare.Raw = heads.Raw{}
	text.Raw = heads.NewRaw([]byte("text"))
	for name, bad := range map[string]*heads.Event{"nil": nil, "without Raw": &bare, "no JSON": &text, "another's Raw": &other} {
		_, err := in.Append(t.Context(), bad)
		assert.ErrorIs(t, err, heads.ErrInvalid, name)
		if bad == &bare {
			assert.ErrorContains(t, err, "verified")
		}
	}
}

func TestHandlerRefusesQueueAndDeduplicator(t *testing.T) {
	in := newStore(t, "sqlite").open(t)
	keys := heads.SharedKeys(sharedKey)
	_, err := in.Handler(keys, heads.WithDeduplicator(heads.NewMemoryDeduplicator(1)))
	assert.ErrorIs(t, err, inbox.ErrQueued)
	_, err = in.Handler(keys, heads.WithMaxAge(7*24*time.Hour, time.Minute))
	assert.ErrorContains(t, err, "WithRetention")
	_, err = in.Handler(keys, heads.WithMaxAge(6*24*time.Hour, time.Minute))
	assert.NoError(t, err)
	_, err = in.Handler(nil)
	assert.ErrorIs(t, err, heads.ErrInvalid)
}

func TestRedeliveryIsHandledOnce(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		outcomes := make(chan heads.DeliveryOutcome, 100)
		observe := heads.WithDeliveryObserver(heads.Observer[heads.DeliveryInfo]{End: func(_ context.Context, d heads.DeliveryInfo) { outcomes <- d.Outcome }})
		in := s.open(t)
		send := serve(t, in, observe)
		is := func(body []byte, status int, outcome heads.DeliveryOutcome, when string) {
			t.Helper()
			assert.Equal(t, status, send(body), when)
			assert.Equal(t, outcome, <-outcomes, when)
		}
		// Two registrations may deliver one event with different bodies, since the service may add
		// fields.
		one := eventBody("head", "session", 1)
		is(one, http.StatusOK, heads.DeliveryHandled, "first")
		is(bytes.Replace(one, []byte("{"), []byte(`{"registration":2,`), 1), http.StatusOK, heads.DeliveryDuplicate, "with another body")
		require.NoError(t, in.Close(t.Context()))
		in = s.open(t)
		send = serve(t, in, observe)
		is(one, http.StatusOK, heads.DeliveryDuplicate, "after a restart")

		assert.Len(t, handleAll(t, in, func(context.Context, *inbox.Delivery) error { return inbox.Permanent(errTest) }), 1)
		dead := deadEvents(t, in)
		require.Len(t, dead, 1)
		n := need(in.DeleteDead(t.Context(), dead[0].Sequence))(t)
		assert.Equal(t, 1, n)
		assert.Zero(t, s.int(t, "SELECT length(body) FROM heads_inbox_events"))
		assert.Empty(t, deadEvents(t, in))
		is(one, http.StatusOK, heads.DeliveryDuplicate, "after DeleteDead")

		// A week later, the row is removed and the event is too old.
		s.exec(t, "UPDATE heads_inbox_events SET received = received - 604900000000")
		pruned := need(in.Prune(t.Context()))(t)
		assert.EqualValues(t, 1, pruned)
		old := bytes.Replace(one, []byte(begin.Format("2006-01-02")), []byte(begin.AddDate(0, 0, -7).Format("2006-01-02")), 1)
		is(old, http.StatusBadRequest, heads.DeliveryStale, "after a week")
	})
}

func TestPruneKeepsWhatWaitsAndWhatIsDead(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		in := s.open(t, inbox.WithRetention(24*time.Hour+6*time.Minute))
		var appending sync.WaitGroup
		for part := range 12 {
			appending.Go(func() { appendEvents(t, in, fmt.Sprint("session", part), part*100, part*100+100) })
		}
		appending.Wait()
		s.exec(t, "UPDATE heads_inbox_events SET state = 1 WHERE sequence > 20") // handled
		s.exec(t, "UPDATE heads_inbox_events SET state = 2 WHERE sequence <= 10")
		s.exec(t, "UPDATE heads_inbox_events SET received = received - 90000000000 WHERE sequence <= 1100") // 25 hours
		n := need(in.Prune(t.Context()))(t)
		assert.EqualValues(t, 1080, n)
		assert.EqualValues(t, 120, s.int(t, "SELECT count(*) FROM heads_inbox_events"))
		status := statusOf(t, in)
		assert.EqualValues(t, 10, status.Pending)
		assert.EqualValues(t, 10, status.Dead)
	})
}

func TestIdsOfEveryKindMakeSessionsOfTheirOwn(t *testing.T) {
	every := make([]rune, 0, 0x3000)
	for r := rune(0); r < 0x3000; r++ {
		every = append(every, r)
	}
	ids := []string{"", " ", "a", "A", "a\x00b", "a\x00", "\x00", "ä", "a\u0308", strings.Repeat("x", 4096), strings.Repeat("x", 4095) + "y",
		string(every), "'; DROP TABLE heads_inbox_events; --", "%", "_", "a b", "a\nb"}
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		type pair struct{ head, session string }
		number := map[pair]int{}
		add := func(head, session string) {
			n := len(number)
			number[pair{head, session}] = n
			_, err := in.Append(t.Context(), newEvent(t, head, session, n))
			require.NoError(t, err)
		}
		for _, head := range ids {
			for _, session := range ids[:6] {
				add(head, session)
			}
		}
		for _, session := range ids[6:] {
			add("h", session)
		}
		assert.EqualValues(t, len(number), s.int(t, "SELECT count(DISTINCT session) FROM heads_inbox_events"))
		for _, d := range handleAll(t, in, nothing) {
			key := pair{d.Event.HeadID, d.Event.SessionID}
			assert.Equal(t, number[key], numberOf(d.Event))
			delete(number, key)
		}
		assert.Empty(t, number)
		for _, id := range ids[1:] {
			found := replayed(t, in, inbox.Query{HeadID: id})
			assert.Len(t, found, 6)
			for _, d := range found {
				assert.Equal(t, id, d.Event.HeadID)
			}
		}
	})
}

func TestNothingSecretIsShown(t *testing.T) {
	const canary = "canary-7f3a"
	forEachStore(t, func(t *testing.T, s store) {
		var log bytes.Buffer
		var seen strings.Builder
		logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		in := s.open(t, inbox.WithLogger(logger), inbox.WithObserver(func(_ context.Context, o inbox.Observation) {
			fmt.Fprintf(&seen, "%v %+v %#v\n", o, o, o)
		}))
		body := []byte(`{"event_type":"start_conversation","timestamp":"2026-01-01 00:00:00","head_id":"head","session_id":"session","secret":"` + canary + `"}`)
		e, err := heads.ParseEvent(body)
		require.NoError(t, err)
		_, err = in.Append(t.Context(), e)
		require.NoError(t, err)
		handleAll(t, in, func(_ context.Context, d *inbox.Delivery) error {
			fmt.Fprintf(&seen, "%v %+v %s\n", d, d, d)
			logger.Info("a delivery", "delivery", d)
			return errors.New("a failure that tells " + string(d.Event.Raw.Bytes()))
		}, inbox.MaxAttempts(1), inbox.Concurrency(1))
		for _, d := range deadEvents(t, in) {
			fmt.Fprintf(&seen, "%v %+v %s\n", d, d, d)
			logger.Info("a dead letter", "dead", d)
		}
		fmt.Fprintf(&seen, "%v %+v", in, in)
		assert.NotContains(t, log.String(), canary)
		assert.NotContains(t, seen.String(), canary)
		assert.Contains(t, log.String(), "dead letters")
		assert.Zero(t, s.int(t, "SELECT count(*) FROM heads_inbox_events WHERE error LIKE '%"+canary+"%'"))
		assert.Zero(t, s.int(t, "SELECT count(*) FROM heads_inbox_meta WHERE value LIKE '%"+canary+"%'"))
	})
}

func TestDSNIsNeverShown(t *testing.T) {
	const canary = "canary7f3a"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, dsn := range []string{
		"postgres://user:" + canary + "@127.0.0.1:1/db",
		"postgres://user:pass@" + canary + "@127.0.0.1:1/db",
		"postgres://user:pass/" + canary + "@127.0.0.1:1/db",
		"host=127.0.0.1 port=x password=" + canary,
		"host=/nowhere password=" + canary + " connect_timeout=1",
		"password='" + canary,
		"postgres://user:%zz" + canary + "@127.0.0.1:1/db",
	} {
		_, err := postgres.Open(ctx, dsn)
		require.Error(t, err)
		for ; err != nil; err = errors.Unwrap(err) {
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), canary)
		}
	}
	db, err := postgres.FromPool(newPool(t, "postgres://user:"+canary+"@127.0.0.1:1/db", 2))
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", db, db, db), canary)
	_, err = inbox.Open(ctx, db)
	assert.ErrorIs(t, err, inbox.ErrUnavailable)
	assert.NotContains(t, err.Error(), canary)
}

func TestReplayReadsTheExactSetAndMovesNothing(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		appendEvents(t, in, "before", 0, 150)
		from := time.UnixMicro(s.int(t, "SELECT max(received) + 1 FROM heads_inbox_events"))
		pauseFor(t.Context(), 5*time.Millisecond)
		stop := background(t, in, nothing)
		appendEvents(t, in, "after", 150, 400)
		var numbers []int
		var last int64
		for _, d := range replayed(t, in, inbox.Query{From: from}) {
			assert.Greater(t, d.Sequence, last)
			last = d.Sequence
			numbers = append(numbers, numberOf(d.Event))
		}
		require.Len(t, numbers, 250)
		assert.IsIncreasing(t, numbers)
		assert.Equal(t, 150, numbers[0])
		eventually(t, "handled", pendingIsZero(in))
		stop()
		assert.EqualValues(t, 400, s.int(t, "SELECT sum(attempts) FROM heads_inbox_events"))
		assert.Len(t, replayed(t, in, inbox.Query{To: from}), 150)
		assert.Len(t, replayed(t, in, inbox.Query{HeadID: "head", SessionID: "after"}), 250)
		assert.Len(t, replayed(t, in, inbox.Query{Limit: 7}), 7)
		assert.Len(t, replayed(t, in, inbox.Query{Types: []heads.EventType{"START_conversation"}}), 400)
		assert.Empty(t, replayed(t, in, inbox.Query{Types: []heads.EventType{heads.EventEndConversation}}))
		assert.ErrorIs(t, in.Replay(t.Context(), inbox.Query{Limit: -1}, nothing), heads.ErrInvalid)
		assert.ErrorIs(t, in.Replay(t.Context(), inbox.Query{}, func(context.Context, *inbox.Delivery) error { return errTest }), errTest)
	})
}

func TestChangedBodyReachesNoFunction(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, in *inbox.Inbox) {
		appendEvents(t, in, "session", 0, 3)
		s.exec(t, s.spelled("UPDATE heads_inbox_events SET body = $1 WHERE sequence = 1"), eventBody("head", "session", 77))
		assert.Len(t, handleAll(t, in, nothing), 2)
		dead := deadEvents(t, in)
		require.Len(t, dead, 1)
		assert.Equal(t, inbox.ErrDamaged.Error(), dead[0].Error)
		assert.Equal(t, "session", dead[0].Event.SessionID)
		assert.ErrorIs(t, in.Replay(t.Context(), inbox.Query{}, func(_ context.Context, d *inbox.Delivery) error {
			assert.NotEqual(t, 77, numberOf(d.Event))
			return nil
		}), inbox.ErrDamaged)
	})
}

func TestTwoOpensAtOnce(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		var opening sync.WaitGroup
		all := make([]*inbox.Inbox, 4)
		for i := range all {
			opening.Go(func() {
				var err error
				all[i], err = s.try(t.Context())
				assert.NoError(t, err)
			})
		}
		opening.Wait()
		for i, in := range all {
			require.NotNil(t, in)
			appendEvents(t, in, "session", i*10, i*10+10)
		}
		var handled atomic.Int64
		for _, in := range all {
			background(t, in, func(context.Context, *inbox.Delivery) error { handled.Add(1); return nil })
		}
		eventually(t, "handled", pendingIsZero(all[0]))
		for _, in := range all {
			require.NoError(t, in.Close(t.Context()))
		}
		assert.EqualValues(t, 40, handled.Load())
	})
}

func TestTwoHundredOpensLeaveNothing(t *testing.T) {
	s := newStore(t, "sqlite")
	files := func() int {
		entries := need(os.ReadDir("/proc/self/fd"))(t)
		return len(entries)
	}
	cycles := 0
	cycle := func() {
		cycles++
		in := s.openUnclosed(t)
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan error, 1)
		go func() {
			running <- in.Run(ctx, func(context.Context, *inbox.Delivery) error { cancel(); return nil })
		}()
		appendEvents(t, in, "session", cycles, cycles+1)
		require.NoError(t, <-running)
		require.NoError(t, in.Close(t.Context()))
		_, err := in.Append(t.Context(), newEvent(t, "head", "session", 1))
		require.ErrorIs(t, err, inbox.ErrClosed)
		require.ErrorIs(t, in.Run(t.Context(), nothing), inbox.ErrClosed)
		requireClosed(t, in)
		require.NoError(t, in.Close(t.Context()), "a second Close does nothing")
	}
	cycle()
	goroutines, open := runtime.NumGoroutine(), files()
	for range 200 {
		cycle()
	}
	for begun := time.Now(); runtime.NumGoroutine() > goroutines && time.Since(begun) < 10*time.Second; {
		pauseFor(t.Context(), 10*time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	assert.LessOrEqual(t, files(), open)
	assert.EqualValues(t, 201, s.int(t, "SELECT count(*) FROM heads_inbox_events WHERE state = 1 AND attempts = 1"))
}

func TestCloseEndsRun(t *testing.T) {
	s, in := newInbox(t, "sqlite")
	appendEvents(t, in, "session", 0, 1)
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- in.Run(t.Context(), func(ctx context.Context, d *inbox.Delivery) error {
			close(begun)
			pauseFor(ctx, 20*time.Millisecond)
			return d.Commit(ctx, func(*sql.Tx) error { return nil })
		})
	}()
	<-begun
	require.NoError(t, in.Close(t.Context()))
	assert.NoError(t, await(t, done, "Run"))
	assert.EqualValues(t, 1, s.int(t, "SELECT count(*) FROM heads_inbox_events WHERE state = 1"), "the function was let finish")
}

func TestCloseEndsInTimeWhateverAFunctionDoes(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		in := s.openUnclosed(t)
		appendEvents(t, in, "session", 0, 1)
		inside, causes, release := make(chan struct{}), make(chan error, 1), make(chan struct{})
		defer close(release)
		go in.Run(t.Context(), func(ctx context.Context, d *inbox.Delivery) error {
			return d.Commit(ctx, func(*sql.Tx) error {
				close(inside)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				<-release
				return nil
			})
		})
		await(t, inside, "the effect")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begun := time.Now()
		assert.ErrorIs(t, in.Close(ctx), context.DeadlineExceeded)
		assert.Less(t, time.Since(begun), 3*time.Second)
		assert.ErrorIs(t, await(t, causes, "the end of the function's context"), inbox.ErrClosed)
	})
}

func TestSchemaOfEveryEarlierVersion(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		// Version 0 is a database without tables, which every other test migrates. An SQLite file
		// or a dump in testdata holds the tables of each released version, with an event.
		files := need(filepath.Glob("testdata/formats/" + kind + "/*"))(t)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				recorded := need(os.ReadFile(file))(t)
				s := newStore(t, kind)
				if kind == "sqlite" {
					require.NoError(t, os.WriteFile(s.name, recorded, 0o600))
				} else {
					s.exec(t, string(recorded))
				}
				in := s.open(t)
				appendEvents(t, in, "session", 1, 2)
				seen := handleAll(t, in, nothing)
				require.Len(t, seen, 2)
				assert.Equal(t, []int{0, 1}, []int{numberOf(seen[0].Event), numberOf(seen[1].Event)}, "the event of the file and the new one")
			})
		}
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		require.NoError(t, s.open(t).Close(t.Context()))
		s.exec(t, "UPDATE heads_inbox_meta SET value = '99' WHERE name = 'schema'")
		_, err := s.try(t.Context())
		assert.ErrorContains(t, err, "schema version 99")
		assert.ErrorContains(t, err, "update the program")
	})
}

func TestOpenRefusesContradictions(t *testing.T) {
	for name, opt := range map[string]inbox.Option{
		"WithRetention": inbox.WithRetention(24 * time.Hour), "WithLogger": inbox.WithLogger(nil), "WithObserver": inbox.WithObserver(nil),
		"WithTablePrefix": inbox.WithTablePrefix("a; DROP"), "option": nil,
	} {
		db, err := sqlite.Open(t.TempDir() + "/inbox.db")
		require.NoError(t, err)
		_, err = inbox.Open(t.Context(), db, opt)
		assert.ErrorIs(t, err, heads.ErrInvalid, name)
		assert.ErrorContains(t, err, name)
		_, err = inbox.Open(t.Context(), db)
		assert.ErrorContains(t, err, "belongs to another inbox or was closed")
	}
	_, err := inbox.Open(t.Context(), nil)
	assert.ErrorIs(t, err, heads.ErrInvalid)
}

func TestPrefixesKeepInboxesApart(t *testing.T) {
	forEachInbox(t, func(t *testing.T, s store, one *inbox.Inbox) {
		two := s.open(t, inbox.WithTablePrefix("other_"))
		appendEvents(t, one, "session", 0, 3)
		appendEvents(t, two, "session", 0, 2)
		status := statusOf(t, two)
		assert.EqualValues(t, 2, status.Pending)
		assert.EqualValues(t, 1, status.Sessions)
		assert.True(t, status.Healthy)
		assert.WithinDuration(t, time.Now(), status.OldestPending, time.Minute)
	})
}

func TestPostgresIsRefusedWithoutDurability(t *testing.T) {
	for setting, want := range map[string]string{
		"synchronous_commit = off": "synchronous_commit is off", "default_transaction_read_only = on": "read-only; connect to the primary",
	} {
		s := newStore(t, "postgres")
		s.exec(t, "ALTER DATABASE "+s.name[strings.LastIndex(s.name, "=")+1:]+" SET "+setting)
		_, err := s.try(t.Context())
		assert.ErrorContains(t, err, want)
	}
	_, err := store{"postgres", pgtest.ForTest(t, "fsync=off").DSN("postgres")}.try(t.Context())
	assert.ErrorContains(t, err, "fsync is off")
}
