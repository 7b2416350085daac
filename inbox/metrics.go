package inbox

import (
	"context"
	"time"
)

// Backlog returns the numbers of Status that metrics need: Pending, Retrying, Dead and
// OldestPending. Its errors are those of Status. Backlog and OnAttempt are the methods that
// headsotel.Inbox requires; their signatures use no type of this module.
func (in *Inbox) Backlog(ctx context.Context) (waiting, retrying, dead int64, oldest time.Time, err error) {
	s, err := in.Status(ctx)
	return s.Pending, s.Retrying, s.Dead, s.OldestPending, err
}

// OnAttempt calls f after each later attempt to handle an event. err is nil if the event was
// handled, otherwise the error of the attempt. lag is the time since the event was stored. Each
// call of OnAttempt adds a function; the function of WithObserver is called as well. f runs on the
// goroutine that does the work and delays it.
func (in *Inbox) OnAttempt(f func(ctx context.Context, lag time.Duration, err error)) {
	in.addAttempt(f)
}
