package check

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxToken is the length of the longest bearer token, in bytes.
const MaxToken = 16 << 10

// Token returns why a token can't be sent as a bearer credential. It never shows the
// token.
func Token(token string) Fault {
	scheme, _, hasScheme := strings.Cut(token, " ")
	switch {
	case strings.TrimSpace(token) == "":
		return Fault{"is blank", "give the access token, or WithTokenSource", useTokenSource}
	case hasScheme && strings.EqualFold(scheme, "bearer"):
		return Fault{Problem: `starts with "Bearer "`, Remedy: "give the token alone"}
	case len(token) > MaxToken:
		return Fault{Problem: fmt.Sprintf("is %d bytes long", len(token)), Remedy: fmt.Sprintf("want at most %d", MaxToken)}
	case strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return Fault{Problem: "holds a space, a line break or another character that can't stand in a header", Remedy: "give the token alone"}
	case IsSample(token):
		return Fault{Problem: "is a placeholder", Remedy: "give the real access token"}
	}
	return Fault{}
}

// MinPathToken is the length of the shortest path token, in characters.
const MinPathToken = 16

// PathToken returns why secret can't be a path segment that no proxy rewrites. It never
// shows the secret.
func PathToken(secret string) Fault {
	switch {
	case secret == "":
		return Fault{Problem: "is empty", Remedy: "give 16 random bytes or more in hexadecimal"}
	case isDots(secret):
		return Fault{Problem: "is dots alone", Remedy: "give 16 random bytes or more in hexadecimal"}
	case strings.ContainsFunc(secret, needsEscape):
		return Fault{Problem: "holds a character that has a meaning in a URL", Remedy: "use letters, digits and - _ . ~"}
	case len(secret) < MinPathToken:
		return Fault{Problem: "has " + strconv.Itoa(len(secret)) + " characters", Remedy: "give 16 or more, such as 16 random bytes in hexadecimal"}
	}
	return Fault{}
}

func needsEscape(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("-_.~", r) }

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// IsHeaderName reports whether s can be the name of a header, and a product name or
// version in a User-Agent.
func IsHeaderName(s string) bool {
	for _, r := range s {
		if r > 0x7e || !strings.ContainsRune("-._+!~", r) && !isAlphanumeric(r) {
			return false
		}
	}
	return s != ""
}
