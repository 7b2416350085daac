package heads

import (
	"fmt"
	"net/url"
	"regexp"

	"github.com/headsapi/heads-go/internal/mask"
)

const (
	// maxEscaped is how many bytes one character of a secret takes at most.
	maxEscaped = 16
	// maxMasked is how much of a foreign text is examined, in bytes: masking a
	// megabyte would take a tenth of a second.
	maxMasked = 32 << 10
)

var (
	// anyQuery is a question mark, even an escaped one, and what follows it.
	anyQuery    = regexp.MustCompile(`(?i)(\?|%(?:25)*3f|&(?:amp;)*(?:#0*63|#x0*3f|quest);|\\u003f)\S+`)
	bareQuery   = regexp.MustCompile(`\?[^\s"']+`)
	urlFragment = regexp.MustCompile(`(://[^\s#]*#)\S+`)
)

var (
	urlQuery    = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s"'?#]*)[?#][^\s"']*`)
	urlUserinfo = regexp.MustCompile(`://[^\s/"']*@`)

	// notHTTP matches the errors of net/http about an answer that is not HTTP, or
	// whose body is malformed, including the bytes of the answer that they quote.
	notHTTP = regexp.MustCompile(`(?s)((?:transport connection broken: )?malformed (?:HTTP|MIME)(?: [a-z]+)*|transport connection broken: [^"\[]*[^"\[ ]|` +
		`multiple Content-Length headers|bad Content-Length|(?:unsupported|too many) transfer encodings?|bad trailer key|server sent GOAWAY).*`)
)

// answerText makes a text of an answer safe to show. The result is one line of
// at most limit characters, without the secrets, userinfo and everything after a
// question mark.
func answerText(text string, limit int, secrets ...string) string {
	text = urlUserinfo.ReplaceAllString(maskForeign(text, secrets...), "://")
	text = anyQuery.ReplaceAllString(text, "${1}"+redacted)
	return mask.OneLine(urlFragment.ReplaceAllString(text, "${1}"+redacted), limit)
}

// errorTextOf makes the text of a foreign error safe to show. The result is one
// line of at most maxErrorText characters, without the secrets, parts of URLs
// that can be secret, and bytes of an answer.
func errorTextOf(err error, secrets ...string) string {
	text := redactText(maskForeign(err.Error(), secrets...))
	return mask.OneLine(bareQuery.ReplaceAllString(text, "?"+redacted), maxErrorText)
}

// redactURLs removes query, fragment and userinfo from every URL in a text.
func redactURLs(text string) string {
	return urlUserinfo.ReplaceAllString(urlQuery.ReplaceAllString(text, "$1"), "://")
}

// redactText removes from the text of an error what may be secret: parts of
// URLs, and bytes of an answer.
func redactText(text string) string { return redactURLs(notHTTP.ReplaceAllString(text, "$1")) }

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

// redactURLError returns a *url.Error with its URL redacted. Any other error is
// returned as it is.
func redactURLError(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // each level has its own text
		return &url.Error{Op: e.Op, URL: redactURLs(e.URL), Err: redactURLError(e.Err)}
	}
	return err
}

// quote returns a value that was given by mistake in quotes, clipped to fit into
// an error.
func quote(value string) string { return fmt.Sprintf("%q", mask.OneLine(value, 64)) }

// label returns a label of someone else, such as an id or a name, fit to be shown.
func label(text string) string { return mask.OneLine(text, maxLabel) }

// shownError returns the text of an error that a function of the user returned, fit for
// a log line. It survives an Error method that panics.
func shownError(err error) string { return mask.OneLine(fmt.Sprint(err), 1024) }

// hostOf returns the part of a URL that may be shown: both its path and its
// query can hold a secret.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return mask.OneLine(u.Host, maxLabel)
}

// maskForeign is mask.Secrets for a text of any length. If the text is cut, its
// end is dropped, since that may hold the beginning of a secret.
func maskForeign(text string, secrets ...string) string {
	end := 0
	for _, secret := range secrets {
		end = max(end, maxEscaped*len(secret))
	}
	if len(text) <= maxMasked+end {
		return mask.Secrets(text, secrets...)
	}
	masked := mask.Secrets(text[:maxMasked+end], secrets...)
	return masked[:max(0, len(masked)-end)]
}
