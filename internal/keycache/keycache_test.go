package keycache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headsapi/heads-go/internal/keycache/keycachetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	testHeadA = "3f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b"
	testHeadB = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
	testKeyA  = "first shared key"
	testKeyB  = "second shared key"
)

var errDown = errors.New("down")

// rig is a source of keys, with the service that it asks.
type rig struct {
	t *testing.T
	*keycachetest.Service
	Source
}

// rules runs each rule in a bubble with a rig of its own.
func rules(t *testing.T, rules map[string]func(k *rig)) {
	t.Helper()
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &keycachetest.Service{Keys: map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}}
				rule(&rig{t, service, New(service.List).Source()})
			})
		})
	}
}

func (k *rig) ask(headID string, mismatch bool) []string {
	k.t.Helper()
	keys, err := k.Get(k.t.Context(), headID, mismatch)
	require.NoError(k.t, err)
	return keys
}

// expired asks for the keys of heads, and waits until they have expired.
func (k *rig) expired(headIDs ...string) {
	for _, id := range headIDs {
		k.ask(id, false)
	}
	<-time.After(DefaultTTL)
}

// finds asserts what a delivery finds, and how long that takes.
func (k *rig) finds(headID string, took time.Duration, want ...string) {
	k.t.Helper()
	begun := time.Now()
	assert.Equal(k.t, want, k.ask(headID, false))
	assert.Equal(k.t, took, time.Since(begun))
}

func (k *rig) send(headID string) { go func() { _, _ = k.Get(k.t.Context(), headID, false) }() }

// crowd asks about n unknown heads at once, and returns when all wait.
func (k *rig) crowd(n int) {
	for i := range n {
		k.send(numberedHead(i))
	}
	synctest.Wait()
}

// register gives keys to the first n numbered heads alone.
func (k *rig) register(n int) (headIDs []string) {
	clear(k.Keys)
	for i := range n {
		headIDs = append(headIDs, numberedHead(i))
		k.Set(numberedHead(i), testKeyA)
	}
	return headIDs
}

func (k *rig) name(headIDs ...string) {
	k.Named = map[string]struct{}{}
	for _, id := range headIDs {
		k.Named[id] = struct{}{}
	}
}

// flood asks about as many made-up heads a second as n, each as a delivery that waits
// for at most 4 s, and calls each at the end of every second.
func (k *rig) flood(n, seconds int, each func(second int)) {
	for second := range seconds {
		for i := range n {
			go func() {
				ctx, cancel := context.WithTimeout(k.t.Context(), 4*time.Second)
				defer cancel()
				_, _ = k.Get(ctx, numberedHead(second*n+i), false)
			}()
			<-time.After(time.Second / time.Duration(n))
		}
		synctest.Wait()
		each(second)
	}
}

func (k *rig) fetches() int {
	k.cache.mu.Lock()
	defer k.cache.mu.Unlock()
	return len(k.cache.fetches)
}

func numberedHead(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i) }

func TestKeysAreCached(t *testing.T) {
	rules(t, map[string]func(k *rig){
		"asked for once per TTL": func(k *rig) {
			k.TTL = 10 * time.Minute
			for range 20 {
				k.finds(testHeadA, 0, testKeyA)
				<-time.After(time.Minute)
			}
			assert.Equal(k.t, []string{testHeadA, testHeadA}, k.Asked)
			k.finds(testHeadB, 0, testKeyB)
		},
		"misses for a minute": func(k *rig) {
			clear(k.Keys)
			for range 60 {
				k.finds(testHeadA, 0)
				<-time.After(time.Second)
			}
			assert.Equal(k.t, 1, k.Count())
			k.Set(testHeadA, testKeyA)
			k.finds(testHeadA, 0, testKeyA)
		},
		"for a bounded number of unknown heads": func(k *rig) {
			k.ask(testHeadA, false)
			for i := range maxMissed + 100 {
				assert.Empty(k.t, k.ask(numberedHead(i), false))
				<-time.After(time.Second / 5)
			}
			assert.Len(k.t, k.cache.missed, maxMissed)
			assert.Empty(k.t, k.cache.fetches)
			assert.Len(k.t, k.cache.known, 1)
			k.Fail(errDown)
			k.finds(testHeadA, 0, testKeyA) // strangers did not push the known head out
		},
		// Old keys may belong to a deleted registration, so an answer is used as soon as there is one.
		"and stale ones end with the first answer": func(k *rig) {
			k.expired(testHeadA)
			k.Fail(errDown)
			for range 60 {
				k.finds(testHeadA, 0, testKeyA)
				<-time.After(time.Second)
			}
			assert.Equal(k.t, 1+6, k.Count(), "one question every 10 seconds")
			k.Fail(nil)
			k.Set(testHeadA)
			k.finds(testHeadA, 0)
			k.Fail(errDown)
			<-time.After(missTTL)
			keys, err := k.Get(k.t.Context(), testHeadA, false)
			assert.Error(k.t, err)
			assert.Empty(k.t, keys, "the next outage does not bring them back")
		},
	})
}

func TestKeysAreReadAgainAfterMismatches(t *testing.T) {
	rules(t, map[string]func(k *rig){
		// The window slides: reads late in one minute and early in the next are counted together.
		"three times in any minute": func(k *rig) {
			k.ask(testHeadA, false)
			begun := time.Now()
			var read []int
			for _, second := range []int{0, 50, 55, 61, 62, 109, 111, 112, 116, 117} {
				<-time.After(time.Duration(second)*time.Second - time.Since(begun))
				key := fmt.Sprint("key ", second)
				k.Set(testHeadA, key)
				if slices.Contains(k.ask(testHeadA, true), key) {
					read = append(read, second)
				}
			}
			assert.Equal(k.t, []int{0, 50, 55, 61, 111, 116}, read)
			assert.Equal(k.t, 1+len(read), k.Count())
			k.ask(testHeadB, false)
			for range 10 {
				k.ask(testHeadB, true)
			}
			assert.Equal(k.t, 1+len(read)+1+3, k.Count(), "each head has its own minute")
		},
		// An attacker can cause any number of mismatches. Whatever the TTL, and even if
		// the service fails, that must not cause more than three requests a minute.
		"three times a minute while the service fails": func(k *rig) {
			k.ask(testHeadA, false)
			k.Fail(errDown)
			failures := 0
			for range 4 * 60 {
				if keys, err := k.Get(k.t.Context(), testHeadA, true); err != nil {
					failures++
				} else {
					assert.Equal(k.t, []string{testKeyA}, keys, "the old keys stay")
				}
				<-time.After(time.Second)
			}
			assert.Equal(k.t, []int{4 * 3, 1 + 4*3}, []int{failures, k.Count()})
		},
		"of misses, whose minute outlives them": func(k *rig) {
			clear(k.Keys)
			k.TTL = 10 * time.Second
			for range 30 {
				assert.Empty(k.t, k.ask(testHeadA, true))
			}
			assert.Equal(k.t, 3, k.Count())
			<-time.After(10 * time.Second)
			k.ask(testHeadA, false)
			k.ask(testHeadA, true)
			assert.Equal(k.t, 4, k.Count())
		},
		// A named head may be registered at any time by another program.
		"of a named head without keys": func(k *rig) {
			clear(k.Keys)
			k.name(testHeadA)
			for range 60 {
				k.finds(testHeadA, 0)
				<-time.After(10 * time.Millisecond)
			}
			assert.Equal(k.t, 1+3, k.Count())
			<-time.After(time.Minute)
			k.ask(testHeadA, false)
			k.Set(testHeadA, testKeyA)
			k.finds(testHeadA, 0, testKeyA)
		},
	})
}

func TestWaitForKeysEnds(t *testing.T) {
	rules(t, map[string]func(k *rig){
		"with the delivery": func(k *rig) {
			k.Delay = 6 * time.Second
			ctx, cancel := context.WithTimeout(k.t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			_, err := k.Get(ctx, testHeadA, false)
			assert.ErrorIs(k.t, err, context.DeadlineExceeded)
			assert.Equal(k.t, time.Second, time.Since(begun))

			k.finds(testHeadA, 5*time.Second, testKeyA) // the request goes on
			assert.Equal(k.t, 1, k.Count())
		},
		"by itself": func(k *rig) {
			k.Delay = time.Hour
			begun := time.Now()
			_, err := k.Get(k.t.Context(), testHeadA, false)
			assert.ErrorIs(k.t, err, context.DeadlineExceeded)
			assert.Equal(k.t, fetchTimeout, time.Since(begun))
		},
		"with stale keys after a second": func(k *rig) {
			k.expired(testHeadA)
			k.Slow(time.Hour)
			k.finds(testHeadA, time.Second, testKeyA)
			for range 10 {
				k.finds(testHeadA, 0, testKeyA) // the question is under way for long enough
			}
			assert.Equal(k.t, 2, k.Count())
			<-time.After(time.Minute)
		},
		"with the goroutine of the question": func(k *rig) {
			calls := 0
			k.Source = New(func(context.Context, string, bool) ([]string, error) {
				if calls++; calls == 1 {
					runtime.Goexit()
				}
				return []string{testKeyA}, nil
			}).Source()
			_, err := k.Get(k.t.Context(), testHeadA, false)
			assert.ErrorIs(k.t, err, errFetchEnded)
			k.finds(testHeadA, 0, testKeyA)
		},
		"in time before its turn, even if those before it hang": func(k *rig) {
			release, hanging := make(chan struct{}), false
			k.Source = New(func(context.Context, string, bool) ([]string, error) {
				if hanging {
					<-release
				}
				return []string{testKeyA}, nil
			}).Source()
			ids := k.register(maxFetches + 1)
			k.expired(ids...)
			hanging = true
			for _, id := range ids {
				k.send(id)
				synctest.Wait()
			}
			<-time.After(fetchTimeout + time.Second)
			synctest.Wait()
			assert.Equal(k.t, maxFetches, k.fetches())
			close(release)
		},
		"after ten seconds for an unknown head": func(k *rig) {
			k.Slow(time.Hour)
			k.crowd(unknownBurst + 60)
			begun := time.Now()
			_, err := k.Get(k.t.Context(), testHeadA, false)
			require.ErrorIs(k.t, err, errUnknownHeads)
			assert.Equal(k.t, fetchTimeout, time.Since(begun))
			<-time.After(time.Hour)
			synctest.Wait()
			assert.Empty(k.t, k.cache.fetches)
			assert.Equal(k.t, []int{0, 0}, []int{k.cache.questions.running, k.cache.questions.limited})
		},
		// The next delivery finds the question where it was, and at last its answer.
		"but the question keeps its place": func(k *rig) {
			k.Delay = 2 * time.Second
			k.crowd(unknownBurst + 5)
			ctx, cancel := context.WithCancel(k.t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := k.Get(ctx, testHeadA, false)
			require.ErrorIs(k.t, err, context.Canceled)
			require.ErrorIs(k.t, err, errUnknownHeads)
			<-time.After(10 * time.Second)
			asked := k.Count()
			k.finds(testHeadA, 0, testKeyA)
			assert.Equal(k.t, asked, k.Count())
		},
	})
}

func TestQuestionsAboutUnknownHeadsAreLimited(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "fast": 50 * time.Millisecond, "slow": 3 * time.Second} {
		rules(t, map[string]func(k *rig){name: func(k *rig) {
			k.expired(testHeadA)
			k.Slow(delay)
			begun, before := time.Now(), k.Count()
			k.flood(1000, 10, func(second int) {
				assert.LessOrEqual(k.t, k.Count()-before, 20+int(5*time.Since(begun)/time.Second), "a burst of 20, and 5 a second")
				if second > 0 && delay < time.Second {
					assert.GreaterOrEqual(k.t, k.Count()-before, 20+5*second, "which are used")
				}
				assert.LessOrEqual(k.t, k.fetches(), maxStrangers+maxLimited)
				known, asked := time.Now(), k.Count()
				assert.Equal(k.t, []string{testKeyA}, k.ask(testHeadA, second%4 == 0), "of a known head")
				assert.LessOrEqual(k.t, time.Since(known), delay)
				if second%4 == 0 {
					before += min(1, k.Count()-asked)
				}
			})
			<-time.After(4 * time.Second)
			k.Set(testHeadB, testKeyB)
			ctx, cancel := context.WithTimeout(k.t.Context(), fetchTimeout+delay)
			defer cancel()
			keys, err := k.Get(ctx, testHeadB, false)
			require.NoError(k.t, err, "what strangers asked for does not wait for longer than a request")
			assert.Equal(k.t, []string{testKeyB}, keys)
		}})
	}
}

func TestQuestionsTakeTurns(t *testing.T) {
	rules(t, map[string]func(k *rig){
		"sixteen at once": func(k *rig) {
			k.Delay = time.Second
			k.name(k.register(100)[:50]...)
			k.crowd(100)
			k.cache.Read([]string{numberedHead(200), numberedHead(201)})
			<-time.After(time.Hour)
			assert.Equal(k.t, []int{16, 102}, []int{k.Most, k.Count()})
		},
		// Questions that find keys give back what they took, so a receiver that was just started learns
		// all its heads.
		"without a limit for those that find keys": func(k *rig) {
			k.Delay = 50 * time.Millisecond
			var all sync.WaitGroup
			for _, id := range k.register(500) {
				all.Go(func() { assert.Equal(k.t, []string{testKeyA}, k.ask(id, false)) })
			}
			begun := time.Now()
			all.Wait()
			assert.LessOrEqual(k.t, time.Since(begun), 2200*time.Millisecond)
			assert.LessOrEqual(k.t, k.Most, maxLimited)
			assert.Equal(k.t, 500, k.Count(), "one for each head")
		},
		"with retries for known heads alone": func(k *rig) {
			k.expired(testHeadA, numberedHead(1))
			k.ask(testHeadA, false)
			k.ask(numberedHead(1), false)
			k.ask(testHeadA, true)
			assert.Equal(k.t, []string{testHeadA, numberedHead(1), numberedHead(1)}, k.Once, "testHeadA is known after the first question")
			assert.Equal(k.t, 5, k.Count())
		},
		// The first event of a named head does not wait until all others are read.
		"deliveries before reading": func(k *rig) {
			k.Delay = time.Second
			ids := k.register(500)
			k.name(ids...)
			k.cache.Read(ids)
			k.finds(ids[499], time.Second, testKeyA)
			<-time.After(time.Hour)
			assert.Equal(k.t, 500, k.Count())
		},
		// Sources of one cache may name different heads.
		"and a source that names a head takes it out of the line": func(k *rig) {
			k.Slow(2 * time.Second)
			naming := &rig{k.t, k.Service, k.cache.Source()}
			naming.name(testHeadA)
			k.crowd(2 * maxLimited)
			k.send(testHeadA)
			synctest.Wait()
			naming.finds(testHeadA, 2*time.Second, testKeyA)
			<-time.After(time.Minute)
			synctest.Wait()
			assert.Equal(k.t, 2*maxLimited+1, k.Count(), "it is asked about once")
			assert.Zero(k.t, k.cache.questions.limited)
		},
	})
}

func TestKeysAreLearned(t *testing.T) {
	rules(t, map[string]func(k *rig){
		"by all sources": func(k *rig) {
			clear(k.Keys)
			for _, key := range []string{"one", "two", "one", ""} {
				k.cache.Learn(testHeadA, key)
			}
			k.cache.LearnAll(testHeadB, []string{testKeyB}, time.Now())
			for _, source := range []Source{k.Source, k.cache.Source()} {
				k.Source = source
				k.finds(testHeadA, 0, "one", "two")
				k.finds(testHeadB, 0, testKeyB)
			}
			assert.Zero(k.t, k.Count())
		},
		// What one program adds does not keep the key of a registration alive that
		// another program has deleted.
		"and make the others no younger": func(k *rig) {
			k.Set(testHeadA, "new")
			k.cache.LearnAll(testHeadA, []string{"deleted"}, time.Now())
			<-time.After(DefaultTTL - time.Second)
			k.cache.Learn(testHeadA, "new")
			k.cache.Learn(testHeadA, "deleted")
			k.finds(testHeadA, 0, "deleted", "new")
			<-time.After(time.Second)
			k.finds(testHeadA, 0, "new")
		},
		"and take no budget when they expire": func(k *rig) {
			k.cache.Learn(testHeadA, testKeyA)
			<-time.After(2 * DefaultStale)
			k.flood(1000, 3, func(int) { assert.Equal(k.t, []string{testKeyA}, k.ask(testHeadA, true)) })
		},
		"in bounded memory": func(k *rig) {
			for i := range maxKnown + 100 {
				k.cache.Learn(numberedHead(i), testKeyA)
			}
			assert.Len(k.t, k.cache.known, maxKnown)
			for i := range 10 * maxKeys {
				k.cache.Learn(testHeadA, fmt.Sprint("key ", i))
			}
			keys := k.ask(testHeadA, false)
			assert.Len(k.t, keys, maxKeys)
			assert.Equal(k.t, fmt.Sprint("key ", 10*maxKeys-1), keys[maxKeys-1], "the oldest go first")
		},
		"and an empty list ends them": func(k *rig) {
			k.cache.LearnAll(testHeadA, []string{"old"}, time.Now())
			k.cache.LearnAll(testHeadA, nil, time.Now())
			k.cache.LearnAll(testHeadB, nil, time.Now())
			assert.Empty(k.t, k.cache.known)
			assert.Empty(k.t, k.cache.missed, "a registration of another program is found at once")
			k.finds(testHeadA, 0, testKeyA)
			k.finds(testHeadB, 0, testKeyB)
		},
		"after a miss that is forgotten": func(k *rig) {
			clear(k.Keys)
			k.ask(testHeadA, false)
			k.Set(testHeadA, testKeyA)
			k.finds(testHeadA, 0)
			k.cache.Forget(testHeadA)
			k.finds(testHeadA, 0, testKeyA)
		},
	})
}

// A delivery that waits in line gets the keys as soon as they are learned.
func TestLearningAnswersWhoWaits(t *testing.T) {
	for name, learn := range map[string]func(c *Cache){
		"a key": func(c *Cache) { c.Learn(testHeadA, testKeyA) },
		"all":   func(c *Cache) { c.LearnAll(testHeadA, []string{testKeyA}, time.Now()) },
	} {
		rules(t, map[string]func(k *rig){name: func(k *rig) {
			k.Slow(time.Hour)
			k.crowd(maxLimited)
			time.AfterFunc(time.Second, func() { learn(k.cache) })
			k.finds(testHeadA, time.Second, testKeyA)
			<-time.After(time.Minute)
			assert.Equal(k.t, maxLimited, k.Count(), "the question is not asked any more")
		}})
	}
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
		rules(t, map[string]func(k *rig){name: func(k *rig) {
			k.Set(testHeadA, row.answer...)
			k.Delay, k.Stale = 2*time.Second, 0
			if row.before != nil {
				k.cache.LearnAll(testHeadA, row.before, time.Now())
				<-time.After(DefaultTTL)
			}
			time.AfterFunc(time.Second, func() { row.learn(k.cache) })
			assert.Equal(k.t, row.want, k.ask(testHeadA, false))
			assert.Equal(k.t, 1, k.Count())
		}})
	}
}

func TestKeysAreReadInTheBackground(t *testing.T) {
	rules(t, map[string]func(k *rig){
		"of heads that are not known": func(k *rig) {
			k.Slow(50 * time.Millisecond)
			k.cache.Learn(testHeadB, "learned")
			k.cache.Read([]string{testHeadA, testHeadB, numberedHead(1)})
			<-time.After(time.Second)
			assert.ElementsMatch(k.t, []string{testHeadA, numberedHead(1)}, k.Asked)
			assert.Empty(k.t, k.Once, "with retries")
			k.finds(testHeadA, 0, testKeyA)
			assert.Equal(k.t, 2, k.Count())
			k.Set(numberedHead(1), "later")
			k.finds(numberedHead(1), 50*time.Millisecond, "later") // a head without keys is not remembered
		},
		"again after growing pauses": func(k *rig) {
			k.Fail(errDown)
			k.cache.Read(k.register(500))
			<-time.After(31*time.Second + time.Millisecond) // pauses of 1, 2, 4, 8 and 16 s
			assert.LessOrEqual(k.t, k.Count(), maxLimited+5, "a service that fails is not flooded")
			assert.GreaterOrEqual(k.t, k.Count(), 1+5)
			k.Fail(nil)
			<-time.After(32 * time.Second)
			synctest.Wait()
			assert.Len(k.t, k.cache.known, 500)
			assert.Empty(k.t, k.cache.fetches)
		},
		// Nothing closes a cache, so reading ends by itself.
		"until nothing is answered for long": func(k *rig) {
			k.Fail(errDown)
			k.name(testHeadA)
			k.cache.Read([]string{testHeadA})
			<-time.After(readingEndsIn + maxPause)
			asked := k.Count()
			<-time.After(24 * time.Hour)
			assert.Equal(k.t, asked, k.Count())
			assert.Less(k.t, asked, 25)
			synctest.Wait()
			assert.Empty(k.t, k.cache.questions.later.heads)
			k.Fail(nil)
			k.finds(testHeadA, 0, testKeyA) // its first event asks
		},
		"though one fails, which is tried again": func(k *rig) {
			failed := 0
			k.Source = New(func(_ context.Context, headID string, _ bool) ([]string, error) {
				if headID == testHeadA && failed < 3 {
					failed++
					return nil, errDown
				}
				return []string{testKeyA}, nil
			}).Source()
			k.cache.Read([]string{testHeadA, testHeadB, numberedHead(1)})
			<-time.After(10 * time.Second)
			synctest.Wait()
			assert.Len(k.t, k.cache.known, 3)
			assert.Equal(k.t, 3, failed)
		},
	})
}
