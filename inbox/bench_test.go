//go:build unix

package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/console"
)

const benchSessions = 300

var benchNumbers atomic.Int64

// benchEvents returns events of a number of sessions.
func benchEvents(b *testing.B, n, sessions int) []*heads.Event {
	events := make([]*heads.Event, n)
	for i := range events {
		events[i] = newEvent(b, "head", fmt.Sprint("session", i%sessions), int(benchNumbers.Add(1)))
	}
	return events
}

// parallel distributes the numbers below n to publishers and reports the events per second.
func parallel(b *testing.B, publishers, n int, f func(i int) error) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range publishers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

// bareInsert is the baseline of an append: a transaction with one INSERT into a table of keys and
// bodies, with the same durability.
func bareInsert(b *testing.B, s store, publishers int) {
	s.exec(b, map[string]string{
		"sqlite":   "CREATE TABLE bare (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, body BLOB)",
		"postgres": "CREATE TABLE bare (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key BYTEA UNIQUE, body BYTEA)",
	}[s.kind])
	driver, name, conns := "pgx", s.name, 24
	if s.kind == "sqlite" {
		driver, name, conns = "sqlite", "file:"+s.name+"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)", 1
	}
	db := need(sql.Open(driver, name))(b)
	defer db.Close()
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	insert := need(db.Prepare(s.spelled("INSERT INTO bare (key, body) VALUES ($1, $2)")))(b)
	events := benchEvents(b, b.N, benchSessions)
	parallel(b, publishers, b.N, func(i int) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.Stmt(insert).Exec([]byte(events[i].Key()), events[i].Raw.Bytes()); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func forEachKind(b *testing.B, f func(b *testing.B, kind string)) {
	for _, kind := range []string{"sqlite", "postgres"} {
		b.Run(kind, func(b *testing.B) { f(b, kind) })
	}
}

func BenchmarkAppend(b *testing.B) {
	forEachKind(b, func(b *testing.B, kind string) {
		for _, publishers := range []int{1, 64} {
			b.Run(fmt.Sprintf("publishers=%d/insert", publishers), func(b *testing.B) {
				bareInsert(b, newStore(b, kind), publishers)
			})
			b.Run(fmt.Sprintf("publishers=%d/append", publishers), func(b *testing.B) {
				benchAppend(b, newStore(b, kind).open(b), publishers, benchSessions)
			})
			b.Run(fmt.Sprintf("publishers=%d/session-each", publishers), func(b *testing.B) {
				benchAppend(b, newStore(b, kind).open(b), publishers, b.N)
			})
		}
	})
}

func benchAppend(b *testing.B, in *inbox.Inbox, publishers, sessions int) {
	b.Helper()
	events := benchEvents(b, b.N, sessions)
	parallel(b, publishers, b.N, func(i int) error {
		_, err := in.Append(context.Background(), events[i])
		return err
	})
}

// BenchmarkHandle handles the events of an inbox that was filled before.
func BenchmarkHandle(b *testing.B) {
	forEachKind(b, func(b *testing.B, kind string) {
		b.Run("empty", func(b *testing.B) {
			benchHandle(b, newStore(b, kind).open(b), nothing)
		})
		b.Run("commit", func(b *testing.B) {
			s := newStore(b, kind)
			s.createVisits(b)
			benchHandle(b, s.open(b), s.commitVisit)
		})
	})
}

func benchHandle(b *testing.B, in *inbox.Inbox, f func(context.Context, *inbox.Delivery) error) {
	benchAppend(b, in, 64, benchSessions)
	var left atomic.Int64
	left.Store(int64(b.N))
	ctx, cancel := context.WithCancel(context.Background())
	b.ResetTimer()
	b.StartTimer()
	err := in.Run(ctx, func(ctx context.Context, d *inbox.Delivery) error {
		err := f(ctx, d)
		if left.Add(-1) == 0 {
			cancel()
		}
		return err
	})
	b.StopTimer()
	require.NoError(b, err)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkHandleBesideReaders has readers of the operator's page in a loop beside the workers.
func BenchmarkHandleBesideReaders(b *testing.B) {
	for _, readers := range []int{0, 12, 60} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			in := newStore(b, "postgres").open(b)
			page := need(console.New(in))(b)
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(b.Context())
			for i := range readers {
				all.Go(func() {
					for ctx.Err() == nil {
						r := httptest.NewRequestWithContext(ctx, http.MethodGet, []string{"/", "/?view=all", "/?view=waiting", "/?view=dead"}[i%4], nil)
						r.Host = "localhost"
						page.ServeHTTP(httptest.NewRecorder(), r)
					}
				})
			}
			benchHandle(b, in, func(ctx context.Context, d *inbox.Delivery) error {
				return d.Commit(ctx, func(*sql.Tx) error { return nil })
			})
			cancel()
			all.Wait()
		})
	}
}

// BenchmarkLatency measures the time from the start of an append to the start of the function, one
// event at a time.
func BenchmarkLatency(b *testing.B) {
	forEachKind(b, func(b *testing.B, kind string) {
		in := newStore(b, kind).open(b)
		arrived := make(chan time.Time, 1)
		stop := background(b, in, func(context.Context, *inbox.Delivery) error {
			arrived <- time.Now()
			return nil
		})
		events := benchEvents(b, b.N, benchSessions)
		took := make([]time.Duration, 0, b.N)
		for _, e := range events {
			begun := time.Now()
			_, err := in.Append(context.Background(), e)
			require.NoError(b, err)
			took = append(took, (<-arrived).Sub(begun))
		}
		stop()
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	})
}

// BenchmarkDay sends 200,000 events through one SQLite file in ten steps. After each step, the
// inbox restarts, everything becomes 12 hours older, and events older than the retention are
// pruned. Run it with -benchtime 1x.
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
	in := s.openUnclosed(b, inbox.WithRetention(24*time.Hour+6*time.Minute))
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
				assert.NoError(b, appendUntilStored(b.Context(), in, newEvent(b, "head", fmt.Sprint("session", n%benchSessions), n)))
			}
		})
	}
	publishing.Wait()
	<-done
	stop()
	s.exec(b, fmt.Sprintf("UPDATE heads_inbox_events SET received = received - %d", (12*time.Hour).Microseconds()))
	_, err := in.Prune(context.Background())
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

// BenchmarkIdle measures the CPU time of an idle Run, in percent of a core.
func BenchmarkIdle(b *testing.B) {
	forEachKind(b, func(b *testing.B, kind string) {
		in := newStore(b, kind).open(b)
		stop := background(b, in, nothing)
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

// BenchmarkTransactions counts the writing transactions per event by PostgreSQL's transaction ids,
// with one event at a time and a session for each.
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

// setting returns a number from the environment or a small default. With the numbers of
// docs/inbox-operations.md, these benchmarks take minutes.
func setting(b *testing.B, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	return need(strconv.Atoi(text))(b)
}

// BenchmarkOpenTransaction handles events through Commit while another transaction is open, at
// HEADS_INBOX_RATE events per second for HEADS_INBOX_SECONDS, and compares the first and the last
// fifth. Run it with -benchtime 1x.
func BenchmarkOpenTransaction(b *testing.B) {
	rate, seconds := setting(b, "HEADS_INBOX_RATE", 300), setting(b, "HEADS_INBOX_SECONDS", 20)
	s := newStore(b, "postgres")
	in := s.open(b)
	s.createVisits(b)
	s.hold(b, "SELECT count(*) FROM heads_inbox_events")
	var mu sync.Mutex
	var lags []time.Duration
	var ends []time.Time
	stop := background(b, in, func(ctx context.Context, d *inbox.Delivery) error {
		err := s.commitVisit(ctx, d)
		mu.Lock()
		defer mu.Unlock()
		lags, ends = append(lags, time.Since(d.Received)), append(ends, time.Now())
		return err
	})
	events := rate * seconds
	begun := time.Now()
	var appending sync.WaitGroup
	slots := make(chan struct{}, 64)
	for n := range events {
		pauseFor(b.Context(), time.Until(begun.Add(time.Duration(n)*time.Second/time.Duration(rate))))
		e := newEvent(b, "head", fmt.Sprint("session", n/4), n)
		slots <- struct{}{}
		appending.Go(func() {
			defer func() { <-slots }()
			assert.NoError(b, appendUntilStored(b.Context(), in, e))
		})
	}
	appending.Wait()
	stop()
	mu.Lock()
	defer mu.Unlock()
	part := len(lags) / 5
	require.Positive(b, part)
	p50 := func(d []time.Duration) float64 {
		d = slices.Sorted(slices.Values(d))
		return float64(d[len(d)/2].Microseconds()) / 1000
	}
	handled := func(e []time.Time) float64 { return float64(len(e)) / e[len(e)-1].Sub(e[0]).Seconds() }
	b.ReportMetric(p50(lags[:part]), "ms-p50-first")
	b.ReportMetric(p50(lags[len(lags)-part:]), "ms-p50-last")
	b.ReportMetric(handled(ends[:part]), "events/s-first")
	b.ReportMetric(handled(ends[len(ends)-part:]), "events/s-last")
}

// BenchmarkLarge queries a table of HEADS_INBOX_ROWS rows. Run it with -benchtime 1x.
func BenchmarkLarge(b *testing.B) {
	rows := setting(b, "HEADS_INBOX_ROWS", 100_000)
	s := newStore(b, "postgres")
	in := s.open(b)
	s.bigTable(b, rows)
	s.exec(b, "VACUUM ANALYZE")
	measure := func(name string, f func()) {
		for i := range 3 {
			begun := time.Now()
			f()
			b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, fmt.Sprint("ms-", name, "-", i+1))
		}
	}
	replay := func(q inbox.Query) func() { return func() { replayed(b, in, q) } }
	measure("status", func() { b.Logf("%+v", statusOf(b, in)) })
	measure("session", replay(inbox.Query{HeadID: "head", SessionID: fmt.Sprint("session", rows/4)}))
	measure("hour", replay(inbox.Query{From: time.Now().Add(-time.Hour), Limit: 100}))
}
