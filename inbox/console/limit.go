package console

import (
	"context"
	"net/http"
	"time"
)

const (
	readers     = 2                       // at one time
	readTimeout = 2 * time.Second         // for the statements of one page
	readWait    = 2 * time.Second         // for a place among the readers
	restFactor  = 19                      // a place rests so many times as long as it was used,
	longestRest = 1500 * time.Millisecond // but shorter than readWait, or a lone reader might be refused
)

var errBusy = &fault{http.StatusServiceUnavailable, "Too many people read this page at once. Try again in a moment."}

// limit keeps readers of the page from slowing down the workers of the inbox: only a few read at
// one time, and each place rests after it was used. So the page takes a small share of the
// database, however many people have it open.
type limit chan struct{}

func newLimit() limit { return make(limit, readers) }

// do runs f, which reads from the database, in a place of its own.
func (l limit) do(ctx context.Context, f func(context.Context) error) error {
	wait := time.NewTimer(readWait)
	defer wait.Stop()
	select {
	case l <- struct{}{}:
	case <-wait.C:
		return errBusy
	case <-ctx.Done():
		return ctx.Err()
	}
	begun := time.Now()
	defer func() { time.AfterFunc(min(restFactor*time.Since(begun), longestRest), func() { <-l }) }()
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return &fault{http.StatusServiceUnavailable, "The database took longer than 2 s to read this page."}
	}
	return err
}
