package heads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sharedStore is a store that several receivers share. Before each call it calls
// trouble, which may fail or wait. If applied is true, the call takes effect even
// if trouble fails.
type sharedStore struct {
	Deduplicator
	trouble func(ctx context.Context, method string) error
	applied bool

	mu    sync.Mutex
	calls []storeCall
}

type storeCall struct {
	method, owner string
	lease         time.Duration // or memory
	at            time.Time
}

func newSharedStore() *sharedStore { return &sharedStore{Deduplicator: NewMemoryDeduplicator(100)} }

func (s *sharedStore) call(ctx context.Context, c storeCall, f func()) error {
	c.at = time.Now()
	s.mu.Lock()
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	var err error
	if s.trouble != nil {
		err = s.trouble(ctx, c.method)
	}
	if err == nil || s.applied {
		f()
	}
	return err
}

func (s *sharedStore) Claim(ctx context.Context, key, owner string, lease time.Duration) (claim Claim, err error) {
	err = s.call(ctx, storeCall{method: "claim", owner: owner, lease: lease}, func() {
		claim, _ = s.Deduplicator.Claim(ctx, key, owner, lease)
	})
	return claim, err
}

func (s *sharedStore) Done(ctx context.Context, key, owner string, memory time.Duration) error {
	return s.call(ctx, storeCall{method: "done", owner: owner, lease: memory}, func() {
		_ = s.Deduplicator.Done(ctx, key, owner, memory)
	})
}

func (s *sharedStore) Release(ctx context.Context, key, owner string) error {
	return s.call(ctx, storeCall{method: "release", owner: owner}, func() {
		_ = s.Deduplicator.Release(ctx, key, owner)
	})
}

// methods returns the methods that were called, in order.
func (s *sharedStore) methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var methods []string
	for _, c := range s.calls {
		methods = append(methods, c.method)
	}
	return methods
}

// failing returns a trouble that fails the first n calls of a method.
func failing(method string, n int) func(context.Context, string) error {
	var mu sync.Mutex
	return func(_ context.Context, called string) error {
		mu.Lock()
		defer mu.Unlock()
		if called != method || n == 0 {
			return nil
		}
		n--
		return errors.New("the store is broken")
	}
}

func after(d time.Duration) func(context.Context, *Event) error {
	return func(context.Context, *Event) error {
		<-time.After(d)
		return nil
	}
}

func TestLeaseIsTheTimeoutPlusFiveSeconds(t *testing.T) {
	for _, row := range []struct {
		name          string
		lease, memory time.Duration
		opts          []EventHandlerOption
	}{
		{"by default", 9 * time.Second, 24*time.Hour + 6*time.Minute, nil},
		{"with a timeout", 65 * time.Second, 24*time.Hour + 6*time.Minute, []EventHandlerOption{WithHandlerTimeout(time.Minute)}},
		{"with the longest timeout", 1<<63 - 1, 24*time.Hour + 6*time.Minute, []EventHandlerOption{WithHandlerTimeout(1<<63 - 1)}},
		{"with another age", 9 * time.Second, 3*time.Hour + time.Minute, []EventHandlerOption{WithMaxAge(2*time.Hour, time.Hour)}},
		{"with the longest age", 9 * time.Second, 1<<63 - 1, []EventHandlerOption{WithMaxAge(1<<63-1, 1<<63-1)}},
	} {
		Bubble(t, row.name, func(t *testing.T) {
			store := newSharedStore()
			h := newReceiver(t, after(0), append(row.opts, WithDeduplicator(store))...)
			require.Equal(t, 200, h.event("s"))
			require.NoError(t, h.Shutdown(t.Context()))
			require.Equal(t, []string{"claim", "done"}, store.methods())
			assert.Equal(t, row.lease, store.calls[0].lease)
			assert.Equal(t, row.memory, store.calls[1].lease)
			assert.Equal(t, row.memory, h.Memory())
			assert.Equal(t, store.calls[0].owner, store.calls[1].owner)
		})
	}
}

func TestEveryDeliveryHasAnOwnerOfItsOwn(t *testing.T) {
	store := newSharedStore()
	h := newReceiver(t, func(context.Context, *Event) error { return errors.New("failed") }, WithDeduplicator(store))
	body := recentEventBody(testHeadA, "s")
	for range 3 {
		require.Equal(t, 503, h.post(body, testKeyA))
	}
	owners := map[string]int{}
	for _, c := range store.calls {
		owners[c.owner]++
		assert.GreaterOrEqual(t, len(c.owner), 20, "no two owners are the same")
	}
	assert.Len(t, owners, 3)
	for owner, calls := range owners {
		assert.Equal(t, 2, calls, owner)
	}
}

func TestClaimIsRenewedAtHalfTheLeaseWhileTheFunctionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		h := newReceiver(t, after(20*time.Second), WithDeduplicator(store))
		begun := time.Now()
		require.Equal(t, 200, h.event("s"))
		<-time.After(time.Minute)
		require.Equal(t, []string{"claim", "claim", "claim", "claim", "claim", "done"}, store.methods(), "and not after it")
		for i, c := range store.calls[:5] {
			assert.Equal(t, time.Duration(i)*4500*time.Millisecond, c.at.Sub(begun))
			assert.Equal(t, 9*time.Second, c.lease)
			assert.Equal(t, store.calls[0].owner, c.owner)
		}
	})
}

func TestFailingRenewalIsRetriedBeforeTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		begun := time.Now()
		store.trouble = func(context.Context, string) error {
			if since := time.Since(begun); since > 0 && since < 8*time.Second {
				return errors.New("the store is broken")
			}
			return nil
		}
		h := newReceiver(t, after(30*time.Second), WithDeduplicator(store))
		twin := newReceiver(t, after(0), WithDeduplicator(store))
		body := recentEventBody(testHeadA, "s")
		go h.post(body, testKeyA)
		<-time.After(10 * time.Second)
		assert.Equal(t, 503, twin.post(body, testKeyA), "the lease was extended")
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Contains(t, h.log.String(), "the claim can't be extended")
		assert.Equal(t, "done", store.methods()[len(store.methods())-1])
	})
}

// No event is lost while a store is unreachable for a while: the redeliveries of
// the service last longer.
func TestNoEventIsLostWhileTheStoreIsDown(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for _, away := range []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second} {
			Bubble(t, fmt.Sprint(away, " applied ", applied), func(t *testing.T) {
				begun := time.Now()
				store := newSharedStore()
				store.applied = applied
				store.trouble = func(context.Context, string) error {
					if time.Since(begun) < away {
						return errors.New("the store is away")
					}
					return nil
				}
				h := newReceiver(t, nil, WithDeduplicator(store))
				assert.Equal(t, 200, deliverLikeTheService(h, recentEventBody(testHeadA, "s"), 0))
				assert.EqualValues(t, 1, h.calls.Load())
			})
		}
	}
}

// deliverLikeTheService sends deliveries until one succeeds, at most up to number
// 4, and returns the last status.
func deliverLikeTheService(h *receiver, body string, first int) (status int) {
	for n := first; n < 4; n++ {
		if n > 0 {
			<-time.After(time.Second << (n - 1))
		}
		if status = serveEvent(h, signedEvent(body, testKeyA)).Code; status == 200 {
			break
		}
	}
	return status
}

func TestAmbiguousClaimIsReleased(t *testing.T) {
	for name, trouble := range map[string]func(ctx context.Context) error{
		"fails":       func(context.Context) error { return errors.New("connection lost") },
		"times out":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics":      func(context.Context) error { panic("connection lost") },
		"claims late": func(context.Context) error { <-time.After(7 * time.Second); return nil },
	} {
		Bubble(t, name, func(t *testing.T) {
			store := newSharedStore()
			store.applied = true
			store.trouble = func(ctx context.Context, method string) (err error) {
				if method == "claim" {
					return trouble(ctx)
				}
				return nil
			}
			h := newReceiver(t, nil, WithDeduplicator(store))
			begun := time.Now()
			body := recentEventBody(testHeadA, "s")
			assert.NotEqual(t, 200, h.post(body, testKeyA))
			assert.LessOrEqual(t, time.Since(begun), 4900*time.Millisecond)
			require.NoError(t, h.Shutdown(t.Context()))
			methods := store.methods()
			assert.Equal(t, "release", methods[len(methods)-1])
			assert.Zero(t, h.calls.Load())

			store.trouble = nil
			next := newReceiver(t, nil, WithDeduplicator(store))
			assert.Equal(t, 200, next.post(body, testKeyA))
			assert.Less(t, time.Since(begun), 9*time.Second, "the lease had not ended")
		})
	}
}

func TestClaimIsReleasedWhenTheSenderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		store := newSharedStore()
		store.applied = true
		store.trouble = func(ctx context.Context, method string) error {
			if method == "claim" {
				leave()
				return ctx.Err()
			}
			return ctx.Err()
		}
		h := newReceiver(t, after(0), WithDeduplicator(store))
		serveEvent(h, signedEvent(recentEventBody(testHeadA, "s"), testKeyA).WithContext(ctx))
		assert.Equal(t, []string{"claim", "release"}, store.methods())
	})
}

func TestFailingDoneAndReleaseAreRetried(t *testing.T) {
	for _, row := range []struct {
		method string
		status int
		result error
		next   Claim
	}{
		{"done", 200, nil, ClaimDone},
		{"release", 503, errors.New("failed"), ClaimNew},
	} {
		for failures, within := range map[int]time.Duration{3: time.Second, 15: 8 * time.Second} {
			Bubble(t, fmt.Sprint(row.method, " ", failures), func(t *testing.T) {
				store := newSharedStore()
				store.trouble = failing(row.method, failures)
				h := newReceiver(t, returning(row.result), WithDeduplicator(store))
				body := recentEventBody(testHeadA, "s")
				begun := time.Now()
				assert.Equal(t, row.status, h.post(body, testKeyA))
				assert.LessOrEqual(t, time.Since(begun), time.Second, "the answer does not wait for long")
				require.NoError(t, h.Shutdown(t.Context()), "Shutdown waits for the store")
				assert.Less(t, time.Since(begun), within)
				e := Must(ParseEvent([]byte(body)))(t)
				store.trouble = nil
				claim := Must(store.Claim(t.Context(), e.Key(), "next", time.Second))(t)
				assert.Equal(t, row.next, claim)
			})
		}
	}
}

// oddStore is a store that answers every claim alike.
type oddStore struct {
	Deduplicator
	claim Claim
}

func (s oddStore) Claim(context.Context, string, string, time.Duration) (Claim, error) {
	return s.claim, nil
}

func TestFailingStore(t *testing.T) {
	broken := errors.New("the store is broken")
	troubled := func(method string, f func() error) Deduplicator {
		store := newSharedStore()
		store.trouble = func(_ context.Context, called string) error {
			if called == method {
				return f()
			}
			return nil
		}
		return store
	}
	fails, panics := func() error { return broken }, func() error { panic("the store is broken") }
	for _, row := range []struct {
		name    string
		store   Deduplicator
		handle  error
		status  int
		outcome DeliveryOutcome
		runs    int32
	}{
		{"claim fails", troubled("claim", fails), nil, 503, DeliveryClaimFailed, 0},
		{"claim is no claim", oddStore{newSharedStore(), 0}, nil, 503, DeliveryClaimFailed, 0},
		{"claim is of an unknown kind", oddStore{newSharedStore(), ClaimDone + 1}, nil, 503, DeliveryClaimFailed, 0},
		{"claim panics", troubled("claim", panics), nil, 500, DeliveryPanicked, 0},
		{"done fails", troubled("done", fails), nil, 200, DeliveryHandled, 1},
		{"done panics", troubled("done", panics), nil, 200, DeliveryHandled, 1},
		{"release fails", troubled("release", fails), broken, 503, DeliveryFailed, 1},
		{"release panics", troubled("release", panics), broken, 503, DeliveryFailed, 1},
	} {
		Bubble(t, row.name, func(t *testing.T) {
			h := newReceiver(t, returning(row.handle), WithDeduplicator(row.store))
			assert.Equal(t, row.status, h.event("s"))
			require.NoError(t, h.Shutdown(t.Context()))
			assert.Equal(t, row.runs, h.calls.Load())
			assert.Equal(t, []DeliveryOutcome{row.outcome}, h.outcomes())
			if !strings.HasPrefix(row.name, "claim is ") {
				assert.Contains(t, h.log.String(), "the store is broken", "it is logged")
			}
		})
	}
}

// A store must learn how the function ended even if no one waits for the answer.
func TestStoreHasItsOwnTimeToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		store.trouble = func(ctx context.Context, _ string) error {
			assert.NoError(t, ctx.Err())
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, time.Second, time.Until(deadline))
			return nil
		}
		var result error
		h := newReceiver(t, func(ctx context.Context, _ *Event) error {
			<-ctx.Done()
			return result
		}, WithDeduplicator(store))
		assert.Equal(t, 200, h.event("1"))
		result = errors.New("failed")
		assert.Equal(t, 503, h.event("2"))
		assert.Equal(t, []string{"claim", "done", "claim", "release"}, store.methods())
	})
}

func TestStoreThatNeverRecoversIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		store.trouble = failing("done", -1)
		h := newReceiver(t, after(0), WithDeduplicator(store))
		assert.Equal(t, 200, h.event("s"))
		begun := time.Now()
		require.NoError(t, h.Shutdown(t.Context()))
		assert.LessOrEqual(t, time.Since(begun), 9*time.Second, "the lease has ended by then")
		assert.Contains(t, h.log.String(), "the answer no longer waits")
		assert.Contains(t, h.log.String(), "the deduplicator failed")
		assert.Equal(t, 2, strings.Count(h.log.String(), "the store is broken"))
	})
}

func TestAnswerIsSentInTimeWhateverTheStoreDoes(t *testing.T) {
	broken := errors.New("the store is broken")
	for name, trouble := range map[string]func(ctx context.Context, free chan struct{}) error{
		"fails":               func(context.Context, chan struct{}) error { return broken },
		"times out":           func(ctx context.Context, _ chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"ignores its context": func(_ context.Context, free chan struct{}) error { <-free; return broken },
		"takes 0.9 s":         func(context.Context, chan struct{}) error { <-time.After(900 * time.Millisecond); return nil },
		"takes 2 s":           func(context.Context, chan struct{}) error { <-time.After(2 * time.Second); return nil },
		"panics":              func(context.Context, chan struct{}) error { panic("broken") },
	} {
		for _, method := range []string{"claim", "done", "release", "any"} {
			for _, takes := range []time.Duration{0, 4 * time.Second, 4850 * time.Millisecond, 10 * time.Second} {
				for _, opts := range [][]EventHandlerOption{nil, {WithHandlerTimeout(time.Minute)}, {WithHandlerTimeout(time.Second)}} {
					synctest.Test(t, func(t *testing.T) {
						free := make(chan struct{})
						store := newSharedStore()
						store.trouble = func(ctx context.Context, called string) error {
							if called == method || method == "any" {
								return trouble(ctx, free)
							}
							return nil
						}
						returned := time.Now()
						h := newReceiver(t, func(ctx context.Context, _ *Event) error {
							<-time.After(takes)
							returned = time.Now()
							if method == "release" {
								return broken
							}
							return nil
						}, append(opts, WithDeduplicator(store))...)
						begun := time.Now()
						status := h.event("s")
						answered := time.Since(begun)
						late := returned.Sub(begun) > 4900*time.Millisecond
						what := fmt.Sprint(name, " at ", method, ", function ", takes, ", options ", len(opts), ": ", status)
						if late {
							assert.Equal(t, returned.Sub(begun), answered, what)
						} else {
							assert.LessOrEqual(t, answered, 4900*time.Millisecond, what)
						}
						close(free)
						require.NoError(t, h.Shutdown(t.Context()))
					})
				}
			}
		}
	}
}

// A receiver that was killed can't release its claim. Each redelivery waits for
// the key, so the last one is answered after the lease has ended.
func TestEventOfACrashedReceiverIsHandled(t *testing.T) {
	for _, spacing := range []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		Bubble(t, fmt.Sprint(spacing), func(t *testing.T) {
			store := newSharedStore()
			body := recentEventBody(testHeadA, "s")
			e := Must(ParseEvent([]byte(body)))(t)
			mustClaim(t, store, e.Key(), "crashed", 9*time.Second)
			h := newReceiver(t, nil, WithDeduplicator(store))
			status := 0
			for n := 0; n < 3 && status != 200; n++ {
				<-time.After(spacing << n)
				status = h.post(body, testKeyA)
			}
			assert.Equal(t, 200, status)
			assert.EqualValues(t, 1, h.calls.Load())
		})
	}
}

func TestTwinAtAnotherReceiverIsAnsweredOnceTheEventIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		one := newReceiver(t, after(2*time.Second), WithDeduplicator(store))
		two := newReceiver(t, nil, WithDeduplicator(store))
		body := recentEventBody(testHeadA, "s")
		go one.post(body, testKeyA)
		synctest.Wait()
		begun := time.Now()
		assert.Equal(t, 200, two.post(body, testKeyA))
		assert.Less(t, time.Since(begun), 2500*time.Millisecond)
		assert.Equal(t, []DeliveryOutcome{DeliveryDuplicate}, two.outcomes())
		assert.Zero(t, two.calls.Load())
	})
}

// A delivery that renewed what it never held would take the key once the holder
// gives it back, and keep it from every redelivery.
func TestDeliveryWithoutTheClaimRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		h := newReceiver(t, after(0), WithDeduplicator(store))
		busy, done := recentEventBody(testHeadA, "busy"), recentEventBody(testHeadA, "done")
		for _, body := range []string{busy, done} {
			e := Must(ParseEvent([]byte(body)))(t)
			mustClaim(t, store.Deduplicator, e.Key(), "twin", time.Minute)
			if body == done {
				require.NoError(t, store.Deduplicator.Done(t.Context(), e.Key(), "twin", time.Minute))
			}
		}
		require.Equal(t, 503, h.post(busy, testKeyA))
		require.Equal(t, 200, h.post(done, testKeyA))
		calls := len(store.methods())
		<-time.After(time.Hour)
		assert.Len(t, store.methods(), calls)
	})
}

func TestFunctionDoesNotBeginWhenTheClaimOutlastsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore()
		store.trouble = func(_ context.Context, method string) error {
			if method == "claim" {
				<-time.After(time.Second + storeGrace/2)
			}
			return nil
		}
		h := newReceiver(t, nil, WithHandlerTimeout(time.Second), WithDeduplicator(store))
		assert.Equal(t, 503, h.event("s"))
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Zero(t, h.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryTimedOut}, h.outcomes())
		assert.Equal(t, []string{"claim", "release"}, store.methods())
	})
}
