// Package httpbody reads the body of a request that strangers may send: no more
// than a limit of bytes, within a limited time, into memory that is used again.
package httpbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/headsapi/heads-go/internal/panics"
)

// What Read returns, wrapped in some cases.
var (
	ErrEmpty    = errors.New("heads: the request has no body")
	ErrTooLarge = errors.New("heads: the body is too large")
	ErrTooSlow  = errors.New("heads: the body did not arrive in time")

	// ErrConsumed is for a request that announced a body of which nothing is left.
	ErrConsumed = errors.New("heads: the request body was already read: put the handler before middleware that reads bodies, " +
		"or let that put the bytes back with r.Body = io.NopCloser(bytes.NewReader(body))")
)

// Buffers hold bodies until they are verified, so that strangers cost no memory.
// None is larger than about twice the largest limit.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Free takes a buffer back that Read returned. Nothing may use its bytes any
// more.
func Free(b *bytes.Buffer) { buffers.Put(b) }

// Reader reads one body.
type Reader struct {
	w        http.ResponseWriter
	timeout  time.Duration
	deadline bool // the connection has a read deadline
}

// Start starts the time in which the body must arrive. A handler calls it before
// anything else: after any answer, even one to a request that it refuses unread,
// the server reads what is left of the body.
func Start(w http.ResponseWriter, timeout time.Duration) Reader {
	b := Reader{w: w, timeout: timeout}
	b.deadline = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) == nil
	return b
}

// Read returns a buffer with the body, which is not empty, for Free. A panic of
// the body can come back as a *panics.Error.
//
// After an error the connection keeps its deadline, so that the server does not
// wait for the rest of a body that drips. If more of the body may come, the
// answer closes the connection. An HTTP/2 connection stays open for the other
// requests on it, since the server ends the stream alone.
func (b Reader) Read(r *http.Request, limit int64) (*bytes.Buffer, error) {
	buf, err := b.read(r, limit)
	switch {
	case err == nil && b.deadline:
		// Otherwise the server, which watches for the end of the connection, would
		// take the deadline for it while the handler works.
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{})
	case err != nil && r.ProtoMajor < 2 && !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrConsumed):
		b.w.Header().Set("Connection", "close")
	}
	return buf, err
}

func (b Reader) read(r *http.Request, limit int64) (*bytes.Buffer, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, empty(r)
	}
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	body := io.LimitReader(r.Body, limit+1) // one more shows that there is more
	var err error
	if b.deadline {
		_, err = buf.ReadFrom(body)
	} else if err = readBeside(b.timeout, body, buf); errors.Is(err, ErrTooSlow) {
		return nil, err // the buffer may still be written to
	}
	if size := int64(buf.Len()); err == nil && size > 0 && size <= limit {
		return buf, nil
	}
	err = fault(r, err, buf.Len() == 0, limit)
	Free(buf)
	return nil, err
}

// fault returns what is wrong with a body whose reading ended with err.
func fault(r *http.Request, err error, nothing bool, limit int64) error {
	var front *http.MaxBytesError
	switch {
	case err == nil && nothing, errors.Is(err, http.ErrBodyReadAfterClose):
		return empty(r)
	case err == nil:
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTooSlow
	case errors.As(err, &front):
		return tooLarge(front.Limit)
	}
	return fmt.Errorf("heads: the body broke off: %w", err)
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit) }

// empty returns ErrConsumed for a body that something else has read.
func empty(r *http.Request) error {
	if r.ContentLength > 0 {
		return ErrConsumed
	}
	return ErrEmpty
}

// readBeside is for a ResponseWriter that hides the connection's deadline. A
// reader that takes too long is left behind, until the server ends the
// connection by its own ReadTimeout.
func readBeside(timeout time.Duration, body io.Reader, buf *bytes.Buffer) error {
	done := make(chan error, 1)
	go func() {
		done <- panics.Try(func() error {
			_, err := buf.ReadFrom(body)
			return err
		})
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return ErrTooSlow
	}
}
