package inbox

import (
	"context"
	"errors"
	"fmt"

	heads "github.com/headsapi/heads-go"
)

// Handler returns an event handler that stores events. It verifies deliveries like a handler of
// heads.NewEventHandler and has the same options. It answers 200 only after the commit. If an event
// can't be stored, it answers 503, and the service redelivers the event.
//
// Handler returns ErrQueued for WithQueue and WithDeduplicator. It returns an error for a
// WithMaxAge that needs events to be known for longer than the retention.
func (in *Inbox) Handler(keys heads.KeySource, opts ...heads.EventHandlerOption) (*heads.EventHandler, error) {
	h, err := heads.NewEventHandler(keys, in.store, append([]heads.EventHandlerOption{heads.WithoutDeduplicator()}, opts...)...)
	if excluded(err) {
		return nil, ErrQueued
	}
	if err != nil {
		return nil, err
	}
	if m := h.Memory(); m > in.retention {
		return nil, invalid("Handler", "WithMaxAge", fmt.Sprintf("wants an event to be known for %v, and the retention is %v", m, in.retention), "raise it with WithRetention")
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

// excluded reports whether opts hold a queue or a deduplicator, which the handler excludes: the
// table of events finds the duplicates.
func excluded(err error) bool {
	var fault *heads.InvalidError
	return errors.As(err, &fault) && fault.Field == "WithoutDeduplicator"
}
