package heads

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"unique"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

const redacted = mask.Redacted

// Secret is a string that nothing shows: package fmt and loggers show
// [redacted] in its place, and so do JSON and XML. Reveal returns the string.
// Two equal secrets are ==, and the zero Secret is the empty one.
//
// To store a document with its secrets, store its Raw.
type Secret struct {
	value unique.Handle[string] // veiled; fmt prints the address alone, at any depth and with any verb
}

// NewSecret returns the secret that holds value.
func NewSecret(value string) Secret { return secretOf(value) }

func secretOf[T ~string | ~[]byte](value T) Secret {
	if len(value) == 0 {
		return Secret{}
	}
	var short [256]byte
	veiled := append(short[:0], value...)
	veil(veiled)
	return Secret{unique.Make(string(veiled))}
}

// Reveal returns the string itself.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	value := []byte(s.value.Value())
	veil(value)
	return string(value)
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
	*s = secretOf(text)
	return nil
}

// Raw is JSON or any other text as it arrived. It can hold secrets under any
// name, so package fmt, loggers and JSON show only its length. Bytes and Decode
// return the text. The zero Raw has none. Compare with Equal.
type Raw struct {
	_    [0]func() // == would compare where the texts are, not what they say
	text *[]byte   // veiled
}

// NewRaw returns a Raw that holds a copy of text.
func NewRaw(text []byte) Raw {
	if text == nil {
		return Raw{}
	}
	return copyRaw(text)
}

// copyRaw returns a Raw that holds a copy of text. One allocation is enough for a short
// text, such as that of most tools.
func copyRaw[T ~string | ~[]byte](text T) Raw {
	const short = 256 - 24 // with the slice, a size of the allocator
	if len(text) > short {
		return rawOf(append([]byte{}, text...))
	}
	box := new(struct {
		text []byte
		room [short]byte
	})
	box.text = append(box.room[:0], text...)
	veil(box.text)
	return Raw{text: &box.text}
}

// rawOf returns a Raw that holds text itself, which must not be used afterwards.
func rawOf(text []byte) Raw {
	veil(text)
	return Raw{text: &text}
}

// null is shared, since most documents hold it several times.
var null = rawOf([]byte("null"))

// Bytes returns a copy of the text, and nil for the zero Raw.
func (r Raw) Bytes() []byte {
	text := bytes.Clone(r.veiled())
	veil(text)
	return text
}

// plain is Bytes as a string.
func (r Raw) plain() string { return string(r.Bytes()) }

// veiled returns what is held of the text.
func (r Raw) veiled() []byte {
	if r.text == nil {
		return nil
	}
	return *r.text
}

// Len returns the length of the text in bytes.
func (r Raw) Len() int { return len(r.veiled()) }

// Equal reports whether two texts are the same, byte for byte.
func (r Raw) Equal(other Raw) bool { return bytes.Equal(r.veiled(), other.veiled()) }

// Decode reads JSON into v. It returns a DecodeError, which shows nothing of the
// text, if the text is empty, is not JSON or does not fit v.
func (r Raw) Decode(v any) error { return decodeInto(opRawDecode, r.Bytes(), v) }

// opRawDecode is the operation of the DecodeErrors of Raw, which have no answer.
const opRawDecode = "Raw.Decode"

// String returns the length, such as "[1234 bytes]".
func (r Raw) String() string { return fmt.Sprintf("[%d bytes]", r.Len()) }

// Format writes the same as String for every verb.
func (r Raw) Format(f fmt.State, _ rune) { writeText(f, r.String()) }

// LogValue returns the same as String.
func (r Raw) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalJSON writes the same as String, and null for null and the zero Raw.
func (r Raw) MarshalJSON() ([]byte, error) {
	if r.text == nil || r.Equal(null) {
		return []byte("null"), nil
	}
	return rawjson.String(r.String()), nil
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

// pad veils what secrets and texts hold, so that a program that walks the memory of a
// value, as tools for tests do, finds no text. Its bytes turn ASCII into other bytes. It
// is one for the process, so that equal texts stay equal.
var pad = func() (pad [1024]byte) {
	_, _ = rand.Read(pad[:]) // never fails
	for i := range pad {
		pad[i] |= 0x80
	}
	return pad
}()

// veil replaces a text by its veiled form, and that by the text.
func veil(text []byte) {
	for len(text) > 0 {
		n := subtle.XORBytes(text, text, pad[:])
		text = text[n:]
	}
}

// sealed hides a value from whoever walks the memory of what holds it: package fmt, even
// where it calls no methods, and tools for tests.
type sealed[T any] func() T

func seal[T any](value T) sealed[T] { return func() T { return value } }

// get returns the value, or the zero value if none was sealed.
func (s sealed[T]) get() (value T) {
	if s == nil {
		return value
	}
	return s()
}

// writeText is the body of a Format method. It writes the same safe text for every
// verb. A write to a fmt.State does not fail.
func writeText(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
