package headstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/exactjson"
)

// Layouts of times, which are in UTC: those of records, and those of events and tool calls.
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

// encodeJSON encodes a value without escapes for <, > and &, as most servers do.
func encodeJSON(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && json.Valid(raw) {
		return bytes.Clone(raw), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// decode decodes valid JSON. Numbers stay text, so no number is too large.
func decode(raw json.RawMessage) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&v)
	return v
}

// decodeStrictly reads exactly one JSON value. It refuses unknown fields, which are
// also those in another letter case, and fields that occur twice.
func decodeStrictly(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return errors.New("the JSON can't be used: " + err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is something after the JSON value")
	}
	if err := exactjson.Known(text, v); err != nil {
		return errors.New("the JSON can't be used: " + err.Error())
	}
	return nil
}

func isA[T any](v any) bool { _, ok := v.(T); return ok }

func hasKey(m map[string]any, key string) bool { _, ok := m[key]; return ok }

// duration is a time.Duration that is written as in "1.5s".
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New(`a duration must be written as in "1.5s"`)
	}
	*d = duration(parsed)
	return nil
}
