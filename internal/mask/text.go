package mask

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine makes a text of someone else safe for an error, a log line or a terminal. The
// result is one line of valid UTF-8 with at most limit characters. White space, control
// characters (those from U+0080 to U+009F too) and marks that change the direction of
// the text are folded into single spaces. Bytes that are not UTF-8 become U+FFFD.
func OneLine(text string, limit int) string {
	if isPlainLine(text) {
		return Clip(text, limit)
	}
	return Clip(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " "), limit)
}

// isPlainLine reports whether a text is printable ASCII with single spaces inside.
func isPlainLine(text string) bool {
	space := true
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || c == ' ' && space {
			return false
		}
		space = c == ' '
	}
	return text == "" || !space
}

// Clip returns text with at most limit characters, the last of them "…" if
// any were cut.
func Clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	count := 0
	for i := range text {
		if count++; count == limit {
			return strings.TrimSpace(text[:i]) + "…"
		}
	}
	return text
}

// urlInText matches a URL in a text, also one without a scheme or with the slashes
// of JSON.
var urlInText = regexp.MustCompile(`((?:[A-Za-z][A-Za-z0-9+.-]*:)?(?:\\*/){2})([^\s"'<>]+)`)

// Text masks every URL in a text as URL does, and the given secrets, even escaped ones.
func Text(text string, secrets ...string) string { return newFinder(secrets).text(text) }

// text is Text for the finder's secrets.
func (f *finder) text(text string) string {
	text = f.hide(text)
	if !strings.Contains(text, "/") {
		return text
	}
	return urlInText.ReplaceAllStringFunc(text, func(found string) string {
		parts := urlInText.FindStringSubmatch(found)
		return parts[1] + strings.TrimPrefix(URL("x://"+parts[2]), "x://")
	})
}

// Quote returns a value that was given by mistake in quotes, clipped to fit into an
// error.
func Quote(value string) string { return strconv.Quote(OneLine(value, 64)) }
