package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
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

// parallel distributes the numbers below n to publishers and reports their rate.
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

// bareInsert is the baseline of an append: a table with a key and a body, and
// INSERT in BEGIN and COMMIT with the same durability.
func bareInsert(b *testing.B, s store, publishers int) {
	s.exec(b, map[string]string{
		"sqlite":   "CREATE TABLE bare (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, body BLOB)",
		"postgres": "CREATE TABLE bare (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key BYTEA UNIQUE, body BYTEA)",
	}[s.kind])
	var db *sql.DB
	var err error
	if s.kind == "sqlite" {
		db, err = sql.Open("sqlite", "file:"+s.name+"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
		require.NoError(b, err)
		db.SetMaxOpenConns(1)
	} else {
		db, err = sql.Open("pgx", s.name)
		require.NoError(b, err)
		db.SetMaxOpenConns(24)
		db.SetMaxIdleConns(24)
	}
	defer db.Close()
	insert, err := db.Prepare(s.spelled("INSERT INTO bare (key, body) VALUES ($1, $2)"))
	require.NoError(b, err)
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
				benchAppend(b, kind, publishers, benchSessions)
			})
			b.Run(fmt.Sprintf("publishers=%d/session-each", publishers), func(b *testing.B) {
				benchAppend(b, kind, publishers, b.N)
			})
		}
	})
}

func benchAppend(b *testing.B, kind string, publishers, sessions int) {
	in := newStore(b, kind).open(b)
	events := benchEvents(b, b.N, sessions)
	parallel(b, publishers, b.N, func(i int) error {
		_, err := in.Append(context.Background(), events[i])
		return err
	})
}

// BenchmarkHandle empties a full inbox.
func BenchmarkHandle(b *testing.B) {
	forEachKind(b, func(b *testing.B, kind string) {
		b.Run("empty", func(b *testing.B) {
			benchHandle(b, newStore(b, kind), func(context.Context, *inbox.Delivery) error { return nil })
		})
		b.Run("commit", func(b *testing.B) {
			s := newStore(b, kind)
			s.createVisits(b)
			insert := s.spelled("INSERT INTO visits (session, number, sequence) VALUES ($1, $2, $3)")
			benchHandle(b, s, func(ctx context.Context, d *inbox.Delivery) error {
				return d.Commit(ctx, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, insert, d.Event.SessionID, d.Attempt, d.Sequence)
					return err
				})
			})
		})
	})
}

func benchHandle(b *testing.B, s store, f func(context.Context, *inbox.Delivery) error) {
	in := s.open(b)
	events := benchEvents(b, b.N, benchSessions)
	parallel(b, 64, b.N, func(i int) error {
		_, err := in.Append(context.Background(), events[i])
		return err
	})
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

// BenchmarkLatency measures the time from the start of an append to the start of the
// function, one event at a time.
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
