package inbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// acknowledged is the highest sequence that this process has acknowledged. An append that begins
// afterwards has a higher one, unless the database lost events.
type acknowledged struct {
	mu    sync.Mutex
	high  int64
	round int // grows with each loss
}

// before returns what is known when an append begins.
func (a *acknowledged) before() (high int64, round int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.high, a.round
}

// add records a sequence and reports whether it shows a loss that no other append has shown.
func (a *acknowledged) add(sequence, high int64, round int) (lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case round != a.round: // begun before a loss that another append has shown
		return false
	case sequence > high:
		a.high = max(a.high, sequence)
		return false
	}
	a.high = sequence
	a.round++
	return true
}

// fences is the highest fence that was handed out to this process.
type fences struct{ atomic.Int64 }

// saw records a fence that was handed out.
func (f *fences) saw(fence int64) {
	for {
		high := f.Load()
		if fence <= high || f.CompareAndSwap(high, fence) {
			return
		}
	}
}

// errWentBack is the error of a claim whose fence was handed out before.
func errWentBack(fence, high int64) error {
	return &engine.Error{Kind: engine.Failed, Text: fmt.Sprintf(
		"the database handed out fence %d after %d: it was restored from an older backup, and effects that check fences would refuse its events; raise the fence (docs/inbox.md, Restore)",
		fence, high)}
}

// checkFences returns an error if the next fence would be one that an event has. That happens if
// the tables were restored without the counter. A database that was restored as a whole went back
// as a whole, so only processes that have seen higher fences notice.
func checkFences(ctx context.Context, db engine.Backend) error {
	var last, highest int64
	err := db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&last, &highest) }, engine.FencesHandedOut))
	if err == nil && last < highest {
		return &engine.Error{Kind: engine.Damaged, Text: fmt.Sprintf(
			"the last fence handed out is %d, and an event has %d: the tables were restored without the counter of fences; raise it (docs/inbox.md, Restore)", last, highest)}
	}
	return err
}
