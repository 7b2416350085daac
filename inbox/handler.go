package inbox

import (
	"context"
	"errors"
	"fmt"

	heads "github.com/headsapi/heads-go"
)

// Handler returns an event handler that stores events. It verifies deliveries and takes options
// like heads.NewEventHandler. It answers 200 only after the event is committed. If an event can't
// be stored, it answers 503, and the service redelivers the event.
//
// Handler returns ErrQueued for WithDeduplicator. It returns a *heads.InvalidError if
// WithMaxAge requires keys to be kept for longer than the retention.
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
	in.handlers.add(h)
	return h, nil
}

// store is the event function of the handler.
func (in *Inbox) store(ctx context.Context, e *heads.Event) error {
	added, err := in.Append(ctx, e)
	if err == nil && !added {
		return heads.ErrDuplicate
	}
	return err
}

// excluded reports whether the options include a deduplicator. The handler needs none: the table of
// events finds the duplicates.
func excluded(err error) bool {
	var fault *heads.InvalidError
	return errors.As(err, &fault) && fault.Field == "WithoutDeduplicator"
}
