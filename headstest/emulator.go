package headstest

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Emulator emulates the service as an http.Handler. Its methods prepare and read
// its state. An Emulator is safe for concurrent use.
type Emulator struct{ *core }

// core has the fields of an Emulator. It is behind a pointer, so printing an Emulator by
// value copies no lock and shows no token.
type core struct {
	cfg      config
	token    string
	mux      *http.ServeMux
	client   *http.Client
	hangUp   func()          // closes the client's idle connections
	lifetime context.Context //nolint:containedctx // ends with Close
	end      context.CancelFunc
	workers  sync.WaitGroup // running deliveries, and running calls of a handler in memory

	control http.Handler // nil without WithConsole

	mu        sync.Mutex
	run       *run
	start     Seed // restored by the reset of the control API
	closed    bool
	listeners map[chan struct{}]struct{} // the callers that wait for a change
	version   int                        // counts the changes outside the journals
}

// BearerToken returns the token that requests must carry.
func (e *Emulator) BearerToken() string { return e.token }

// listen returns a channel that receives after something has changed, until
// stop is called.
func (c *core) listen() (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[ch] = struct{}{}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
	}
}

// wake tells the listeners that a journal has grown. Like notify, it is called
// under the lock.
func (c *core) wake() {
	for ch := range c.listeners {
		select {
		case ch <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

// notify tells the listeners that something outside the journals has changed.
func (c *core) notify() {
	c.version++
	c.wake()
}

// delay waits for d. It reports whether the caller is still connected and the emulator is
// not closed.
func (c *core) delay(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-c.lifetime.Done():
	}
	return false
}
