package headstest_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/require"
)

// One iteration is 10,000 requests over TCP from 64 goroutines. One in four is a
// change.
func BenchmarkRequestsFrom64Goroutines(b *testing.B) {
	const requests, goroutines = 10_000, 64
	a := newAPI(b)
	id := a.AddHead(headstest.Head{})
	var took []time.Duration
	for b.Loop() {
		var mu sync.Mutex
		var wg sync.WaitGroup
		next := make(chan int)
		for range goroutines {
			wg.Go(func() {
				for n := range next {
					start := time.Now()
					if n%4 == 0 {
						a.ok("PUT", "/head/update", fmt.Sprintf(`{"id":"%s","name":"n%d"}`, id, n))
					} else {
						a.ok("GET", "/head/"+id, "")
					}
					mu.Lock()
					took = append(took, time.Since(start))
					mu.Unlock()
				}
			})
		}
		for n := range requests {
			next <- n
		}
		close(next)
		wg.Wait()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "requests/s")
}

// The journal keeps 1000 deliveries of about 1 kB each, so after 100,000 deliveries the
// emulator must not use many times that.
func BenchmarkHundredThousandDeliveries(b *testing.B) {
	const deliveries, journal, limit = 100_000, 1000, 8 << 20
	for b.Loop() {
		e := headstest.NewEmulator(headstest.WithJournalSize(journal), sendingTo(accepting{}))
		id := e.AddHead(headstest.Head{EnableEvents: true})
		_, _, err := e.AddWebhook(id, "https://hook.example.test", heads.EventInactivityWarning)
		require.NoError(b, err)
		before := heapInUse()
		session := e.StartSession(id)
		for n := range deliveries {
			require.NoError(b, session.Inactive())
			if n%1000 == 999 { // a delivery that was waited for is no longer in the queue
				_, err := e.WaitDelivery(b.Context(), func(d headstest.Delivery) bool { return d.ID == n+1 })
				require.NoError(b, err)
			}
		}
		require.Len(b, e.Deliveries(), journal)
		kept := heapInUse() - before
		b.ReportMetric(float64(kept)/1024, "kept-kB")
		require.Less(b, kept, limit)
		e.Close()
	}
}

type accepting struct{}

func (accepting) RoundTrip(*http.Request) (*http.Response, error) { return status(200), nil }

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
