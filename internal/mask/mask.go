// Package mask makes values fit to be shown to people: it hides their secrets and
// shortens them.
package mask

import (
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
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return text
	}
	return scheme + "://" + rest[:end] + Path(rest[end:], toolName)
}

// Path masks a path and the query behind it: segments that may be a token, apart from
// the name of a tool, and the values of the query.
func Path(path, toolName string) string {
	path, query, hasQuery := strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			plain = segment
		}
		if utf8.RuneCountInString(segment) >= longSegment && plain != toolName {
			segments[i] = Redacted
		}
	}
	path = strings.Join(segments, "/")
	if hasQuery {
		path += "?" + maskQuery(query)
	}
	return path
}

// JSON masks the secrets in a JSON value: texts under the name of a secret, at any
// depth, the queries of URLs, also inside texts, and the given secrets wherever they
// are. SecretsOf returns those of a document. It reads the value once.
func JSON(doc json.RawMessage, secrets ...string) json.RawMessage {
	if doc == nil {
		return nil
	}
	hidden := newFinder(secrets)
	out := make([]byte, 0, len(doc))
	walker[place]{
		under: place.under,
		token: func(token []byte, at place, name bool) {
			if token[0] != '"' {
				out = append(out, token...)
				return
			}
			text := rawjson.Unquote(token)
			var shown string
			switch {
			case name:
				shown = hidden.text(text)
			case at.secret && text != "":
				shown = Redacted
			default:
				shown = hidden.text(URL(text))
			}
			if shown == text && !name {
				out = append(out, token...)
				return
			}
			out = rawjson.AppendString(out, shown)
		},
	}.walk(doc, place{})
	return out
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

// shortestSecret is how long a secret must be to be masked by its value. A shorter one
// would take words out of texts.
const shortestSecret = 8

// SecretsOf returns the secrets in a JSON document: texts under the name of a secret,
// values of such a name in the query of a URL, and long segments in the path of a
// callback URL. The longest come first. It reads the document once.
func SecretsOf(doc json.RawMessage) []string {
	var found []string
	add := func(parts ...string) {
		for _, part := range parts {
			if len(part) >= shortestSecret && part != Redacted {
				found = append(found, part)
			}
		}
	}
	type callback struct {
		url  string
		tool *tool
	}
	var callbacks []callback // their tool's name may come later
	walker[source]{
		enter: func(at source, object bool) source {
			if at.direct = false; object {
				at.tool = &tool{outer: at.tool}
			}
			return at
		},
		under: source.under,
		token: func(token []byte, at source, name bool) {
			if name || at.words || token[0] != '"' {
				return
			}
			text := rawjson.Unquote(token)
			add(secretsInURL(text)...)
			switch {
			case at.secret:
				add(text)
			case at.member == "url" || at.member == "webhookUrl":
				callbacks = append(callbacks, callback{text, at.tool})
			}
			if at.direct && at.member == "name" {
				at.tool.name = text
			}
		},
	}.walk(doc, source{})
	for _, c := range callbacks {
		add(longSegments(c.url, c.tool.named())...)
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return slices.Compact(found)
}

// source is where SecretsOf looks.
type source struct {
	place
	member string // the name of the value, or of the list that it is in
	direct bool   // it is the value of the member itself
	tool   *tool
}

func (s source) under(name string) source {
	words := s.words || name == "customWords" // at any depth
	return source{place{s.secret || namesASecret(name), words}, name, true, s.tool}
}

// tool is an object that may be a tool, whose URL may end with its name.
type tool struct {
	name  string
	outer *tool
}

// named returns the name of the innermost object that has one.
func (t *tool) named() string {
	for ; t != nil; t = t.outer {
		if t.name != "" {
			return t.name
		}
	}
	return ""
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
