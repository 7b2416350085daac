// Package show prepares texts from outside for a terminal.
package show

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CutMark marks where a text was shortened.
const CutMark = "…"

// Line returns a text from outside as one line. Characters that a terminal may obey become
// U+FFFD.
func Line(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case Steers(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.TrimSpace(text))
	return strings.ToValidUTF8(text, "�")
}

// Clip returns a text as one line of at most limit characters, without those that a terminal
// may obey.
func Clip(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > limit {
		return strings.TrimSpace(string(runes[:limit-1])) + CutMark
	}
	return text
}

// Steers reports whether a terminal may obey a character: a control character, C1
// included, or a mark of direction.
func Steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// steering matches the control characters and the marks of direction that JSON
// and YAML allow in a text as they are.
var steering = regexp.MustCompile(`[\x{7f}-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// JSON escapes these characters in a JSON document. Its value stays the same.
func JSON(doc []byte) []byte {
	return steering.ReplaceAllFunc(doc, func(found []byte) []byte {
		r, _ := utf8.DecodeRune(found)
		return fmt.Appendf(nil, `\u%04x`, r)
	})
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// ShellWord quotes a text for a shell where that is needed.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Count returns a number of things, such as "2 heads".
func Count(n int, thing string) string { return Counted(n, thing, thing+"s") }

// Counted is Count for things with another plural.
func Counted(n int, thing, things string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, things)
}
