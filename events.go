package heads

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// EventType names what happened in a session, in lower case. The service can add
// types at any time, so other values than the constants may arrive.
type EventType string

// The event types of the service.
const (
	EventStartConversation   EventType = "start_conversation"   // the first message of the user
	EventEndConversation     EventType = "end_conversation"     // the connection or the window closed
	EventInactivityWarning   EventType = "inactivity_warning"   // the user was shown the warning
	EventTimeoutConversation EventType = "timeout_conversation" // inactive for too long; an end follows
)

// Event is what the service sends to a webhook about a session of a head. Printing
// it shows type, time and ids.
type Event struct {
	Type         EventType // in lower case, also if it was sent otherwise
	Timestamp    Time      // its Text is what was sent, also if it can't be read
	HeadID       string    // the UUID of the head
	SessionID    string    // one conversation
	PublicHeadID string    // the head's id in access URLs
	PublicOrgID  string    // the organisation's id in access URLs
	Raw          Raw       // the whole body, with fields that this package does not know
}

// ParseEvent reads the body of a webhook delivery.
//
// ParseEvent does not verify anything: anyone who can reach the URL can send an
// event. Call VerifySignature with the same bytes first, or use an EventHandler.
//
// Unknown fields are ignored. A timestamp that can't be read is kept in the Text of
// Timestamp. The id of a session and a public id may be numbers, whose text is the
// id. ParseEvent refuses a body that is not one JSON object, an object without
// event_type, any other known field of another type, and a known field that occurs
// twice. Names are case-insensitive here: two readers of such a body could see two
// different heads.
func ParseEvent(body []byte) (*Event, error) {
	e, err := decodeEvent(body)
	if err != nil {
		return nil, err
	}
	e.Raw = NewRaw(body)
	return e, nil
}

// Key returns a text that is the same for every delivery of one event and
// differs between events. It is the SHA-256, in hex, of head id, session id, type
// and the timestamp as it was sent, each with its length before it. If there is
// no timestamp or it can't be read, the SHA-256 of Raw follows, which is the same
// in every redelivery. An id with bytes that are not UTF-8 enters the key as the
// bytes in Raw; the fields have U+FFFD in their place.
//
// Two events of one type in one session have the same key if their timestamps
// are the same text. The service may send whole seconds, so a second warning
// within the same second has the key of the first. If the timestamp can be read,
// Key ignores all other fields. So an event that two registrations deliver has
// one key.
func (e *Event) Key() string {
	var buf [256]byte
	b := buf[:0]
	headID, sessionID, eventType := e.exactIDs()
	for _, field := range [...]string{headID, sessionID, eventType, e.Timestamp.Text} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	if !e.isTimed() {
		body := sha256.Sum256(e.Raw.Bytes())
		b = binary.AppendUvarint(b, uint64(len(body)))
		b = append(b, body[:]...)
	}
	sum := sha256.Sum256(b)
	var text [hexLen]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// exactIDs returns head id, session id and type as they were sent. The fields have
// U+FFFD for all that is not UTF-8, so two sessions may have the same text there.
func (e *Event) exactIDs() (headID, sessionID, eventType string) {
	headID, sessionID, eventType = e.HeadID, e.SessionID, strings.ToLower(string(e.Type))
	replaced := func(text string) bool { return strings.Contains(text, string(utf8.RuneError)) }
	if !replaced(headID) && !replaced(sessionID) && !replaced(eventType) {
		return headID, sessionID, eventType
	}
	var wire wireEvent
	if json.Unmarshal(e.Raw.Bytes(), &wire) != nil { // the event was not parsed
		return headID, sessionID, eventType
	}
	return wire.HeadID.exactly(headID), wire.SessionID.exactly(sessionID), wire.Type.exactly(eventType)
}

// isTimed reports whether the timestamp can be read. That of an event that was not
// parsed from a body may have its Text alone.
func (e *Event) isTimed() bool {
	if !e.Timestamp.IsZero() {
		return true
	}
	_, ok := parseTime(e.Timestamp.Text)
	return ok
}

// String returns type, time and ids of the event, without Raw.
func (e Event) String() string {
	at := ""
	if text := e.timeText(); text != "" {
		at = " at " + text
	}
	return fmt.Sprintf("%s%s, head %s, session %s", label(string(e.Type)), at, label(e.HeadID), label(e.SessionID))
}

func (e Event) timeText() string { return mask.OneLine(e.Timestamp.String(), maxLabel) }

var (
	errEventShape  = errors.New("heads: the body is not an event: it has no event_type")
	errEventTwice  = errors.New("a field occurs twice")
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
		Type:         EventType(strings.ToLower(wire.Type.text)),
		Timestamp:    Time{Text: wire.Timestamp.text},
		HeadID:       wire.HeadID.text,
		SessionID:    wire.SessionID.text,
		PublicHeadID: wire.PublicHeadID.text,
		PublicOrgID:  wire.PublicOrgID.text,
	}
	e.Timestamp.Time, _ = parseTime(e.Timestamp.Text)
	return e, nil
}

type wireEvent struct {
	Timestamp    timestampField `json:"timestamp"`
	HeadID       eventField     `json:"head_id"`
	SessionID    idField        `json:"session_id"`
	PublicHeadID idField        `json:"public_head_id"`
	PublicOrgID  idField        `json:"public_org_id"`
	Type         eventField     `json:"event_type"`
}

var wireEvents = sync.Pool{New: func() any { return new(wireEvent) }}

// eventField is a string that may occur once. Package json calls UnmarshalJSON
// for every name that it matches with the field, and matches are
// case-insensitive, so that a second spelling is noticed as well.
type eventField struct {
	text  string
	exact string // text with the bytes for which it may have U+FFFD; "" if it has none
	seen  bool
}

// exactly returns the bytes that were sent for text, which is that of the field in
// any letter case.
func (f *eventField) exactly(text string) string {
	if utf8.ValidString(f.exact) || !strings.EqualFold(f.text, text) {
		return text
	}
	return f.exact
}

func (f *eventField) UnmarshalJSON(data []byte) error {
	switch {
	case f.seen:
		return errEventTwice
	case string(data) == "null":
		f.seen = true
		return nil
	case data[0] != '"':
		return errEventString
	case bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data):
		f.set(data[1 : len(data)-1])
		return nil
	default:
		f.seen = true
		err := json.Unmarshal(data, &f.text)
		if strings.Contains(f.text, string(utf8.RuneError)) {
			f.exact = rawjson.UnquoteExact(data)
		}
		return err
	}
}

func (f *eventField) set(text []byte) { f.text, f.seen = string(text), true }

// timestampField is an eventField that keeps the JSON text of a value that is not
// a string, so that no event is lost because of its time.
type timestampField struct{ eventField }

func (f *timestampField) UnmarshalJSON(data []byte) error {
	err := f.eventField.UnmarshalJSON(data)
	if errors.Is(err, errEventString) {
		f.set(data)
		return nil
	}
	return err
}

// idField is an eventField that keeps the JSON text of a number.
type idField struct{ eventField }

func (f *idField) UnmarshalJSON(data []byte) error {
	err := f.eventField.UnmarshalJSON(data)
	if errors.Is(err, errEventString) && rawjson.Kind(data) == "number" {
		f.set(data)
		return nil
	}
	return err
}

// readPlain reads the form that events usually have: one object of strings in
// printable ASCII without escapes, under lower-case names that occur once. It
// reports false for everything else.
//
// It is the one place outside package rawjson that reads JSON by hand. Every
// delivery passes it, also an unsigned one, and it takes a third of the time
// of package json, which also could not refuse a field that occurs twice without
// a method call for each. What readPlain reads, package json reads the same way;
// a fuzz test compares the two.
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
			if field.seen {
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
		return &w.SessionID.eventField
	case "public_head_id":
		return &w.PublicHeadID.eventField
	case "public_org_id":
		return &w.PublicOrgID.eventField
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
