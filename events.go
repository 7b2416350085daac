package heads

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// EventType names what happened in a session, in lower case. Other values than
// the constants may arrive: the service can add types at any time.
type EventType string

// The event types of the service.
const (
	EventStartConversation   EventType = "start_conversation"   // the first message of the user
	EventEndConversation     EventType = "end_conversation"     // the connection or the window closed
	EventInactivityWarning   EventType = "inactivity_warning"   // the user was shown the warning
	EventTimeoutConversation EventType = "timeout_conversation" // inactive for too long; an end follows
)

// Event is what the service tells a webhook about a session of a head.
//
// Printed and logged, an event shows its type, time and ids, never Raw.
type Event struct {
	Type          EventType       // lower case, whatever was sent
	Timestamp     time.Time       // zero when TimestampText can't be read
	TimestampText string          // as it was sent
	HeadID        string          // the UUID of the head
	SessionID     string          // one conversation
	PublicHeadID  string          // the head's id in access addresses
	PublicOrgID   string          // the organisation's id in access addresses
	Raw           json.RawMessage // the whole body, with fields that this package does not know
}

// ParseEvent reads the body of a webhook delivery.
//
// It does not verify anything: whoever can reach the URL can send an event.
// Call VerifySignature with the same bytes first, or use an EventHandler.
//
// Fields that are not known are passed over, and a timestamp that can't be read
// stays in TimestampText. ParseEvent refuses what is not one JSON object, an
// object without event_type, a known field of another type, and a known field
// given twice in any letter case, since two readers of such a body could see
// two different heads.
func ParseEvent(body []byte) (*Event, error) {
	e, err := decodeEvent(body)
	if err != nil {
		return nil, err
	}
	e.Raw = bytes.Clone(body)
	return e, nil
}

// Key returns a text that is the same for every delivery of one event and
// differs between events: SHA-256, in hex, over head id, session id, type and
// the timestamp as it was sent, each with its length before it. If there is no
// timestamp or it can't be read, the SHA-256 of Raw follows, which every
// redelivery repeats byte for byte.
//
// It can't tell apart two events of one type in one session whose timestamps
// are the same text. The service may send whole seconds, so a second warning
// within the same second has the key of the first. Of an event with a readable
// timestamp Key ignores all other fields, so the same event delivered through
// two registrations has one key.
func (e *Event) Key() string {
	var buf [256]byte
	b := buf[:0]
	for _, field := range [...]string{e.HeadID, e.SessionID, strings.ToLower(string(e.Type)), e.TimestampText} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	if !e.isTimed() {
		body := sha256.Sum256(e.Raw)
		b = binary.AppendUvarint(b, uint64(len(body)))
		b = append(b, body[:]...)
	}
	sum := sha256.Sum256(b)
	var text [hexLen]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// isTimed reports whether TimestampText can be read. An event that was not
// parsed from a body may have no Timestamp.
func (e *Event) isTimed() bool {
	if !e.Timestamp.IsZero() {
		return true
	}
	_, ok := parseTime(e.TimestampText)
	return ok
}

// String returns type, time and ids of the event, without Raw.
func (e Event) String() string {
	return fmt.Sprintf("%s at %s, head %s, session %s", e.Type, e.timeText(), e.HeadID, e.SessionID)
}

// Format writes the same as String, whatever the verb.
func (e Event) Format(f fmt.State, _ rune) { writeText(f, e.String()) }

// LogValue returns type, time and ids of the event, without Raw.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("event_type", string(e.Type)),
		slog.String("timestamp", e.timeText()),
		slog.String("head_id", e.HeadID),
		slog.String("session_id", e.SessionID),
	)
}

func (e Event) timeText() string { return Time{Time: e.Timestamp, Text: e.TimestampText}.String() }
