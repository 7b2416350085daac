// Package gate counts the work that is under way, so that a shutdown can wait
// for it.
package gate

import (
	"context"
	"sync"
)

// Gate lets work in until it is closed. The zero value is open.
type Gate struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // nil before Close; closed when no work is inside any more
}

// Enter reports false when the gate is closed. After true, the caller owes a
// Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

// Stay counts one more for a caller that is inside, which owes another Leave.
// It works when the gate is closed, too.
func (g *Gate) Stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

// Leave ends what Enter or Stay began.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// Close lets no one in any more and waits until all have left. When ctx ends
// before that, Close returns the error of ctx. Close may be called again.
func (g *Gate) Close(ctx context.Context) error {
	empty := g.shut()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
	}
	select { // both may have happened
	case <-empty:
		return nil
	default:
		return ctx.Err()
	}
}

func (g *Gate) shut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.empty = make(chan struct{})
		if g.inside == 0 {
			close(g.empty)
		}
	}
	return g.empty
}
