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

// core is a type of its own, so printing an Emulator by value copies no lock and
// shows no token.
type core struct {
	cfg      config
	token    string
	mux      *http.ServeMux
	client   *http.Client
	hangUp   func()          // closes the client's idle connections
	lifetime context.Context //nolint:containedctx // ends with Close
	end      context.CancelFunc
	workers  sync.WaitGroup // the deliveries, and the calls of a handler in memory, under way

	control http.Handler // nil without WithConsole

	mu        sync.Mutex
	run       *run
	start     Seed // what the control API's reset returns to
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
		default: // a signal already waits
		}
	}
}

// notify tells the listeners that something outside the journals has changed.
func (c *core) notify() {
	c.version++
	c.wake()
}

// delay waits and reports whether the caller has not left.
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
