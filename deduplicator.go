package heads

import (
	"container/list"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
)

// Claim is the state of a key in a Deduplicator.
type Claim int

// The answers to a claim. The zero Claim is none of them.
const (
	ClaimNew  Claim = iota + 1 // the caller owns the key until Done or Release
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

// Deduplicator remembers event keys, so that a redelivered event is not handled
// again. Several receivers behind one URL share one store.
//
// A claim belongs to an owner, a text that no other claimant uses, and ends with
// its lease. A receiver that crashed can't settle its claims, so the lease is
// short, and a receiver that is still at work extends it. A redelivery finds the
// key claimed while the function runs, and free soon after a crash.
//
// All methods may be called by several goroutines at once, and return soon after
// their context ends. A call that returned an error may have been applied or not;
// the EventHandler retries it.
type Deduplicator interface {
	// Claim takes key for owner until lease is over. It is atomic: of any number
	// of owners with one key, one gets ClaimNew, until it releases the key or its
	// lease ends. If owner already owns key, Claim extends the lease to the new end
	// and returns ClaimNew. If another owner does, it returns ClaimBusy. For a settled
	// key it returns ClaimDone, to any owner.
	Claim(ctx context.Context, key, owner string, lease time.Duration) (Claim, error)

	// Done settles key for as long as memory, whoever owns it: the function has
	// succeeded, even if the lease ended before that.
	Done(ctx context.Context, key, owner string, memory time.Duration) error

	// Release frees key if owner owns it. Otherwise it does nothing and returns
	// nil, whether another owner has claimed key or key is settled.
	Release(ctx context.Context, key, owner string) error
}

const defaultDeduplicatorSize = 65536

var errDeduplicatorFull = errors.New("heads: the deduplicator is full of claims that are not done")

// MemoryDeduplicator is a Deduplicator for one process.
type MemoryDeduplicator struct {
	size int

	mu      sync.Mutex
	entries map[string]*dedupEntry
	claimed list.List // of *dedupEntry, the longest claimed first
	done    list.List // of *dedupEntry, the longest settled first
}

type dedupEntry struct {
	key     string
	owner   string // of a claimed key
	expires time.Time
	list    *list.List // claimed or done
	place   *list.Element
}

// NewMemoryDeduplicator returns a deduplicator that remembers up to size keys. A
// size below 1 means 65,536, which take 15 MB. A full one forgets the key that was
// settled longest ago, and a redelivery of that event is handled again. It never
// forgets keys that are claimed and not done; if it has no others, Claim
// returns an error.
func NewMemoryDeduplicator(size int) *MemoryDeduplicator {
	if size < 1 {
		size = defaultDeduplicatorSize
	}
	return &MemoryDeduplicator{size: size, entries: make(map[string]*dedupEntry)}
}

// Claim implements Deduplicator. It never waits for another claim.
func (d *MemoryDeduplicator) Claim(_ context.Context, key, owner string, lease time.Duration) (Claim, error) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[key]; e != nil && now.Before(e.expires) {
		switch {
		case e.list == &d.done:
			return ClaimDone, nil
		case e.owner != owner:
			return ClaimBusy, nil
		}
		e.expires = now.Add(lease)
		d.claimed.MoveToBack(e.place)
		return ClaimNew, nil
	}
	d.remove(d.entries[key])
	d.dropExpired(&d.claimed, now)
	d.dropExpired(&d.done, now)
	if len(d.entries) >= d.size && d.done.Len() == 0 {
		return 0, errDeduplicatorFull
	}
	d.add(&d.claimed, &dedupEntry{key: key, owner: owner, expires: now.Add(lease)})
	return ClaimNew, nil
}

// Done implements Deduplicator.
func (d *MemoryDeduplicator) Done(_ context.Context, key, _ string, memory time.Duration) error {
	expires := time.Now().Add(memory)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(d.entries[key])
	d.add(&d.done, &dedupEntry{key: key, expires: expires})
	return nil
}

// Release implements Deduplicator.
func (d *MemoryDeduplicator) Release(_ context.Context, key, owner string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[key]; e != nil && e.list == &d.claimed && e.owner == owner {
		d.remove(e)
	}
	return nil
}

// add appends e to a list. If there is no room, it removes the key that was settled
// longest ago.
func (d *MemoryDeduplicator) add(l *list.List, e *dedupEntry) {
	if oldest := d.done.Front(); oldest != nil && len(d.entries) >= d.size {
		d.remove(oldest.Value.(*dedupEntry))
	}
	e.list = l
	e.place = l.PushBack(e)
	d.entries[e.key] = e
}

// dropExpired removes at most the first two of a list, if they have expired. Each added key
// removes up to two, so no sweep is needed.
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
