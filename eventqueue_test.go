package heads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func postEvent(h http.Handler, sessionID string) int {
	return serveEvent(h, signedEvent(recentEventBody(testHeadA, sessionID), testKeyA)).Code
}

// postNthEvent sends the n-th event of a session.
func postNthEvent(h http.Handler, sessionID string, n int) int {
	body := eventBody(testHeadA, sessionID, fmt.Sprintf("type-%03d", n), time.Now().UTC().Format(time.RFC3339))
	return serveEvent(h, signedEvent(body, testKeyA)).Code
}

func TestQueueAnswersFirstAndWorksLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type contextKey struct{}
		var c eventCounter
		var seen deliveryObserver
		h := newTestHandler(t, func(ctx context.Context, e *Event) error {
			<-time.After(time.Minute)
			assert.NoError(t, ctx.Err(), "the work goes on after the request has ended")
			_, limited := ctx.Deadline()
			assert.False(t, limited)
			assert.Equal(t, e.SessionID, ctx.Value(contextKey{}), "the values of the request are")
			return c.handle(ctx, e)
		}, WithQueue(1, 10), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))

		begun := time.Now()
		for _, session := range []string{"s1", "s2"} {
			ctx, end := context.WithCancel(context.WithValue(t.Context(), contextKey{}, session))
			assert.Equal(t, 200, serveEvent(h, signedEvent(recentEventBody(testHeadA, session), testKeyA).WithContext(ctx)).Code)
			end()
		}
		assert.Zero(t, time.Since(begun))
		assert.Zero(t, c.calls.Load())
		assert.Empty(t, seen.outcomes(), "a delivery is observed once, at its end")

		require.NoError(t, h.Shutdown(t.Context()))
		assert.EqualValues(t, 2, c.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryHandled, DeliveryHandled}, seen.outcomes())
		second := seen.infos[1]
		assert.Equal(t, time.Minute, second.QueueDuration)
		assert.Equal(t, time.Minute, second.HandleDuration)
		assert.Zero(t, second.Duration)
		assert.Equal(t, 200, second.StatusCode)
	})
}

func TestQueuedDeliveryReportsItsThreeDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen deliveryObserver
		slowKeys := keyFunc(func(context.Context, KeyHint) ([]string, error) {
			<-time.After(time.Second)
			return []string{testKeyA}, nil
		})
		h, err := NewEventHandler(slowKeys, func(context.Context, *Event) error {
			<-time.After(time.Minute)
			return nil
		}, WithQueue(1, 10), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		require.NoError(t, err)
		assert.Equal(t, 200, postNthEvent(h, "s1", 1))
		assert.Equal(t, 200, postNthEvent(h, "s1", 2))
		require.NoError(t, h.Shutdown(t.Context()))

		require.Len(t, seen.infos, 2)
		assert.Equal(t, time.Second, seen.infos[1].Duration, "until the answer")
		assert.Equal(t, 59*time.Second, seen.infos[1].QueueDuration, "until the first, which began a second earlier, has ended")
		assert.Equal(t, time.Minute, seen.infos[1].HandleDuration)
	})
}

func TestQueueRunsAnEventAtMostOnce(t *testing.T) {
	for name, first := range map[string]func() error{
		"error": func() error { return errors.New("failed") },
		"panic": func() error { panic("broken") },
		"exit":  func() error { runtime.Goexit(); return nil },
		"nil":   func() error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c eventCounter
				h := newTestHandler(t, func(context.Context, *Event) error {
					c.calls.Add(1)
					return first()
				}, WithQueue(1, 10))
				for range 3 {
					assert.Equal(t, 200, postEvent(h, "s"), "a twin of what was accepted is accepted")
				}
				synctest.Wait()
				assert.Equal(t, 200, postEvent(h, "s"))
				require.NoError(t, h.Shutdown(t.Context()))
				assert.EqualValues(t, 1, c.calls.Load())
			})
		})
	}
}

func TestQueueGoesOnAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		var seen deliveryObserver
		h := newTestHandler(t, func(ctx context.Context, e *Event) error {
			switch e.SessionID {
			case "panics":
				panic("broken")
			case "exits":
				runtime.Goexit()
			}
			return c.handle(ctx, e)
		}, WithQueue(1, 10), WithDeliveryObserver(Observer[DeliveryInfo]{End: func(ctx context.Context, info DeliveryInfo) {
			seen.observe(ctx, info)
			panic("the observer is broken too")
		}}))
		for _, session := range []string{"panics", "exits", "good"} {
			assert.Equal(t, 200, postEvent(h, session))
		}
		require.NoError(t, h.Shutdown(t.Context()))
		assert.EqualValues(t, 1, c.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryPanicked, DeliveryHandled}, seen.outcomes())
		assert.Equal(t, 200, seen.infos[0].StatusCode, "what was answered")
		assert.Error(t, seen.infos[0].Err)
	})
}

func TestQueueKeepsTheOrderOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, events = 7, 40
		var mu sync.Mutex
		order := map[string][]string{}
		running := map[string]bool{}
		most, now := 0, 0
		h := newTestHandler(t, func(_ context.Context, e *Event) error {
			mu.Lock()
			assert.False(t, running[e.SessionID], "two events of one session at once")
			running[e.SessionID] = true
			order[e.SessionID] = append(order[e.SessionID], string(e.Type))
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Duration(1+len(e.Type)) * time.Millisecond)
			mu.Lock()
			running[e.SessionID] = false
			now--
			mu.Unlock()
			return nil
		}, WithQueue(3, sessions*events))
		for n := range events {
			for s := range sessions {
				require.Equal(t, 200, postNthEvent(h, fmt.Sprint("session-", s), n))
			}
		}
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Len(t, order, sessions)
		for session, types := range order {
			assert.Len(t, types, events, session)
			assert.IsIncreasing(t, types, session)
		}
		assert.Equal(t, 3, most, "all workers were used, and no more")
	})
}

func TestSlowSessionHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		h := newTestHandler(t, func(ctx context.Context, e *Event) error {
			if e.SessionID == "slow" {
				<-time.After(time.Hour)
				return nil
			}
			return c.handle(ctx, e)
		}, WithQueue(2, 100))
		for n := range 10 {
			require.Equal(t, 200, postNthEvent(h, "slow", n))
		}
		for n := range 50 {
			require.Equal(t, 200, postNthEvent(h, fmt.Sprint("quick-", n), 0))
		}
		synctest.Wait()
		assert.EqualValues(t, 50, c.calls.Load())
		require.NoError(t, h.Shutdown(t.Context()))
	})
}

func TestFullQueueAnswers503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		var seen deliveryObserver
		h := newTestHandler(t, func(ctx context.Context, e *Event) error {
			<-time.After(time.Second)
			return c.handle(ctx, e)
		}, WithQueue(2, 3), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		for n := range 5 { // two at work, three waiting
			require.Equal(t, 200, postEvent(h, fmt.Sprint(n)))
		}
		assert.Equal(t, 503, postEvent(h, "5"))
		assert.Equal(t, []DeliveryOutcome{DeliveryQueueFull}, seen.outcomes())

		<-time.After(1100 * time.Millisecond)
		assert.Equal(t, 200, postEvent(h, "5"), "its claim was released")
		require.NoError(t, h.Shutdown(t.Context()))
		assert.EqualValues(t, 6, c.calls.Load())
	})
}

func TestQueuedFunctionHasTheTimeoutOfTheOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen deliveryObserver
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			<-ctx.Done()
			return ctx.Err()
		}, WithQueue(1, 10), WithHandlerTimeout(time.Minute), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		require.Equal(t, 200, postEvent(h, "1"))
		require.Equal(t, 200, postEvent(h, "2"))
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Equal(t, []DeliveryOutcome{DeliveryTimedOut, DeliveryTimedOut}, seen.outcomes())
		assert.Equal(t, time.Minute, seen.infos[1].HandleDuration, "counted from the start of the function")
	})
}

func TestContextOfAQueuedEventEndsWithItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given context.Context
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			given = ctx
			return nil
		}, WithQueue(1, 10))
		require.Equal(t, 200, postEvent(h, "1"))
		synctest.Wait()
		assert.ErrorIs(t, given.Err(), context.Canceled)
		require.NoError(t, h.Shutdown(t.Context()))
	})
}

func TestShutdownGivesUpWithoutAQueueToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := newTestHandler(t, func(context.Context, *Event) error {
			<-release
			return nil
		})
		answered := make(chan int)
		go func() { answered <- postEvent(h, "1") }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, h.Shutdown(ctx), context.Canceled)
		close(release)
		assert.Equal(t, 200, <-answered)
		require.NoError(t, h.Shutdown(t.Context()))
	})
}

func TestShutdownRefusesFurtherDeliveries(t *testing.T) {
	for name, opts := range map[string][]EventHandlerOption{"without queue": nil, "with queue": {WithQueue(1, 10)}} {
		t.Run(name, func(t *testing.T) {
			var c eventCounter
			var seen deliveryObserver
			h := newTestHandler(t, c.handle, append(opts, WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))...)
			require.NoError(t, h.Shutdown(t.Context()))
			assert.Equal(t, 503, postEvent(h, "s"))
			assert.Zero(t, c.calls.Load())
			assert.Equal(t, []DeliveryOutcome{DeliveryShutDown}, seen.outcomes())
			require.NoError(t, h.Shutdown(t.Context()), "a second call does nothing")
		})
	}
}

func TestShutdownWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			<-time.After(2 * time.Second)
			return ctx.Err()
		})
		status := make(chan int, 1)
		go func() { status <- postEvent(h, "s") }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Equal(t, 2*time.Second, time.Since(begun))
		assert.Equal(t, 200, <-status, "calls under way were finished and answered")
	})
}

func TestShutdownDrainsWhatWasAcceptedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		keys := keyFunc(func(context.Context, KeyHint) ([]string, error) {
			<-time.After(time.Second)
			return []string{testKeyA}, nil
		})
		h, err := NewEventHandler(keys, func(ctx context.Context, e *Event) error {
			<-time.After(time.Minute)
			return c.handle(ctx, e)
		}, WithQueue(1, 10))
		require.NoError(t, err)
		status := make(chan int, 1)
		go func() { status <- postEvent(h, "s") }()
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, h.Shutdown(t.Context()))
		assert.Equal(t, time.Minute+time.Second, time.Since(begun))
		assert.Equal(t, 200, <-status)
		assert.EqualValues(t, 1, c.calls.Load())
	})
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started, ended atomic.Int32
		var seen deliveryObserver
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			started.Add(1)
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		}, WithQueue(2, 10), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		for session := range 3 {
			for n := range 3 {
				require.Equal(t, 200, postNthEvent(h, fmt.Sprint(session), n))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		assert.ErrorIs(t, h.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(begun))
		synctest.Wait() // no goroutine is left, or the bubble would not end
		assert.EqualValues(t, 2, started.Load())
		assert.EqualValues(t, 2, ended.Load(), "running functions see their context end")
		counts := map[DeliveryOutcome]int{}
		for _, outcome := range seen.outcomes() {
			counts[outcome]++
		}
		assert.Equal(t, map[DeliveryOutcome]int{DeliveryDropped: 7, DeliveryFailed: 2}, counts)
		assert.NoError(t, h.Shutdown(t.Context()), "nothing is left to wait for")
	})
}

// A function that ends with its context frees its worker, which must not take the
// next event before Shutdown does.
func TestShutdownThatGivesUpStartsNoWaitingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen deliveryObserver
		h := newTestHandler(t, func(ctx context.Context, _ *Event) error {
			<-ctx.Done()
			return ctx.Err()
		}, WithQueue(1, 10), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		stop := h.stop
		h.stop = func() {
			stop()
			synctest.Wait() // until the running function has returned
		}
		require.Equal(t, 200, postEvent(h, "running"))
		require.Equal(t, 200, postEvent(h, "waiting"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorIs(t, h.Shutdown(ctx), context.DeadlineExceeded)
		assert.ElementsMatch(t, []DeliveryOutcome{DeliveryFailed, DeliveryDropped}, seen.outcomes())
	})
}

// A delivery verified after Shutdown gave up is redelivered to another receiver.
func TestNothingIsQueuedAfterShutdownGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c eventCounter
		var seen deliveryObserver
		keys := keyFunc(func(context.Context, KeyHint) ([]string, error) {
			<-time.After(2 * time.Second)
			return []string{testKeyA}, nil
		})
		h, err := NewEventHandler(keys, c.handle, WithQueue(1, 10), WithDeliveryObserver(Observer[DeliveryInfo]{End: seen.observe}))
		require.NoError(t, err)
		status := make(chan int, 1)
		go func() { status <- postEvent(h, "s") }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, h.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, 503, <-status)
		assert.NoError(t, h.Shutdown(t.Context()))
		assert.Zero(t, c.calls.Load())
		assert.Equal(t, []DeliveryOutcome{DeliveryQueueFull}, seen.outcomes())
	})
}

func TestShutdownWithAnEndedContextReturnsNilWhenNothingRuns(t *testing.T) {
	h := newTestHandler(t, func(context.Context, *Event) error { return nil })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, h.Shutdown(ended), "there was nothing to wait for")
}

// One session whose id is not UTF-8 neither hides another nor waits for it.
func TestSessionsWhoseIDsAreNotUTF8AreKeptApart(t *testing.T) {
	for name, opts := range map[string][]EventHandlerOption{
		"at once": nil,
		"a queue": {WithQueue(2, 10)},
		"a store": {WithDeduplicator(struct{ Deduplicator }{NewMemoryDeduplicator(10)})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running atomic.Int32
				h := newTestHandler(t, func(context.Context, *Event) error {
					running.Add(1)
					<-time.After(time.Second)
					assert.EqualValues(t, 2, running.Load(), "both run at the same time")
					return nil
				}, opts...)
				var answers sync.WaitGroup
				for _, id := range []string{"\xff\xfe", "\xfe\xff"} {
					body := `{"timestamp":"` + time.Now().UTC().Format(time.DateTime) + `","head_id":"` + testHeadA + `","session_id":"` + id + `","event_type":"x"}`
					answers.Go(func() { assert.Equal(t, 200, serveEvent(h, signedEvent(body, testKeyA)).Code) })
				}
				answers.Wait()
				require.NoError(t, h.Shutdown(t.Context()))
				assert.EqualValues(t, 2, running.Load())
			})
		})
	}
}
