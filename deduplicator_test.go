package heads

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ Deduplicator = (*MemoryDeduplicator)(nil)

func mustClaim(t *testing.T, d Deduplicator, key, owner string, lease time.Duration) Claim {
	t.Helper()
	c := Must(d.Claim(t.Context(), key, owner, lease))(t)
	return c
}

func mustSettle(t *testing.T, d Deduplicator, key string, ttl time.Duration) {
	t.Helper()
	require.Equal(t, ClaimNew, mustClaim(t, d, key, "owner", ttl))
	require.NoError(t, d.Done(t.Context(), key, "owner", ttl))
}

func TestClaimIsSettledOrReleased(t *testing.T) {
	d := NewMemoryDeduplicator(10)
	assert.Equal(t, ClaimNew, mustClaim(t, d, "a", "owner", time.Hour))
	assert.Equal(t, ClaimBusy, mustClaim(t, d, "a", "twin", time.Hour))
	assert.Equal(t, ClaimNew, mustClaim(t, d, "b", "owner", time.Hour), "keys do not disturb each other")
	require.NoError(t, d.Release(t.Context(), "a", "owner"))
	assert.Equal(t, ClaimNew, mustClaim(t, d, "a", "owner", time.Hour))
	require.NoError(t, d.Done(t.Context(), "a", "owner", time.Hour))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "a", "owner", time.Hour))
	require.NoError(t, d.Release(t.Context(), "a", "owner"))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "a", "owner", time.Hour), "a settled event can't be released")
	require.NoError(t, d.Release(t.Context(), "never claimed", "owner"))
	require.NoError(t, d.Done(t.Context(), "lapsed or forgotten", "owner", time.Hour))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "lapsed or forgotten", "twin", time.Hour))
}

func TestClaimsEndWithTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(10)
		mustSettle(t, d, "done", time.Hour)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "held", "owner", time.Minute))
		<-time.After(time.Minute - 1)
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "held", "twin", time.Minute))
		<-time.After(1)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "held", "next", 2*time.Hour), "an unsettled claim expires")
		assert.Equal(t, ClaimDone, mustClaim(t, d, "done", "owner", time.Hour))
		<-time.After(59 * time.Minute)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "done", "owner", time.Hour))
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "held", "twin", time.Hour))
	})
}

// What was there before under the same key is removed with it, or its removal
// later on would free the key.
func TestKeyThatIsClaimedAnewStaysHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(10)
		for _, key := range []string{"a", "b", "c"} {
			mustClaim(t, d, key, "crashed", time.Minute)
		}
		<-time.After(time.Minute)
		require.Equal(t, ClaimNew, mustClaim(t, d, "c", "next", time.Minute))
		require.Equal(t, ClaimNew, mustClaim(t, d, "d", "next", time.Minute))
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "c", "twin", time.Minute))
	})
}

func TestReleaseFreesOnlyTheOwnersClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(10)
		mustClaim(t, d, "a", "crashed", time.Minute)
		require.NoError(t, d.Release(t.Context(), "a", "other"))
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "a", "other", time.Minute))
		<-time.After(time.Minute)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "a", "next", time.Minute))
		require.NoError(t, d.Release(t.Context(), "a", "crashed"))
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "a", "other", time.Minute), "an expired claim does not release its successor")
	})
}

func TestOwnerExtendsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(10)
		for range 10 {
			assert.Equal(t, ClaimNew, mustClaim(t, d, "a", "owner", time.Minute))
			<-time.After(40 * time.Second)
			assert.Equal(t, ClaimBusy, mustClaim(t, d, "a", "twin", time.Minute))
		}
		assert.Equal(t, ClaimNew, mustClaim(t, d, "a", "owner", time.Second), "the new end applies, even an earlier one")
		<-time.After(time.Second)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "a", "twin", time.Minute))
	})
}

func TestDoneSettlesWhatAnotherOwnerHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(10)
		mustClaim(t, d, "a", "slow", time.Minute)
		<-time.After(time.Minute)
		mustClaim(t, d, "a", "next", time.Minute)
		require.NoError(t, d.Done(t.Context(), "a", "slow", time.Hour))
		require.NoError(t, d.Release(t.Context(), "a", "next"))
		assert.Equal(t, ClaimDone, mustClaim(t, d, "a", "next", time.Minute))
	})
}

func TestFullMemoryForgetsTheLongestSettled(t *testing.T) {
	d := NewMemoryDeduplicator(3)
	assert.Equal(t, ClaimNew, mustClaim(t, d, "held", "owner", time.Hour))
	mustSettle(t, d, "1", time.Hour)
	mustSettle(t, d, "2", time.Hour)
	mustSettle(t, d, "3", time.Hour)
	assert.Equal(t, ClaimBusy, mustClaim(t, d, "held", "twin", time.Hour), "a key that is being worked on stays")
	assert.Equal(t, ClaimDone, mustClaim(t, d, "3", "owner", time.Hour))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "2", "owner", time.Hour))
	assert.Equal(t, ClaimNew, mustClaim(t, d, "1", "owner", time.Hour), "the longest settled one made room")
	assert.Len(t, d.entries, 3)
}

func TestMemoryFullOfClaimsRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(2)
		mustClaim(t, d, "1", "owner", time.Hour)
		mustClaim(t, d, "2", "owner", time.Hour)
		assert.Error(t, ErrorOf(d.Claim(t.Context(), "3", "owner", time.Hour)))
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "1", "twin", time.Hour))
		<-time.After(time.Hour)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "3", "owner", time.Hour), "expired claims make room")
		assert.Len(t, d.entries, 1)
	})
}

// Whatever is claimed, the memory stays bounded, lists and map agree, and expired
// entries are removed.
func TestMemoryStaysBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100
		d := NewMemoryDeduplicator(size)
		for i := range 5000 {
			key := fmt.Sprint(i % 977)
			ttl := time.Duration(1+i%7) * time.Second
			c, err := d.Claim(t.Context(), key, "owner", ttl)
			switch {
			case err == nil && c == ClaimNew && i%3 == 0:
				require.NoError(t, d.Release(t.Context(), key, "owner"))
			case i%5 != 0:
				require.NoError(t, d.Done(t.Context(), key, "owner", ttl))
			}
			require.LessOrEqual(t, len(d.entries), size+1)
			require.Equal(t, len(d.entries), d.claimed.Len()+d.done.Len())
			<-time.After(10 * time.Millisecond)
		}
	})
}

func TestEveryNewKeyRemovesTwoExpiredOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(1000)
		for i := range 50 {
			mustSettle(t, d, fmt.Sprint("settled-", i), time.Second)
			mustClaim(t, d, fmt.Sprint("held-", i), "owner", time.Second)
		}
		<-time.After(time.Second)
		for i := range 25 {
			mustSettle(t, d, fmt.Sprint("new-", i), time.Hour)
		}
		assert.Len(t, d.entries, 25)
	})
}

func TestOneClaimantWins(t *testing.T) {
	d := NewMemoryDeduplicator(1000)
	var won [50]atomic.Int32
	var wg sync.WaitGroup
	for owner := range 20 {
		wg.Go(func() {
			for i := range won {
				c, err := d.Claim(t.Context(), fmt.Sprint(i), fmt.Sprint(owner), time.Hour)
				if err != nil {
					t.Error(err)
				}
				if c == ClaimNew {
					won[i].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for i := range won {
		assert.EqualValues(t, 1, won[i].Load())
	}
}

func TestDefaultMemorySize(t *testing.T) {
	for _, size := range []int{0, -5} {
		assert.Equal(t, 65536, NewMemoryDeduplicator(size).size)
	}
}

func TestClaimNames(t *testing.T) {
	assert.Equal(t, "new busy done Claim(0) Claim(9)", fmt.Sprint(ClaimNew, ClaimBusy, ClaimDone, Claim(0), Claim(9)))
}

func TestWithoutDeduplicatorEveryEventIsPassedOn(t *testing.T) {
	h := newReceiver(t, nil, WithoutDeduplicator())
	body := recentEventBody(testHeadA, "s")
	for range 3 {
		assert.Equal(t, 200, h.post(body, testKeyA))
	}
	assert.EqualValues(t, 3, h.calls.Load(), "of one event")
	assert.Equal(t, 24*time.Hour+6*time.Minute, h.Memory())
}

func TestWithoutDeduplicatorExcludesADeduplicator(t *testing.T) {
	other := WithDeduplicator(NewMemoryDeduplicator(10))
	for _, opts := range [][]EventHandlerOption{{WithoutDeduplicator(), other}, {other, WithoutDeduplicator()}} {
		_, err := NewEventHandler(SharedKeys(testKeyA), func(context.Context, *Event) error { return nil }, opts...)
		assert.Equal(t, []string{"WithoutDeduplicator"}, invalidFields(t, err))
	}
}
