package inbox

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Errors of this package, for errors.Is.
var (
	ErrFenced      = errors.New("inbox: the claim on the event has ended, and another worker may have it")
	ErrUnavailable = errors.New("inbox: the database is not available")
	ErrFull        = errors.New("inbox: the database has no room left")
	ErrDamaged     = errors.New("inbox: the database is damaged")
	ErrClosed      = errors.New("inbox: the inbox is closed")
	ErrNotFound    = errors.New("inbox: no event has this sequence; it may have been pruned")
	ErrQueued      = errors.New("inbox: WithDeduplicator can't be used with an inbox, which finds duplicates itself")
)

type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent wraps err. If the function passed to Run returns such an error, even wrapped in
// another, the event goes to the dead letters at once. If err is nil, Permanent returns nil.
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

// RetryAfter wraps err. If the function passed to Run returns such an error, even wrapped in
// another, the event is handled again after d instead of Backoff. The attempt is counted. If err is
// nil, RetryAfter returns nil.
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

// errorText returns the text of an error, even if its Error method panics.
func errorText(err error) string { return fmt.Sprint(err) }

// typeName returns the type of the error that Permanent or RetryAfter has wrapped.
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

// clip returns text as valid UTF-8 without NUL, which every database can store, cut to limit bytes.
func clip(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

func invalid(operation, field, problem, remedy string) error {
	return &heads.InvalidError{Operation: "inbox." + operation, Field: field, Problem: problem, Remedy: remedy}
}

func refuse(bad bool, operation, field, problem, remedy string) error {
	if bad {
		return invalid(operation, field, problem, remedy)
	}
	return nil
}
