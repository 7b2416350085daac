package heads

import (
	"context"
	"strings"
	"sync"
)

// keyedLocks lets one goroutine at a time work on a key. It keeps nothing of
// keys that nobody works on.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is free again
}

// lock waits until the key is free or the context ends. Keys hold UUIDs, so
// their case does not count.
func (l *keyedLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	key = strings.ToLower(key)
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
		l.held = map[string]chan struct{}{}
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
