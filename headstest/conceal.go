package headstest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// concealed is shown in the place of a secret.
const concealed = "[hidden]"

var secretName = regexp.MustCompile(`(?i)(^|api|shared|access|private|provider)[_-]?keys?$|token|secret|password|authorization|credential`)

// conceal returns the value of a field without secrets. It hides texts under the name of
// a secret, secrets within other texts, and the paths of callback URLs. A value without a
// secret keeps its bytes.
func conceal(name string, raw json.RawMessage) json.RawMessage {
	before, _ := encodeJSON(decode(raw)) // it was JSON before
	shown, _ := encodeJSON(concealValue(name, decode(raw)))
	if string(shown) == string(before) {
		return raw
	}
	return shown
}

func concealValue(name string, v any) any {
	if v != nil && v != "" && secretName.MatchString(name) {
		return concealed
	}
	switch v := v.(type) {
	case string:
		if isCallback(name) {
			return concealCallback(v)
		}
		return concealText(v)
	case []any:
		for i, item := range v {
			v[i] = concealValue("", item)
		}
	case map[string]any:
		for key, item := range v {
			if name == "customWords" {
				v[key] = concealValue("", item) // the keys are not field names
			} else {
				v[key] = concealValue(key, item)
			}
		}
	}
	return v
}

// isCallback reports whether a field has the URL of a tool or a webhook.
func isCallback(name string) bool {
	return strings.EqualFold(name, "url") || strings.EqualFold(name, "webhookUrl")
}

// concealCallback shows the scheme and host of a URL. Its path may hold a token.
func concealCallback(address string) string {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return ""
	case err != nil || u.Host == "":
		return concealed
	case u.User == nil && strings.Trim(u.EscapedPath(), "/") == "" && u.RawQuery == "" && u.Fragment == "":
		return address
	default:
		return origin(address) + "/" + concealed
	}
}

// Parts of a text that may hold a secret: URLs, values after the name of a secret, and the
// credentials of a header.
var (
	urlInText        = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)
	pairInText       = regexp.MustCompile(`(?i)([\w-]*(?:key|token|secret|password|authorization|credential)[\w-]*=)[^\s&"'<>,;]+`)
	memberInText     = regexp.MustCompile(`(?i)(["'][\w-]*(?:key|token|secret|password|authorization|credential)[\w-]*["']\s*:\s*)(?:"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[^\s,}]+)`)
	credentialInText = regexp.MustCompile(`((?i:authorization)\s*:\s*\w+|\bBearer)\s+\S+`)
)

// concealText hides the secrets in a text of any form.
func concealText(text string) string {
	if strings.Contains(text, "://") {
		text = urlInText.ReplaceAllStringFunc(text, concealURL)
	}
	if strings.ContainsAny(text, "=:") {
		text = pairInText.ReplaceAllString(text, "${1}"+concealed)
		text = memberInText.ReplaceAllString(text, `${1}"`+concealed+`"`)
	}
	if strings.Contains(text, " ") {
		text = credentialInText.ReplaceAllString(text, "${1} "+concealed)
	}
	return text
}

// concealURL hides the user info, the query and the fragment of a URL, and what looks
// like a token in its path.
func concealURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		scheme, _, _ := strings.Cut(text, "://")
		return scheme + "://" + concealed
	}
	path := concealPath(u.EscapedPath())
	if u.User == nil && u.RawQuery == "" && u.Fragment == "" && path == u.EscapedPath() {
		return text
	}
	shown := u.Scheme + "://" + u.Host + path
	if u.RawQuery != "" {
		shown += "?" + concealed
	}
	return shown
}

// plainWords matches a segment of a path that is not a token, whatever its length: words,
// as in conversation-settings or enableEvents, and short numbers between them, as in a
// public id.
var plainWords = regexp.MustCompile(`^[A-Z]?[a-z]{0,15}([A-Z][a-z]{2,14})*([-_.]([A-Z]?[a-z]{1,15}([A-Z][a-z]{2,14})*|\d{1,6}))*$`)

// minToken is the length from which a segment of a path may be a token. The path token
// of a tool handler has at least as many characters.
const minToken = 16

// looksLikeToken reports whether a segment of a path may be a secret.
func looksLikeToken(segment string) bool {
	return len(segment) >= minToken && !uuid.MatchString(segment) && !plainWords.MatchString(segment)
}

// concealPath hides the segments of a path that look like tokens.
func concealPath(path string) string {
	if len(path) < minToken {
		return path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if looksLikeToken(segment) {
			segments[i] = concealed
		}
	}
	return strings.Join(segments, "/")
}

// shownParameters are the parameters of a query whose values are shown.
var shownParameters = []string{"headId", "videoStreaming", "enableEvents", "splitter"}

var parameterName = regexp.MustCompile(`^[A-Za-z][\w.-]{0,39}$`)

// concealQuery hides the values of parameters that no operation has, and malformed pairs.
func concealQuery(query string) string {
	if query == "" {
		return ""
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, named := strings.Cut(pair, "=")
		switch {
		case !named || !parameterName.MatchString(name) || looksLikeToken(name):
			pairs[i] = concealed
		case !slices.Contains(shownParameters, name) || looksLikeToken(value):
			pairs[i] = name + "=" + concealed
		}
	}
	return strings.Join(pairs, "&")
}

// concealDocument conceals every field of a record.
func concealDocument(d document) document {
	shown := make(document, len(d))
	for name, raw := range d {
		shown[name] = conceal(name, raw)
	}
	return shown
}

// concealBody shows the body of a request to an operation if it is a JSON object. In any
// other body the secrets can't be found, so it shows only the length.
func concealBody(body []byte) string {
	var d document
	switch {
	case len(body) == 0:
		return ""
	case json.Unmarshal(body, &d) == nil && d != nil:
		return string(concealDocument(d).encode())
	default:
		return fmt.Sprintf("%s: %d bytes that are not a JSON object", concealed, len(body))
	}
}

// concealReply shows a text that may be JSON, or the beginning of JSON.
func concealReply(text string) string {
	if json.Valid([]byte(text)) {
		return string(conceal("", json.RawMessage(text)))
	}
	return concealText(text)
}

// origin returns the scheme and host of a URL, which hold no secret.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
