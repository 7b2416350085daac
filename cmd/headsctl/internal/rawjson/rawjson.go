// Package rawjson splits JSON documents and keeps the order of keys and the digits of numbers.
// It has the names of the library's own package, which this module doesn't import: it may be
// built with any later version of the library, so it imports only what is small and stays.
package rawjson

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
)

// Member is one member of an object.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Members returns the members of an object in their order, and none of any other
// value.
func Members(doc []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		decoder := json.NewDecoder(bytes.NewReader(doc))
		if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
			return
		}
		for decoder.More() {
			key, err := decoder.Token()
			var value json.RawMessage
			if err != nil || decoder.Decode(&value) != nil || !yield(Member{key.(string), value}) {
				return
			}
		}
	}
}

// Elements returns the elements of an array, and none of any other value.
func Elements(doc []byte) iter.Seq[json.RawMessage] {
	var elements []json.RawMessage
	_ = json.Unmarshal(doc, &elements) // an array alone fits
	return slices.Values(elements)
}

// Kind returns the JSON type of a value: object, array, string, boolean, null or
// number.
func Kind(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return ""
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// Unquote returns a JSON string as text, and "" for any other value.
func Unquote(value []byte) (text string) {
	_ = json.Unmarshal(value, &text)
	return text
}

// Encode is json.Marshal without escapes for HTML.
func Encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// String returns a text as a JSON string.
func String(text string) json.RawMessage {
	encoded, _ := Encode(text) // a text can be encoded
	return encoded
}

// AppendString appends a text as a JSON string.
func AppendString(b []byte, text string) []byte { return append(b, String(text)...) }

// AppendMember appends a member to an object that is being written.
func AppendMember(b []byte, key string, value []byte) []byte {
	return append(append(AppendString(b, key), ':'), value...)
}

// Object returns an object of members that AppendMember has written.
func Object(members ...[]byte) []byte { return enclose('{', members, '}') }

// Array returns an array of elements.
func Array(elements ...[]byte) []byte { return enclose('[', elements, ']') }

func enclose(open byte, parts [][]byte, end byte) []byte {
	return append(append([]byte{open}, bytes.Join(parts, []byte{','})...), end)
}

// Get returns the value of a member of an object, or nil.
func Get(doc []byte, key string) []byte {
	for m := range Members(doc) {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// MapTexts returns a document with what f returns in the place of each text.
func MapTexts(value []byte, f func(string) string) []byte {
	switch Kind(value) {
	case "object":
		var members [][]byte
		for m := range Members(value) {
			members = append(members, AppendMember(nil, m.Key, MapTexts(m.Value, f)))
		}
		return Object(members...)
	case "array":
		var elements [][]byte
		for element := range Elements(value) {
			elements = append(elements, MapTexts(element, f))
		}
		return Array(elements...)
	case "string":
		return String(f(Unquote(bytes.TrimSpace(value))))
	}
	return bytes.TrimSpace(value)
}
