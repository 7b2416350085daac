package headstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How the emulator writes times, in UTC: those of records, and those of events
// and tool calls.
const (
	recordTime = "2006-01-02T15:04:05.000Z"
	eventTime  = "2006-01-02 15:04:05"
)

// document is a JSON object that keeps its values byte for byte.
type document map[string]json.RawMessage

// newDocument panics if a value can't be encoded as JSON: the values come from this
// package or from the test that uses it.
func newDocument(values map[string]any) document {
	d := make(document, len(values))
	for key, v := range values {
		d.set(key, v)
	}
	return d
}

func (d document) set(key string, v any) {
	raw, err := encodeJSON(v)
	if err != nil {
		panic(fmt.Sprintf("headstest: the value of field %q can't be written as JSON: %v", key, err))
	}
	d[key] = raw
}

// str returns a string field, or "" when it is absent or something else.
func (d document) str(key string) string {
	var s string
	_ = json.Unmarshal(d[key], &s)
	return s
}

// is reports whether a field is true.
func (d document) is(key string) bool { return string(bytes.TrimSpace(d[key])) == "true" }

// touch moves updatedAt to now.
func (d document) touch() { d.set("updatedAt", now()) }

// encode writes the object with its keys in order. json.Marshal would compact
// and escape the values.
func (d document) encode() json.RawMessage {
	keys, size := make([]string, 0, len(d)), 2
	for key, value := range d {
		keys = append(keys, key)
		size += len(key) + len(value) + len(`"":,`)
	}
	slices.Sort(keys)
	b := append(make([]byte, 0, size), '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendName(b, key), ':')
		b = append(b, d[key]...)
	}
	return append(b, '}')
}

// appendName appends a key of an object. Plain names, such as those of the
// contract, need no escapes.
func appendName(b []byte, name string) []byte {
	if strings.IndexFunc(name, needsEscape) < 0 {
		return append(append(append(b, '"'), name...), '"')
	}
	escaped, _ := encodeJSON(name) // a string can always be encoded
	return append(b, escaped...)
}

func needsEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

func now() string { return time.Now().UTC().Format(recordTime) }

// list writes a JSON list and keeps the bytes of its items.
func list(items []json.RawMessage) json.RawMessage {
	b := []byte("[")
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}

// objects returns the objects in a JSON list.
func objects(list json.RawMessage) []document {
	var items []json.RawMessage
	_ = json.Unmarshal(list, &items) // other JSON has no items
	var all []document
	for _, item := range items {
		var d document
		if json.Unmarshal(item, &d) == nil && d != nil {
			all = append(all, d)
		}
	}
	return all
}
