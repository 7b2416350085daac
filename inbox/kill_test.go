package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// runs returns the number of rounds of the tests that kill processes.
func runs(tb testing.TB) int {
	text := os.Getenv("HEADS_INBOX_RUNS")
	if text == "" {
		return 1
	}
	n := need(strconv.Atoi(text))(tb)
	return n
}

func TestKilledProcessesLoseAndDoubleNothing(t *testing.T) {
	const sessions, workers = 60, 4
	events := scale(t, 1200, 3000)
	for run := range runs(t) {
		t.Run(fmt.Sprint("sqlite/", run), func(t *testing.T) {
			s := newStore(t, "sqlite")
			killSome(t, s, events, sessions, workers, nil)
		})
		t.Run(fmt.Sprint("postgres/", run), func(t *testing.T) {
			server := pgtest.ForTest(t)
			server.Exec(t, "postgres", "CREATE DATABASE inbox")
			killSome(t, store{"postgres", server.DSN("inbox")}, events, sessions, workers, server)
		})
	}
}

// killSome kills two workers and the PostgreSQL server, or for SQLite the receiver, while events
// are published and handled.
func killSome(t *testing.T, s store, events, sessions, workers int, server *pgtest.Server) {
	in := s.open(t)
	s.createVisits(t)
	log := logFile(t)
	receiver := start(t, role{Role: "receiver", Kind: s.kind, Name: s.name})
	l := publish(t, sessions, 50*time.Millisecond, receiver.line(t))
	var all []*process
	worker := func() {
		w := start(t, role{Role: "worker", Kind: s.kind, Name: s.name, Log: log, Lease: 2 * time.Second, Fail: 10})
		w.line(t)
		all = append(all, w)
	}
	for range workers {
		worker()
	}
	for quarter := 1; quarter <= 3; quarter++ {
		l.reach(t, events*quarter/4)
		switch {
		case quarter != 2:
			all[quarter/2].kill()
			worker()
		case server != nil:
			server.Kill()
			require.NoError(t, server.Start())
		default:
			receiver.kill()
			receiver = start(t, role{Role: "receiver", Kind: s.kind, Name: s.name})
			l.address(receiver.line(t))
		}
	}
	l.reach(t, events)
	l.stop()
	eventuallyIn(t, 3*time.Minute, "everything handled", pendingIsZero(in))
	for _, w := range all {
		w.kill()
	}
	got := s.tally(t, l.acknowledged, log, all)
	t.Logf("%s: 3 kills, %d deliveries, %+v", s.kind, len(l.answers), got)
	assert.Equal(t, tally{acknowledged: len(l.acknowledged)}, got)
}

func TestKilledReceiverHasStoredWhatItAcknowledged(t *testing.T) {
	kills := scale(t, 5, 20)
	s := newStore(t, "sqlite")
	receiver := start(t, role{Role: "receiver", Kind: s.kind, Name: s.name})
	l := publish(t, 8, 0, receiver.line(t))
	for range kills {
		l.reach(t, l.count()+20+rand.N(100))
		receiver.kill()
		receiver = start(t, role{Role: "receiver", Kind: s.kind, Name: s.name})
		l.address(receiver.line(t))
	}
	l.stop()
	t.Logf("%d kills, %d acknowledged", kills, len(l.acknowledged))
	assert.Zero(t, lost(t, s.open(t), l.acknowledged))
}

func TestStoppedWorkerIsFenced(t *testing.T) {
	for _, c := range []struct{ kind, where string }{{"sqlite", "function"}, {"postgres", "function"}, {"postgres", "effect"}} {
		t.Run(c.kind+"/"+c.where, func(t *testing.T) {
			stopWorker(t, newStore(t, c.kind), c.where)
		})
	}
}

func stopWorker(t *testing.T, s store, where string) {
	const lease = time.Second
	in := s.open(t)
	s.createVisits(t)
	appendEvents(t, in, "session", 0, 3)
	w := start(t, role{Role: "sleeper", Kind: s.kind, Name: s.name, Lease: lease, Where: where})
	require.Equal(t, "running", w.line(t))
	require.Equal(t, "inside", w.line(t))
	w.signal(t, pgtest.Stop)
	stopped := time.Now()
	stop := background(t, in, s.commitVisit, inbox.Lease(lease), inbox.Backoff(at(10*time.Millisecond)))
	eventually(t, "the session goes on meanwhile", pendingIsZero(in))
	pauseFor(t.Context(), time.Until(stopped.Add(2*lease)))
	stop()
	w.say(t, "go on")
	w.signal(t, pgtest.Continue)
	assert.Contains(t, w.line(t), "fenced: true cause: true")
	assert.EqualValues(t, 3, s.int(t, "SELECT count(*) FROM visits"))
	assert.EqualValues(t, 3, s.int(t, "SELECT count(DISTINCT number) FROM visits"))
	t.Logf("%s, stopped in its %s for %v: effects doubled 0, the session went on", s.kind, where, time.Since(stopped).Round(time.Millisecond))
}

func TestEventThatKillsItsProcessDiesAlone(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		const attempts = 4
		in := s.open(t)
		for n := range 7 {
			appendEvents(t, in, fmt.Sprint("session", n), n, n+1)
		}
		appendEvents(t, in, "session0", 7, 8) // the next event of its session
		stopped := make(chan struct{})
		var restarting sync.WaitGroup
		deaths := 0
		restarting.Go(func() {
			for {
				p := start(t, role{Role: "killer", Kind: s.kind, Name: s.name, Lease: time.Second, Max: attempts})
				died := make(chan struct{})
				go func() { _ = p.cmd.Wait(); close(died) }()
				select {
				case <-died:
					deaths++
				case <-stopped:
					_ = p.cmd.Process.Kill()
					<-died
					return
				}
			}
		})
		eventually(t, "all are handled or dead", pendingIsZero(in))
		close(stopped)
		restarting.Wait()
		assert.Equal(t, attempts, deaths)
		dead := deadEvents(t, in)
		require.Len(t, dead, 1)
		assert.Zero(t, numberOf(dead[0].Event))
		assert.Equal(t, attempts, dead[0].Attempts)
		redriveOnce(t, in, dead[0].Sequence)
	})
}

func deadEvents(t *testing.T, in *inbox.Inbox) []inbox.DeadEvent { return deadOf(t, in, inbox.Query{}) }

func deadOf(t *testing.T, in *inbox.Inbox, q inbox.Query) (all []inbox.DeadEvent) {
	for d, err := range in.Dead(t.Context(), q) {
		require.NoError(t, err)
		all = append(all, d)
	}
	return all
}

// redriveOnce redrives an event and asserts that it is handled once.
func redriveOnce(t *testing.T, in *inbox.Inbox, sequence int64) {
	t.Helper()
	n, err := in.Redrive(t.Context(), sequence, sequence, 1<<40)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	n, err = in.Redrive(t.Context(), sequence)
	require.NoError(t, err)
	assert.Zero(t, n, "it is no longer dead")
	handled := handleAll(t, in, nothing)
	require.Len(t, handled, 1)
	assert.Equal(t, sequence, handled[0].Sequence)
	assert.Equal(t, 1, handled[0].Attempt)
	assert.True(t, handled[0].Redriven)
}
