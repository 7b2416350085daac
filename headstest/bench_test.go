package headstest_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headsapi/heads-go/headstest"
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
