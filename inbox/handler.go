package inbox

import (
	"context"
	"fmt"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Handler returns an event handler that stores events: it verifies as that of
// heads.NewEventHandler does, with the same options, and answers 200 only after
// the commit. What can't be stored is answered 503, so that it comes again.
//
// WithQueue and WithDeduplicator are refused with ErrQueued, and WithMaxAge when
// an event would have to be known for longer than the retention.
func (in *Inbox) Handler(keys heads.KeySource, opts ...heads.EventHandlerOption) (*heads.EventHandler, error) {
	own := &passAll{}
	h, err := heads.NewEventHandler(keys, in.store, append([]heads.EventHandlerOption{heads.WithDeduplicator(own)}, opts...)...)
	if err != nil {
		return nil, err
	}
	if h.Queued() || h.Deduplicator() != heads.Deduplicator(own) {
		return nil, ErrQueued
	}
	if m := h.Memory(); m > in.retention {
		return nil, invalid("Handler", "WithMaxAge", fmt.Sprintf("an event must be known for %v, and the retention is %v: raise it with WithRetention", m, in.retention))
	}
	return h, nil
}

// store is the function of the handler.
func (in *Inbox) store(ctx context.Context, e *heads.Event) error {
	added, err := in.Append(ctx, e)
	if err == nil && !added {
		return heads.ErrDuplicate
	}
	return err
}

// passAll is the handler's own deduplicator: the table of events knows better.
type passAll struct{ _ byte } // not of size zero, so that every handler has one of its own

func (*passAll) Claim(context.Context, string, string, time.Duration) (heads.Claim, error) {
	return heads.ClaimNew, nil
}
func (*passAll) Done(context.Context, string, string, time.Duration) error { return nil }
func (*passAll) Release(context.Context, string, string) error             { return nil }
