package keycache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/internal/keycache/keycachetest"
)

const (
	testHeadA = "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b"
	testHeadB = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	testKeyA  = "first shared key"
	testKeyB  = "second shared key"
)

func newFakeKeyService() *keycachetest.Service {
	return &keycachetest.Service{Keys: map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}}
}

func askKeys(t *testing.T, source *Cache, headID string, mismatch bool) []string {
	t.Helper()
	keys, err := source.Get(t.Context(), headID, mismatch)
	require.NoError(t, err)
	return keys
}

// numberedHead returns the i-th of many head ids.
func numberedHead(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i) }

func TestCacheAsksOncePerTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		source.TTL = 10 * time.Minute
		for range 20 {
			assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
			<-time.After(time.Minute)
		}
		assert.Equal(t, []string{testHeadA, testHeadA}, service.Asked)
		assert.Equal(t, []string{testKeyB}, askKeys(t, source, testHeadB, false))
	})
}

func TestCacheForgetsADeletedRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		service.Set(testHeadA)
		<-time.After(5*time.Minute - time.Second)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		<-time.After(time.Second)
		assert.Empty(t, askKeys(t, source, testHeadA, false))
	})
}

func TestCacheRemembersMissesForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Keys = map[string][]string{}
		source := New(service.List)
		for range 60 {
			assert.Empty(t, askKeys(t, source, testHeadA, false))
			<-time.After(time.Second)
		}
		assert.Equal(t, 1, service.Count())
		service.Set(testHeadA, testKeyA)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false), "a new registration works after a minute")
	})
}

func TestCacheRereadsThreeTimesAMinuteAfterMismatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		for i := range 4 * 60 { // less than the TTL
			key := fmt.Sprint("key ", i)
			service.Set(testHeadA, key)
			keys := askKeys(t, source, testHeadA, true)
			if i%60 < 3 {
				assert.Equal(t, []string{key}, keys, "a re-read is left in second %d", i)
			} else {
				assert.Equal(t, []string{fmt.Sprint("key ", i-i%60+2)}, keys, "second %d", i)
			}
			<-time.After(time.Second)
		}
		assert.Equal(t, 1+4*3, service.Count())
		before := service.Count()
		askKeys(t, source, testHeadB, false)
		for range 10 {
			askKeys(t, source, testHeadB, true)
		}
		assert.Equal(t, before+1+3, service.Count(), "each head has its own minute")
	})
}

// The window slides: reads late in one minute and early in the next are counted
// together.
func TestRereadsAreCountedOverAnyMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		begun := time.Now()
		for _, second := range []int{0, 50, 55, 61, 62, 109, 111, 112, 116, 117} {
			<-time.After(time.Duration(second)*time.Second - time.Since(begun))
			askKeys(t, source, testHeadA, true)
		}
		assert.Equal(t, 1+3+1+1+1, service.Count(), "at 0, 50 and 55, then at 61, 111 and 116")
	})
}

// An attacker can cause any number of mismatches. Whatever the TTL, and even if the
// service fails, that must not cause more than three requests a minute.
func TestMismatchesNeverAskMoreThanThreeTimesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		service.Fail(errors.New("down"))
		failures := 0
		for range 4 * 60 {
			keys, err := source.Get(t.Context(), testHeadA, true)
			if err != nil {
				failures++
			} else {
				assert.Equal(t, []string{testKeyA}, keys, "the old keys stay")
			}
			<-time.After(time.Second)
		}
		assert.Equal(t, 4*3, failures)
		assert.Equal(t, 1+4*3, service.Count())
	})
}

func TestMismatchOfAMissIsLimitedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Keys = map[string][]string{}
		source := New(service.List)
		for range 30 {
			assert.Empty(t, askKeys(t, source, testHeadA, true))
		}
		assert.Equal(t, 3, service.Count())
	})
}

func TestMinuteOfAMismatchOutlivesAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Keys = map[string][]string{}
		source := New(service.List)
		source.TTL = 10 * time.Second
		for range 3 {
			askKeys(t, source, testHeadA, true)
		}
		<-time.After(10 * time.Second)
		askKeys(t, source, testHeadA, false)
		askKeys(t, source, testHeadA, true)
		assert.Equal(t, 4, service.Count())
	})
}

func TestCacheAsksOnceForConcurrentDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Delay = time.Second
		source := New(service.List)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, i%2 == 0))
			})
		}
		wg.Wait()
		assert.Equal(t, 1, service.Count())
	})
}

func TestWaitingForKeysEndsWithTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Delay = 6 * time.Second
		source := New(service.List)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := source.Get(ctx, testHeadA, false)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(begun))

		// The request goes on, and the next delivery uses its answer.
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, 6*time.Second, time.Since(begun))
		assert.Equal(t, 1, service.Count())
	})
}

func TestQuestionForKeysEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Delay = time.Hour
		source := New(service.List)
		begun := time.Now()
		_, err := source.Get(t.Context(), testHeadA, false)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestFailedQuestionIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		down := errors.New("down")
		service.Fail(down)
		source := New(service.List)
		_, err := source.Get(t.Context(), testHeadA, false)
		assert.ErrorIs(t, err, down)
		service.Fail(nil)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestUnknownHeadsTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		for i := range maxMissed + 100 {
			assert.Empty(t, askKeys(t, source, numberedHead(i), false))
			<-time.After(time.Second / 5)
		}
		assert.Len(t, source.missed, maxMissed)
		assert.Empty(t, source.fetches)
		assert.Len(t, source.known, 1)
		service.Fail(errors.New("down"))
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false), "strangers did not push the known head out")
	})
}

func TestKnownHeadsTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := New(func(_ context.Context, headID string, _ bool) ([]string, error) { return []string{headID}, nil })
		for i := range maxKnown + 100 {
			headID := numberedHead(i)
			require.Equal(t, []string{headID}, askKeys(t, source, headID, false))
			<-time.After(time.Second / 5)
		}
		assert.Len(t, source.known, maxKnown)
	})
}

func TestQuestionsAboutUnknownHeadsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		<-time.After(time.Minute)
		refused := 0
		for i := range 1000 {
			if _, err := source.Get(t.Context(), numberedHead(i), false); err != nil {
				assert.ErrorIs(t, err, errUnknownHeads)
				refused++
			}
		}
		assert.Equal(t, 1+20, service.Count(), "the burst")
		assert.Equal(t, 1000-20, refused)
		for i := range 1001 {
			_, _ = source.Get(t.Context(), numberedHead(1000+i), false)
			<-time.After(10 * time.Millisecond)
		}
		assert.Equal(t, 1+20+50, service.Count(), "5 a second in 10 seconds")
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, true), "known heads are asked about meanwhile")
		assert.Equal(t, 1+20+50+1, service.Count())
	})
}

func TestQuestionsAboutUnknownHeadsAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		askKeys(t, source, numberedHead(1), false)
		<-time.After(DefaultTTL)
		askKeys(t, source, testHeadA, false)
		askKeys(t, source, numberedHead(1), false)
		askKeys(t, source, testHeadA, true)
		assert.Equal(t, []string{testHeadA, numberedHead(1), numberedHead(1)}, service.Once, "testHeadA is known after the first question")
		assert.Equal(t, 5, service.Count())
	})
}

func TestKnownHeadIsAskedForBesideAFloodOfUnknownOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.Delay = 2 * time.Second
		source := New(service.List)
		source.Stale = 0
		require.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		<-time.After(DefaultTTL)
		for i := range 2000 {
			go func() {
				_, _ = source.Get(t.Context(), numberedHead(i), false)
			}()
		}
		synctest.Wait()
		begun := time.Now()
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, service.Delay, time.Since(begun), "it did not wait for its turn")
		<-time.After(time.Hour)
		assert.LessOrEqual(t, service.Most, unknownBurst+1)
	})
}

func TestQuestionsAboutKnownHeadsAreFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &keycachetest.Service{Keys: map[string][]string{}}
		source := New(service.List)
		for i := range 100 {
			service.Set(numberedHead(i), testKeyA)
			askKeys(t, source, numberedHead(i), false)
			<-time.After(time.Second)
		}
		<-time.After(DefaultTTL)
		service.Slow(100 * time.Millisecond)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { askKeys(t, source, numberedHead(i), false) })
		}
		wg.Wait()
		assert.Equal(t, maxFetches, service.Most)
		assert.Equal(t, 200, service.Count())
	})
}

func TestDeliveriesDoNotWaitForARefreshThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		<-time.After(DefaultTTL)
		service.Slow(time.Hour)
		begun := time.Now()
		askKeys(t, source, testHeadA, false)
		assert.Equal(t, time.Second, time.Since(begun))
		for range 10 {
			askKeys(t, source, testHeadA, false)
		}
		assert.Equal(t, time.Second, time.Since(begun), "the question is under way for long enough")
		assert.Equal(t, 2, service.Count())
		<-time.After(time.Minute)
	})
}

// Old keys may belong to a deleted registration, so an answer is used as soon as
// there is one.
func TestStaleKeysEndWithTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := New(service.List)
		askKeys(t, source, testHeadA, false)
		<-time.After(DefaultTTL)
		service.Fail(errors.New("down"))
		for range 60 {
			askKeys(t, source, testHeadA, false)
			<-time.After(time.Second)
		}
		assert.Equal(t, 1+6, service.Count(), "one question every 10 seconds")
		service.Fail(nil)
		service.Set(testHeadA)
		assert.Empty(t, askKeys(t, source, testHeadA, false))
		service.Fail(errors.New("down"))
		<-time.After(missTTL)
		keys, err := source.Get(t.Context(), testHeadA, false)
		assert.Error(t, err)
		assert.Empty(t, keys, "the next outage does not bring them back")
	})
}

func TestQuestionWhoseGoroutineEndsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		source := New(func(context.Context, string, bool) ([]string, error) {
			calls++
			if calls == 1 {
				runtime.Goexit()
			}
			return []string{testKeyA}, nil
		})
		_, err := source.Get(t.Context(), testHeadA, false)
		assert.ErrorIs(t, err, errFetchEnded)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

// A request that waits for its turn ends in time, even if those before it hang.
func TestQuestionDoesNotWaitForeverForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const heads = maxFetches + 1
		release := make(chan struct{})
		hanging := false
		source := New(func(context.Context, string, bool) ([]string, error) {
			if hanging {
				<-release
			}
			return []string{testKeyA}, nil
		})
		for i := range heads {
			askKeys(t, source, numberedHead(i), false)
		}
		<-time.After(DefaultTTL)
		hanging = true
		for i := range heads {
			go func() {
				_, _ = source.Get(t.Context(), numberedHead(i), false)
			}()
			synctest.Wait()
		}
		<-time.After(fetchTimeout + time.Second)
		synctest.Wait()
		source.mu.Lock()
		waiting := len(source.fetches)
		source.mu.Unlock()
		assert.Equal(t, maxFetches, waiting)
		close(release)
	})
}
