package heads

import (
	"fmt"

	"github.com/headsapi/heads-go/internal/mask"
)

// answerText makes a text of an answer safe to show, in at most limit characters.
func answerText(text string, limit int, secrets ...string) string {
	return mask.Answer(text, limit, secrets...)
}

// errorTextOf makes the text of a foreign error safe to show, in at most maxErrorText
// characters.
func errorTextOf(err error, secrets ...string) string {
	return mask.ErrorText(err.Error(), maxErrorText, secrets...)
}

// redactURLError returns a *url.Error with its URL redacted. It returns any other error
// unchanged.
func redactURLError(err error) error { return mask.URLError(err) }

// redactedError is a foreign error with a text that is safe to show.
type redactedError struct {
	text string
	err  sealed[error] // its own text may hold a secret
}

// redact returns err with the text of errorTextOf.
func redact(err error, secrets ...string) error {
	return &redactedError{text: errorTextOf(err, secrets...), err: seal(err)}
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err.get() }

// quote returns a value that was given by mistake in quotes, clipped to fit into
// an error.
func quote(value string) string { return mask.Quote(value) }

// label returns a foreign label, such as an id or a name, in a form that may be shown.
func label(text string) string { return mask.OneLine(text, maxLabel) }

// shownError returns the text of an error that a function of the user returned, fit for
// a log line. It recovers from an Error method that panics.
func shownError(err error) string { return mask.OneLine(fmt.Sprint(err), 1024) }

// hostOf returns the part of a URL that may be shown.
func hostOf(raw string) string { return mask.Host(raw, maxLabel) }

// findMasked returns the first text in a JSON value that a Secret or a Raw shows of
// itself, or "".
func findMasked(raw []byte) string { return mask.FindMasked(raw) }
