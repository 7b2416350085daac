// Package show makes texts from outside fit for a line of a terminal.
package show

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CutMark is where a text was shortened.
const CutMark = "…"

// Line makes one line of a text from outside, without anything that a
// terminal would obey.
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

// Clip puts a text on one line of at most limit characters, without what a terminal
// obeys.
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

// JSON escapes them in a JSON document, which stays the same document.
func JSON(doc []byte) []byte {
	return steering.ReplaceAllFunc(doc, func(found []byte) []byte {
		r, _ := utf8.DecodeRune(found)
		return fmt.Appendf(nil, `\u%04x`, r)
	})
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// ShellWord makes one word of any text for a shell.
func ShellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Count writes a number of things.
func Count(n int, thing string) string { return Counted(n, thing, thing+"s") }

// Counted is Count for things whose plural has another ending.
func Counted(n int, thing, things string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %s", n, things)
}
