package heads

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	maxEventBody     = 64 << 10
	eventBodyTimeout = 3 * time.Second
)

// ErrBodyConsumed says that a request announced a body of which nothing was
// left for the EventHandler, because something before it in the chain read it.
var ErrBodyConsumed = errors.New("heads: the request body was already read: put the event handler before middleware that reads bodies, " +
	"or let that put the bytes back with r.Body = io.NopCloser(bytes.NewReader(body))")

var (
	errBodyEmpty    = errors.New("heads: the request has no body")
	errBodyTooLarge = fmt.Errorf("heads: the body has more than %d bytes", maxEventBody)
	errBodyTooSlow  = errors.New("heads: the body did not arrive in time")
)

// Buffers hold the body until it is verified, so that strangers cost no memory.
var eventBodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// receiveBody returns a pooled buffer with the body, for the caller to put back.
func (h *EventHandler) receiveBody(w http.ResponseWriter, r *http.Request, d *delivery) (*bytes.Buffer, DeliveryOutcome, error) {
	if r.ContentLength > maxEventBody {
		return nil, DeliveryTooLarge, errBodyTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, DeliveryBadBody, emptyBody(r)
	}
	buf := eventBodies.Get().(*bytes.Buffer)
	buf.Reset()
	err := h.readBody(r.Body, buf, d.hasDeadline)
	if errors.Is(err, errBodyTooSlow) {
		return nil, DeliveryTooSlow, err // the buffer may still be written to
	}
	outcome := DeliveryBadBody
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		outcome, err = DeliveryTooLarge, fmt.Errorf("heads: a handler in front limits the body to %d bytes: %w", limit.Limit, err)
	case errors.Is(err, http.ErrBodyReadAfterClose), err == nil && buf.Len() == 0:
		err = emptyBody(r)
	case err != nil:
		err = fmt.Errorf("heads: the body broke off: %w", err)
	case buf.Len() > maxEventBody:
		outcome, err = DeliveryTooLarge, errBodyTooLarge
	default:
		if d.hasDeadline {
			// Otherwise the server, which watches for the end of the connection,
			// would take the deadline for it while the function runs.
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		}
		return buf, "", nil
	}
	eventBodies.Put(buf)
	return nil, outcome, err
}

// emptyBody tells a body that was eaten from one that never was.
func emptyBody(r *http.Request) error {
	if r.ContentLength > 0 {
		return ErrBodyConsumed
	}
	return errBodyEmpty
}

// readBody reads one byte over the limit, to tell that the body is too large.
// After a failure the connection keeps its deadline, so that the server does not
// wait for the rest of a body that drips.
func (h *EventHandler) readBody(body io.Reader, buf *bytes.Buffer, hasDeadline bool) error {
	body = io.LimitReader(body, maxEventBody+1)
	if !hasDeadline {
		return readBeside(h.bodyTimeout, body, buf)
	}
	_, err := buf.ReadFrom(body)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errBodyTooSlow
	}
	return err
}

// readBeside is for a ResponseWriter that hides the connection's deadline: the
// reader is left behind when it takes too long, until the server ends the
// connection by its own ReadTimeout. A panic of the reader is passed on.
func readBeside(timeout time.Duration, body io.Reader, buf *bytes.Buffer) error {
	done := make(chan error, 1)
	var panicked any // may be read after done
	go func() {
		var err error
		defer func() {
			panicked = recover()
			done <- err
		}()
		_, err = buf.ReadFrom(body)
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		if panicked != nil {
			panic(panicked)
		}
		return err
	case <-timer.C:
		return errBodyTooSlow
	}
}
