package mask

import (
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
