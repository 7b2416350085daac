package heads

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/headsapi/heads-go/internal/loopback"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// checkText returns a fault for a required text that is blank. The remedy ends
// the sentence.
func checkText(operation, field, text, remedy string, use ...string) error {
	if strings.TrimSpace(text) == "" {
		return invalid(operation, field, "is blank", remedy, use...)
	}
	return nil
}

// checkHeadID refuses everything except a UUID.
func checkHeadID(operation, id string) error {
	if isUUID(id) {
		return nil
	}
	return headIDFault(id).of(operation, "head id")
}

var publicID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*-[0-9]+$`)

func headIDFault(id string) fault {
	const want = "use the UUID in the head's id field"
	switch {
	case strings.TrimSpace(id) == "":
		return fault{problem: "is blank", remedy: "give the UUID in the head's id field"}
	case strings.ContainsAny(id, "/?"):
		return fault{problem: "is a URL or a path", remedy: want}
	case publicID.MatchString(id):
		return fault{problem: quote(id) + " is a public id", remedy: want}
	case isUUID(strings.TrimSpace(id)):
		return fault{problem: quote(id) + " has white space around it", remedy: "trim it"}
	default:
		return fault{problem: quote(id) + " is not a UUID", remedy: want}
	}
}

// isUUID reports whether s has the form 8-4-4-4-12 in hexadecimal of any case.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// checkPathID refuses an id that can't be one segment of a path.
func checkPathID(operation, field, id string) error {
	if id == "." || id == ".." {
		return invalid(operation, field, fmt.Sprintf("%q is a step in a path, not an id", id), "give the id as the service returns it")
	}
	if isSample(id) {
		return invalid(operation, field, quote(id)+" is a placeholder", "give the id as the service returns it")
	}
	return checkText(operation, field, id, "give the id as the service returns it")
}

func checkWebhookID(operation string, id int64) error {
	if id < 1 {
		return invalid(operation, "webhook id", fmt.Sprintf("%d is not a webhook's id", id), "want 1 or more")
	}
	return nil
}

// checkCallbackURL refuses a URL that the service could not or would not call:
// it must be absolute https with a host. Plain http is allowed to a loopback
// host, for work with the emulator.
func checkCallbackURL(operation, field, raw string) error {
	if err := checkText(operation, field, raw, "give an https:// URL"); err != nil {
		return err
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return invalid(operation, field, "is not an absolute URL", "want https:// and a host")
	case isPlaceholder(raw) || partPlaceholder.MatchString(u.Path):
		return invalid(operation, field, fmt.Sprintf("holds the placeholder %q", placeholderIn(raw)), "give the real URL")
	case sampleInURL(u) != "":
		return invalid(operation, field, fmt.Sprintf("holds the placeholder %q", sampleInURL(u)), "give the real URL")
	case strings.Contains(raw, " "):
		return invalid(operation, field, "holds a space", "take it out, or escape it as %20")
	case u.User != nil:
		return invalid(operation, field, "carries a user name or password, which the service is not known to send", "put a secret into the path")
	case u.Fragment != "":
		return invalid(operation, field, "carries a fragment, which is never sent", "remove it")
	case u.Scheme == "https", u.Scheme == "http" && loopback.Is(u.Hostname()):
		return nil
	}
	return invalid(operation, field, fmt.Sprintf("%s is not https, which the service demands", quote(u.Scheme+"://"+u.Host)), "use an https:// URL")
}

var (
	wholePlaceholder = regexp.MustCompile(`^<[A-Za-z][A-Za-z0-9_ -]*>$`)
	partPlaceholder  = regexp.MustCompile(`<[A-Z][A-Z0-9_]*>`)
	addressWithPart  = regexp.MustCompile(`^\S+://\S*<[A-Z][A-Z0-9_]*>\S*$`)
)

// isPlaceholder reports whether a text stands for a value that should be filled
// in: the word that API descriptions show for a string, a name in angle
// brackets, what a Secret or a Raw shows of itself, or a URL with one of the last
// two in it.
func isPlaceholder(s string) bool {
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

// isSample reports whether an id, a provider, a voice or a key is a placeholder. In a
// text for people these words can be meant.
func isSample(s string) bool {
	return isPlaceholder(s) || isSampleText(strings.TrimSpace(s))
}

func isSampleText(s string) bool { return sampleName.MatchString(s) || sampleChoice.MatchString(s) }

// sampleInURL returns the part of a URL that is a placeholder, or "". A part of a path
// in lower case may be real.
func sampleInURL(u *url.URL) string {
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

// findPlaceholder returns the first placeholder among the strings of a JSON
// value, at any depth, or "". Names of members are ignored.
func findPlaceholder(raw []byte) string {
	if bytes.IndexByte(raw, '<') < 0 && !mask.MayHoldMasked(raw) && !bytes.Contains(raw, []byte("string")) {
		return ""
	}
	for text := range rawjson.Strings(raw) {
		if isPlaceholder(text) {
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
