package inbox_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// runs returns how often the tests that kill processes repeat themselves.
func runs(tb testing.TB) int {
	text := os.Getenv("HEADS_INBOX_RUNS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	require.NoError(tb, err)
	return n
}

func TestKilledProcessesLoseAndDoubleNothing(t *testing.T) {
	const events, sessions, workers = 3000, 60, 4
	for run := range runs(t) {
		t.Run(fmt.Sprint("sqlite/", run), func(t *testing.T) {
			s := newStore(t, "sqlite")
			killSome(t, s, events, sessions, workers, nil)
		})
		t.Run(fmt.Sprint("postgres/", run), func(t *testing.T) {
			server, err := pgtest.New()
			require.NoError(t, err)
			defer server.Close()
			server.Exec(t, "postgres", "CREATE DATABASE inbox")
			killSome(t, store{"postgres", server.DSN("inbox")}, events, sessions, workers, server)
		})
	}
}

// killSome kills two workers, and the server or else the receiver, while events
// are published and handled.
func killSome(t *testing.T, s store, events, sessions, workers int, server *pgtest.Server) {
	in := s.open(t)
	s.createVisits(t)
	log := logFile(t)
	receiver := start(t, role{Role: "receiver", Kind: s.kind, Name: s.name})
	p := &publisher{url: receiver.line(t), acknowledged: map[int]bool{}, progress: make(chan int, events)}
	var all []*process
	worker := func() *process {
		w := start(t, role{Role: "worker", Kind: s.kind, Name: s.name, Log: log, Lease: time.Second, Fail: 10})
		w.line(t)
		all = append(all, w)
		return w
	}
	for range workers {
		worker()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var publishing sync.WaitGroup
	for i := range sessions {
		var numbers []int
		for n := i; n < events; n += sessions {
			numbers = append(numbers, n)
		}
		publishing.Go(func() { p.publish(ctx, fmt.Sprint("session", i), numbers) })
	}
	kills := 0
	for count := 0; count < events; {
		select {
		case count = <-p.progress:
		case <-ctx.Done():
			require.Fail(t, "the events were not stored in time")
		}
		switch count {
		case events / 4, events * 3 / 4:
			all[kills].kill()
			kills++
			worker()
		case events / 2:
			kills++
			if server != nil {
				server.Kill()
				require.NoError(t, server.Start())
				break
			}
			receiver.kill()
			receiver = start(t, role{Role: "receiver", Kind: s.kind, Name: s.name})
			p.address(receiver.line(t))
		}
	}
	publishing.Wait()
	eventually(t, "everything handled", pendingIsZero(in))
	for _, w := range all {
		w.kill()
	}
	got := s.tally(t, p.acknowledged, log, all)
	t.Logf("%s: 3 kills, %d refusals, %+v", s.kind, p.refused, got)
	assert.Equal(t, tally{acknowledged: events}, got)
}
