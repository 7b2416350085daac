// Package gate counts work under way, so a shutdown can wait for it.
package gate

import (
	"context"
	"sync"
)

// Gate admits work until it is closed. The zero value is open.
type Gate struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // nil before Close; closed when all work has left
}

// Enter reports whether the gate is open. If it is, the caller must call Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

// Stay counts the caller once more, who must have entered and must call Leave once
// more. Stay works after Close, too.
func (g *Gate) Stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

// Leave ends the work that Enter or Stay has counted.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// Close closes the gate and waits until all work has left. If ctx ends before that,
// Close returns the error of ctx. Close may be called more than once.
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
