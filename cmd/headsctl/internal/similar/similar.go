// Package similar writes hints at the name that somebody meant.
package similar

import (
	"strings"

	"github.com/headsapi/heads-go/internal/nearest"
)

// Hint returns a hint at the known name that is nearest to a wrong one, or "" if none
// is near.
func Hint(wrong string, known []string) string {
	if near := nearest.Name(wrong, known); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// Without returns a text without the hint that Hint has made.
func Without(text string) string {
	before, rest, found := strings.Cut(text, " (did you mean ")
	_, after, closed := strings.Cut(rest, "?)")
	if !found || !closed {
		return text
	}
	return before + after
}
