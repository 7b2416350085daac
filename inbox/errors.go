package inbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// What errors.Is finds in the errors of this package.
var (
	ErrFenced      = errors.New("inbox: the claim on the event has ended, and another worker may have it")
	ErrUnavailable = errors.New("inbox: the database is not available")
	ErrFull        = errors.New("inbox: the database has no room left")
	ErrDamaged     = errors.New("inbox: the database is damaged")
	ErrClosed      = errors.New("inbox: the inbox is closed")
	ErrQueued      = errors.New("inbox: WithQueue and WithDeduplicator don't go with an inbox, which stores before it answers and knows what it has stored")
)

// public returns the error that a caller sees for one of the database, whose
// text shows no DSN and nothing of an event.
func (in *Inbox) public(err error) error {
	var e *engine.Error
	switch {
	case err == nil:
		return nil
	case in.closed.Err() != nil:
		return ErrClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), !errors.As(err, &e):
		return err
	}
	switch e.Kind {
	case engine.Again, engine.Away, engine.ReadOnly:
		return fmt.Errorf("%w: %s", ErrUnavailable, e.Text)
	case engine.Full:
		return fmt.Errorf("%w: %s", ErrFull, e.Text)
	case engine.Damaged:
		return fmt.Errorf("%w: %s", ErrDamaged, e.Text)
	}
	return errors.New("inbox: " + e.Text)
}

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent returns an error with which the function passed to Run sends the
// event to the dead letters at once, also when it is wrapped in another. Of nil
// it returns nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

type retryError struct {
	error
	after time.Duration
}

func (e retryError) Unwrap() error { return e.error }

// RetryAfter returns an error after which the event is handled again in d,
// instead of what Backoff says, also when it is wrapped in another. The attempt
// counts. Of nil it returns nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return retryError{err, max(d, 0)}
}

// panicError is a panic of the function passed to Run.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("inbox: panic: %v", e.value) }

var errExited = errors.New("inbox: the function ended its goroutine")

const maxErrorText = 1024

// describe returns what is stored of an error that the function returned.
func (in *Inbox) describe(err error) string {
	switch {
	case errors.Is(err, ErrDamaged):
		return ErrDamaged.Error()
	case in.errorText:
		return clip(errorText(err), maxErrorText)
	}
	return clip(typeName(err), maxErrorText)
}

// errorText survives an Error method that panics, as package fmt does.
func errorText(err error) string { return fmt.Sprint(err) }

// typeName names the error inside Permanent and RetryAfter.
func typeName(err error) string {
	for {
		switch e := err.(type) { //nolint:errorlint // it walks the chain itself
		case permanentError:
			err = e.error
		case retryError:
			err = e.error
		default:
			return reflect.TypeOf(err).String()
		}
	}
}

// clip makes text that every database stores.
func clip(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
