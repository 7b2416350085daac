// Package keycache caches the shared keys of heads, and reads them again when they
// have expired or do not match.
package keycache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// DefaultTTL and DefaultStale are the values that Cache.Source sets.
const (
	DefaultTTL   = 5 * time.Minute
	DefaultStale = time.Hour

	missTTL = time.Minute

	maxRereads      = 3 // after mismatches, for each head in rereadWindow
	rereadWindow    = time.Minute
	refreshPatience = time.Second      // how long a delivery with stale keys waits for newer ones
	refreshPause    = 10 * time.Second // between a refresh that failed and the next one

	maxKnown  = 16384 // heads with keys, which only the service can add
	maxMissed = 4096  // heads without keys, which anyone can add
	maxKeys   = 64    // of a head, where they were learned one by one
)

var (
	errUnknownHeads = errors.New("heads: too many events of unknown heads: the keys of this head can't be asked for yet")
	errTooBusy      = errors.New("heads: too many requests for keys: the keys of this head can't be asked for yet")
	errFetchEnded   = errors.New("heads: the goroutine that asked for the keys of a head was ended")
)

// List returns the usable keys of a head. It returns none for a head that does
// not exist. A request that fails is retried only if retry is true. It runs on
// another goroutine, where a panic would end the program, so it must not panic.
type List func(ctx context.Context, headID string, retry bool) ([]string, error)

// Cache holds a bounded number of heads and has a bounded number of requests under
// way, whatever ids anyone sends. Its sources share what it knows.
//
// The id of a head must always be written in the same way.
type Cache struct {
	list List

	mu        sync.Mutex
	known     map[string]entry
	missed    map[string]entry // separate, so misses can't remove known heads
	fetches   map[string]*fetch
	questions questions
}

// New returns an empty cache.
func New(list List) *Cache {
	return &Cache{
		list:    list,
		known:   make(map[string]entry),
		missed:  make(map[string]entry),
		fetches: make(map[string]*fetch),
	}
}

// Source is a view of a cache with limits of its own. Its fields must not be changed
// once it is used.
type Source struct {
	TTL   time.Duration       // how long keys are used before they are read again
	Stale time.Duration       // how long expired keys are used while a refresh fails
	Named map[string]struct{} // heads that are asked about as known ones are

	cache *Cache
}

// Source returns a source with the default limits.
func (c *Cache) Source() Source { return Source{TTL: DefaultTTL, Stale: DefaultStale, cache: c} }

// entry is what is known of a head.
type entry struct {
	keys    []string
	read    time.Time   // when the request for the oldest of them began
	added   time.Time   // when the last key was added to those
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

// Get returns the keys of a head. After a mismatch, Get reads newer keys, as often
// as the limits allow. So it does if a named head had none.
func (s Source) Get(ctx context.Context, headID string, mismatch bool) ([]string, error) {
	c, now := s.cache, time.Now()
	_, named := s.Named[headID]
	c.mu.Lock()
	cached, known := c.known[headID]
	expires := cached.read.Add(s.TTL)
	usable := expires.Add(s.Stale)
	if !known {
		var missed bool
		cached, missed = c.missed[headID]
		expires = cached.read.Add(min(s.TTL, missTTL))
		usable = expires
		mismatch = mismatch || missed && named
	}
	reread := mismatch && cached.mayReread(now)
	if !reread && now.Before(usable) && (now.Before(expires) || now.Before(cached.retryAt)) {
		c.mu.Unlock()
		return cached.keys, nil
	}
	from := strangers
	if known || named {
		from = acquainted
	}
	question, err := c.ask(ctx, headID, from, mismatch)
	c.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case reread || !now.Before(usable):
		return c.wait(ctx, question, nil)
	default:
		return c.wait(ctx, question, cached.keys)
	}
}

// Read asks for the keys of heads that are not known yet, in the background, and
// asks again while that fails.
func (c *Cache) Read(headIDs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.later.add(headIDs, time.Now())
	c.begin()
}

// Learn adds a key of a head. Those that are known stay as old as they are.
func (c *Cache) Learn(headID, key string) {
	if key == "" {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.lookup(headID)
	switch {
	case !known:
		old = entry{read: now, rereads: old.rereads}
	case slices.Contains(old.keys, key):
		return
	}
	// Deliveries may still read the old slice.
	old.keys = append(slices.Clone(old.keys[max(0, len(old.keys)-maxKeys+1):]), key)
	old.added = now
	c.know(headID, old)
	c.answerWaiting(headID)
}

// LearnAll sets all keys of a head, which were asked for at that time.
func (c *Cache) LearnAll(headID string, keys []string, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.lookup(headID)
	c.update(headID, old, known, keys, asked)
	c.answerWaiting(headID)
}

// Forget forgets that a head had no keys.
func (c *Cache) Forget(headID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missed, headID)
}

// lookup returns what is known of a head, or of one without keys.
func (c *Cache) lookup(headID string) (e entry, known bool) {
	if e, known = c.known[headID]; known {
		return e, true
	}
	return c.missed[headID], false
}

// remember stores the outcome of a request. After an error, it keeps the old keys.
func (c *Cache) remember(headID string, f *fetch) {
	now := time.Now()
	old, known := c.lookup(headID)
	if f.mismatch {
		old.reread(now)
	}
	switch {
	case f.err != nil:
		if known {
			old.retryAt = now.Add(refreshPause)
			c.known[headID] = old
		}
	case c.update(headID, old, known, f.keys, f.asked):
		f.keys = c.known[headID].keys
	case f.wanted: // or else the first delivery after a registration would find none
		store(c.missed, maxMissed, headID, entry{read: now, rereads: old.rereads})
	}
}

// update stores all keys of a head, which were asked for at that time. It reports
// whether the head is known afterwards.
func (c *Cache) update(headID string, old entry, known bool, keys []string, asked time.Time) bool {
	switch {
	case known && asked.Before(old.read): // a newer answer was faster
		c.known[headID] = old
	case known && asked.Before(old.added): // the answer may lack what was added since
		old.keys = slices.Clone(old.keys) // deliveries may still read the old slice
		for _, key := range keys {
			if !slices.Contains(old.keys, key) {
				old.keys = append(old.keys, key)
			}
		}
		c.known[headID] = old
	case len(keys) == 0:
		delete(c.known, headID)
		return false
	default:
		c.know(headID, entry{keys: keys, read: asked, rereads: old.rereads})
	}
	return true
}

// know stores the keys of a head.
func (c *Cache) know(headID string, e entry) {
	delete(c.missed, headID)
	store(c.known, maxKnown, headID, e)
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
