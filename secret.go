package heads

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"unique"

	"github.com/headsapi/heads-go/internal/mask"
)

const redacted = mask.Redacted

// Secret is a string that nothing shows: package fmt and loggers show
// [redacted] in its place, and so do JSON and XML. Reveal returns the string.
// Two equal secrets are ==, and the zero Secret is the empty one.
//
// To store a document with its secrets, store its Raw.
type Secret struct {
	value unique.Handle[string] // of which fmt prints the address alone, at any depth and with any verb
}

// NewSecret returns the secret that holds value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{unique.Make(value)}
}

// Reveal returns the string itself.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.value.Value()
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns [redacted], or "" for the zero Secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// Format writes the same as String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { writeText(f, s.String()) }

// LogValue returns the same as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the same as String. A secret that was encoded can't be
// read back.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the string itself. It reads [redacted] as the zero Secret.
func (s *Secret) UnmarshalText(text []byte) error {
	if string(text) == redacted {
		*s = Secret{}
		return nil
	}
	*s = NewSecret(string(text))
	return nil
}

// Raw is JSON or any other text as it arrived. It can hold secrets under any
// name, so it shows only its length. Bytes returns the text. The zero Raw has
// none. Compare with Equal.
type Raw struct {
	_    [0]func() // == would compare where the texts are, not what they say
	text sealed[rawText]
}

type rawText struct {
	text    []byte
	secrets []string // that the text holds and JSON must not show
}

// NewRaw returns a Raw that holds a copy of text.
func NewRaw(text []byte) Raw {
	if text == nil {
		return Raw{}
	}
	return rawOf(append([]byte{}, text...))
}

// rawOf returns a Raw that holds text itself, which must not change afterwards.
func rawOf(text []byte) Raw { return Raw{text: seal(rawText{text: text})} }

// null is shared, since most documents hold it several times.
var null = rawOf([]byte("null"))

// Bytes returns a copy of the text, and nil for the zero Raw.
func (r Raw) Bytes() []byte { return bytes.Clone(r.bytes()) }

// bytes returns the text itself, which must not be changed.
func (r Raw) bytes() []byte { return r.text.get().text }

// Len returns the length of the text in bytes.
func (r Raw) Len() int { return len(r.bytes()) }

// Equal reports whether two texts are the same, byte for byte.
func (r Raw) Equal(other Raw) bool { return bytes.Equal(r.bytes(), other.bytes()) }

// Decode reads JSON into v. It returns a DecodeError, which shows nothing of the
// text, if the text is empty, is not JSON or does not fit v.
func (r Raw) Decode(v any) error { return decodeInto(opRawDecode, r.bytes(), v) }

// opRawDecode is the operation of the DecodeErrors of Raw, which have no answer.
const opRawDecode = "Raw.Decode"

// String returns the length, such as "[1234 bytes]".
func (r Raw) String() string { return fmt.Sprintf("[%d bytes]", r.Len()) }

// Format writes the same as String for every verb.
func (r Raw) Format(f fmt.State, _ rune) { writeText(f, r.String()) }

// LogValue returns the same as String.
func (r Raw) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalJSON writes JSON with its secrets masked: a text under a name with key,
// token, secret, password, credential or authorization in it becomes
// "[redacted]", and so do the values in the query of a URL, also inside a text,
// and the same secrets wherever else they occur. For a text that is not JSON it
// writes what String returns, and null for the zero Raw.
func (r Raw) MarshalJSON() ([]byte, error) {
	switch text := r.bytes(); {
	case text == nil:
		return []byte("null"), nil
	case json.Valid(text):
		secrets := append(mask.SecretsOf(text), r.text.get().secrets...)
		return mask.JSON(text, secrets...), nil
	default:
		return json.Marshal(r.String())
	}
}

// UnmarshalJSON keeps a copy of the JSON.
func (r *Raw) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*r = null
		return nil
	}
	*r = NewRaw(text)
	return nil
}

// sealed hides a value from package fmt, even where fmt calls no methods: it prints
// only the address of a pointer to a pointer.
// reflect.DeepEqual compares the values.
type sealed[T any] struct{ to **T }

func seal[T any](value T) sealed[T] {
	box := &struct { // one allocation for both
		value T
		to    *T
	}{value: value}
	box.to = &box.value
	return sealed[T]{&box.to}
}

// get returns the value, or the zero value if none was sealed.
func (s sealed[T]) get() (value T) {
	if s.to == nil {
		return value
	}
	return **s.to
}

// set replaces the value in all copies.
func (s *sealed[T]) set(value T) {
	if s.to == nil {
		*s = seal(value)
		return
	}
	**s.to = value
}

// writeText is the body of a Format method. It writes the same safe text for every
// verb. A write to a fmt.State does not fail.
func writeText(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
