package deduptest_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest/deduptest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mapStore is a correct deduplicator, except for its flaw.
type mapStore struct {
	flaw
	mu       sync.Mutex
	entries  map[string]mapEntry
	released map[string]bool
}

type mapEntry struct {
	owner   string
	done    bool
	expires time.Time
	claims  int
}

// flaw replaces parts of a store.
type flaw struct {
	name   func(key string) string
	same   func(a, b string) bool // owners
	lasts  func(time.Duration) time.Duration
	before func(*access)                                       // without the lock
	do     func(*access) (ends bool, c heads.Claim, err error) // before the correct call, unless that ends
}

// access is one call. It has the entry of its key, as the call has read it.
type access struct {
	*mapStore
	ctx           context.Context //nolint:containedctx // of the call
	call, key, by string
	time          time.Duration
	mapEntry
	known, live bool
}

func (a *access) always() bool  { return true }
func (a *access) ended() bool   { return a.ctx.Err() != nil }
func (a *access) lapsed() bool  { return a.known && !a.live && !a.done }
func (a *access) settled() bool { return a.live && a.done }
func (a *access) mine() bool    { return a.live && !a.done && a.same(a.owner, a.by) }
func (a *access) busy() bool    { return a.live && !a.done && !a.same(a.owner, a.by) }

func (a *access) store(e mapEntry) { a.entries[a.key] = e }
func (a *access) forget()          { delete(a.entries, a.key) }

// pause lets other calls run between a read and a write, as in a store on a network
// that sends two requests.
func (a *access) pause() {
	a.mu.Unlock()
	<-time.After(time.Millisecond)
	a.mu.Lock()
}

func (s *mapStore) end(d time.Duration) time.Time { return time.Now().Add(s.lasts(d)) }

func newMapStore(f flaw) *mapStore {
	s := &mapStore{flaw: f, entries: map[string]mapEntry{}, released: map[string]bool{}}
	if s.name == nil {
		s.name = func(key string) string { return key }
	}
	if s.same == nil {
		s.same = func(a, b string) bool { return a == b }
	}
	if s.lasts == nil {
		s.lasts = func(d time.Duration) time.Duration { return d }
	}
	return s
}

// run makes a call: as the flaw does it, and then as a correct store does.
func (s *mapStore) run(ctx context.Context, call, key, by string, d time.Duration, correct func(*access) heads.Claim) (heads.Claim, error) {
	a := &access{mapStore: s, ctx: ctx, call: call, key: s.name(key), by: by, time: d}
	if s.before != nil {
		s.before(a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.read()
	if s.do != nil {
		if ends, claim, err := s.do(a); ends {
			return claim, err
		}
	}
	return correct(a), nil
}

func (a *access) read() {
	a.mapEntry, a.known = a.entries[a.key]
	a.live = a.known && time.Now().Before(a.expires)
}

func (s *mapStore) Claim(ctx context.Context, key, owner string, lease time.Duration) (heads.Claim, error) {
	return s.run(ctx, "Claim", key, owner, lease, func(a *access) heads.Claim {
		switch {
		case a.settled():
			return heads.ClaimDone
		case a.busy():
			return heads.ClaimBusy
		case a.mine():
			a.store(mapEntry{owner: a.owner, expires: s.end(a.time), claims: a.claims + 1})
		default:
			a.store(mapEntry{owner: a.by, expires: s.end(a.time), claims: 1})
		}
		return heads.ClaimNew
	})
}

func (s *mapStore) Done(ctx context.Context, key, owner string, memory time.Duration) error {
	_, err := s.run(ctx, "Done", key, owner, memory, func(a *access) heads.Claim {
		a.store(mapEntry{owner: owner, done: true, expires: s.end(a.time)})
		return 0
	})
	return err
}

func (s *mapStore) Release(ctx context.Context, key, owner string) error {
	_, err := s.run(ctx, "Release", key, owner, 0, func(a *access) heads.Claim {
		if a.mine() {
			a.forget()
			s.released[a.key] = true
		}
		return 0
	})
	return err
}

// answers is the flaw of a call that has no effect.
func answers(call string, when func(*access) bool, claim heads.Claim) flaw {
	return flaw{do: func(a *access) (bool, heads.Claim, error) { return a.call == call && when(a), claim, nil }}
}

func fails(call string, when func(*access) bool) flaw {
	return flaw{do: func(a *access) (bool, heads.Claim, error) {
		return a.call == call && when(a), 0, errors.New("no connection")
	}}
}

// changes is the flaw of a call that does more, or something else, than a correct one.
func changes(call string, when func(*access) bool, change func(*access)) flaw {
	return flaw{do: func(a *access) (bool, heads.Claim, error) {
		if a.call == call && when(a) {
			change(a)
		}
		return false, 0, nil
	}}
}

// frees is the flaw of a release that frees the owner's other claims.
func frees(matches func(key, other string) bool) flaw {
	return changes("Release", (*access).always, func(a *access) {
		for other, e := range a.entries {
			if matches(a.key, other) && e.owner == a.by && !e.done {
				delete(a.entries, other)
			}
		}
	})
}

// waits is the before of a claim that waits until the key is free.
func waits(a *access) {
	for a.call == "Claim" && a.ctx.Err() == nil {
		a.mu.Lock()
		a.read()
		a.mu.Unlock()
		if !a.busy() {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func hangs(a *access) {
	if a.call == "Claim" {
		<-time.After(time.Hour)
	}
}

var (
	nothingEnds = flaw{lasts: func(time.Duration) time.Duration { return 1000 * time.Hour }}
	roundedUp   = flaw{lasts: func(d time.Duration) time.Duration { return max(d, d.Truncate(time.Second)+time.Second) }}
	refusing    = flaw{do: func(a *access) (bool, heads.Claim, error) { return a.ended(), 0, a.ctx.Err() }}
)

// testStore runs deduptest.Test in a bubble, so its waits take no time.
func testStore(t *testing.T, d heads.Deduplicator) (err error) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err = deduptest.Test(t.Context(), d)
		if err == nil {
			assert.LessOrEqual(t, time.Since(begun), 2*time.Second, "a store in order takes no longer")
		}
		<-time.After(2 * time.Hour) // the end of the calls that hang
	})
	return err
}

func TestCorrectDeduplicatorsHaveNoFault(t *testing.T) {
	for name, d := range map[string]heads.Deduplicator{
		"in memory":                   heads.NewMemoryDeduplicator(1000),
		"a map":                       newMapStore(flaw{}),
		"whole seconds, rounded up":   newMapStore(roundedUp),
		"an ended context is refused": newMapStore(refusing),
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, testStore(t, d))
		})
	}
}

func TestDeduplicatorIsTestedInRealTime(t *testing.T) {
	t.Parallel()
	assert.NoError(t, deduptest.Test(t.Context(), heads.NewMemoryDeduplicator(1000)))
}

func TestDeduplicatorCanBeTestedTwice(t *testing.T) {
	store := newMapStore(flaw{})
	require.NoError(t, testStore(t, store))
	assert.Less(t, len(store.entries), 1000, "what the comment says")
	assert.NoError(t, testStore(t, store))
}

// Each flaw is reported by the rule that it breaks.
func TestEveryFlawOfADeduplicatorIsFound(t *testing.T) {
	const month = 30 * 24 * time.Hour
	always, busy, mine, settled, lapsed, ended := (*access).always, (*access).busy, (*access).mine, (*access).settled, (*access).lapsed, (*access).ended
	others := func(a *access) bool { return a.live && a.owner != a.by }
	for _, row := range []struct {
		name, rule string
		flaw       flaw
	}{
		{"Claim in two steps", "one of many claims wins", changes("Claim", always, (*access).pause)},
		{"Claim in two steps after a lease", "one of many claims wins a key whose lease ended", changes("Claim", lapsed, (*access).pause)},
		{"Claim in two steps after a release", "one of many claims wins a released key",
			changes("Claim", func(a *access) bool { return !a.live && a.released[a.key] }, (*access).pause)},
		{"extending in two steps", "Done wins against claims at the same time", changes("Claim", mine, (*access).pause)},
		{"Release in two steps", "a release frees nothing but its own claim", changes("Release", always, (*access).pause)},
		{"everyone's claim is new", "a claimed key is busy for others", answers("Claim", busy, heads.ClaimNew)},
		{"a held key is done", "a claimed key is busy for others", answers("Claim", busy, heads.ClaimDone)},
		{"Claim returns no claim", "a claimed key is busy for others", answers("Claim", always, 0)},
		{"Claim fails", "no connection", fails("Claim", always)},
		{"Claim panics", "panic: no connection", changes("Claim", always, func(*access) { panic("no connection") })},
		{"Claim hangs", "did not return after its context ended", flaw{before: hangs}},
		{"Claim waits until the key is free", "a claimed key is busy for others", flaw{before: waits, do: refusing.do}},
		{"a refused claim extends the lease", "a lease ends",
			changes("Claim", busy, func(a *access) { a.store(mapEntry{owner: a.owner, expires: a.end(time.Minute)}) })},
		{"a refused claim takes the key", "a refused claim changes nothing",
			changes("Claim", busy, func(a *access) { a.store(mapEntry{owner: a.by, expires: a.expires}) })},
		{"the owner's claim is busy", "the owner extends its lease", answers("Claim", mine, heads.ClaimBusy)},
		{"the owner's claim does not extend", "the owner extends its lease", answers("Claim", mine, heads.ClaimNew)},
		{"an extended lease never ends", "an extended lease ends", changes("Claim", mine, func(a *access) { a.time = 1000 * time.Hour })},
		{"the owner can't take its key again", "the owner takes its key again after its lease",
			answers("Claim", func(a *access) bool { return a.lapsed() && a.owner == a.by }, heads.ClaimBusy)},
		{"the first owner stays", "an old owner has no claim", changes("Claim", lapsed, func(a *access) { a.by = a.owner })},
		{"nothing ends", "a lease ends", nothingEnds},
		{"everything ends late", "a lease ends", flaw{lasts: func(d time.Duration) time.Duration { return d + 2*time.Second }}},
		{"everything ends early", "a lease ends", flaw{lasts: func(d time.Duration) time.Duration { return d - d/10 }}},
		{"whole seconds, rounded down", "a lease ends", flaw{lasts: func(d time.Duration) time.Duration { return d.Truncate(time.Second) }}},
		{"durations above 30 days are in the past", "long durations", flaw{lasts: func(d time.Duration) time.Duration {
			return map[bool]time.Duration{true: -d, false: d}[d > month]
		}}},
		{"a time that overflows", "long durations", flaw{lasts: func(d time.Duration) time.Duration {
			return time.Until(time.Unix(0, time.Now().UnixNano()+int64(d)))
		}}},
		{"a settled key is new for its owner", "a settled key is done for all",
			answers("Claim", func(a *access) bool { return a.settled() && a.owner == a.by }, heads.ClaimNew)},
		{"a settled key is busy", "a settled key is done for all", answers("Claim", settled, heads.ClaimBusy)},
		{"a settled key is reported once", "a settled key is done for all", changes("Claim", settled, (*access).forget)},
		{"a claim of a settled key gives it a lease", "a settled key outlives its lease",
			changes("Claim", settled, func(a *access) { a.store(mapEntry{owner: a.owner, done: true, expires: a.end(500 * time.Millisecond)}) })},
		{"Done settles only for the holder", "Done settles what another owner holds", answers("Done", others, 0)},
		{"Done fails for all but the holder", "Done settles what another owner holds", fails("Done", others)},
		{"Done settles only what is claimed", "Done settles what nobody holds", answers("Done", func(a *access) bool { return !a.known }, 0)},
		{"Done settles only during the lease", "Done settles after the lease", answers("Done", func(a *access) bool { return a.known && !a.live }, 0)},
		{"Done keeps the lease", "a settled key outlives its lease",
			changes("Done", func(a *access) bool { return a.live && !a.done }, func(a *access) { a.time = time.Until(a.expires) })},
		{"Done settles once", "Done again extends the memory", answers("Done", settled, 0)},
		{"Done does nothing", "a settled key is done for all", answers("Done", always, 0)},
		{"Done releases", "a settled key is done for all", answers("Done", func(a *access) bool { a.forget(); return true }, 0)},
		{"a memory never ends", "a memory ends", changes("Done", always, func(a *access) { a.time = 1000 * time.Hour })},
		{"Release asks for no owner", "only the owner releases", changes("Release", always, func(a *access) { a.by = a.owner })},
		{"Release frees what is done", "a settled key can't be released",
			changes("Release", func(a *access) bool { return a.settled() && a.owner == a.by }, (*access).forget)},
		{"Release frees what another one settled", "a settled key can't be released", changes("Release", settled, (*access).forget)},
		{"Release of nothing is an error", "releasing what is not held is no error", fails("Release", func(a *access) bool { return !a.live })},
		{"Release of another's claim is an error", "only the owner releases", fails("Release", func(a *access) bool { return a.live && !a.mine() })},
		{"Release does nothing", "a released key is free", answers("Release", always, 0)},
		{"Release counts", "a released key is free", answers("Release", func(a *access) bool {
			a.claims--
			a.store(a.mapEntry)
			return a.mine() && a.claims > 0
		}, 0)},
		{"Release frees what matches", "keys are independent", frees(func(key, other string) bool { ok, _ := path.Match(key, other); return ok })},
		{"an owner releases all", "keys are independent", frees(func(key, other string) bool { return strings.HasPrefix(other, key) })},
		{"keys without case", "keys are independent", flaw{name: strings.ToLower}},
		{"keys without the spaces around them", "keys are independent", flaw{name: strings.TrimSpace}},
		{"keys cut at 255 bytes", "keys are independent", flaw{name: func(key string) string { return key[:min(len(key), 255)] }}},
		{"keys cut at a colon", "keys are independent", flaw{name: func(key string) string { return strings.Split(key, ":")[0] }}},
		{"keys in ASCII", "keys are independent", flaw{name: func(key string) string {
			return strings.Map(func(r rune) rune { return min(r, 128) }, key)
		}}},
		{"one claim at a time", "keys are independent", flaw{name: func(string) string { return "" }}},
		{"owners without case", "owners are compared exactly", flaw{same: strings.EqualFold}},
		{"owners by prefix", "owners are compared exactly", flaw{same: strings.HasPrefix}},
		{"owners cut at 200 bytes", "owners are compared exactly", flaw{same: func(a, b string) bool { return a[:min(len(a), 200)] == b[:min(len(b), 200)] }}},
		{"Claim of an ended context lies", "an ended context", answers("Claim", ended, heads.ClaimNew)},
		{"Claim of an ended context holds for ever", "an ended context", changes("Claim", ended, func(a *access) { a.by = "nobody" })},
		{"Done of an ended context lies", "an ended context", answers("Done", ended, 0)},
		{"Release of an ended context lies", "an ended context", answers("Release", ended, 0)},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := testStore(t, newMapStore(row.flaw))
			require.Error(t, err)
			assert.ErrorContains(t, err, "deduptest: found errors:\n")
			assert.ErrorContains(t, err, row.rule)
		})
	}
}

func TestAllFaultsOfADeduplicatorAreInOneError(t *testing.T) {
	err := testStore(t, newMapStore(nothingEnds))
	for _, rule := range []string{"a lease ends: ", "an extended lease ends: ", "a memory ends: "} {
		assert.ErrorContains(t, err, rule)
	}
	assert.NotContains(t, err.Error(), "a settled key is done for all: ", "what is in order is not reported")
	seen := map[string]bool{}
	for line := range strings.Lines(err.Error()) {
		assert.False(t, seen[line], "reported twice: %s", line)
		seen[line] = true
	}
}

func TestDeduplicatorIsNotTestedAfterItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := deduptest.Test(ctx, newMapStore(refusing))
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, err.Error(), "found errors")
}

func TestNilDeduplicatorIsAnError(t *testing.T) {
	assert.ErrorContains(t, deduptest.Test(t.Context(), nil), "is nil")
}
