package heads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

var (
	errEventShape  = errors.New("heads: the body is not an event: it has no event_type")
	errEventTwice  = errors.New("a field is given twice")
	errEventString = errors.New("a field is not a string")
)

// decodeEvent reads everything but Raw, so that the caller decides when the
// body is worth a copy.
func decodeEvent(body []byte) (*Event, error) {
	wire := wireEvents.Get().(*wireEvent)
	defer wireEvents.Put(wire)
	*wire = wireEvent{}
	if !wire.readPlain(body) {
		*wire = wireEvent{}
		if err := json.Unmarshal(body, wire); err != nil {
			return nil, fmt.Errorf("heads: the body is not an event: %w", err)
		}
	}
	if wire.Type.text == "" {
		return nil, errEventShape
	}
	e := &Event{
		Type:          EventType(strings.ToLower(wire.Type.text)),
		TimestampText: wire.Timestamp.text,
		HeadID:        wire.HeadID.text,
		SessionID:     wire.SessionID.text,
		PublicHeadID:  wire.PublicHeadID.text,
		PublicOrgID:   wire.PublicOrgID.text,
	}
	e.Timestamp, _ = parseTime(e.TimestampText)
	return e, nil
}

type wireEvent struct {
	Timestamp    timestampField `json:"timestamp"`
	HeadID       eventField     `json:"head_id"`
	SessionID    eventField     `json:"session_id"`
	PublicHeadID eventField     `json:"public_head_id"`
	PublicOrgID  eventField     `json:"public_org_id"`
	Type         eventField     `json:"event_type"`
}

var wireEvents = sync.Pool{New: func() any { return new(wireEvent) }}

// eventField is a string that may be given once. Package json calls
// UnmarshalJSON for every name that it matches with the field, letter case
// aside, so that a second spelling is noticed as well.
type eventField struct {
	text  string
	given bool
}

func (f *eventField) UnmarshalJSON(data []byte) error {
	switch {
	case f.given:
		return errEventTwice
	case string(data) == "null":
		f.given = true
		return nil
	case data[0] != '"':
		return errEventString
	case bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data):
		f.set(data[1 : len(data)-1])
		return nil
	default:
		f.given = true
		return json.Unmarshal(data, &f.text)
	}
}

func (f *eventField) set(text []byte) { f.text, f.given = string(text), true }

// timestampField is an eventField that keeps the JSON text of what is not a
// string: no event is lost for the sake of its time.
type timestampField struct{ eventField }

func (f *timestampField) UnmarshalJSON(data []byte) error {
	err := f.eventField.UnmarshalJSON(data)
	if err == errEventString {
		f.set(data)
		return nil
	}
	return err
}

// readPlain reads the form that events usually have, a third of the work that
// package json makes of it: one object of strings in printable ASCII without
// escapes, under lower-case names that come once. It reports false for
// everything else; what it does read, package json reads the same.
func (w *wireEvent) readPlain(body []byte) bool {
	rest, ok := skipByte(body, '{')
	for ok {
		var name, value []byte
		if name, rest, ok = plainString(rest); !ok || !isPlainName(name) {
			return false
		}
		if rest, ok = skipByte(rest, ':'); !ok {
			return false
		}
		if value, rest, ok = plainString(rest); !ok {
			return false
		}
		if field := w.field(name); field != nil {
			if field.given {
				return false
			}
			field.set(value)
		}
		if after, end := skipByte(rest, '}'); end {
			return len(trimSpace(after)) == 0
		}
		rest, ok = skipByte(rest, ',')
	}
	return false
}

func (w *wireEvent) field(name []byte) *eventField {
	switch string(name) {
	case "timestamp":
		return &w.Timestamp.eventField
	case "head_id":
		return &w.HeadID
	case "session_id":
		return &w.SessionID
	case "public_head_id":
		return &w.PublicHeadID
	case "public_org_id":
		return &w.PublicOrgID
	case "event_type":
		return &w.Type
	}
	return nil
}

// isPlainName reports whether name can't be another spelling of a known name.
func isPlainName(name []byte) bool {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}

// plainString returns the string at the beginning of data, and what follows.
func plainString(data []byte) (text, rest []byte, ok bool) {
	data, ok = skipByte(data, '"')
	if !ok {
		return nil, nil, false
	}
	for i, c := range data {
		switch {
		case c == '"':
			return data[:i], data[i+1:], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// skipByte returns what follows the given byte, which may have space before it.
func skipByte(data []byte, want byte) (rest []byte, ok bool) {
	data = trimSpace(data)
	if len(data) == 0 || data[0] != want {
		return nil, false
	}
	return data[1:], true
}

func trimSpace(data []byte) []byte {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\n' || data[0] == '\t' || data[0] == '\r') {
		data = data[1:]
	}
	return data
}
