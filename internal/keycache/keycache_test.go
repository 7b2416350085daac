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

func newSource(list List) *Source {
	source := New(list).Source()
	return &source
}

func askKeys(t *testing.T, source *Source, headID string, mismatch bool) []string {
	t.Helper()
	keys, err := source.Get(t.Context(), headID, mismatch)
	require.NoError(t, err)
	return keys
}

// bubble runs a test with a source of keys and the service that it asks.
func bubble(t *testing.T, f func(t *testing.T, service *keycachetest.Service, source *Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		f(t, service, newSource(service.List))
	})
}

// crowd asks about n unknown heads at once, and returns when all wait.
func crowd(t *testing.T, source *Source, n int) {
	for i := range n {
		go func() {
			_, _ = source.Get(t.Context(), numberedHead(i), false)
		}()
	}
	synctest.Wait()
}

// numberedHead returns the i-th of many head ids.
func numberedHead(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i) }

func TestCacheAsksOncePerTTL(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		askKeys(t, source, testHeadA, false)
		service.Set(testHeadA)
		<-time.After(5*time.Minute - time.Second)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		<-time.After(time.Second)
		assert.Empty(t, askKeys(t, source, testHeadA, false))
	})
}

func TestCacheRemembersMissesForAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		for range 30 {
			assert.Empty(t, askKeys(t, source, testHeadA, true))
		}
		assert.Equal(t, 3, service.Count())
	})
}

func TestMinuteOfAMismatchOutlivesAMiss(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Delay = time.Second
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Delay = 6 * time.Second
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Delay = time.Hour
		begun := time.Now()
		_, err := source.Get(t.Context(), testHeadA, false)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestFailedQuestionIsNotRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		down := errors.New("down")
		service.Fail(down)
		_, err := source.Get(t.Context(), testHeadA, false)
		assert.ErrorIs(t, err, down)
		service.Fail(nil)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestUnknownHeadsTakeBoundedMemory(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		askKeys(t, source, testHeadA, false)
		for i := range maxMissed + 100 {
			assert.Empty(t, askKeys(t, source, numberedHead(i), false))
			<-time.After(time.Second / 5)
		}
		assert.Len(t, source.cache.missed, maxMissed)
		assert.Empty(t, source.cache.fetches)
		assert.Len(t, source.cache.known, 1)
		service.Fail(errors.New("down"))
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false), "strangers did not push the known head out")
	})
}

func TestKnownHeadsTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(func(_ context.Context, headID string, _ bool) ([]string, error) { return []string{headID}, nil })
		for i := range maxKnown + 100 {
			headID := numberedHead(i)
			require.Equal(t, []string{headID}, askKeys(t, source, headID, false))
			<-time.After(time.Second / 5)
		}
		assert.Len(t, source.cache.known, maxKnown)
	})
}

// flood asks about as many made-up heads a second as n, each as a delivery that waits
// for at most 4 s, and calls each at the end of every second.
func flood(t *testing.T, source *Source, n, seconds int, each func(second int)) {
	t.Helper()
	for second := range seconds {
		for i := range n {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				_, _ = source.Get(ctx, numberedHead(second*n+i), false)
			}()
			<-time.After(time.Second / time.Duration(n))
		}
		synctest.Wait()
		each(second)
	}
}

func TestQuestionsAboutUnknownHeadsAreLimited(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "fast": 50 * time.Millisecond, "slow": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
				askKeys(t, source, testHeadA, false)
				<-time.After(DefaultTTL)
				service.Slow(delay)
				begun, before := time.Now(), service.Count()
				flood(t, source, 1000, 10, func(second int) {
					assert.LessOrEqual(t, service.Count()-before, 20+int(5*time.Since(begun)/time.Second), "a burst of 20, and 5 a second")
					if second > 0 && delay < time.Second {
						assert.GreaterOrEqual(t, service.Count()-before, 20+5*second, "which are used")
					}
					source.cache.mu.Lock()
					assert.LessOrEqual(t, len(source.cache.fetches), maxStrangers+maxLimited)
					source.cache.mu.Unlock()
					known := time.Now()
					asked := service.Count()
					assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, second%4 == 0), "of a known head")
					assert.LessOrEqual(t, time.Since(known), delay)
					if second%4 == 0 {
						before += min(1, service.Count()-asked)
					}
				})
				<-time.After(4 * time.Second)
				service.Set(testHeadB, testKeyB)
				ctx, cancel := context.WithTimeout(t.Context(), fetchTimeout+delay)
				defer cancel()
				keys, err := source.Get(ctx, testHeadB, false)
				require.NoError(t, err, "what strangers asked for does not wait for longer than a request")
				assert.Equal(t, []string{testKeyB}, keys)
			})
		})
	}
}

// Questions that find keys give back what they took, so a receiver that was just
// started learns all its heads.
func TestQuestionsThatFindKeysTakeNoBudget(t *testing.T) {
	for name, row := range map[string]struct {
		delay, within time.Duration
	}{
		"at once": {0, 0},
		"fast":    {50 * time.Millisecond, 2200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
				const heads = 500
				clear(service.Keys)
				service.Delay = row.delay
				var all sync.WaitGroup
				for i := range heads {
					service.Set(numberedHead(i), testKeyA)
					all.Go(func() { assert.Equal(t, []string{testKeyA}, askKeys(t, source, numberedHead(i), false)) })
				}
				begun := time.Now()
				all.Wait()
				assert.LessOrEqual(t, time.Since(begun), row.within)
				assert.LessOrEqual(t, service.Most, maxLimited)
				assert.Equal(t, heads, service.Count(), "one for each head")
			})
		})
	}
}

func TestNoMoreQuestionsThanSixteenAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		service.Delay = time.Second
		source.Named = map[string]struct{}{}
		for i := range 50 {
			source.Named[numberedHead(i)] = struct{}{}
		}
		for i := range 100 {
			service.Set(numberedHead(i), testKeyA)
			go func() {
				_, _ = source.Get(t.Context(), numberedHead(i), false)
			}()
		}
		source.cache.Read([]string{numberedHead(200), numberedHead(201)})
		<-time.After(time.Hour)
		assert.Equal(t, 16, service.Most)
		assert.Equal(t, 102, service.Count())
	})
}

// Deliveries end while their head waits in line. The next one finds the question where
// it was, and at last its answer.
func TestQuestionKeepsItsPlaceWhenItsDeliveryEnds(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Delay = 2 * time.Second
		crowd(t, source, unknownBurst+5)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := source.Get(ctx, testHeadA, false)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errUnknownHeads)
		<-time.After(10 * time.Second)
		asked := service.Count()
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, asked, service.Count())
	})
}

func TestQuestionAboutAnUnknownHeadWaitsAtMostTenSeconds(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Slow(time.Hour)
		crowd(t, source, unknownBurst+60)
		begun := time.Now()
		_, err := source.Get(t.Context(), testHeadA, false)
		require.ErrorIs(t, err, errUnknownHeads)
		assert.Equal(t, fetchTimeout, time.Since(begun))
		<-time.After(time.Hour)
		synctest.Wait()
		assert.Empty(t, source.cache.fetches)
		assert.Zero(t, source.cache.questions.running)
		assert.Zero(t, source.cache.questions.limited)
	})
}

func TestQuestionsAboutUnknownHeadsAreNotRetried(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Delay = 2 * time.Second
		source.Stale = 0
		require.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		<-time.After(DefaultTTL)
		crowd(t, source, 2000)
		begun := time.Now()
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, service.Delay, time.Since(begun), "it did not wait for its turn")
		<-time.After(time.Hour)
		assert.LessOrEqual(t, service.Most, maxFetches)
	})
}

func TestQuestionsAboutKnownHeadsAreFewAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
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
		source := newSource(func(context.Context, string, bool) ([]string, error) {
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
		source := newSource(func(context.Context, string, bool) ([]string, error) {
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
		source.cache.mu.Lock()
		waiting := len(source.cache.fetches)
		source.cache.mu.Unlock()
		assert.Equal(t, maxFetches, waiting)
		close(release)
	})
}

func TestLearnedKeysAreKnown(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		other := source.cache.Source()
		source.cache.Learn(testHeadA, "one")
		source.cache.Learn(testHeadA, "two")
		source.cache.Learn(testHeadA, "one")
		source.cache.Learn(testHeadA, "")
		source.cache.LearnAll(testHeadB, []string{testKeyB}, time.Now())
		for _, s := range []*Source{source, &other} {
			assert.Equal(t, []string{"one", "two"}, askKeys(t, s, testHeadA, false))
			assert.Equal(t, []string{testKeyB}, askKeys(t, s, testHeadB, false))
		}
		assert.Zero(t, service.Count())
	})
}

// What one program adds does not keep the key of a registration alive that another
// program has deleted.
func TestLearningAKeyMakesTheOthersNoYounger(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Keys = map[string][]string{testHeadA: {"new"}}
		source.cache.LearnAll(testHeadA, []string{"deleted"}, time.Now())
		<-time.After(DefaultTTL - time.Second)
		source.cache.Learn(testHeadA, "new")
		source.cache.Learn(testHeadA, "deleted")
		assert.Equal(t, []string{"deleted", "new"}, askKeys(t, source, testHeadA, false))
		<-time.After(time.Second)
		assert.Equal(t, []string{"new"}, askKeys(t, source, testHeadA, false))
	})
}

func TestLearnedHeadTakesNoBudgetWhenItsKeysExpire(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		source.cache.Learn(testHeadA, testKeyA)
		<-time.After(2 * DefaultStale)
		flood(t, source, 1000, 3, func(int) {
			assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, true))
		})
	})
}

func TestLearnedKeysTakeBoundedMemory(t *testing.T) {
	source := newSource(nil)
	for i := range maxKnown + 100 {
		source.cache.Learn(numberedHead(i), testKeyA)
	}
	assert.Len(t, source.cache.known, maxKnown)
	for i := range 10 * maxKeys {
		source.cache.Learn(testHeadA, fmt.Sprint("key ", i))
	}
	keys := askKeys(t, source, testHeadA, false)
	assert.Len(t, keys, maxKeys)
	assert.Equal(t, fmt.Sprint("key ", 10*maxKeys-1), keys[maxKeys-1], "the oldest go first")
}

// Answers can overtake each other. A key that was learned while a request was under way
// stays, though the answer does not hold it.
func TestAnswerThatBeganBeforeAKeyWasLearnedKeepsTheKey(t *testing.T) {
	for name, row := range map[string]struct {
		before, answer, want []string
		learn                func(c *Cache)
	}{
		"created while asked for the first time": {nil, nil, []string{"new"}, func(c *Cache) { c.Learn(testHeadA, "new") }},
		"created beside another":                 {[]string{"old"}, []string{"old"}, []string{"old", "new"}, func(c *Cache) { c.Learn(testHeadA, "new") }},
		"created while the other was replaced":   {[]string{"old"}, []string{"other"}, []string{"old", "new", "other"}, func(c *Cache) { c.Learn(testHeadA, "new") }},
		"listed meanwhile":                       {[]string{"old"}, []string{"old"}, []string{"new"}, func(c *Cache) { c.LearnAll(testHeadA, []string{"new"}, time.Now()) }},
		"listed before":                          {[]string{"old"}, []string{"new"}, []string{"new"}, func(c *Cache) { c.LearnAll(testHeadA, []string{"old"}, time.Now().Add(-time.Minute)) }},
		"all deleted before":                     {[]string{"old"}, []string{"new"}, []string{"new"}, func(c *Cache) { c.LearnAll(testHeadA, nil, time.Now().Add(-time.Minute)) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
				service.Keys = map[string][]string{testHeadA: row.answer}
				service.Delay = 2 * time.Second
				if row.before != nil {
					source.cache.LearnAll(testHeadA, row.before, time.Now())
					<-time.After(DefaultTTL)
				}
				time.AfterFunc(time.Second, func() { row.learn(source.cache) })
				source.Stale = 0
				assert.Equal(t, row.want, askKeys(t, source, testHeadA, false))
				assert.Equal(t, 1, service.Count())
			})
		})
	}
}

func TestListThatIsEmptyEndsTheKeysOfAHead(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		source.cache.LearnAll(testHeadA, []string{testKeyA}, time.Now())
		source.cache.LearnAll(testHeadA, nil, time.Now())
		source.cache.LearnAll(testHeadB, nil, time.Now())
		assert.Empty(t, source.cache.known)
		assert.Empty(t, source.cache.missed, "a registration of another program is found at once")
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, []string{testKeyB}, askKeys(t, source, testHeadB, false))
	})
}

func TestForgottenMissIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		askKeys(t, source, testHeadA, false)
		service.Set(testHeadA, testKeyA)
		assert.Empty(t, askKeys(t, source, testHeadA, false))
		source.cache.Forget(testHeadA)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

// A delivery that waits in line gets the keys as soon as they are learned.
func TestLearningAnswersWhoWaits(t *testing.T) {
	for name, learn := range map[string]func(c *Cache){
		"a key": func(c *Cache) { c.Learn(testHeadA, testKeyA) },
		"all":   func(c *Cache) { c.LearnAll(testHeadA, []string{testKeyA}, time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
				service.Slow(time.Hour)
				crowd(t, source, maxLimited)
				time.AfterFunc(time.Second, func() { learn(source.cache) })
				begun := time.Now()
				assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
				assert.Equal(t, time.Second, time.Since(begun))
				<-time.After(time.Minute)
				assert.Equal(t, maxLimited, service.Count(), "the question is not asked any more")
			})
		})
	}
}

func TestReadAsksInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Slow(50 * time.Millisecond)
		source.cache.Learn(testHeadB, "learned")
		source.cache.Read([]string{testHeadA, testHeadB, numberedHead(1)})
		<-time.After(time.Second)
		assert.ElementsMatch(t, []string{testHeadA, numberedHead(1)}, service.Asked, "what is known is not read")
		assert.Empty(t, service.Once, "with retries")
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, 2, service.Count())
		service.Set(numberedHead(1), "later")
		assert.Equal(t, []string{"later"}, askKeys(t, source, numberedHead(1), false), "a head without keys is not remembered")
	})
}

func TestReadIsRetriedWithGrowingPauses(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		service.Fail(errors.New("down"))
		var ids []string
		for i := range 500 {
			ids = append(ids, numberedHead(i))
			service.Set(numberedHead(i), testKeyA)
		}
		source.cache.Read(ids)
		<-time.After(31*time.Second + time.Millisecond) // pauses of 1, 2, 4, 8 and 16 s
		assert.LessOrEqual(t, service.Count(), maxLimited+5, "a service that fails is not flooded")
		assert.GreaterOrEqual(t, service.Count(), 1+5)
		service.Fail(nil)
		<-time.After(32 * time.Second)
		synctest.Wait()
		assert.Len(t, source.cache.known, 500)
		assert.Empty(t, source.cache.fetches)
	})
}

// Nothing closes a cache, so reading ends by itself.
func TestReadEndsIfNothingIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Fail(errors.New("down"))
		source.Named = map[string]struct{}{testHeadA: {}}
		source.cache.Read([]string{testHeadA})
		<-time.After(readingEndsIn + maxPause)
		asked := service.Count()
		<-time.After(24 * time.Hour)
		assert.Equal(t, asked, service.Count())
		assert.Less(t, asked, 25)
		synctest.Wait()
		assert.Empty(t, source.cache.questions.later.heads)
		service.Fail(nil)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false), "its first event asks")
	})
}

// A head whose keys can't be read does not hold the others up, and is tried again.
func TestReadGoesOnAfterOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := 0
		source := newSource(func(_ context.Context, headID string, _ bool) ([]string, error) {
			if headID == testHeadA && failed < 3 {
				failed++
				return nil, errors.New("unreadable")
			}
			return []string{testKeyA}, nil
		})
		source.cache.Read([]string{testHeadA, testHeadB, numberedHead(1)})
		<-time.After(10 * time.Second)
		synctest.Wait()
		assert.Len(t, source.cache.known, 3)
		assert.Equal(t, 3, failed)
	})
}

// Deliveries go first: the first event of a named head does not wait until all others
// are read.
func TestDeliveryOfANamedHeadOvertakesReading(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		service.Delay = time.Second
		source.Named = map[string]struct{}{}
		var ids []string
		for i := range 500 {
			ids = append(ids, numberedHead(i))
			source.Named[numberedHead(i)] = struct{}{}
			service.Set(numberedHead(i), testKeyA)
		}
		source.cache.Read(ids)
		begun := time.Now()
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, numberedHead(499), false))
		assert.Equal(t, time.Second, time.Since(begun))
		<-time.After(time.Hour)
		assert.Equal(t, 500, service.Count())
	})
}

// Sources of one cache may name different heads.
func TestDeliveryOfASourceThatNamesTheHeadTakesItOutOfTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		service.Slow(2 * time.Second)
		naming := source.cache.Source()
		naming.Named = map[string]struct{}{testHeadA: {}}
		crowd(t, source, 2*maxLimited)
		begun := time.Now()
		go func() {
			_, _ = source.Get(t.Context(), testHeadA, false)
		}()
		synctest.Wait()
		assert.Equal(t, []string{testKeyA}, askKeys(t, &naming, testHeadA, false))
		assert.Equal(t, 2*time.Second, time.Since(begun))
		<-time.After(time.Minute)
		synctest.Wait()
		assert.Equal(t, 2*maxLimited+1, service.Count(), "it is asked about once")
		assert.Zero(t, source.cache.questions.limited)
	})
}

// A named head may be registered at any time by another program.
func TestNamedHeadWithoutKeysIsAskedAboutThreeTimesAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, service *keycachetest.Service, source *Source) {
		clear(service.Keys)
		source.Named = map[string]struct{}{testHeadA: {}}
		for range 60 {
			assert.Empty(t, askKeys(t, source, testHeadA, false))
			<-time.After(10 * time.Millisecond)
		}
		assert.Equal(t, 1+3, service.Count())
		<-time.After(time.Minute)
		askKeys(t, source, testHeadA, false)
		service.Set(testHeadA, testKeyA)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}
