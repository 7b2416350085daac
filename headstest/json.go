package headstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/headsapi/heads-go/internal/exactjson"
)

// encodeJSON leaves <, > and & as they are, as most servers do.
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

// duration is written as in "1.5s".
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
