package heads

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/headsapi/heads-go/internal/lanes"
)

// EventHandlerOption changes how an EventHandler works.
type EventHandlerOption func(*EventHandler) error

// WithEventLogger logs one line for each delivery: the outcome, the head, session
// and type of the event, the position of the key that matched, and the durations.
// The ids of a delivery that was not verified are what the sender wrote. No line
// shows a key, a signature or a body. Without it the handler is silent.
func WithEventLogger(l *slog.Logger) EventHandlerOption {
	return func(h *EventHandler) error {
		if l == nil {
			return invalid(newEventHandler, "WithEventLogger", "has a nil logger", "leave the option out to log nothing")
		}
		h.logger = l
		return nil
	}
}

// WithDeliveryObserver tells o of every delivery, with any outcome, for metrics and
// tracing. Start is called when it arrives, with nothing in its DeliveryInfo. The
// key source and the event function, also behind a queue, run with the context
// that Start returns. End is called after the answer was decided, on the goroutine
// of the request, or with WithQueue after the function ran. The answer may wait
// for it.
func WithDeliveryObserver(o Observer[DeliveryInfo]) EventHandlerOption {
	return func(h *EventHandler) error {
		h.observers = append(h.observers, o)
		return o.check(newEventHandler, "WithDeliveryObserver")
	}
}

// WithoutDeduplicator passes every event on, also one that was handled before or
// is being handled. It is for a function that remembers events itself, and returns
// ErrDuplicate for one that it knows. It is refused beside WithDeduplicator, and
// beside WithQueue, with which the service has its 200 before the function runs.
func WithoutDeduplicator() EventHandlerOption {
	return func(h *EventHandler) error {
		h.passAll = true
		return nil
	}
}

// WithDeduplicator sets the deduplicator that remembers handled events. The
// default is NewMemoryDeduplicator(65536), which is enough for one process.
//
// The calls of any other deduplicator are retried while they fail. The answer
// leaves at most 4.9 seconds after the arrival, unless the function itself takes
// longer. While another receiver holds the key, a delivery waits for it for up to
// 4 seconds.
func WithDeduplicator(d Deduplicator) EventHandlerOption {
	return func(h *EventHandler) error {
		if d == nil {
			return invalid(newEventHandler, "WithDeduplicator", "has a nil deduplicator", "leave the option out for the default")
		}
		h.dedup = d
		return nil
	}
}

// WithMaxAge sets how old an event may be when it is delivered, and how far its
// time may be in the future. The defaults are 24 hours and 5 minutes. Events are
// remembered a little longer than the sum of both, so a recorded event can't be
// replayed later. An event whose time can't be read is accepted.
func WithMaxAge(age, futureSkew time.Duration) EventHandlerOption {
	return func(h *EventHandler) error {
		if age <= 0 || futureSkew < 0 {
			return invalid(newEventHandler, "WithMaxAge", fmt.Sprintf("has age %v and skew %v", age, futureSkew), "give an age above 0 and a skew of 0 or more")
		}
		h.maxAge, h.futureSkew = age, futureSkew
		return nil
	}
}

// WithHandlerTimeout sets how long a delivery may take from its arrival to the
// end of the function. The context of the key source and of the function ends
// then. The service waits 5 seconds, and the default is 4. A claim of the
// Deduplicator lasts 5 seconds longer and is extended while the function runs.
//
// With WithQueue the function has no deadline by default; this option's d then
// starts with the function.
func WithHandlerTimeout(d time.Duration) EventHandlerOption {
	return func(h *EventHandler) error {
		if d <= 0 {
			return invalid(newEventHandler, "WithHandlerTimeout", fmt.Sprintf("is %v", d), "give a duration above 0")
		}
		h.timeout, h.queueTimeout = d, d
		return nil
	}
}

// WithQueue answers 200 as soon as an event is verified and has a place in the
// queue, and calls the function later. It is for work that takes longer than the
// 5 seconds that the service waits.
//
// The function is called at most once for each event. An event that fails, or
// still waits when the program ends, is not redelivered. A redelivery of an event
// in the queue is answered 200 as well. Events of one session are handled one
// after the other in the order of their arrival, and up to that many workers
// handle different sessions at once. As many events as size may wait. Further
// deliveries are answered 503, so that the service redelivers them.
//
// Call Shutdown before the program ends.
func WithQueue(workers, size int) EventHandlerOption {
	return func(h *EventHandler) error {
		if workers < 1 || size < 1 {
			return invalid(newEventHandler, "WithQueue", fmt.Sprintf("has %d workers and %d places", workers, size), "give at least 1 of both")
		}
		h.queue = lanes.New[eventSession](workers, size, h.work)
		return nil
	}
}

// memoryMargin is for stores that round or have another clock.
const memoryMargin = time.Minute

// addDurations returns the sum, or the longest duration if that is shorter.
func addDurations(sum time.Duration, more ...time.Duration) time.Duration {
	for _, d := range more {
		sum += min(d, math.MaxInt64-sum)
	}
	return sum
}
