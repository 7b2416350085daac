package heads

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	wholePlaceholder = regexp.MustCompile(`^<[A-Za-z][A-Za-z0-9_ -]*>$`)
	partPlaceholder  = regexp.MustCompile(`<[A-Z][A-Z0-9_]*>`)
	addressWithPart  = regexp.MustCompile(`^\S+://\S*<[A-Z][A-Z0-9_]*>\S*$`)
)

// isPlaceholder says whether a text stands where a real value was meant to be:
// the word that API descriptions show for a string, a name in angle brackets,
// or an address with such a name in it.
func isPlaceholder(s string) bool {
	s = strings.TrimSpace(s)
	if s == "string" {
		return true
	}
	if !strings.Contains(s, "<") {
		return false
	}
	return wholePlaceholder.MatchString(s) || addressWithPart.MatchString(s)
}

// findPlaceholder returns the first placeholder among the strings of a JSON
// value, at any depth, or "". Names of members are not looked at.
func findPlaceholder(raw []byte) string {
	if bytes.IndexByte(raw, '<') < 0 && bytes.IndexByte(raw, '\\') < 0 && !bytes.Contains(raw, []byte("string")) {
		return ""
	}
	switch jsonKind(raw) {
	case "string":
		if s := unquote(raw[skipSpace(raw, 0):]); isPlaceholder(s) {
			return placeholderIn(s)
		}
	case "array":
		for element := range elements(raw) {
			if found := findPlaceholder(element); found != "" {
				return found
			}
		}
	case "object":
		for m := range members(raw) {
			if found := findPlaceholder(m.value); found != "" {
				return found
			}
		}
	}
	return ""
}

// placeholderIn is what to show of a text that is or holds a placeholder: of an
// address only the placeholder, since the rest may be a secret.
func placeholderIn(s string) string {
	if found := partPlaceholder.FindString(s); found != "" {
		return found
	}
	return strings.TrimSpace(s)
}
