package mask

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine folds white space and control characters into single spaces and clips
// the text.
func OneLine(text string, limit int) string {
	return Clip(strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " "), limit)
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
func Text(text string, secrets ...string) string {
	text = Secrets(text, secrets...)
	if !strings.Contains(text, "/") {
		return text
	}
	return urlInText.ReplaceAllStringFunc(text, func(found string) string {
		parts := urlInText.FindStringSubmatch(found)
		return parts[1] + strings.TrimPrefix(URL("x://"+parts[2]), "x://")
	})
}
