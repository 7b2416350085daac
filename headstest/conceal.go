package headstest

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// concealed replaces a secret in what is shown.
const concealed = "[hidden]"

var secretName = regexp.MustCompile(`(?i)(api|shared|access|private|provider)[_-]?key$|token|secret|password|authorization|credential`)

// conceal returns the value of a field without secrets: it hides texts under the
// name of a secret, and the queries and user infos of URLs.
func conceal(name string, raw json.RawMessage) json.RawMessage {
	shown, _ := encodeJSON(concealValue(name, decode(raw))) // it was JSON before
	return shown
}

func concealValue(name string, v any) any {
	if v != nil && v != "" && secretName.MatchString(name) {
		return concealed
	}
	switch v := v.(type) {
	case string:
		return concealURL(v)
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

// concealURL returns a text that is not a URL unchanged.
func concealURL(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	if u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return text
	}
	shown := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		shown += "?" + concealed
	}
	return shown
}

// concealDocument conceals every field of a record.
func concealDocument(d document) document {
	shown := make(document, len(d))
	for name, raw := range d {
		shown[name] = conceal(name, raw)
	}
	return shown
}

// concealText conceals a body that may be JSON.
func concealText(body []byte) string {
	var d document
	if json.Unmarshal(body, &d) == nil && d != nil {
		return string(concealDocument(d).encode())
	}
	return concealURL(string(body))
}

// withoutKeys returns a seed that can be shared and imported. It has no keys, so
// an import generates new ones.
func (s Seed) withoutKeys() Seed {
	return Seed{Visuals: keyless(s.Visuals), Heads: keyless(s.Heads), Tools: keyless(s.Tools), Registrations: keyless(s.Registrations)}
}

func keyless(list []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		v, _ := decode(raw).(map[string]any)
		dropKeys(v)
		out[i], _ = encodeJSON(v) // it was JSON before
	}
	return out
}

// dropKeys removes the values that conceal hides.
func dropKeys(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			dropKeys(item)
		}
	case map[string]any:
		for name, item := range v {
			text, isText := item.(string)
			switch {
			case name == "customWords":
			case item != nil && secretName.MatchString(name), name == "publicUrl":
				delete(v, name)
			case isText:
				v[name] = strings.TrimSuffix(concealURL(text), "?"+concealed)
			default:
				dropKeys(item)
			}
		}
	}
}
