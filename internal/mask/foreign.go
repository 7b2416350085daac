package mask

import (
	"net/url"
	"regexp"
)

const (
	// maxEscaped is how many bytes one character of a secret takes at most.
	maxEscaped = 16
	// maxForeign is how much of a foreign text is examined, in bytes: masking a
	// megabyte would take a tenth of a second.
	maxForeign = 32 << 10
)

var (
	// anyQuery is a question mark, even an escaped one, and what follows it.
	anyQuery    = regexp.MustCompile(`(?i)(\?|%(?:25)*3f|&(?:amp;)*(?:#0*63|#x0*3f|quest);|\\u003f)\S+`)
	bareQuery   = regexp.MustCompile(`\?[^\s"']+`)
	urlFragment = regexp.MustCompile(`(://[^\s#]*#)\S+`)
	urlQuery    = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s"'?#]*)[?#][^\s"']*`)
	urlUserinfo = regexp.MustCompile(`://[^\s/"']*@`)

	// notHTTP matches the errors of net/http about an answer that is not HTTP, or
	// whose body is malformed, including the bytes of the answer that they quote.
	notHTTP = regexp.MustCompile(`(?s)((?:transport connection broken: )?malformed (?:HTTP|MIME)(?: [a-z]+)*|transport connection broken: [^"\[]*[^"\[ ]|` +
		`multiple Content-Length headers|bad Content-Length|(?:unsupported|too many) transfer encodings?|bad trailer key|server sent GOAWAY).*`)
)

// Answer makes a text of an answer safe to show. The result is one line of at most
// limit characters, without the secrets, userinfo and everything after a question
// mark.
func Answer(text string, limit int, secrets ...string) string {
	text = urlUserinfo.ReplaceAllString(foreign(text, secrets), "://")
	text = anyQuery.ReplaceAllString(text, "${1}"+Redacted)
	return OneLine(urlFragment.ReplaceAllString(text, "${1}"+Redacted), limit)
}

// ErrorText makes the text of a foreign error safe to show. The result is one line of
// at most limit characters, without the secrets, parts of URLs that can be secret, and
// bytes of an answer.
func ErrorText(text string, limit int, secrets ...string) string {
	text = BareURLs(notHTTP.ReplaceAllString(foreign(text, secrets), "$1"))
	return OneLine(bareQuery.ReplaceAllString(text, "?"+Redacted), limit)
}

// BareURLs removes query, fragment and userinfo from every URL in a text.
func BareURLs(text string) string {
	return urlUserinfo.ReplaceAllString(urlQuery.ReplaceAllString(text, "$1"), "://")
}

// URLError returns a *url.Error with BareURLs applied to its URL. It returns any other
// error unchanged.
func URLError(err error) error {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // each level has its own text
		return &url.Error{Op: e.Op, URL: BareURLs(e.URL), Err: URLError(e.Err)}
	}
	return err
}

// Host returns the host of a URL, which may be shown: both path and query can hold a
// secret.
func Host(raw string, limit int) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return OneLine(u.Host, limit)
}

// foreign is Secrets for a text of any length. If the text is cut, its end is dropped,
// since that may hold the beginning of a secret.
func foreign(text string, secrets []string) string {
	end := 0
	for _, secret := range secrets {
		end = max(end, maxEscaped*len(secret))
	}
	if len(text) <= maxForeign+end {
		return Secrets(text, secrets...)
	}
	masked := Secrets(text[:maxForeign+end], secrets...)
	if masked == Redacted {
		return masked
	}
	return masked[:max(0, len(masked)-end)]
}
