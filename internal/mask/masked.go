package mask

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/headsapi/heads-go/internal/rawjson"
)

var maskedLength = regexp.MustCompile(`^\[[0-9]+ bytes\]$`)

// IsMasked reports whether a text is what stands for a hidden value, "[redacted]" or
// "[12 bytes]", or a URL with "[redacted]" in it.
func IsMasked(text string) bool {
	if !strings.Contains(text, "[") {
		return false
	}
	return text == Redacted || maskedLength.MatchString(text) ||
		strings.Contains(text, Redacted) && strings.Contains(text, "://") && !strings.ContainsAny(text, " \t\r\n")
}

// FindMasked returns the first text in a JSON value, at any depth, for which IsMasked
// is true, or "". It ignores the names of members.
func FindMasked(raw []byte) string {
	if !MayHoldMasked(raw) {
		return ""
	}
	for text := range rawjson.Strings(raw) {
		if IsMasked(strings.TrimSpace(text)) {
			return MaskedIn(text)
		}
	}
	return ""
}

// MaskedIn returns what to show of a text for which IsMasked is true. Of a URL it
// returns [redacted] only, since the rest may be a secret.
func MaskedIn(text string) string {
	if strings.Contains(text, Redacted) {
		return Redacted
	}
	return strings.TrimSpace(text)
}

// MayHoldMasked reports whether IsMasked can be true for a text in a JSON value.
func MayHoldMasked(raw []byte) bool {
	return bytes.IndexByte(raw, '[') >= 0 && (bytes.Contains(raw, []byte(Redacted)) || bytes.Contains(raw, []byte(" bytes]"))) ||
		bytes.IndexByte(raw, '\\') >= 0
}
