//go:build unix

package inbox_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

// BenchmarkDay sends 200,000 events through one SQLite file in ten steps. After
// each step, the inbox restarts, everything becomes 12 hours older, and events older
// than the retention are pruned. Run it with -benchtime 1x.
func BenchmarkDay(b *testing.B) {
	const steps, events, publishers = 10, 20000, 16
	s := newStore(b, "sqlite")
	var sizes []int64
	var rates []float64
	for step := range steps {
		begun := time.Now()
		dayStep(b, s, step*events, events, publishers)
		rates = append(rates, events/time.Since(begun).Seconds())
		size := fileSize(b, s.name) + fileSize(b, s.name+"-wal")
		sizes = append(sizes, size)
		b.Logf("step %d: %.0f events/s, %.1f MB, %d events kept", step, rates[step], float64(size)/1e6, s.int(b, "SELECT count(*) FROM heads_inbox_events"))
	}
	b.ReportMetric((rates[steps-2]+rates[steps-1])/(rates[0]+rates[1]), "rate-end/beginning")
	b.ReportMetric(float64(sizes[steps-1])/float64(sizes[steps/2]), "size-end/middle")
	b.ReportMetric(float64(sizes[steps-1])/1e6, "MB")
	require.Zero(b, s.int(b, "SELECT count(*) FROM heads_inbox_events WHERE state <> 1"))
}

func dayStep(b *testing.B, s store, from, events, publishers int) {
	db, err := s.db(context.Background())
	require.NoError(b, err)
	in, err := inbox.Open(context.Background(), db, inbox.WithRetention(24*time.Hour+6*time.Minute))
	require.NoError(b, err)
	var handled atomic.Int64
	done := make(chan struct{})
	stop := background(b, in, func(context.Context, *inbox.Delivery) error {
		if handled.Add(1) == int64(events) {
			close(done)
		}
		return nil
	})
	var publishing sync.WaitGroup
	for i := range publishers {
		publishing.Go(func() {
			for n := from + i; n < from+events; n += publishers {
				event := newEvent(b, "head", fmt.Sprint("session", n%benchSessions), n)
				for { // as the service does after a 503
					if _, err := in.Append(context.Background(), event); err == nil {
						break
					}
					pauseFor(context.Background(), 100*time.Millisecond)
				}
			}
		})
	}
	publishing.Wait()
	<-done
	stop()
	s.exec(b, fmt.Sprintf("UPDATE heads_inbox_events SET received = received - %d", (12*time.Hour).Microseconds()))
	_, err = in.Prune(context.Background())
	require.NoError(b, err)
	require.NoError(b, in.Close(context.Background()))
}

func fileSize(tb testing.TB, path string) int64 {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(tb, err)
	return info.Size()
}

// BenchmarkIdle measures an idle Run, in percent of a core.
func BenchmarkIdle(b *testing.B) {
	forEachKind(b, func(b *testing.B, kind string) {
		in := newStore(b, kind).open(b)
		stop := background(b, in, func(context.Context, *inbox.Delivery) error { return nil })
		defer stop()
		pauseFor(context.Background(), 500*time.Millisecond)
		const period = 5 * time.Second
		before := cpuTime(b)
		pauseFor(context.Background(), period)
		b.ReportMetric(100*float64(cpuTime(b)-before)/float64(period), "%core")
	})
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTransactions counts the transactions that write, by their ids in PostgreSQL, one event
// at a time and each in a session of its own.
func BenchmarkTransactions(b *testing.B) {
	s := newStore(b, "postgres")
	in := s.open(b)
	handled := make(chan struct{}, 1)
	stop := background(b, in, func(context.Context, *inbox.Delivery) error { handled <- struct{}{}; return nil })
	const events = 500
	before := s.int(b, "SELECT txid_current()")
	for n := range events {
		_, err := in.Append(context.Background(), newEvent(b, "head", fmt.Sprint("session", n), n))
		require.NoError(b, err)
		<-handled
	}
	eventually(b, "handled", pendingIsZero(in))
	stop()
	b.ReportMetric(float64(s.int(b, "SELECT txid_current()")-before)/events, "transactions/event")
}
