// Package mask makes values fit to be shown to people: it hides their secrets and
// shortens them.
package mask

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// URL removes the user name, the values of the query and the fragment from a URL. It
// returns any other text unchanged.
func URL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || strings.ContainsAny(scheme, " \t\r\n") {
		return text
	}
	rest, _, fragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = Redacted + host[at:]
	}
	text = scheme + "://" + host
	if hasPath {
		text += "/" + path
	}
	if hasQuery {
		text += "?" + maskQuery(query)
	}
	if fragment {
		text += "#" + Redacted
	}
	return text
}

func maskQuery(query string) string {
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

// longSegment is the length at which a segment of a callback URL is treated as a
// secret.
const longSegment = 16

// CallbackURL is like URL, but for the URL of a webhook or a tool, whose path may
// hold a token.
func CallbackURL(raw, toolName string) string {
	text := URL(raw)
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return text
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	segments := strings.Split(rest, "/")
	for i, segment := range segments[1:] {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			plain = segment
		}
		if utf8.RuneCountInString(segment) >= longSegment && plain != toolName {
			segments[i+1] = Redacted
		}
	}
	text = scheme + "://" + strings.Join(segments, "/")
	if hasQuery {
		text += "?" + query
	}
	return text
}

// JSON masks the secrets in a JSON value: texts under the name of a secret, at any
// depth, and the queries of URLs.
func JSON(doc json.RawMessage) json.RawMessage {
	if doc == nil {
		return nil
	}
	return appendMasked(nil, doc, false)
}

func appendMasked(out, value []byte, secret bool) []byte {
	switch rawjson.Kind(value) {
	case "object":
		out = append(out, '{')
		first := true
		for m := range rawjson.Members(value) {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(rawjson.AppendString(out, string(m.Key)), ':')
			out = appendMasked(out, m.Value, secret || namesASecret(string(m.Key)))
		}
		return append(out, '}')
	case "array":
		out = append(out, '[')
		first := true
		for element := range rawjson.Elements(value) {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = appendMasked(out, element, secret)
		}
		return append(out, ']')
	case "string":
		text := rawjson.Unquote(bytes.TrimSpace(value))
		if secret && text != "" {
			return rawjson.AppendString(out, Redacted)
		}
		if shown := URL(text); shown != text {
			return rawjson.AppendString(out, shown)
		}
	}
	return append(out, bytes.TrimSpace(value)...)
}

func namesASecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "token", "secret", "password", "credential", "authorization"}, func(word string) bool { return strings.Contains(name, word) })
}
