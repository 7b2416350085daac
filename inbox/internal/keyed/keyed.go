// Package keyed provides locks by key, such as one per session. It is a copy of the package in
// module heads, which other modules must not import.
package keyed

import (
	"context"
	"sync"
)

// Locks has a lock for each key. It uses no memory for keys that are not locked. The zero value is
// ready to use.
type Locks[K comparable] struct {
	mu   sync.Mutex
	held map[K]chan struct{} // closed when the key is unlocked
}

// Lock locks a key. If the key is locked, Lock waits until it is unlocked or ctx ends.
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
