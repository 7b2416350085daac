package console

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	readers     = 2                       // at one time
	readTimeout = 2 * time.Second         // for the statements of one page
	readWait    = 2 * time.Second         // for a place among the readers
	restFactor  = 19                      // a place rests so many times as long as it was used,
	shortRest   = 20 * time.Millisecond   // while nobody waits
	longestRest = 1500 * time.Millisecond // but shorter than readWait, or a lone reader might be refused
)

var errBusy = &fault{http.StatusServiceUnavailable, "Too many people read this page at once. Try again in a moment."}

// limit keeps readers of the page from slowing down the workers of the inbox: only a few read at
// one time, and while others wait, each place rests after it was used. So the page takes a small
// share of the database, however many people have it open, and a lone reader hardly waits.
type limit struct {
	places  chan struct{}
	waiting atomic.Int32
}

func newLimit() *limit { return &limit{places: make(chan struct{}, readers)} }

// do runs f, which reads from the database, in a place of its own.
func (l *limit) do(ctx context.Context, f func(context.Context) error) error {
	wait := time.NewTimer(readWait)
	defer wait.Stop()
	l.waiting.Add(1)
	select {
	case l.places <- struct{}{}:
		l.waiting.Add(-1)
	case <-wait.C:
		l.waiting.Add(-1)
		return errBusy
	case <-ctx.Done():
		l.waiting.Add(-1)
		return ctx.Err()
	}
	begun := time.Now()
	defer func() {
		used := time.Since(begun)
		rest := min(restFactor*used, longestRest)
		if l.waiting.Load() == 0 {
			rest = min(used, shortRest)
		}
		time.AfterFunc(rest, func() { <-l.places })
	}()
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return &fault{http.StatusServiceUnavailable, "The database took longer than 2 s to read this page."}
	}
	return err
}
