// Package httpbody reads the body of a request that anyone may send. It reads a
// limited number of bytes in a limited time, and reuses memory.
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

// Errors of Read, which may be wrapped.
var (
	ErrEmpty    = errors.New("heads: the request has no body")
	ErrTooLarge = errors.New("heads: the body is too large")
	ErrTooSlow  = errors.New("heads: the body did not arrive in time")

	// ErrConsumed is returned if the request announced a body, but nothing of it
	// is left.
	ErrConsumed = errors.New("heads: the request body was already read: put the handler before middleware that reads bodies, " +
		"or let that put the bytes back with r.Body = io.NopCloser(bytes.NewReader(body))")
)

// Buffers hold bodies until they are verified, so forged requests cause no new
// allocations. No buffer is larger than about twice the largest limit.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Free releases a buffer that Read returned. Its bytes must not be used afterwards.
func Free(b *bytes.Buffer) { buffers.Put(b) }

// Reader reads one body.
type Reader struct {
	w        http.ResponseWriter
	timeout  time.Duration
	deadline bool // the connection has a read deadline
}

// Start starts the time in which the body must arrive. A handler calls it first,
// since the server reads the rest of the body after every answer, even if the
// handler did not read it.
func Start(w http.ResponseWriter, timeout time.Duration) Reader {
	b := Reader{w: w, timeout: timeout}
	b.deadline = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) == nil
	return b
}

// Read returns a buffer with the body, which is not empty. The caller must pass the
// buffer to Free. If the body panics, Read may return a *panics.Error.
//
// After an error, the connection keeps its deadline, so the server does not wait for
// the rest of a slow body. If more of the body may arrive, the answer closes the
// connection. An HTTP/2 connection stays open for the other
// requests on it, since the server ends the stream alone.
func (b Reader) Read(r *http.Request, limit int64) (*bytes.Buffer, error) {
	buf, err := b.read(r, limit)
	switch {
	case err == nil && b.deadline:
		// The server watches the connection while the handler works. It would take
		// the deadline for the end of the connection.
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
	body := io.LimitReader(r.Body, limit+1) // one byte more shows that the body is too long
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

// fault returns the error for a body whose reading ended with err.
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

// empty returns ErrConsumed for a body that other code has already read.
func empty(r *http.Request) error {
	if r.ContentLength > 0 {
		return ErrConsumed
	}
	return ErrEmpty
}

// readBeside reads the body on another goroutine, for a ResponseWriter that hides the
// connection's deadline. If that takes too long, it abandons the goroutine, which
// ends when the server closes the connection after its own ReadTimeout.
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
