package check

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

var (
	wholePlaceholder = regexp.MustCompile(`^<[A-Za-z][A-Za-z0-9_ -]*>$`)
	partPlaceholder  = regexp.MustCompile(`<[A-Z][A-Z0-9_]*>`)
	addressWithPart  = regexp.MustCompile(`^\S+://\S*<[A-Z][A-Z0-9_]*>\S*$`)
)

// IsPlaceholder reports whether a text stands for a value that should be filled
// in: the word that API descriptions show for a string, a name in angle
// brackets, what a Secret or a Raw shows of itself, or a URL with one of the last
// two in it.
func IsPlaceholder(s string) bool {
	s = strings.TrimSpace(s)
	if s == "string" || mask.IsMasked(s) {
		return true
	}
	if !strings.Contains(s, "<") {
		return false
	}
	return wholePlaceholder.MatchString(s) || addressWithPart.MatchString(s)
}

// The forms in which pages print a value that the reader has to replace: YOUR_KEY,
// voiceID, "a voice of your choice".
var (
	sampleName   = regexp.MustCompile(`(?i)^(?:your[_ -][a-z_ -]*[a-z]|(?:voice|head|visual|provider|org|api)[_ -]?(?:id|key)(?:_.*)?)$`)
	sampleChoice = regexp.MustCompile(`(?i)\bof[ _-]your[ _-]choice\b`)
	sampleInPath = regexp.MustCompile(`^YOUR[_-][A-Z0-9_-]+$`)
)

// IsSample reports whether an id, a provider, a voice or a key is a placeholder. In a
// text for people these words can be meant.
func IsSample(s string) bool {
	return IsPlaceholder(s) || isSampleText(strings.TrimSpace(s))
}

// isSampleText asks the expressions, which are slow, only if they can match.
func isSampleText(s string) bool {
	return s != "" && strings.IndexByte("yvhpoaYVHPOA", s[0]) >= 0 && sampleName.MatchString(s) ||
		containsFold(s, "choice") && sampleChoice.MatchString(s)
}

// containsFold is like strings.Contains, but ignores the case of ASCII letters.
func containsFold(s, part string) bool {
	for i := range len(s) - len(part) + 1 {
		if strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// SampleInURL returns the part of a URL that is a placeholder, or "". A part of a path
// in lower case may be real.
func SampleInURL(u *url.URL) string {
	for part := range strings.FieldsFuncSeq(u.Host+"/"+u.Path, func(r rune) bool { return r == '/' || r == '.' || r == ':' }) {
		if sampleInPath.MatchString(part) || sampleChoice.MatchString(part) {
			return part
		}
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if isSampleText(value) {
				return value
			}
		}
	}
	return ""
}

// FindPlaceholder returns the first placeholder among the strings of a JSON
// value, at any depth, or "". Names of members are ignored.
func FindPlaceholder(raw []byte) string {
	if bytes.IndexByte(raw, '<') < 0 && !mask.MayHoldMasked(raw) && !bytes.Contains(raw, []byte("string")) {
		return ""
	}
	for text := range rawjson.Strings(raw) {
		if IsPlaceholder(text) {
			return placeholderIn(text)
		}
	}
	return ""
}

// placeholderIn returns what to show of a text that is or holds a placeholder.
// Of a URL that is the placeholder only, since the rest may be a secret.
func placeholderIn(s string) string {
	if found := partPlaceholder.FindString(s); found != "" {
		return found
	}
	if mask.IsMasked(strings.TrimSpace(s)) {
		return mask.MaskedIn(s)
	}
	return strings.TrimSpace(s)
}
