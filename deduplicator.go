package heads

import (
	"container/list"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// Claim is what a Deduplicator says of a key.
type Claim int

// The answers to a claim. The zero Claim is none of them.
const (
	ClaimNew  Claim = iota + 1 // the key is the caller's: settle it with Done or give it back with Release
	ClaimBusy                  // another caller has claimed it and is not done
	ClaimDone                  // it has been settled
)

// String returns the claim's name, such as "new".
func (c Claim) String() string {
	switch c {
	case ClaimNew:
		return "new"
	case ClaimBusy:
		return "busy"
	case ClaimDone:
		return "done"
	}
	return "Claim(" + strconv.Itoa(int(c)) + ")"
}

// Deduplicator remembers event keys, so that an event which is delivered again
// is not handled again. Claim is atomic: of any number of callers with one key,
// one gets ClaimNew. What was claimed is either settled with Done or given back
// with Release; a claim that is neither lapses after its ttl.
//
// Several instances of a program behind one URL need one store for all. A store
// may let claims lapse sooner than asked, so that a key whose instance crashed
// is free again, but not sooner than the function can take. The methods may be
// called by several goroutines at once.
type Deduplicator interface {
	Claim(ctx context.Context, key string, ttl time.Duration) (Claim, error)
	Done(ctx context.Context, key string, ttl time.Duration) error
	Release(ctx context.Context, key string) error
}

const defaultDeduplicatorSize = 65536

var errDeduplicatorFull = errors.New("heads: the deduplicator is full of claims that are not done")

// MemoryDeduplicator is a Deduplicator for one process.
type MemoryDeduplicator struct {
	size int

	mu      sync.Mutex
	entries map[string]*dedupEntry
	held    list.List // of *dedupEntry, the longest claimed first
	done    list.List // of *dedupEntry, the longest settled first
}

type dedupEntry struct {
	key     string
	expires time.Time
	list    *list.List // held or done
	place   *list.Element
}

// NewMemoryDeduplicator returns a deduplicator that remembers up to size keys;
// below 1 means 65,536, which take 15 MB. When it is full, the key that was
// settled longest ago makes room, and with it the protection against a
// repetition of that event. Keys that are claimed and not done do not make
// room: when there are nothing but those, Claim returns an error.
func NewMemoryDeduplicator(size int) *MemoryDeduplicator {
	if size < 1 {
		size = defaultDeduplicatorSize
	}
	return &MemoryDeduplicator{size: size, entries: make(map[string]*dedupEntry)}
}

// Claim implements Deduplicator. It never waits for another claim.
func (d *MemoryDeduplicator) Claim(_ context.Context, key string, ttl time.Duration) (Claim, error) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[key]; e != nil && now.Before(e.expires) {
		if e.list == &d.held {
			return ClaimBusy, nil
		}
		return ClaimDone, nil
	}
	d.remove(d.entries[key])
	d.dropExpired(&d.held, now)
	d.dropExpired(&d.done, now)
	if len(d.entries) >= d.size && d.done.Len() == 0 {
		return 0, errDeduplicatorFull
	}
	d.add(&d.held, key, now.Add(ttl))
	return ClaimNew, nil
}

// Done implements Deduplicator.
func (d *MemoryDeduplicator) Done(_ context.Context, key string, ttl time.Duration) error {
	expires := time.Now().Add(ttl)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(d.entries[key])
	d.add(&d.done, key, expires)
	return nil
}

// Release implements Deduplicator. It leaves alone what is done.
func (d *MemoryDeduplicator) Release(_ context.Context, key string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[key]; e != nil && e.list == &d.held {
		d.remove(e)
	}
	return nil
}

// add puts the key at the end of a list; when there is no room, the longest
// settled key goes.
func (d *MemoryDeduplicator) add(l *list.List, key string, expires time.Time) {
	if oldest := d.done.Front(); oldest != nil && len(d.entries) >= d.size {
		d.remove(oldest.Value.(*dedupEntry))
	}
	e := &dedupEntry{key: key, expires: expires, list: l}
	e.place = l.PushBack(e)
	d.entries[key] = e
}

// dropExpired drops the two first of a list at most: for every key added two
// may go, so that what has expired goes away without a sweep.
func (d *MemoryDeduplicator) dropExpired(l *list.List, now time.Time) {
	for range 2 {
		first := l.Front()
		if first == nil || now.Before(first.Value.(*dedupEntry).expires) {
			return
		}
		d.remove(first.Value.(*dedupEntry))
	}
}

func (d *MemoryDeduplicator) remove(e *dedupEntry) {
	if e == nil {
		return
	}
	e.list.Remove(e.place)
	delete(d.entries, e.key)
}
