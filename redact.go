package heads

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/headsapi/heads-go/internal/mask"
)

const (
	// maxEscapes is how often a secret may be escaped and still be recognized:
	// %3D, %253D and %25253D for =.
	maxEscapes = 3
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

// maskForeign is maskSecrets for a text of any length. If the text is cut, its
// end is dropped, since that may hold the beginning of a secret.
func maskForeign(text string, secrets ...string) string {
	end := 0
	for _, secret := range secrets {
		end = max(end, maxEscaped*len(secret))
	}
	if len(text) <= maxMasked+end {
		return maskSecrets(text, secrets...)
	}
	masked := maskSecrets(text[:maxMasked+end], secrets...)
	return masked[:max(0, len(masked)-end)]
}

// maskSecrets replaces secrets in a text, including those whose characters are
// escaped as in URLs, HTML or JSON. Empty secrets are ignored.
func maskSecrets(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		text = strings.ReplaceAll(text, secret, redacted)
		if strings.ContainsAny(text, `%&\`) {
			text = maskEscaped(text, secret)
		}
	}
	return text
}

func maskEscaped(text, secret string) string {
	hidden := make([]bool, len(text))
	read := unescaped{text: []byte(text), ends: make([]int, len(text))}
	for i := range read.ends {
		read.ends[i] = i + 1
	}
	for range maxEscapes {
		read = read.unescape()
		for i := bytes.Index(read.text, []byte(secret)); i >= 0; {
			end := i + len(secret)
			for j := read.start(i); j < read.ends[end-1]; j++ {
				hidden[j] = true
			}
			next := bytes.Index(read.text[end:], []byte(secret))
			if next < 0 {
				break
			}
			i = end + next
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString(redacted)
		}
	}
	return b.String()
}

// unescaped is a text together with the place of each character in the original.
type unescaped struct {
	text []byte
	ends []int
}

func (u unescaped) start(i int) int {
	if i == 0 {
		return 0
	}
	return u.ends[i-1]
}

// unescape replaces each escape sequence with its character.
func (u unescaped) unescape() unescaped {
	next := unescaped{text: make([]byte, 0, len(u.text)), ends: make([]int, 0, len(u.text))}
	for i := 0; i < len(u.text); {
		c, size := unescapeFirst(u.text[i:])
		i += size
		next.text = append(next.text, c)
		next.ends = append(next.ends, u.ends[i-1])
	}
	return next
}

// unescapeFirst returns the first character of a text and its length there.
// The sequences are %3D, &#61; &#x3d; &equals;, \u003d and \/.
func unescapeFirst(text []byte) (c byte, size int) {
	rest := text[1:]
	switch text[0] {
	case '%':
		if code, ok := hexByte(rest, 2); ok {
			return code, 3
		}
	case '\\':
		if code, ok := hexByte(bytes.TrimPrefix(rest, []byte("u")), 4); ok && rest[0] == 'u' {
			return code, 6
		}
		if len(rest) > 0 && rest[0] != 'u' {
			return rest[0], 2
		}
	case '&':
		if end := bytes.IndexByte(rest[:min(len(rest), 12)], ';'); end > 0 {
			if meant := html.UnescapeString(string(text[:end+2])); len(meant) == 1 {
				return meant[0], end + 2
			}
		}
	}
	return text[0], 1
}

// hexByte reads the given number of hexadecimal digits.
func hexByte(text []byte, digits int) (c byte, ok bool) {
	if len(text) < digits {
		return 0, false
	}
	code, err := strconv.ParseUint(string(text[:digits]), 16, 8)
	return byte(code), err == nil
}
