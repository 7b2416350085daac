package headstest

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// concealed is shown in place of a secret.
const concealed = "[hidden]"

var secretName = regexp.MustCompile(`(?i)(api|shared|access|private|provider)[_-]?key$|token|secret|password|authorization|credential`)

// conceal returns the value of a field for everyone to read: texts under a name
// that a secret has are hidden, and so are the queries and user infos of URLs.
func conceal(name string, raw json.RawMessage) json.RawMessage {
	shown, _ := encodeJSON(concealValue(name, decode(raw))) // what was JSON still is
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
				v[key] = concealValue("", item) // the keys are words, not names
			} else {
				v[key] = concealValue(key, item)
			}
		}
	}
	return v
}

// concealURL leaves a text alone that is no URL.
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

// withoutKeys returns a seed that can be given away and imported again: keys
// are left out, so that an import generates new ones.
func (s Seed) withoutKeys() Seed {
	return Seed{Visuals: keyless(s.Visuals), Heads: keyless(s.Heads), Tools: keyless(s.Tools), Registrations: keyless(s.Registrations)}
}

func keyless(list []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		v, _ := decode(raw).(map[string]any)
		dropKeys(v)
		out[i], _ = encodeJSON(v) // what was JSON still is
	}
	return out
}

// dropKeys removes what conceal would hide.
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
