// Package rawjson reads and changes JSON documents without decoding them, so unknown
// parts keep their bytes. Documents must be valid JSON. In other texts these
// functions find nothing; they never panic.
package rawjson

import (
	"bytes"
	"encoding/json"
	"iter"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Text is a document or a part of one. Values read from a string share its memory.
type Text interface{ ~string | ~[]byte }

// Member is one member of an object. doc[start:end] begins after the member before it
// and includes comma and white space.
type Member[T Text] struct {
	Key        T // decoded
	Value      T
	start, end int
}

// Offset returns where the value begins in the document.
func (m Member[T]) Offset() int { return m.end - len(m.Value) }

// Members walks the members of an object.
func Members[T Text](doc T) iter.Seq[Member[T]] {
	return func(yield func(Member[T]) bool) {
		i := SkipSpace(doc, 0)
		if i >= len(doc) || doc[i] != '{' {
			return
		}
		for i++; ; {
			start := i
			i = SkipSpace(doc, i)
			if i < len(doc) && doc[i] == ',' {
				i = SkipSpace(doc, i+1)
			}
			if i >= len(doc) || doc[i] != '"' {
				return
			}
			keyEnd := skipValue(doc, i)
			key := unquoteKey(doc[i:keyEnd])
			i = SkipSpace(doc, keyEnd)
			if i >= len(doc) || doc[i] != ':' {
				return
			}
			i = SkipSpace(doc, i+1)
			end := skipValue(doc, i)
			if !yield(Member[T]{Key: key, Value: doc[i:end], start: start, end: end}) {
				return
			}
			i = end
		}
	}
}

// Elements walks the elements of an array.
func Elements[T Text](doc T) iter.Seq[T] {
	return func(yield func(T) bool) {
		i := SkipSpace(doc, 0)
		if i >= len(doc) || doc[i] != '[' {
			return
		}
		for i++; ; i++ {
			i = SkipSpace(doc, i)
			if i >= len(doc) || doc[i] == ']' {
				return
			}
			end := skipValue(doc, i)
			if end == i || !yield(doc[i:end]) {
				return
			}
			if i = SkipSpace(doc, end); i >= len(doc) || doc[i] != ',' {
				return
			}
		}
	}
}

// Strings walks the strings of a document at any depth, decoded and in order.
// Names of members are skipped. It reads the document once.
func Strings[T Text](doc T) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(doc); {
			if doc[i] != '"' {
				i++
				continue
			}
			end := SkipString(doc, i)
			if next := SkipSpace(doc, end); next < len(doc) && doc[next] == ':' {
				i = next
				continue
			}
			if !yield(Unquote(doc[i:end])) {
				return
			}
			i = end
		}
	}
}

// SkipSpace returns the index of the first byte at or after i that is not space.
func SkipSpace[T Text](doc T, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i.
func skipValue[T Text](doc T, i int) int {
	depth := 0
	for i < len(doc) {
		switch doc[i] {
		case '"':
			i = SkipString(doc, i)
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

// SkipString returns the index after the string that starts at i.
func SkipString[T Text](doc T, i int) int {
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

func skipLiteral[T Text](doc T, i int) int {
	for i < len(doc) && !strings.ContainsRune(",:{}[]\" \n\t\r", rune(doc[i])) {
		i++
	}
	return i
}

// Unquote decodes a JSON string. Bytes that are not UTF-8 become U+FFFD.
func Unquote[T Text](raw T) string {
	if len(raw) < 2 {
		return ""
	}
	inner := string(raw[1 : len(raw)-1])
	if isPlain(raw) || strings.IndexByte(inner, '\\') < 0 && utf8.ValidString(inner) {
		return inner
	}
	var s string
	_ = json.Unmarshal([]byte(raw), &s)
	return s
}

// isPlain reports whether a JSON string is ASCII without escapes.
func isPlain[T Text](raw T) bool {
	for i := range len(raw) {
		if raw[i] == '\\' || raw[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unquoteKey decodes the name of a member. It does not copy a name in plain ASCII.
func unquoteKey[T Text](raw T) T {
	if len(raw) >= 2 && isPlain(raw) {
		return raw[1 : len(raw)-1]
	}
	return T(Unquote(raw))
}

// Value returns the value of a member. As in encoding/json, it is the last one of
// that name.
func Value[T Text](doc T, key string) (value T, ok bool) {
	for m := range Members(doc) {
		if string(m.Key) == key {
			value, ok = m.Value, true
		}
	}
	return value, ok
}

// With returns a copy of an object in which one member has another value, is added at
// the end, or, if value is nil, is removed. All other bytes are unchanged.
func With[T Text](doc T, key string, value []byte) []byte {
	out := []byte{'{'}
	end, written, found := 1, 0, false
	if open := SkipSpace(doc, 0); open < len(doc) {
		end = open + 1
	}
	for m := range Members(doc) {
		end = m.end
		if string(m.Key) == key && (value == nil || found) {
			continue
		}
		lead := doc[m.start : m.end-len(m.Value)]
		if comma := SkipSpace(lead, 0); written == 0 && lead[comma] == ',' {
			lead = lead[comma+1:] // the members before it are removed
		}
		out = append(out, lead...)
		if string(m.Key) == key {
			out, found = append(out, value...), true
		} else {
			out = append(out, m.Value...)
		}
		written++
	}
	if value != nil && !found {
		if written > 0 {
			out = append(out, ',')
		}
		out = AppendMember(out, key, value)
	}
	if end >= len(doc) {
		return append(out, '}')
	}
	return append(out, doc[end:]...)
}

// AppendMember appends one member of an object, without a comma.
func AppendMember[T Text](b []byte, key string, value T) []byte {
	return append(append(AppendString(b, key), ':'), value...)
}

// AppendString appends a JSON string. It does not allocate for a text without
// anything to escape, such as a name or an id.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			raw, _ := Encode(s)
			return append(b, raw...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Encode is json.Marshal without escapes for HTML, so texts are sent as they are
// written.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}

// String encodes a string, which can't fail.
func String(s string) json.RawMessage {
	return AppendString(make([]byte, 0, len(s)+len(`""`)), s)
}

// IsNull reports whether raw is null.
func IsNull[T Text](raw T) bool {
	return Kind(raw) == "null" && strings.TrimSpace(string(raw)) == "null"
}

// Kind names the type of a JSON value.
func Kind[T Text](raw T) string {
	start := SkipSpace(raw, 0)
	if start == len(raw) {
		return "nothing"
	}
	switch raw[start] {
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

// Number returns a number, also one in quotes.
func Number[T Text](raw T) (number T, ok bool) {
	if Kind(raw) != "string" {
		return raw, Kind(raw) == "number"
	}
	number = T(Unquote(raw))
	return number, Kind(number) == "number" && json.Valid([]byte(number))
}

// Same reports whether two values are equal. The order of members is ignored.
func Same(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
