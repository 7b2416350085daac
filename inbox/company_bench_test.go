package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// setting returns a number of the environment, since these benchmarks take minutes with
// the numbers of docs/inbox.md.
func setting(b *testing.B, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// BenchmarkOpenTransaction handles events through Commit while a transaction stays open,
// at HEADS_INBOX_RATE events a second for HEADS_INBOX_SECONDS, and compares the first and
// the last fifth. Run it with -benchtime 1x.
func BenchmarkOpenTransaction(b *testing.B) {
	rate, seconds := setting(b, "HEADS_INBOX_RATE", 300), setting(b, "HEADS_INBOX_SECONDS", 20)
	s := newStore(b, "postgres")
	in := s.open(b)
	s.createVisits(b)
	dump, err := s.sql(b).BeginTx(b.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	require.NoError(b, err)
	defer dump.Rollback()
	_, err = dump.Exec("SELECT count(*) FROM heads_inbox_events")
	require.NoError(b, err)
	var mu sync.Mutex
	var lags []time.Duration
	var ends []time.Time
	stop := background(b, in, func(ctx context.Context, d *inbox.Delivery) error {
		err := d.Commit(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO visits (session, number, sequence) VALUES ($1, $2, $3)", d.Event.SessionID, numberOf(d.Event), d.Sequence)
			return err
		})
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
			for {
				if _, err := in.Append(context.Background(), e); err == nil {
					return
				}
			}
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

// BenchmarkLarge asks a table of HEADS_INBOX_ROWS rows. Run it with -benchtime 1x.
func BenchmarkLarge(b *testing.B) {
	rows := setting(b, "HEADS_INBOX_ROWS", 100_000)
	s := newStore(b, "postgres")
	in := s.open(b)
	begun := time.Now().Add(-7 * 24 * time.Hour)
	step := 7 * 24 * time.Hour / time.Duration(rows)
	s.fill(b, rows, func(i int) filled {
		f := filled{session: fmt.Sprint("session", i/3), state: engine.Handled, received: begun.Add(time.Duration(i) * step)}
		switch {
		case i%1000 == 500:
			f.state = engine.Dead
		case i%17 == 3:
			f.state = engine.Waiting
		}
		return f
	})
	s.exec(b, "VACUUM ANALYZE")
	measure := func(name string, f func() int) {
		for i := range 3 {
			begun := time.Now()
			n := f()
			b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, fmt.Sprint("ms-", name, "-", i+1))
			_ = n
		}
	}
	replay := func(q inbox.Query) func() int {
		return func() (n int) {
			require.NoError(b, in.Replay(b.Context(), q, func(context.Context, *inbox.Delivery) error { n++; return nil }))
			return n
		}
	}
	measure("status", func() int {
		status, err := in.Status(b.Context())
		require.NoError(b, err)
		b.Logf("%+v", status)
		return 0
	})
	measure("session", replay(inbox.Query{HeadID: "head", SessionID: fmt.Sprint("session", rows/4)}))
	measure("hour", replay(inbox.Query{From: time.Now().Add(-time.Hour), Limit: 100}))
}
