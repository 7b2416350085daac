// Package keyed has locks for things that have a key, such as heads and sessions. Module inbox,
// which must not import this one, has a copy, and .ci/run compares them.
package keyed

import (
	"context"
	"sync"
)

// Locks lets one goroutine at a time hold a key. It stores nothing for keys that no
// goroutine holds. The zero value is ready to use.
type Locks[K comparable] struct {
	mu   sync.Mutex
	held map[K]chan struct{} // closed when the key is free again
}

// Lock waits until the key is free or the context ends.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	for {
		l.mu.Lock()
		busy, taken := l.held[key]
		if !taken {
			break
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[K]chan struct{}{}
	}
	free := make(chan struct{})
	l.held[key] = free
	return func() {
		l.mu.Lock()
		delete(l.held, key)
		l.mu.Unlock()
		close(free)
	}, nil
}
