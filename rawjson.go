package heads

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

// This file looks into JSON documents without decoding them, so that what the
// library does not know keeps its bytes. Documents are valid JSON; on anything
// else these functions find nothing, and never panic.

// member is one member of an object: doc[start:end] is everything since the
// member before it, comma and white space included.
type member struct {
	key        []byte // decoded
	value      []byte
	start, end int
}

// members walks the members of an object.
func members(doc []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(doc, 0)
		if i >= len(doc) || doc[i] != '{' {
			return
		}
		for i++; ; {
			start := i
			i = skipSpace(doc, i)
			if i < len(doc) && doc[i] == ',' {
				i = skipSpace(doc, i+1)
			}
			if i >= len(doc) || doc[i] != '"' {
				return
			}
			keyEnd := skipValue(doc, i)
			key := unquoteKey(doc[i:keyEnd])
			i = skipSpace(doc, keyEnd)
			if i >= len(doc) || doc[i] != ':' {
				return
			}
			i = skipSpace(doc, i+1)
			end := skipValue(doc, i)
			if !yield(member{key: key, value: doc[i:end], start: start, end: end}) {
				return
			}
			i = end
		}
	}
}

// elements walks the elements of an array.
func elements(doc []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(doc, 0)
		if i >= len(doc) || doc[i] != '[' {
			return
		}
		for i++; ; i++ {
			i = skipSpace(doc, i)
			if i >= len(doc) || doc[i] == ']' {
				return
			}
			end := skipValue(doc, i)
			if end == i || !yield(doc[i:end]) {
				return
			}
			if i = skipSpace(doc, end); i >= len(doc) || doc[i] != ',' {
				return
			}
		}
	}
}

func skipSpace(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns where the value that starts at i ends.
func skipValue(doc []byte, i int) int {
	depth := 0
	for i < len(doc) {
		switch doc[i] {
		case '"':
			i = skipString(doc, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			i = skipLiteral(doc, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

func skipString(doc []byte, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

func skipLiteral(doc []byte, i int) int {
	for i < len(doc) && !strings.ContainsRune(",:{}[]\" \n\t\r", rune(doc[i])) {
		i++
	}
	return i
}

// unquote decodes a JSON string.
func unquote(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// unquoteKey decodes the name of a member, without a copy where nothing is
// escaped.
func unquoteKey(raw []byte) []byte {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	return []byte(unquote(raw))
}

// rawMember is the value of a member; as in encoding/json, the last one of the
// same name counts.
func rawMember(doc []byte, key string) (value json.RawMessage, ok bool) {
	for m := range members(doc) {
		if string(m.key) == key {
			value, ok = m.value, true
		}
	}
	return value, ok
}

// withMember returns a copy of an object in which one member has another
// value, or is added at the end, or, for a nil value, is taken out. All other
// bytes stay as they are.
func withMember(doc []byte, key string, value []byte) []byte {
	out := []byte{'{'}
	end, written, found := 1, 0, false
	if open := bytes.IndexByte(doc, '{'); open >= 0 {
		end = open + 1
	}
	for m := range members(doc) {
		end = m.end
		if string(m.key) == key && (value == nil || found) {
			continue
		}
		lead := doc[m.start : m.end-len(m.value)]
		if comma := skipSpace(lead, 0); written == 0 && lead[comma] == ',' {
			lead = lead[comma+1:] // the members before it are gone
		}
		out = append(out, lead...)
		if string(m.key) == key {
			out, found = append(out, value...), true
		} else {
			out = append(out, m.value...)
		}
		written++
	}
	if value != nil && !found {
		if written > 0 {
			out = append(out, ',')
		}
		out = appendMember(out, key, value)
	}
	if end >= len(doc) {
		return append(out, '}')
	}
	return append(out, doc[end:]...)
}

// appendMember writes one member of an object, without a comma.
func appendMember(b []byte, key string, value []byte) []byte {
	return append(append(appendString(b, key), ':'), value...)
}

// appendString writes a JSON string; one without anything to escape, such as
// a name or an id, costs nothing.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, jsonString(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// encodeJSON is json.Marshal without escapes for HTML, so that texts are sent
// as they are written.
func encodeJSON(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}

// jsonString encodes a string, which can't fail.
func jsonString(s string) json.RawMessage {
	raw, _ := encodeJSON(s)
	return raw
}

func isJSONNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

// jsonKind names the type of a JSON value.
func jsonKind(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}
