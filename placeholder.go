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

// isPlaceholder reports whether a text stands where a real value was meant to be:
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
// value, at any depth, or "". Names of members are ignored. It reads the document
// once, from its beginning to its end, however deep it is.
func findPlaceholder(raw []byte) string {
	if bytes.IndexByte(raw, '<') < 0 && bytes.IndexByte(raw, '\\') < 0 && !bytes.Contains(raw, []byte("string")) {
		return ""
	}
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := skipString(raw, i)
		if text := unquote(raw[i:end]); !isName(raw, end) && isPlaceholder(text) {
			return placeholderIn(text)
		}
		i = end
	}
	return ""
}

// isName reports whether the string that ends at i is the name of a member.
func isName(raw []byte, i int) bool {
	i = skipSpace(raw, i)
	return i < len(raw) && raw[i] == ':'
}

// placeholderIn is what to show of a text that is or holds a placeholder: of an
// address only the placeholder, since the rest may be a secret.
func placeholderIn(s string) string {
	if found := partPlaceholder.FindString(s); found != "" {
		return found
	}
	return strings.TrimSpace(s)
}
