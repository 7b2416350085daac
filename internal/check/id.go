package check

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headsapi/heads-go/internal/mask"
)

var publicID = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*-[0-9]+$`)

// HeadID refuses everything except a UUID.
func HeadID(id string) Fault {
	const want = "use the UUID in the head's id field"
	switch {
	case IsUUID(id):
		return Fault{}
	case strings.TrimSpace(id) == "":
		return Fault{Problem: "is blank", Remedy: "give the UUID in the head's id field"}
	case strings.ContainsAny(id, "/?"):
		return Fault{Problem: "is a URL or a path", Remedy: want}
	case publicID.MatchString(id):
		return Fault{Problem: mask.Quote(id) + " is a public id", Remedy: want}
	case IsUUID(strings.TrimSpace(id)):
		return Fault{Problem: mask.Quote(id) + " has white space around it", Remedy: "trim it"}
	default:
		return Fault{Problem: mask.Quote(id) + " is not a UUID", Remedy: want}
	}
}

// IsUUID reports whether s has the form 8-4-4-4-12 in hexadecimal of any case.
func IsUUID(s string) bool {
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

// PathID refuses an id that can't be one segment of a path.
func PathID(id string) Fault {
	const remedy = "give the id as the service returns it"
	switch {
	case isDots(id):
		return Fault{Problem: fmt.Sprintf("%q is a step in a path, not an id", id), Remedy: remedy}
	case IsSample(id):
		return Fault{Problem: mask.Quote(id) + " is a placeholder", Remedy: remedy}
	}
	return Text(id, remedy)
}

func isDots(segment string) bool { return segment == "." || segment == ".." }

// WebhookID refuses an id below 1.
func WebhookID(id int64) Fault {
	if id < 1 {
		return Fault{Problem: fmt.Sprintf("%d is not a webhook's id", id), Remedy: "want 1 or more"}
	}
	return Fault{}
}
