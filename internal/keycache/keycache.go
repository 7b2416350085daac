// Package keycache caches the shared keys of heads, and reads them again when they
// have expired or do not match.
package keycache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// DefaultTTL and DefaultStale are the values that New sets.
const (
	DefaultTTL   = 5 * time.Minute
	DefaultStale = time.Hour

	missTTL      = time.Minute
	fetchTimeout = 10 * time.Second

	maxRereads      = 3 // after mismatches, for each head in rereadWindow
	rereadWindow    = time.Minute
	refreshPatience = time.Second      // how long a delivery with stale keys waits for newer ones
	refreshPause    = 10 * time.Second // between a refresh that failed and the next one

	// Anyone can send an event of an unknown head, so these requests are limited.
	unknownRate  = rate.Limit(5) // requests a second
	unknownBurst = 20

	maxKnown   = 16384 // heads with keys, which only the service can add
	maxMissed  = 4096  // heads without keys, which anyone can add
	maxFetches = 16    // concurrent requests for known heads
)

var (
	errUnknownHeads = errors.New("heads: too many events of unknown heads: the keys of this head can't be asked for yet")
	errFetchEnded   = errors.New("heads: the goroutine that asked for the keys of a head was ended")
)

// List returns the usable keys of a head. It returns none for a head that does
// not exist. A request that fails is retried only if retry is true. It runs on
// another goroutine, where a panic would end the program, so it must not panic.
type List func(ctx context.Context, headID string, retry bool) ([]string, error)

// Cache holds a bounded number of heads and has a bounded number of requests under
// way, whatever ids anyone sends.
type Cache struct {
	TTL   time.Duration // how long keys are used before they are read again
	Stale time.Duration // how long expired keys are used while a refresh fails

	list    List
	slots   chan struct{} // held by requests for known heads
	unknown *rate.Limiter // limits requests for all other heads

	mu      sync.Mutex
	known   map[string]entry
	missed  map[string]entry // separate, so misses can't remove known heads
	fetches map[string]*fetch
}

// New returns an empty cache. Its exported fields may be changed before it is
// used.
func New(list List) *Cache {
	return &Cache{
		TTL:     DefaultTTL,
		Stale:   DefaultStale,
		list:    list,
		slots:   make(chan struct{}, maxFetches),
		unknown: rate.NewLimiter(unknownRate, unknownBurst),
		known:   make(map[string]entry),
		missed:  make(map[string]entry),
		fetches: make(map[string]*fetch),
	}
}

type entry struct {
	keys    []string
	expires time.Time
	retryAt time.Time   // when to try again after a failed refresh
	rereads []time.Time // the times of the last reads after mismatches, oldest first
}

// mayReread reports whether keys may be read again after a mismatch.
func (k *entry) mayReread(now time.Time) bool {
	return len(k.rereads) < maxRereads || now.Sub(k.rereads[0]) >= rereadWindow
}

// reread records a read after a mismatch.
func (k *entry) reread(now time.Time) {
	last := k.rereads[max(len(k.rereads)-maxRereads+1, 0):]
	k.rereads = append(slices.Clone(last), now)
}

// fetch is a request under way. keys and err may be read once done is closed.
type fetch struct {
	known    bool
	mismatch bool
	begun    time.Time
	done     chan struct{}
	keys     []string
	err      error
}

// wait returns the answer. If there are stale keys, it returns them instead of an
// error, or if the answer takes too long.
func (f *fetch) wait(ctx context.Context, stale []string) ([]string, error) {
	var tooLong <-chan time.Time
	if stale != nil {
		tooLong = time.After(time.Until(f.begun.Add(refreshPatience)))
	}
	select {
	case <-f.done:
		if f.err != nil && stale != nil {
			return stale, nil
		}
		return f.keys, f.err
	case <-tooLong:
		return stale, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Get returns the keys of a head. The id must always be written in the same way.
// After a mismatch, Get reads newer keys, as often as the limits allow.
func (c *Cache) Get(ctx context.Context, headID string, mismatch bool) ([]string, error) {
	now := time.Now()
	c.mu.Lock()
	cached, known := c.known[headID]
	usable := cached.expires.Add(c.Stale)
	if !known {
		cached = c.missed[headID]
		usable = cached.expires
	}
	reread := mismatch && cached.mayReread(now)
	if !reread && now.Before(usable) && (now.Before(cached.expires) || now.Before(cached.retryAt)) {
		c.mu.Unlock()
		return cached.keys, nil
	}
	question, err := c.ask(ctx, headID, known, mismatch)
	c.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case reread || !now.Before(usable):
		return question.wait(ctx, nil)
	default:
		return question.wait(ctx, cached.keys)
	}
}

// ask returns the request for a head that is under way, or starts one. The caller
// holds the lock.
func (c *Cache) ask(ctx context.Context, headID string, known, mismatch bool) (*fetch, error) {
	if f := c.fetches[headID]; f != nil {
		return f, nil
	}
	if !known && !c.unknown.Allow() {
		return nil, errUnknownHeads
	}
	f := &fetch{known: known, mismatch: mismatch, begun: time.Now(), done: make(chan struct{})}
	c.fetches[headID] = f
	// Later deliveries use the answer too, so it does not end with this one.
	go c.run(context.WithoutCancel(ctx), headID, f)
	return f, nil
}

func (c *Cache) run(ctx context.Context, headID string, f *fetch) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f.err = errFetchEnded
	defer func() { // even if the user's code ends the goroutine
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remember(headID, f)
		delete(c.fetches, headID)
		close(f.done)
	}()
	if f.known {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			f.err = ctx.Err()
			return
		}
	}
	f.keys, f.err = c.list(ctx, headID, f.known)
}

// remember stores an answer. After an error, it keeps the old keys.
func (c *Cache) remember(headID string, f *fetch) {
	now := time.Now()
	old, known := c.known[headID]
	if !known {
		old = c.missed[headID]
	}
	if f.mismatch {
		old.reread(now)
	}
	switch {
	case f.err != nil:
		if known {
			old.retryAt = now.Add(refreshPause)
			c.known[headID] = old
		}
	case len(f.keys) == 0:
		delete(c.known, headID)
		store(c.missed, maxMissed, headID, entry{expires: now.Add(min(c.TTL, missTTL)), rereads: old.rereads})
	default:
		delete(c.missed, headID)
		store(c.known, maxKnown, headID, entry{keys: f.keys, expires: now.Add(c.TTL), rereads: old.rereads})
	}
}

// store makes room by removing an arbitrary head.
func store(m map[string]entry, limit int, headID string, e entry) {
	if _, ok := m[headID]; !ok && len(m) >= limit {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[headID] = e
}
