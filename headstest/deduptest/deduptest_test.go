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
	flaw string

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

func newMapStore(flaw string) *mapStore {
	return &mapStore{flaw: flaw, entries: map[string]mapEntry{}, released: map[string]bool{}}
}

// pause lets other calls run between a read and a write, as in a store on a network
// that sends two requests.
func (s *mapStore) pause(flaw string) {
	if s.flaw == flaw {
		s.mu.Unlock()
		<-time.After(time.Millisecond)
		s.mu.Lock()
	}
}

func (s *mapStore) name(key string) string {
	switch s.flaw {
	case "keys without case":
		return strings.ToLower(key)
	case "keys without the spaces around them":
		return strings.TrimSpace(key)
	case "keys cut at 255 bytes":
		return key[:min(len(key), 255)]
	case "keys cut at a colon":
		return strings.Split(key, ":")[0]
	case "keys in ASCII":
		return strings.Map(func(r rune) rune { return min(r, 128) }, key)
	case "one claim at a time":
		return ""
	}
	return key
}

func (s *mapStore) same(a, b string) bool {
	switch s.flaw {
	case "owners without case":
		return strings.EqualFold(a, b)
	case "owners by prefix":
		return strings.HasPrefix(a, b)
	case "owners cut at 200 bytes":
		return a[:min(len(a), 200)] == b[:min(len(b), 200)]
	}
	return a == b
}

func (s *mapStore) end(d time.Duration) time.Time {
	now := time.Now()
	switch s.flaw {
	case "nothing ends":
		return now.Add(1000 * time.Hour)
	case "everything ends late":
		return now.Add(d + 2*time.Second)
	case "everything ends early":
		return now.Add(d - d/10)
	case "whole seconds, rounded down":
		return now.Add(d.Truncate(time.Second))
	case "whole seconds, rounded up":
		return now.Add(d.Truncate(time.Second)).Add(time.Second)
	case "durations above 30 days are in the past":
		if d > 30*24*time.Hour {
			return now.Add(-d)
		}
	case "a time that overflows":
		return time.Unix(0, now.UnixNano()+int64(d))
	}
	return now.Add(d)
}

// live returns the entry of a key unless it has ended.
func (s *mapStore) live(key string) (mapEntry, bool) {
	e, ok := s.entries[key]
	return e, ok && time.Now().Before(e.expires)
}

func (s *mapStore) Claim(ctx context.Context, key, owner string, lease time.Duration) (heads.Claim, error) {
	switch s.flaw {
	case "Claim hangs":
		<-time.After(time.Hour)
	case "Claim panics":
		panic("no connection")
	case "Claim returns no claim":
		return 0, nil
	case "Claim fails":
		return 0, errors.New("no connection")
	case "Claim of an ended context lies":
		if ctx.Err() != nil {
			return heads.ClaimNew, nil
		}
	case "Claim of an ended context holds for ever":
		if ctx.Err() != nil {
			owner = "nobody"
		}
	case "Claim waits until the key is free":
		for {
			s.mu.Lock()
			e, ok := s.live(key)
			s.mu.Unlock()
			if !ok || e.done || e.owner == owner {
				break
			}
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	case "an ended context is refused":
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	key = s.name(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.live(key)
	s.pause("Claim in two steps")
	switch {
	case ok && e.done:
		return s.claimDone(key, owner, e)
	case ok && !s.same(e.owner, owner):
		switch s.flaw {
		case "a refused claim extends the lease":
			e.expires = s.end(time.Minute)
			s.entries[key] = e
		case "a refused claim takes the key":
			e.owner = owner
			s.entries[key] = e
		case "everyone's claim is new":
			return heads.ClaimNew, nil
		case "a held key is done":
			return heads.ClaimDone, nil
		}
		return heads.ClaimBusy, nil
	case ok:
		return s.extend(key, e, lease)
	}
	if s.released[key] {
		s.pause("Claim in two steps after a release")
	}
	if old, lapsed := s.entries[key]; lapsed && !old.done {
		switch s.flaw {
		case "the owner can't take its key again":
			if old.owner == owner {
				return heads.ClaimBusy, nil
			}
		case "the first owner stays":
			owner = old.owner
		case "Claim in two steps after a lease":
			s.pause(s.flaw)
		}
	}
	s.entries[key] = mapEntry{owner: owner, expires: s.end(lease), claims: 1}
	return heads.ClaimNew, nil
}

func (s *mapStore) claimDone(key, owner string, e mapEntry) (heads.Claim, error) {
	switch s.flaw {
	case "a settled key is new for its owner":
		if e.owner == owner {
			return heads.ClaimNew, nil
		}
	case "a settled key is busy":
		return heads.ClaimBusy, nil
	case "a settled key is reported once":
		delete(s.entries, key)
	case "a claim of a settled key gives it a lease":
		e.expires = s.end(500 * time.Millisecond)
		s.entries[key] = e
	}
	return heads.ClaimDone, nil
}

func (s *mapStore) extend(key string, e mapEntry, lease time.Duration) (heads.Claim, error) {
	switch s.flaw {
	case "the owner's claim is busy":
		return heads.ClaimBusy, nil
	case "the owner's claim does not extend":
		return heads.ClaimNew, nil
	case "an extended lease never ends":
		lease = 1000 * time.Hour
	}
	s.pause("extending in two steps")
	e.expires = s.end(lease)
	e.claims++
	s.entries[key] = e
	return heads.ClaimNew, nil
}

func (s *mapStore) Done(ctx context.Context, key, owner string, memory time.Duration) error {
	if ctx.Err() != nil && s.flaw == "Done of an ended context lies" {
		return nil
	}
	if ctx.Err() != nil && s.flaw == "an ended context is refused" {
		return ctx.Err()
	}
	key = s.name(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.live(key)
	switch s.flaw {
	case "Done settles only for the holder":
		if ok && e.owner != owner {
			return nil
		}
	case "Done fails for all but the holder":
		if ok && e.owner != owner {
			return errors.New("not yours")
		}
	case "Done settles only what is claimed":
		if _, claimed := s.entries[key]; !claimed {
			return nil
		}
	case "Done settles only during the lease":
		if _, claimed := s.entries[key]; claimed && !ok {
			return nil
		}
	case "Done keeps the lease":
		if ok && !e.done {
			s.entries[key] = mapEntry{owner: owner, done: true, expires: e.expires}
			return nil
		}
	case "Done settles once":
		if ok && e.done {
			return nil
		}
	case "Done does nothing":
		return nil
	case "Done releases":
		delete(s.entries, key)
		return nil
	case "a memory never ends":
		memory = 1000 * time.Hour
	}
	s.entries[key] = mapEntry{owner: owner, done: true, expires: s.end(memory)}
	return nil
}

func (s *mapStore) Release(ctx context.Context, key, owner string) error {
	if ctx.Err() != nil && s.flaw == "Release of an ended context lies" {
		return nil
	}
	if ctx.Err() != nil && s.flaw == "an ended context is refused" {
		return ctx.Err()
	}
	key = s.name(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.live(key)
	mine := ok && !e.done && s.same(e.owner, owner)
	switch s.flaw {
	case "Release asks for no owner":
		mine = ok && !e.done
	case "Release frees what is done":
		mine = ok && e.owner == owner
	case "Release frees what another one settled":
		mine = ok && (e.done || e.owner == owner)
	case "Release of nothing is an error":
		if !ok {
			return errors.New("no such key")
		}
	case "Release of another's claim is an error":
		if ok && !mine {
			return errors.New("not yours")
		}
	case "Release does nothing":
		return nil
	case "Release counts":
		if e.claims--; mine && e.claims > 0 {
			s.entries[key] = e
			return nil
		}
	case "Release frees what matches":
		for other, o := range s.entries {
			if ok, _ := path.Match(key, other); ok && o.owner == owner && !o.done {
				delete(s.entries, other)
			}
		}
	case "an owner releases all":
		for other, o := range s.entries {
			if strings.HasPrefix(other, key) && o.owner == owner && !o.done {
				delete(s.entries, other)
			}
		}
	}
	s.pause("Release in two steps")
	if mine {
		delete(s.entries, key)
		s.released[key] = true
	}
	return nil
}

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
		"a map":                       newMapStore(""),
		"whole seconds, rounded up":   newMapStore("whole seconds, rounded up"),
		"an ended context is refused": newMapStore("an ended context is refused"),
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
	store := newMapStore("")
	require.NoError(t, testStore(t, store))
	assert.Less(t, len(store.entries), 1000, "what the comment says")
	assert.NoError(t, testStore(t, store))
}

// Each flaw is reported by the rule that it breaks.
func TestEveryFlawOfADeduplicatorIsFound(t *testing.T) {
	for flaw, rule := range map[string]string{
		"Claim in two steps":                        "one of many claims wins",
		"Claim in two steps after a lease":          "one of many claims wins a key whose lease ended",
		"Claim in two steps after a release":        "one of many claims wins a released key",
		"extending in two steps":                    "Done wins against claims at the same time",
		"Release in two steps":                      "a release frees nothing but its own claim",
		"everyone's claim is new":                   "a claimed key is busy for others",
		"a held key is done":                        "a claimed key is busy for others",
		"Claim returns no claim":                    "a claimed key is busy for others",
		"Claim fails":                               "no connection",
		"Claim panics":                              "panic: no connection",
		"Claim hangs":                               "did not return after its context ended",
		"Claim waits until the key is free":         "a claimed key is busy for others",
		"a refused claim extends the lease":         "a lease ends",
		"a refused claim takes the key":             "a refused claim changes nothing",
		"the owner's claim is busy":                 "the owner extends its lease",
		"the owner's claim does not extend":         "the owner extends its lease",
		"an extended lease never ends":              "an extended lease ends",
		"the owner can't take its key again":        "the owner takes its key again after its lease",
		"the first owner stays":                     "an old owner has no claim",
		"nothing ends":                              "a lease ends",
		"everything ends late":                      "a lease ends",
		"everything ends early":                     "a lease ends",
		"whole seconds, rounded down":               "a lease ends",
		"durations above 30 days are in the past":   "long durations",
		"a time that overflows":                     "long durations",
		"a settled key is new for its owner":        "a settled key is done for all",
		"a settled key is busy":                     "a settled key is done for all",
		"a settled key is reported once":            "a settled key is done for all",
		"a claim of a settled key gives it a lease": "a settled key outlives its lease",
		"Done settles only for the holder":          "Done settles what another owner holds",
		"Done fails for all but the holder":         "Done settles what another owner holds",
		"Done settles only what is claimed":         "Done settles what nobody holds",
		"Done settles only during the lease":        "Done settles after the lease",
		"Done keeps the lease":                      "a settled key outlives its lease",
		"Done settles once":                         "Done again extends the memory",
		"Done does nothing":                         "a settled key is done for all",
		"Done releases":                             "a settled key is done for all",
		"a memory never ends":                       "a memory ends",
		"Release asks for no owner":                 "only the owner releases",
		"Release frees what is done":                "a settled key can't be released",
		"Release frees what another one settled":    "a settled key can't be released",
		"Release of nothing is an error":            "releasing what is not held is no error",
		"Release of another's claim is an error":    "only the owner releases",
		"Release does nothing":                      "a released key is free",
		"Release counts":                            "a released key is free",
		"Release frees what matches":                "keys are independent",
		"an owner releases all":                     "keys are independent",
		"keys without case":                         "keys are independent",
		"keys without the spaces around them":       "keys are independent",
		"keys cut at 255 bytes":                     "keys are independent",
		"keys cut at a colon":                       "keys are independent",
		"keys in ASCII":                             "keys are independent",
		"one claim at a time":                       "keys are independent",
		"owners without case":                       "owners are compared exactly",
		"owners by prefix":                          "owners are compared exactly",
		"owners cut at 200 bytes":                   "owners are compared exactly",
		"Claim of an ended context lies":            "an ended context",
		"Claim of an ended context holds for ever":  "an ended context",
		"Done of an ended context lies":             "an ended context",
		"Release of an ended context lies":          "an ended context",
	} {
		t.Run(flaw, func(t *testing.T) {
			err := testStore(t, newMapStore(flaw))
			require.Error(t, err)
			assert.ErrorContains(t, err, "deduptest: found errors:\n")
			assert.ErrorContains(t, err, rule)
		})
	}
}

func TestAllFaultsOfADeduplicatorAreInOneError(t *testing.T) {
	err := testStore(t, newMapStore("nothing ends"))
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
	err := deduptest.Test(ctx, newMapStore("an ended context is refused"))
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, err.Error(), "found errors")
}

func TestNilDeduplicatorIsAnError(t *testing.T) {
	assert.ErrorContains(t, deduptest.Test(t.Context(), nil), "is nil")
}
