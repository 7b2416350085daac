package heads

import (
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

func mustClaim(t *testing.T, d Deduplicator, key string, ttl time.Duration) Claim {
	t.Helper()
	c, err := d.Claim(t.Context(), key, ttl)
	require.NoError(t, err)
	return c
}

func mustSettle(t *testing.T, d Deduplicator, key string, ttl time.Duration) {
	t.Helper()
	require.Equal(t, ClaimNew, mustClaim(t, d, key, ttl))
	require.NoError(t, d.Done(t.Context(), key, ttl))
}

func TestClaimIsSettledOrGivenBack(t *testing.T) {
	d := NewMemoryDeduplicator(10)
	assert.Equal(t, ClaimNew, mustClaim(t, d, "a", time.Hour))
	assert.Equal(t, ClaimBusy, mustClaim(t, d, "a", time.Hour))
	assert.Equal(t, ClaimNew, mustClaim(t, d, "b", time.Hour), "keys do not disturb each other")
	require.NoError(t, d.Release(t.Context(), "a"))
	assert.Equal(t, ClaimNew, mustClaim(t, d, "a", time.Hour))
	require.NoError(t, d.Done(t.Context(), "a", time.Hour))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "a", time.Hour))
	require.NoError(t, d.Release(t.Context(), "a"))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "a", time.Hour), "what is done can't be given back")
	require.NoError(t, d.Release(t.Context(), "never claimed"))
	require.NoError(t, d.Done(t.Context(), "never claimed", time.Hour))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "never claimed", time.Hour))
}

func TestClaimsEndWithTheirTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(10)
		mustSettle(t, d, "done", time.Hour)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "held", time.Minute))
		<-time.After(time.Minute - 1)
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "held", time.Minute))
		<-time.After(1)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "held", 2*time.Hour), "a claim that nobody settled lapses")
		assert.Equal(t, ClaimDone, mustClaim(t, d, "done", time.Hour))
		<-time.After(59 * time.Minute)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "done", time.Hour))
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "held", time.Hour))
	})
}

func TestFullMemoryForgetsTheLongestSettled(t *testing.T) {
	d := NewMemoryDeduplicator(3)
	assert.Equal(t, ClaimNew, mustClaim(t, d, "held", time.Hour))
	mustSettle(t, d, "1", time.Hour)
	mustSettle(t, d, "2", time.Hour)
	mustSettle(t, d, "3", time.Hour)
	assert.Equal(t, ClaimBusy, mustClaim(t, d, "held", time.Hour), "a key that is being worked on stays")
	assert.Equal(t, ClaimDone, mustClaim(t, d, "3", time.Hour))
	assert.Equal(t, ClaimDone, mustClaim(t, d, "2", time.Hour))
	assert.Equal(t, ClaimNew, mustClaim(t, d, "1", time.Hour), "the longest settled one made room")
	assert.Len(t, d.entries, 3)
}

func TestMemoryFullOfClaimsRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(2)
		mustClaim(t, d, "1", time.Hour)
		mustClaim(t, d, "2", time.Hour)
		_, err := d.Claim(t.Context(), "3", time.Hour)
		assert.Error(t, err)
		assert.Equal(t, ClaimBusy, mustClaim(t, d, "1", time.Hour))
		<-time.After(time.Hour)
		assert.Equal(t, ClaimNew, mustClaim(t, d, "3", time.Hour), "lapsed claims make room")
		assert.Len(t, d.entries, 1)
	})
}

// The memory stays bounded, lists and map agree, and what has expired goes
// away, whatever comes.
func TestMemoryStaysBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100
		d := NewMemoryDeduplicator(size)
		for i := range 5000 {
			key := fmt.Sprint(i % 977)
			ttl := time.Duration(1+i%7) * time.Second
			c, err := d.Claim(t.Context(), key, ttl)
			switch {
			case err == nil && c == ClaimNew && i%3 == 0:
				require.NoError(t, d.Release(t.Context(), key))
			case i%5 != 0:
				require.NoError(t, d.Done(t.Context(), key, ttl))
			}
			require.LessOrEqual(t, len(d.entries), size+1)
			require.Equal(t, len(d.entries), d.held.Len()+d.done.Len())
			<-time.After(10 * time.Millisecond)
		}
	})
}

func TestExpiredKeysGoAwayTwoForEveryNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewMemoryDeduplicator(1000)
		for i := range 50 {
			mustSettle(t, d, fmt.Sprint("settled-", i), time.Second)
			mustClaim(t, d, fmt.Sprint("held-", i), time.Second)
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
	for range 20 {
		wg.Go(func() {
			for i := range won {
				c, err := d.Claim(t.Context(), fmt.Sprint(i), time.Hour)
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
