package inbox_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
)

// hostile is an error whose methods panic. All of them do so on a nil *hostile.
type hostile struct {
	onError, onIs, onAs, onUnwrap func()
}

func (h *hostile) Error() string   { call(h.onError); return "hostile" }
func (h *hostile) Is(error) bool   { call(h.onIs); return false }
func (h *hostile) As(any) bool     { call(h.onAs); return false }
func (h *hostile) Unwrap() error   { call(h.onUnwrap); return nil }
func panics()                      { panic("a method panics") }
func panicsWithItself()            { panic(&hostile{onError: panicsWithItself}) }
func neither(int) time.Duration    { panic("Backoff panics") }
func endsItself(int) time.Duration { runtime.Goexit(); return 0 }

func call(f func()) {
	if f != nil {
		f()
	}
}

func TestPanicInAMethodOfAnErrorIsAFailedAttempt(t *testing.T) {
	for name, err := range map[string]error{
		"typed nil": (*hostile)(nil), "Error": &hostile{onError: panics}, "Is": &hostile{onIs: panics},
		"As": &hostile{onAs: panics}, "Unwrap": &hostile{onUnwrap: panics}, "Goexit": &hostile{onAs: runtime.Goexit},
		"Error, twice": &hostile{onError: panicsWithItself}, "wrapped": inbox.RetryAfter(0, (*hostile)(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			forEachStore(t, func(t *testing.T, s store) {
				log, option := newLog()
				in := s.open(t, option, inbox.WithErrorText())
				appendEvents(t, in, "session", 0, 2)
				handleAll(t, in, func(_ context.Context, d *inbox.Delivery) error {
					if numberOf(d.Event) == 0 {
						return err
					}
					return nil
				}, inbox.MaxAttempts(2), inbox.Backoff(at(0)))
				if dead := deadEvents(t, in); assert.Len(t, dead, 1) {
					assert.Equal(t, 2, dead[0].Attempts)
					assert.NotEmpty(t, dead[0].Error)
				}
				assert.Equal(t, 2, log.count("an attempt ended with an error"), log.String())
			})
		})
	}
}

func TestPanicInBackoffWaitsAsByDefault(t *testing.T) {
	for name, backoff := range map[string]func(int) time.Duration{"panic": neither, "Goexit": endsItself} {
		t.Run(name, func(t *testing.T) {
			forEachStore(t, func(t *testing.T, s store) {
				log, option := newLog()
				in := s.open(t, option)
				appendEvents(t, in, "session", 0, 1)
				var times []time.Time
				handleAll(t, in, func(context.Context, *inbox.Delivery) error {
					times = append(times, time.Now())
					return errTest
				}, inbox.MaxAttempts(2), inbox.Backoff(backoff))
				assert.Len(t, times, 2)
				assert.GreaterOrEqual(t, times[1].Sub(times[0]), 450*time.Millisecond)
				assert.Equal(t, 1, log.count("Backoff failed"), log.String())
			})
		})
	}
}

// Backoff also applies to a session that is taken over, inside the transaction of the claim.
func TestPanicInBackoffDoesNotEndATakeover(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		log, option := newLog()
		in := s.open(t, option)
		appendEvents(t, in, "session", 0, 1)
		// Act as a worker that died in its first attempt.
		s.exec(t, "UPDATE heads_inbox_sessions SET owner = '', fence = 0")
		s.exec(t, "UPDATE heads_inbox_events SET attempts = 1")
		handleAll(t, in, nothing, inbox.Backoff(neither))
		assert.Equal(t, 1, log.count("Backoff failed"), log.String())
	})
}

// An event becomes a dead letter in the transaction that begins the next event of its session.
func TestAttemptThatBeginsAsRunEndsIsNotCounted(t *testing.T) {
	forEachStore(t, func(t *testing.T, s store) {
		ctx, cancel := context.WithCancel(t.Context())
		in := s.open(t, inbox.WithObserver(func(_ context.Context, o inbox.Observation) {
			if o.Kind == inbox.KindDead {
				cancel()
			}
		}))
		appendEvents(t, in, "session", 0, 2)
		require.NoError(t, in.Run(ctx, func(_ context.Context, d *inbox.Delivery) error {
			assert.Zero(t, numberOf(d.Event), "nothing begins after the end")
			return inbox.Permanent(errTest)
		}))
		assert.EqualValues(t, 1, s.int(t, "SELECT count(*) FROM heads_inbox_events WHERE state = 0 AND fence > 0"), "the next has begun")
		assert.Zero(t, s.int(t, "SELECT attempts FROM heads_inbox_events WHERE state = 0"))
	})
}
