package recording

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/headsapi/heads-go/internal/mask"
)

// Redacted stands where a secret was.
const Redacted = mask.Redacted

// toolName returns the last part of a tool call's path, which names the tool, or "" for
// one that may be a token: 16 or more characters with a digit or a capital among them.
func toolName(path string) string {
	name := lastPart(path)
	if len(name) >= 16 && strings.ContainsFunc(name, func(r rune) bool { return unicode.IsDigit(r) || unicode.IsUpper(r) }) {
		return ""
	}
	return name
}

// HasRedacted reports whether something of a path is masked.
func HasRedacted(path string) bool { return strings.Contains(path, Redacted) }

// Fill puts a token in the place of what is masked.
func Fill(path, token string) string {
	path, query, hasQuery := strings.Cut(path, "?")
	path = strings.ReplaceAll(path, Redacted, url.PathEscape(token))
	if hasQuery {
		path += "?" + strings.ReplaceAll(query, Redacted, url.QueryEscape(token))
	}
	return path
}

// lastPart returns the last part of a path, decoded.
func lastPart(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimRight(path, "/")
	part := path[strings.LastIndexByte(path, '/')+1:]
	if plain, err := url.PathUnescape(part); err == nil {
		return plain
	}
	return part
}
