package headstest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// seed adds the records of the body, either all of them or none.
func (c *control) seed(r *http.Request) (any, error) {
	text, err := readBody(r)
	if err != nil {
		return nil, err
	}
	s, err := ParseSeed(text)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	added, err := c.emulator.Import(s)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v; nothing was added", err)
	}
	return added, nil
}

// export returns a seed. It has keys if the query asks for them.
func (c *control) export(r *http.Request) (any, error) {
	switch query := r.URL.Query(); {
	case r.URL.RawQuery == "", query.Get("keys") == "false":
		return c.emulator.Export().withoutKeys(), nil
	case query.Get("keys") != "true":
		return nil, refuse(http.StatusBadRequest, "the query takes keys=true or keys=false")
	}
	if err := admitSecret(r); err != nil {
		return nil, err
	}
	return c.emulator.Export(), nil
}

// reset restores the state with which the emulator started.
func (c *control) reset(*http.Request) (any, error) {
	c.emulator.mu.Lock()
	start := c.emulator.start
	c.emulator.mu.Unlock()
	return c.emulator.Restart(start)
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
		for i, item := range v {
			if text, isText := item.(string); isText {
				v[i] = withoutSecrets(text)
			}
			dropKeys(item)
		}
	case map[string]any:
		for name, item := range v {
			text, isText := item.(string)
			switch {
			case name == "customWords":
			case item != nil && secretName.MatchString(name), name == "publicUrl":
				delete(v, name)
			case isText && isCallback(name):
				v[name] = withoutPathTokens(withoutSecrets(text), v["name"])
			case isText:
				v[name] = withoutSecrets(text)
			default:
				dropKeys(item)
			}
		}
	}
}

// withoutSecrets removes the secrets from a text, for example the query of a URL. An import
// accepts the result.
func withoutSecrets(text string) string {
	shown := concealText(text)
	if shown == text {
		return text
	}
	return strings.NewReplacer("?"+concealed, "", concealed, "hidden").Replace(shown)
}

// withoutPathTokens returns a callback URL without the segments of its path that are long
// enough to be a token. It keeps the name of the tool.
func withoutPathTokens(address string, tool any) string {
	segments := strings.Split(address, "/")
	for i, segment := range segments {
		if i > 2 && len(segment) >= minToken && segment != tool {
			segments[i] = "hidden"
		}
	}
	return strings.Join(segments, "/")
}
