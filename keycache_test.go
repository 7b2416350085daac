package heads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeKeyService is what a key cache asks.
type fakeKeyService struct {
	mu    sync.Mutex
	keys  map[string][]string
	err   error
	delay time.Duration
	asked []string
	once  []string // the heads of questions without retries
	most  int      // at one time
	now   int
}

func (s *fakeKeyService) list(ctx context.Context, headID string, retry bool) ([]string, error) {
	s.mu.Lock()
	s.asked = append(s.asked, headID)
	if !retry {
		s.once = append(s.once, headID)
	}
	s.now++
	s.most = max(s.most, s.now)
	delay := s.delay
	s.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.keys[headID], s.err
}

func (s *fakeKeyService) set(headID string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[headID] = keys
}

func (s *fakeKeyService) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *fakeKeyService) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

func (s *fakeKeyService) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func newFakeKeyService() *fakeKeyService {
	return &fakeKeyService{keys: map[string][]string{testHeadA: {testKeyA}, testHeadB: {testKeyB}}}
}

func askKeys(t *testing.T, source KeySource, headID string, mismatch bool) []string {
	t.Helper()
	keys, err := source.Keys(t.Context(), KeyHint{HeadID: headID, Mismatch: mismatch})
	require.NoError(t, err)
	return keys
}

// madeUpHead is a head id, another one for each i.
func madeUpHead(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i) }

func TestKeySourceAsksOncePerTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list, WithKeyTTL(10*time.Minute))
		for range 20 {
			assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
			<-time.After(time.Minute)
		}
		assert.Equal(t, []string{testHeadA, testHeadA}, service.asked)
		assert.Equal(t, []string{testKeyB}, askKeys(t, source, testHeadB, false))
	})
}

func TestKeySourceForgetsADeletedRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		service.set(testHeadA)
		<-time.After(5*time.Minute - time.Second)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		<-time.After(time.Second)
		assert.Empty(t, askKeys(t, source, testHeadA, false))
	})
}

func TestKeySourceRemembersMissesForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.keys = map[string][]string{}
		source := newCachedKeySource(service.list)
		for range 60 {
			assert.Empty(t, askKeys(t, source, testHeadA, false))
			<-time.After(time.Second)
		}
		assert.Equal(t, 1, service.count())
		service.set(testHeadA, testKeyA)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false), "a new registration works after a minute")
	})
}

func TestKeySourceRemembersMissesNoLongerThanTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list, WithKeyTTL(10*time.Second))
		service.set(testHeadA, "")
		assert.Empty(t, askKeys(t, source, testHeadA, false), "a registration without a key has none")
		service.set(testHeadA, testKeyA)
		<-time.After(10 * time.Second)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestKeySourceRereadsThreeTimesAMinuteAfterMismatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		for i := range 4 * 60 { // less than the TTL
			key := fmt.Sprint("key ", i)
			service.set(testHeadA, key)
			keys := askKeys(t, source, testHeadA, true)
			if i%60 < 3 {
				assert.Equal(t, []string{key}, keys, "a re-read is left in second %d", i)
			} else {
				assert.Equal(t, []string{fmt.Sprint("key ", i-i%60+2)}, keys, "second %d", i)
			}
			<-time.After(time.Second)
		}
		assert.Equal(t, 1+4*3, service.count())
		before := service.count()
		askKeys(t, source, testHeadB, false)
		for range 10 {
			askKeys(t, source, testHeadB, true)
		}
		assert.Equal(t, before+1+3, service.count(), "each head has its own minute")
	})
}

// The window slides: re-reads late in one minute and early in the next one are
// counted together.
func TestRereadsAreCountedOverAnyMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		begun := time.Now()
		for _, second := range []int{0, 50, 55, 61, 62, 109, 111, 112, 116, 117} {
			<-time.After(time.Duration(second)*time.Second - time.Since(begun))
			askKeys(t, source, testHeadA, true)
		}
		assert.Equal(t, 1+3+1+1+1, service.count(), "at 0, 50 and 55, then at 61, 111 and 116")
	})
}

func TestTwoBadSignaturesLeaveARereadForARotatedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		var c eventCounter
		h, err := NewEventHandler(newCachedKeySource(service.list), c.handle)
		require.NoError(t, err)
		require.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "1"), testKeyA)).Code)
		for i := range 2 {
			require.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, fmt.Sprint("bad ", i)), "wrong key")).Code)
		}
		service.set(testHeadA, "new key")
		assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "2"), "new key")).Code)
		assert.EqualValues(t, 2, c.calls.Load())
	})
}

// A stranger can cause mismatches at will: neither the TTL nor a failing
// service may give him more than three questions a minute.
func TestMismatchesNeverAskMoreThanThreeTimesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		service.fail(errors.New("down"))
		failures := 0
		for range 4 * 60 {
			keys, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA, Mismatch: true})
			if err != nil {
				failures++
			} else {
				assert.Equal(t, []string{testKeyA}, keys, "the old keys stay")
			}
			<-time.After(time.Second)
		}
		assert.Equal(t, 4*3, failures)
		assert.Equal(t, 1+4*3, service.count())
	})
}

func TestMismatchOfAMissIsLimitedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.keys = map[string][]string{}
		source := newCachedKeySource(service.list)
		for range 30 {
			assert.Empty(t, askKeys(t, source, testHeadA, true))
		}
		assert.Equal(t, 3, service.count())
	})
}

func TestMinuteOfAMismatchOutlivesAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.keys = map[string][]string{}
		source := newCachedKeySource(service.list, WithKeyTTL(10*time.Second))
		for range 3 {
			askKeys(t, source, testHeadA, true)
		}
		<-time.After(10 * time.Second)
		askKeys(t, source, testHeadA, false)
		askKeys(t, source, testHeadA, true)
		assert.Equal(t, 4, service.count())
	})
}

func TestRotatedKeyWorksWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		var c eventCounter
		h, err := NewEventHandler(newCachedKeySource(service.list), c.handle)
		require.NoError(t, err)
		assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "1"), testKeyA)).Code)
		service.set(testHeadA, "new key")
		assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "2"), "new key")).Code)
		assert.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(testHeadA, "3"), testKeyA)).Code, "the old key is out")
		assert.EqualValues(t, 2, c.calls.Load())
		assert.Equal(t, 3, service.count())
	})
}

func TestKeySourceAsksOnceForConcurrentDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.delay = time.Second
		source := newCachedKeySource(service.list)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, i%2 == 0))
			})
		}
		wg.Wait()
		assert.Equal(t, 1, service.count())
	})
}

func TestWaitingForKeysEndsWithTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.delay = 6 * time.Second
		source := newCachedKeySource(service.list)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := source.Keys(ctx, KeyHint{HeadID: testHeadA})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(begun))

		// The question goes on, and the next delivery has its answer.
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, 6*time.Second, time.Since(begun))
		assert.Equal(t, 1, service.count())
	})
}

func TestQuestionForKeysEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.delay = time.Hour
		source := newCachedKeySource(service.list)
		begun := time.Now()
		_, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestFailedQuestionIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		down := errors.New("down")
		service.fail(down)
		source := newCachedKeySource(service.list)
		_, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA})
		assert.ErrorIs(t, err, down)
		service.fail(nil)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestPanicInAQuestionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		source := newCachedKeySource(func(context.Context, string, bool) ([]string, error) {
			calls++
			if calls == 1 {
				panic("token source is broken")
			}
			return []string{testKeyA}, nil
		})
		_, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA})
		assert.ErrorContains(t, err, "token source is broken")
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

func TestOnlyUUIDsReachTheService(t *testing.T) {
	service := newFakeKeyService()
	source := newCachedKeySource(service.list)
	for name, headID := range map[string]string{
		"empty":                "",
		"public id":            "li-28379",
		"path":                 "../../head/update",
		"query":                testHeadA[:30] + "&x=y1",
		"in braces":            "{" + testHeadA + "}",
		"without hyphens":      strings.ReplaceAll(testHeadA, "-", ""),
		"hyphens elsewhere":    "3f2b8c1e5-d4a-4e6f-9a7b-0c1d2e3f4a5b",
		"not hex":              "zf2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b",
		"beyond ASCII":         "３2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b",
		"one digit more":       testHeadA + "0",
		"with a line end":      testHeadA + "\n",
		"64 KiB":               strings.Repeat("a", 65000),
		"two ids":              testHeadA + "," + testHeadB,
		"hyphen at a digit":    "-f2b8c1e-5d4a-4e6f-9a7b-0c1d2e3f4a5b",
		"digit at a hyphen":    "3f2b8c1e05d4a-4e6f-9a7b-0c1d2e3f4a5b",
		"space in a digit":     "3f2b8c1 -5d4a-4e6f-9a7b-0c1d2e3f4a5b",
		"percent-encoded form": "%33f2b8c1-5d4a-4e6f-9a7b-0c1d2e3f4a5",
	} {
		assert.Empty(t, askKeys(t, source, headID, false), name)
	}
	assert.Zero(t, service.count())
}

// A stranger who writes a known id in 2^30 ways must not get as many questions.
func TestLetterCaseOfAHeadIDMakesNoDifference(t *testing.T) {
	service := newFakeKeyService()
	source := newCachedKeySource(service.list)
	for _, headID := range []string{strings.ToUpper(testHeadA), testHeadA, strings.ToUpper(testHeadA[:9]) + testHeadA[9:]} {
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, headID, false))
	}
	assert.Equal(t, []string{testHeadA}, service.asked)
}

func TestUnknownHeadsTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		for i := range maxMissedHeads + 100 {
			assert.Empty(t, askKeys(t, source, madeUpHead(i), false))
			<-time.After(time.Second / 5)
		}
		assert.Len(t, source.cache.missed, maxMissedHeads)
		assert.Empty(t, source.cache.fetches)
		assert.Len(t, source.cache.known, 1)
		service.fail(errors.New("down"))
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false), "strangers did not push the known head out")
	})
}

func TestKnownHeadsTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newCachedKeySource(func(_ context.Context, headID string, _ bool) ([]string, error) { return []string{headID}, nil })
		for i := range maxKnownHeads + 100 {
			headID := madeUpHead(i)
			require.Equal(t, []string{headID}, askKeys(t, source, headID, false))
			<-time.After(time.Second / 5)
		}
		assert.Len(t, source.cache.known, maxKnownHeads)
	})
}

func TestQuestionsAboutUnknownHeadsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		<-time.After(time.Minute)
		refused := 0
		for i := range 1000 {
			if _, err := source.Keys(t.Context(), KeyHint{HeadID: madeUpHead(i)}); err != nil {
				assert.ErrorIs(t, err, errUnknownHeads)
				refused++
			}
		}
		assert.Equal(t, 1+20, service.count(), "the burst")
		assert.Equal(t, 1000-20, refused)
		for i := range 1001 {
			_, _ = source.Keys(t.Context(), KeyHint{HeadID: madeUpHead(1000 + i)})
			<-time.After(10 * time.Millisecond)
		}
		assert.Equal(t, 1+20+50, service.count(), "5 a second in 10 seconds")
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, true), "known heads are asked about meanwhile")
		assert.Equal(t, 1+20+50+1, service.count())
	})
}

// A refused question is the receiver's limit, not the sender's fault: a head
// that is new in a flood must be delivered again.
func TestEventsAboveTheLimitOfUnknownHeadsAreAnswered503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		var c eventCounter
		h, err := NewEventHandler(newCachedKeySource(service.list), c.handle)
		require.NoError(t, err)
		for i := range 20 {
			require.Equal(t, 401, serveEvent(h, signedEvent(recentEventBody(madeUpHead(i), "s"), testKeyA)).Code)
		}
		assert.Equal(t, 503, serveEvent(h, signedEvent(recentEventBody(testHeadA, "1"), testKeyA)).Code)
		<-time.After(time.Second)
		assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "1"), testKeyA)).Code)
	})
}

func TestQuestionsAboutUnknownHeadsAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		askKeys(t, source, madeUpHead(1), false)
		<-time.After(defaultKeyTTL)
		askKeys(t, source, testHeadA, false)
		askKeys(t, source, madeUpHead(1), false)
		askKeys(t, source, testHeadA, true)
		assert.Equal(t, []string{testHeadA, madeUpHead(1), madeUpHead(1)}, service.once, "testHeadA is known after the first question")
		assert.Equal(t, 5, service.count())
	})
}

func TestQuestionWithoutRetriesIsOneRequest(t *testing.T) {
	for name, row := range map[string]struct {
		retry    bool
		requests int
	}{
		"a known head":    {true, 4},
		"an unknown head": {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			transport := newScript(answer(503, `{}`))
			_, err := newTestClient(t, memoryURL, transport).Webhooks.sharedKeys(t.Context(), testHeadA, row.retry)
			require.Error(t, err)
			assert.Equal(t, row.requests, transport.sent())
		})
	}
}

// A token that has expired is renewed, or the first event after a start would
// never find its keys.
func TestQuestionWithoutRetriesRenewsTheToken(t *testing.T) {
	transport := newScript(answer(401, `{}`), answer(200, `[{"id":1,"headId":"`+testHeadA+`","sharedKey":"one"}]`))
	tokens := 0
	client, err := New(memoryURL, "", WithHTTPClient(&http.Client{Transport: transport}),
		WithTokenSource(func(context.Context, string) (string, error) {
			tokens++
			return fmt.Sprint("token-", tokens), nil
		}))
	require.NoError(t, err)
	keys, err := client.Webhooks.sharedKeys(t.Context(), testHeadA, false)
	require.NoError(t, err)
	assert.Equal(t, []string{"one"}, keys)
}

func TestKnownHeadIsAskedForBesideAFloodOfUnknownOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		service.delay = 2 * time.Second
		source := newCachedKeySource(service.list, WithStaleKeys(0))
		require.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		<-time.After(defaultKeyTTL)
		for i := range 2000 {
			go func() {
				_, _ = source.Keys(t.Context(), KeyHint{HeadID: madeUpHead(i)})
			}()
		}
		synctest.Wait()
		begun := time.Now()
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
		assert.Equal(t, service.delay, time.Since(begun), "it did not wait for its turn")
		<-time.After(time.Hour)
		assert.LessOrEqual(t, service.most, unknownHeadsBurst+1)
	})
}

func TestQuestionsAboutKnownHeadsAreFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &fakeKeyService{keys: map[string][]string{}}
		source := newCachedKeySource(service.list)
		for i := range 100 {
			service.set(madeUpHead(i), testKeyA)
			askKeys(t, source, madeUpHead(i), false)
			<-time.After(time.Second)
		}
		<-time.After(defaultKeyTTL)
		service.slow(100 * time.Millisecond)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { askKeys(t, source, madeUpHead(i), false) })
		}
		wg.Wait()
		assert.Equal(t, maxKnownFetches, service.most)
		assert.Equal(t, 200, service.count())
	})
}

func TestKnownHeadsKeepExpiredKeysWhileTheRefreshFails(t *testing.T) {
	for name, row := range map[string]struct {
		opts []KeySourceOption
		kept time.Duration
	}{
		"by default": {nil, time.Hour},
		"shorter":    {[]KeySourceOption{WithStaleKeys(20 * time.Second)}, 20 * time.Second},
		"none":       {[]KeySourceOption{WithStaleKeys(0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := newFakeKeyService()
				source := newCachedKeySource(service.list, row.opts...)
				askKeys(t, source, testHeadA, false)
				down := errors.New("down")
				service.fail(down)
				<-time.After(defaultKeyTTL)
				for range row.kept / time.Second {
					assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
					<-time.After(time.Second)
				}
				_, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA})
				assert.ErrorIs(t, err, down)
				service.fail(nil)
				assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
			})
		})
	}
}

func TestEventsAreHandledWithKeysThatCannotBeRefreshed(t *testing.T) {
	for name, breakIt := range map[string]func(*fakeKeyService){
		"a service that fails": func(s *fakeKeyService) { s.fail(errors.New("down")) },
		"a service that hangs": func(s *fakeKeyService) { s.slow(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := newFakeKeyService()
				var c eventCounter
				h, err := NewEventHandler(newCachedKeySource(service.list), c.handle)
				require.NoError(t, err)
				require.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, "before"), testKeyA)).Code)
				<-time.After(defaultKeyTTL)
				breakIt(service)
				for i := range 59 {
					assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, fmt.Sprint(i)), testKeyA)).Code, "minute %d", i)
					<-time.After(time.Minute)
				}
				assert.Equal(t, 503, serveEvent(h, signedEvent(recentEventBody(testHeadB, "1"), testKeyB)).Code, "an unknown head has no keys")
				<-time.After(time.Hour)
			})
		})
	}
}

func TestDeliveriesDoNotWaitForARefreshThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		<-time.After(defaultKeyTTL)
		service.slow(time.Hour)
		begun := time.Now()
		askKeys(t, source, testHeadA, false)
		assert.Equal(t, time.Second, time.Since(begun))
		for range 10 {
			askKeys(t, source, testHeadA, false)
		}
		assert.Equal(t, time.Second, time.Since(begun), "the question is under way for long enough")
		assert.Equal(t, 2, service.count())
		<-time.After(time.Minute)
	})
}

// Keys that are used too long are those of a registration that was deleted, so
// an answer counts as soon as there is one.
func TestStaleKeysEndWithTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newFakeKeyService()
		source := newCachedKeySource(service.list)
		askKeys(t, source, testHeadA, false)
		<-time.After(defaultKeyTTL)
		service.fail(errors.New("down"))
		for range 60 {
			askKeys(t, source, testHeadA, false)
			<-time.After(time.Second)
		}
		assert.Equal(t, 1+6, service.count(), "one question every 10 seconds")
		service.fail(nil)
		service.set(testHeadA)
		assert.Empty(t, askKeys(t, source, testHeadA, false))
	})
}

func TestQuestionWhoseGoroutineEndsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		source := newCachedKeySource(func(context.Context, string, bool) ([]string, error) {
			calls++
			if calls == 1 {
				runtime.Goexit()
			}
			return []string{testKeyA}, nil
		})
		_, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA})
		assert.ErrorIs(t, err, errKeyFetchEnded)
		assert.Equal(t, []string{testKeyA}, askKeys(t, source, testHeadA, false))
	})
}

// A question that waits for its turn ends in time, even if those before it hang.
func TestQuestionDoesNotWaitForeverForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const heads = maxKnownFetches + 1
		release := make(chan struct{})
		hanging := false
		source := newCachedKeySource(func(context.Context, string, bool) ([]string, error) {
			if hanging {
				<-release
			}
			return []string{testKeyA}, nil
		})
		for i := range heads {
			askKeys(t, source, madeUpHead(i), false)
		}
		<-time.After(defaultKeyTTL)
		hanging = true
		for i := range heads {
			go func() {
				_, _ = source.Keys(t.Context(), KeyHint{HeadID: madeUpHead(i)})
			}()
			synctest.Wait()
		}
		<-time.After(keyFetchTimeout + time.Second)
		synctest.Wait()
		source.cache.mu.Lock()
		waiting := len(source.cache.fetches)
		source.cache.mu.Unlock()
		assert.Equal(t, maxKnownFetches, waiting)
		close(release)
	})
}

func TestKeySourceAsksForTheKeysOfTheHead(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		body   string
		keys   []string
		fails  bool
	}{
		"its registrations": {200, `[{"id":1,"headId":"` + testHeadA + `","sharedKey":"one"},{"id":2,"headId":"` + strings.ToUpper(testHeadA) + `","sharedKey":"two"}]`,
			[]string{"one", "two"}, false},
		"a registration without a head": {200, `[{"id":1,"sharedKey":"one"}]`, nil, true},
		"that of another head":          {200, `[{"id":1,"headId":"` + testHeadB + `","sharedKey":"one"}]`, nil, true},
		"none":                          {200, `[]`, nil, false},
		"an unknown head":               {404, `{}`, nil, false},
		"a failure":                     {500, `{}`, nil, true},
		"no permission":                 {403, `{}`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := serveWire(t, row.status, row.body)
			keys, err := server.client(t).Webhooks.KeySource().Keys(t.Context(), KeyHint{HeadID: testHeadA})
			assert.Equal(t, row.fails, err != nil, err)
			assert.Equal(t, row.keys, keys)
			assert.Equal(t, "GET /base/v1/head-events?headId="+testHeadA+" HTTP/1.1", (<-server.requests).line)
		})
	}
}

func TestKeySourceOptionsRefuseBadValues(t *testing.T) {
	service := newFakeKeyService()
	for name, opt := range map[string]KeySourceOption{
		"WithKeyTTL":    WithKeyTTL(0),
		"WithStaleKeys": WithStaleKeys(-1),
		"option":        nil,
	} {
		source := newCachedKeySource(service.list, opt)
		_, err := source.Keys(t.Context(), KeyHint{HeadID: testHeadA})
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, "Webhooks.KeySource", invalid.Operation)
		assert.Equal(t, name, invalid.Field)
		_, err = NewEventHandler(source, func(context.Context, *Event) error { return nil })
		assert.ErrorIs(t, err, ErrInvalid, "the handler finds it at once")
	}
	assert.Zero(t, service.count())
}
