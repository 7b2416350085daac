package heads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// KeySourceOption changes how the source of WebhooksService.KeySource works.
type KeySourceOption func(*keyCache) error

// WithKeyTTL sets how long the keys of a head are used before they are read
// again; 5 minutes is the default. The key of a deleted registration verifies
// for that long at the most. A head without keys is remembered for a minute, or
// for d if that is shorter. A d that is not positive is refused by
// NewEventHandler.
func WithKeyTTL(d time.Duration) KeySourceOption {
	return func(c *keyCache) error {
		if d <= 0 {
			return &InvalidError{Operation: "Webhooks.KeySource", Field: "WithKeyTTL", Reason: fmt.Sprintf("is %v; give a duration above 0", d)}
		}
		c.ttl = d
		return nil
	}
}

const (
	defaultKeyTTL   = 5 * time.Minute
	missTTL         = time.Minute
	rereadInterval  = time.Minute
	keyFetchTimeout = 10 * time.Second

	maxKnownHeads     = 16384 // heads with keys: only the service adds to them
	maxMissedHeads    = 4096  // heads without keys: anybody does
	maxKeyFetches     = 16    // questions to the service at one time, for known heads and for others
	maxWaitingFetches = 1024  // and those that wait for their turn, with them
)

var (
	errKeyFetchesFull = errors.New("heads: the keys of too many heads are being asked for at once")
	errKeyFetchEnded  = errors.New("heads: the goroutine that asked for the keys of a head was ended")
)

// cachedKeySource is the source that asks and remembers. An err from its
// options is found by NewEventHandler, and returned by every call of Keys.
type cachedKeySource struct {
	cache *keyCache
	err   error
}

// newCachedKeySource returns a source that asks list for the keys of a head.
// It may return none for a head that does not exist.
func newCachedKeySource(list func(ctx context.Context, headID string) ([]string, error), opts ...KeySourceOption) cachedKeySource {
	s := cachedKeySource{cache: &keyCache{
		list:       list,
		ttl:        defaultKeyTTL,
		slots:      make(chan struct{}, maxKeyFetches),
		knownSlots: make(chan struct{}, maxKeyFetches),
		known:      make(map[string]cachedKeys),
		missed:     make(map[string]cachedKeys),
		fetches:    make(map[string]*keyFetch),
	}}
	for _, opt := range opts {
		if opt == nil {
			s.err = errors.Join(s.err, &InvalidError{Operation: "Webhooks.KeySource", Field: "option", Reason: "is nil; leave it out"})
			continue
		}
		s.err = errors.Join(s.err, opt(s.cache))
	}
	return s
}

// Keys returns the keys of the head. What is not a UUID is no head, and letter
// case makes no difference in a UUID.
func (s cachedKeySource) Keys(ctx context.Context, hint KeyHint) ([]string, error) {
	if s.err != nil {
		return nil, s.err
	}
	if !isUUID(hint.HeadID) {
		return nil, nil
	}
	return s.cache.get(ctx, strings.ToLower(hint.HeadID), hint.Mismatch)
}

func (s cachedKeySource) String() string             { return "Webhooks.KeySource(" + redacted + ")" }
func (s cachedKeySource) Format(f fmt.State, _ rune) { writeText(f, s.String()) }
func (s cachedKeySource) LogValue() slog.Value       { return slog.StringValue(s.String()) }

// keyCache holds a bounded number of heads, and has a bounded number of
// questions under way, whatever ids strangers make up.
type keyCache struct {
	list  func(ctx context.Context, headID string) ([]string, error)
	ttl   time.Duration
	slots chan struct{}

	// knownSlots are for the heads in known, which so need not wait behind the
	// ids that strangers make up.
	knownSlots chan struct{}

	mu      sync.Mutex
	known   map[string]cachedKeys
	missed  map[string]cachedKeys // apart, so that misses can't push out known heads
	fetches map[string]*keyFetch
}

type cachedKeys struct {
	keys    []string
	expires time.Time
	reread  time.Time // when the question that a mismatch raised was last answered
}

// keyFetch is a question under way. Keys and err may be read once done is
// closed.
type keyFetch struct {
	mismatch bool
	slots    chan struct{}
	done     chan struct{}
	keys     []string
	err      error
}

func (c *keyCache) get(ctx context.Context, headID string, mismatch bool) ([]string, error) {
	c.mu.Lock()
	cached, ok := c.look(headID)
	if ok && !(mismatch && time.Since(cached.reread) >= rereadInterval) {
		c.mu.Unlock()
		return cached.keys, nil
	}
	fetch := c.fetches[headID]
	if fetch == nil {
		_, known := c.known[headID] // though it may have expired
		if !known && len(c.fetches) >= maxWaitingFetches {
			c.mu.Unlock()
			return nil, errKeyFetchesFull
		}
		fetch = &keyFetch{mismatch: mismatch, slots: c.slots, done: make(chan struct{})}
		if known {
			fetch.slots = c.knownSlots
		}
		c.fetches[headID] = fetch
		// The answer serves later deliveries too, so it does not end with this one.
		go c.run(context.WithoutCancel(ctx), headID, fetch)
	}
	c.mu.Unlock()
	select {
	case <-fetch.done:
		return fetch.keys, fetch.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look returns what is remembered of the head and has not expired. The caller
// holds the lock.
func (c *keyCache) look(headID string) (cachedKeys, bool) {
	cached, ok := c.known[headID]
	if !ok {
		cached, ok = c.missed[headID]
	}
	return cached, ok && time.Now().Before(cached.expires)
}

func (c *keyCache) run(ctx context.Context, headID string, fetch *keyFetch) {
	ctx, cancel := context.WithTimeout(ctx, keyFetchTimeout)
	defer cancel()
	fetch.err = errKeyFetchEnded
	defer func() { // even if the goroutine is ended by the user's code
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remember(headID, fetch.mismatch, fetch.keys, fetch.err)
		delete(c.fetches, headID)
		close(fetch.done)
	}()
	fetch.keys, fetch.err = c.ask(ctx, headID, fetch.slots)
}

// ask calls list when there is a slot. It runs on a goroutine of its own, where
// a panic in the user's token source or transport would end the program.
func (c *keyCache) ask(ctx context.Context, headID string, slots chan struct{}) (keys []string, err error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() {
		<-slots
		if v := recover(); v != nil {
			err = fmt.Errorf("heads: panic while asking for the keys of a head: %v", v)
		}
	}()
	keys, err = c.list(ctx, headID)
	return usableKeys(keys), err
}

// remember stores an answer. An error after a mismatch leaves the old keys, and
// the next re-read still waits its minute.
func (c *keyCache) remember(headID string, mismatch bool, keys []string, err error) {
	entry, known := c.known[headID]
	if !known {
		entry = c.missed[headID]
	}
	if mismatch {
		entry.reread = time.Now()
	}
	switch {
	case err != nil:
		if known {
			c.known[headID] = entry
		}
	case len(keys) == 0:
		delete(c.known, headID)
		storeKeys(c.missed, maxMissedHeads, headID, cachedKeys{expires: time.Now().Add(min(c.ttl, missTTL)), reread: entry.reread})
	default:
		delete(c.missed, headID)
		storeKeys(c.known, maxKnownHeads, headID, cachedKeys{keys: keys, expires: time.Now().Add(c.ttl), reread: entry.reread})
	}
}

// storeKeys makes room by forgetting any other head: with so many, one is as good
// as the next.
func storeKeys(m map[string]cachedKeys, limit int, headID string, entry cachedKeys) {
	if _, ok := m[headID]; !ok && len(m) >= limit {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[headID] = entry
}
