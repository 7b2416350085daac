// Package mask makes values fit to be shown to people: it hides their secrets and
// shortens them.
package mask

import (
	"bytes"
	"cmp"
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
// depth, the queries of URLs, also inside texts, and the given secrets wherever they
// are. SecretsOf returns those of a document.
func JSON(doc json.RawMessage, secrets ...string) json.RawMessage {
	if doc == nil {
		return nil
	}
	return appendMasked(nil, doc, place{}, secrets)
}

// place is where a value of a document is.
type place struct {
	secret bool // under the name of a secret, at any depth
	words  bool // in customWords, whose names are words of speech
}

// under returns the place of a member of an object at p.
func (p place) under(name string) place {
	return place{p.secret || !p.words && namesASecret(name), name == "customWords"}
}

func appendMasked(out, value []byte, at place, secrets []string) []byte {
	switch rawjson.Kind(value) {
	case "object":
		out = append(out, '{')
		first := true
		for m := range rawjson.Members(value) {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = append(rawjson.AppendString(out, Text(string(m.Key), secrets...)), ':')
			out = appendMasked(out, m.Value, at.under(string(m.Key)), secrets)
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
			out = appendMasked(out, element, at, secrets)
		}
		return append(out, ']')
	case "string":
		text := rawjson.Unquote(bytes.TrimSpace(value))
		if at.secret && text != "" {
			return rawjson.AppendString(out, Redacted)
		}
		if shown := Text(URL(text), secrets...); shown != text {
			return rawjson.AppendString(out, shown)
		}
	}
	return append(out, bytes.TrimSpace(value)...)
}

// shortestSecret is how long a secret must be to be masked by its value. A shorter one
// would take words out of texts.
const shortestSecret = 8

// SecretsOf returns the secrets in a JSON document: texts under the name of a secret,
// values of such a name in the query of a URL, and long segments in the path of a
// callback URL. The longest come first.
func SecretsOf(doc json.RawMessage) []string {
	var found []string
	collectSecrets(doc, "", "", &found)
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return slices.Compact(found)
}

// collectSecrets adds the secrets in the value of a member, whose object has a name
// of its own if it is a tool.
func collectSecrets(value []byte, member, toolName string, found *[]string) {
	switch rawjson.Kind(value) {
	case "object":
		name, _ := rawjson.Value(value, "name")
		if rawjson.Kind(name) == "string" {
			toolName = rawjson.Unquote(bytes.TrimSpace(name))
		}
		for m := range rawjson.Members(value) {
			under := string(m.Key)
			if under == "customWords" {
				continue // its names are words of speech
			}
			if namesASecret(member) {
				under = member // at any depth
			}
			collectSecrets(m.Value, under, toolName, found)
		}
	case "array":
		for element := range rawjson.Elements(value) {
			collectSecrets(element, member, toolName, found)
		}
	case "string":
		text := rawjson.Unquote(bytes.TrimSpace(value))
		parts := secretsInURL(text)
		switch {
		case namesASecret(member):
			parts = append(parts, text)
		case member == "url" || member == "webhookUrl":
			parts = append(parts, longSegments(text, toolName)...)
		}
		for _, part := range parts {
			if len(part) >= shortestSecret && part != Redacted {
				*found = append(*found, part)
			}
		}
	}
}

// secretsInURL returns the password and the secret values of the query.
func secretsInURL(text string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	var found []string
	if u.User != nil {
		password, _ := u.User.Password()
		found = append(found, password)
	}
	for name, values := range u.Query() {
		if namesASecret(name) || strings.Contains(strings.ToLower(name), "sig") {
			found = append(found, values...)
		}
	}
	return found
}

// longSegments returns the segments that CallbackURL hides.
func longSegments(text, toolName string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(u.Path, "/"), func(segment string) bool {
		return utf8.RuneCountInString(segment) < longSegment || segment == toolName
	})
}

func namesASecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "token", "secret", "password", "credential", "authorization"}, func(word string) bool { return strings.Contains(name, word) })
}
