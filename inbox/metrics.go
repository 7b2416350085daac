package inbox

import (
	"context"
	"time"
)

// Backlog returns numbers of Status for a program that measures: the events that wait, neither
// handled nor dead; those of them that wait for another attempt; the dead ones; and when the oldest
// waiting event was stored, zero without one. It returns the errors of Status. With OnAttempt it is
// what headsotel.Inbox needs, which knows no type of this module.
func (in *Inbox) Backlog(ctx context.Context) (waiting, retrying, dead int64, oldest time.Time, err error) {
	s, err := in.Status(ctx)
	return s.Pending, s.Retrying, s.Dead, s.OldestPending, err
}

// OnAttempt calls f after each attempt to handle an event, from now on and beside the function of
// WithObserver: with nil when the event was handled, else with the error of the attempt. lag is the
// time since the event was stored. Functions add up. f is called on the goroutine that did the work
// and delays it.
func (in *Inbox) OnAttempt(f func(ctx context.Context, lag time.Duration, err error)) {
	in.addAttempt(f)
}
