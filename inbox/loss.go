package inbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// acknowledged is the highest sequence that this process has acknowledged. A later append gets a
// higher sequence, unless the database has lost events.
type acknowledged struct {
	mu    sync.Mutex
	high  int64
	round int // incremented at each loss
}

// before returns the state at the start of an append.
func (a *acknowledged) before() (high int64, round int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.high, a.round
}

// add records the sequence of an append. It reports whether the sequence reveals a loss that no
// other append has revealed. high and round are from before.
func (a *acknowledged) add(sequence, high int64, round int) (lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case round != a.round: // it began before a loss that another append has revealed
		return false
	case sequence > high:
		a.high = max(a.high, sequence)
		return false
	}
	a.high = sequence
	a.round++
	return true
}

// fences is the highest fence that this process was given.
type fences struct{ atomic.Int64 }

// saw records a fence.
func (f *fences) saw(fence int64) {
	for {
		high := f.Load()
		if fence <= high || f.CompareAndSwap(high, fence) {
			return
		}
	}
}

// errWentBack is the error for a fence that is not higher than an earlier one.
func errWentBack(fence, high int64) error {
	return &engine.Error{Kind: engine.Failed, Text: fmt.Sprintf(
		"the database handed out fence %d after %d: it was restored from an older backup, and effects that check fences would refuse its events; raise the fence (docs/inbox-operations.md, Restore)",
		fence, high)}
}

// checkFences returns an error if an event has a fence that is still to be handed out. This happens
// if the tables were restored without the counter. After a restore of the whole database, counter
// and events agree; only a process that has seen higher fences notices it.
func checkFences(ctx context.Context, db engine.Backend) error {
	var last, highest int64
	err := db.Read().Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&last, &highest) }, engine.FencesHandedOut))
	if err == nil && last < highest {
		return &engine.Error{Kind: engine.Damaged, Text: fmt.Sprintf(
			"the last fence handed out is %d, and an event has %d: the tables were restored without the counter of fences; raise it (docs/inbox-operations.md, Restore)", last, highest)}
	}
	return err
}
