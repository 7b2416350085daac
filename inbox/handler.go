package inbox

import (
	"context"
	"fmt"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Handler returns an event handler that stores events. It verifies deliveries like a
// handler of heads.NewEventHandler and has the same options. It answers 200 only after
// the commit. If an event can't be stored, it answers 503, and the service redelivers
// the event.
//
// Handler returns ErrQueued for WithQueue and WithDeduplicator. It returns an error
// for a WithMaxAge that needs events to be known for longer than the retention.
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

// passAll is the handler's deduplicator. It accepts every event, since the table of
// events finds the duplicates.
type passAll struct{ _ byte } // not of size zero, so each handler has its own

func (*passAll) Claim(context.Context, string, string, time.Duration) (heads.Claim, error) {
	return heads.ClaimNew, nil
}
func (*passAll) Done(context.Context, string, string, time.Duration) error { return nil }
func (*passAll) Release(context.Context, string, string) error             { return nil }
