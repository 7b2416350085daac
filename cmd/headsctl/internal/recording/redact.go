package recording

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// longPart is the length from which on a part of a path may be a secret, in characters.
const longPart = 16

// Redact masks what may be a secret in a path with its query: the values of the query,
// and parts of the path that have 16 or more characters with a digit or a capital among
// them.
func Redact(path string) string {
	path, query, hasQuery := strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if mayBeSecret(part) {
			parts[i] = Redacted
		}
	}
	path = strings.Join(parts, "/")
	if hasQuery {
		path += "?" + redactQuery(query)
	}
	return path
}

func mayBeSecret(part string) bool {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	return utf8.RuneCountInString(part) >= longPart &&
		strings.ContainsFunc(part, func(r rune) bool { return unicode.IsDigit(r) || unicode.IsUpper(r) })
}

func redactQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		switch name, value, named := strings.Cut(pair, "="); {
		case value != "":
			pairs[i] = name + "=" + Redacted
		case !named && pair != "":
			pairs[i] = Redacted
		}
	}
	return strings.Join(pairs, "&")
}

// HasRedacted reports whether Redact has masked something of a path.
func HasRedacted(path string) bool { return strings.Contains(path, Redacted) }

// Fill puts a token in the place of what Redact has masked.
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
