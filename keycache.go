package heads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// KeySourceOption changes how the source of WebhooksService.KeySource works.
type KeySourceOption func(*keyCache) error

// WithKeyTTL sets how long the keys of a head are used before they are read
// again; 5 minutes is the default. The key of a deleted registration verifies
// for that long at the most, and longer only while the service can't be asked
// (WithStaleKeys). A head without keys is remembered for a minute, or
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

// WithStaleKeys sets how long the keys of a known head stay in use after they
// have expired, while reading them again fails or takes more than a second; an
// hour is the default. So an outage of the service does not make a receiver
// refuse events, but the key of a registration that was deleted during it
// verifies until the service can be asked again, at most for max longer than
// WithKeyTTL. With 0 no expired key is used. A negative max is refused by
// NewEventHandler.
func WithStaleKeys(max time.Duration) KeySourceOption {
	return func(c *keyCache) error {
		if max < 0 {
			return &InvalidError{Operation: "Webhooks.KeySource", Field: "WithStaleKeys", Reason: fmt.Sprintf("%v is negative; use 0 to refuse expired keys", max)}
		}
		c.stale = max
		return nil
	}
}

const (
	defaultKeyTTL    = 5 * time.Minute
	defaultStaleKeys = time.Hour
	missTTL          = time.Minute
	keyFetchTimeout  = 10 * time.Second

	maxRereads      = 3 // after mismatches, a head and rereadWindow
	rereadWindow    = time.Minute
	refreshPatience = time.Second      // how long a delivery with stale keys waits for newer ones
	refreshPause    = 10 * time.Second // between a refresh that failed and the next one

	// Anyone can send an event of an unknown head, so these questions are limited.
	unknownHeadsRate  = rate.Limit(5) // questions a second
	unknownHeadsBurst = 20

	maxKnownHeads   = 16384 // heads with keys: only the service adds to them
	maxMissedHeads  = 4096  // heads without keys: anyone does
	maxKnownFetches = 16    // questions about known heads at one time
)

var (
	errUnknownHeads  = errors.New("heads: too many events of unknown heads: the keys of this head can't be asked for yet")
	errKeyFetchEnded = errors.New("heads: the goroutine that asked for the keys of a head was ended")
)

// cachedKeySource is the source that asks and remembers. An err from its
// options is found by NewEventHandler, and returned by every call of Keys.
type cachedKeySource struct {
	cache *keyCache
	err   error
}

// listKeys returns the keys of a head, and may return none for a head that does
// not exist. A request that fails is sent again only with retry.
type listKeys func(ctx context.Context, headID string, retry bool) ([]string, error)

// newCachedKeySource returns a source that asks list for the keys of a head.
func newCachedKeySource(list listKeys, opts ...KeySourceOption) cachedKeySource {
	s := cachedKeySource{cache: &keyCache{
		list:         list,
		ttl:          defaultKeyTTL,
		stale:        defaultStaleKeys,
		knownSlots:   make(chan struct{}, maxKnownFetches),
		unknownHeads: rate.NewLimiter(unknownHeadsRate, unknownHeadsBurst),
		known:        make(map[string]cachedKeys),
		missed:       make(map[string]cachedKeys),
		fetches:      make(map[string]*keyFetch),
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
// questions under way, whatever ids strangers send.
type keyCache struct {
	list  listKeys
	ttl   time.Duration
	stale time.Duration

	knownSlots   chan struct{} // taken by questions about known heads
	unknownHeads *rate.Limiter // passed by questions about all others

	mu      sync.Mutex
	known   map[string]cachedKeys
	missed  map[string]cachedKeys // apart, so that misses can't push out known heads
	fetches map[string]*keyFetch
}

type cachedKeys struct {
	keys    []string
	expires time.Time
	retryAt time.Time   // after a refresh that failed: when to try the next one
	rereads []time.Time // when the last answers to mismatches came, oldest first
}

// mayReread reports whether a mismatch may ask for newer keys.
func (k cachedKeys) mayReread(now time.Time) bool {
	return len(k.rereads) < maxRereads || now.Sub(k.rereads[0]) >= rereadWindow
}

// reread notes an answer to a mismatch.
func (k *cachedKeys) reread(now time.Time) {
	last := k.rereads[max(len(k.rereads)-maxRereads+1, 0):]
	k.rereads = append(slices.Clone(last), now)
}

// keyFetch is a question under way. Keys and err may be read once done is
// closed.
type keyFetch struct {
	known    bool
	mismatch bool
	begun    time.Time
	done     chan struct{}
	keys     []string
	err      error
}

// wait returns the answer. With stale keys it returns those instead of an
// error, and when the answer takes too long.
func (f *keyFetch) wait(ctx context.Context, stale []string) ([]string, error) {
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

func (c *keyCache) get(ctx context.Context, headID string, mismatch bool) ([]string, error) {
	now := time.Now()
	c.mu.Lock()
	cached, known := c.known[headID]
	usable := cached.expires.Add(c.stale)
	if !known {
		cached = c.missed[headID]
		usable = cached.expires
	}
	reread := mismatch && cached.mayReread(now)
	if !reread && now.Before(usable) && (now.Before(cached.expires) || now.Before(cached.retryAt)) {
		c.mu.Unlock()
		return cached.keys, nil
	}
	fetch, err := c.fetch(ctx, headID, known, mismatch)
	c.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case reread || !now.Before(usable):
		return fetch.wait(ctx, nil)
	default:
		return fetch.wait(ctx, cached.keys)
	}
}

// fetch returns the question about a head that is under way, or begins one. The
// caller holds the lock.
func (c *keyCache) fetch(ctx context.Context, headID string, known, mismatch bool) (*keyFetch, error) {
	if fetch := c.fetches[headID]; fetch != nil {
		return fetch, nil
	}
	if !known && !c.unknownHeads.Allow() {
		return nil, errUnknownHeads
	}
	fetch := &keyFetch{known: known, mismatch: mismatch, begun: time.Now(), done: make(chan struct{})}
	c.fetches[headID] = fetch
	// The answer serves later deliveries too, so it does not end with this one.
	go c.run(context.WithoutCancel(ctx), headID, fetch)
	return fetch, nil
}

func (c *keyCache) run(ctx context.Context, headID string, fetch *keyFetch) {
	ctx, cancel := context.WithTimeout(ctx, keyFetchTimeout)
	defer cancel()
	fetch.err = errKeyFetchEnded
	defer func() { // even if the goroutine is ended by the user's code
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remember(headID, fetch)
		delete(c.fetches, headID)
		close(fetch.done)
	}()
	fetch.keys, fetch.err = c.ask(ctx, headID, fetch.known)
}

// ask calls list, for a known head when there is a slot. It runs on a goroutine
// of its own, where a panic in the user's token source or transport would end
// the program.
func (c *keyCache) ask(ctx context.Context, headID string, known bool) (keys []string, err error) {
	if known {
		select {
		case c.knownSlots <- struct{}{}:
			defer func() { <-c.knownSlots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("heads: panic while asking for the keys of a head: %v", v)
		}
	}()
	keys, err = c.list(ctx, headID, known)
	return usableKeys(keys), err
}

// remember stores an answer. An error leaves the old keys.
func (c *keyCache) remember(headID string, fetch *keyFetch) {
	now := time.Now()
	entry, known := c.known[headID]
	if !known {
		entry = c.missed[headID]
	}
	if fetch.mismatch {
		entry.reread(now)
	}
	switch {
	case fetch.err != nil:
		if known {
			entry.retryAt = now.Add(refreshPause)
			c.known[headID] = entry
		}
	case len(fetch.keys) == 0:
		delete(c.known, headID)
		storeKeys(c.missed, maxMissedHeads, headID, cachedKeys{expires: now.Add(min(c.ttl, missTTL)), rereads: entry.rereads})
	default:
		delete(c.missed, headID)
		storeKeys(c.known, maxKnownHeads, headID, cachedKeys{keys: fetch.keys, expires: now.Add(c.ttl), rereads: entry.rereads})
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
