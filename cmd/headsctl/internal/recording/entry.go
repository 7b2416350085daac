// Package recording reads and writes recordings: JSON lines of the events and tool
// calls that a back end received, and of how they were answered.
//
// The first line is {"type":"recording","version":1,"at":…}. Each line of type event
// or tool_call is an Entry, each of type outcome an Outcome. A recording holds the
// bodies as they arrived, and no secret: of the headers only those in Headers, of the
// path what package mask leaves.
package recording

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/mask"
)

// Version is that of the format.
const Version = 1

// MaxBody is the size of the largest body that is recorded, in bytes.
const MaxBody = 1 << 20

// Headers are the names of the headers that are forwarded and recorded.
var Headers = []string{"Content-Type", "User-Agent", heads.SignatureHeader}

// Kind is the type of a line.
type Kind string

// The kinds of lines. A request that is neither an event nor a tool call is not recorded.
const (
	KindRecording Kind = "recording"
	KindEvent     Kind = "event"
	KindToolCall  Kind = "tool_call"
	KindOutcome   Kind = "outcome"
)

// The values of Entry.Signature. A tool call has none.
const (
	SignatureRight      = "right"
	SignatureUnverified = "unverified" // there was no key
)

// The values of Answer.By.
const (
	ByBackEnd  = "back end"
	ByListener = "listen" // the back end was not asked, or did not answer
)

// Entry is an event or a tool call as it arrived, and its answer.
type Entry struct {
	Type      Kind              `json:"type"`
	ID        string            `json:"id"`
	At        time.Time         `json:"at"`
	Path      string            `json:"path"` // with the query
	Headers   map[string]string `json:"headers"`
	Body      Text              `json:"-"`
	Event     string            `json:"event,omitempty"` // the type, in lower case
	Tool      string            `json:"tool,omitempty"`
	HeadID    string            `json:"head_id"`
	SessionID string            `json:"session_id"`
	Signature string            `json:"signature,omitempty"`
	Acked     bool              `json:"acked"` // answered before it was forwarded
	Answer    Answer            `json:"answer"`

	Line     int      `json:"-"` // in the file that it was read from
	Delivery [32]byte `json:"-"` // of Read; the same for all attempts of the service to deliver an event to a path
	offset   int64    // of the line
	length   int
	Outcome  *Outcome `json:"-"` // of one that was acked; nil without a line of it
}

// Answer is what the sender was answered.
type Answer struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Body        Text   `json:"-"`
	DurationMS  int64  `json:"duration_ms"`
	By          string `json:"by"`
}

// Outcome is the outcome of an event that was acknowledged before it was passed on.
type Outcome struct {
	Type      Kind      `json:"type"`
	Entry     string    `json:"entry"` // the id of the event
	Delivered bool      `json:"delivered"`
	Attempts  int       `json:"attempts"`
	Status    int       `json:"status"` // of the last attempt; 0 without an answer
	At        time.Time `json:"at"`
}

// Name returns the type of an event, or the name of a tool.
func (e *Entry) Name() string {
	if e.Type == KindToolCall {
		return e.Tool
	}
	return e.Event
}

// Delivered reports whether a back end has accepted the entry: for one that was acked
// an outcome says so, for any other a status from 200 to 299.
func (e *Entry) Delivered() bool {
	if e.Acked {
		return e.Outcome != nil && e.Outcome.Delivered
	}
	return Accepted(e.Answer.Status)
}

// Status returns that of the recorded answer. For an event that was acked it is the back
// end's, or 0 if none is known.
func (e *Entry) Status() int {
	switch {
	case !e.Acked:
		return e.Answer.Status
	case e.Outcome != nil:
		return e.Outcome.Status
	}
	return 0
}

// Accepted reports whether a status is one from 200 to 299.
func Accepted(status int) bool { return status >= 200 && status <= 299 }

// Classify returns what a POST is, without id, time and answer. It reports false for a
// body that is neither an event nor a tool call: an event is a JSON object with
// event_type and head_id, a tool call one with session_metadata, without any spelling of
// event_type and without a name twice. The last part of its path names the tool.
func Classify(path string, header http.Header, body []byte) (*Entry, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return nil, false
	}
	e := &Entry{Path: mask.Path(path, ""), Headers: map[string]string{}, Body: Text(body)}
	for _, name := range Headers {
		if values := header.Values(name); len(values) > 0 {
			e.Headers[name] = strings.Join(values, ", ")
		}
	}
	has := func(name string) bool { _, ok := fields[name]; return ok }
	switch {
	case text(fields["event_type"]) != "" && has("head_id"):
		e.Type, e.Event = KindEvent, strings.ToLower(text(fields["event_type"]))
		e.HeadID, e.SessionID = text(fields["head_id"]), text(fields["session_id"])
	case has("session_metadata") && mayBeCall(body):
		var session struct {
			SessionID json.RawMessage `json:"session_id"`
			HeadID    json.RawMessage `json:"head_id"`
		}
		_ = json.Unmarshal(fields["session_metadata"], &session) // the contract promises no field of it
		e.Path = mask.Path(path, toolName(path))
		e.Type, e.Tool = KindToolCall, lastPart(e.Path)
		e.HeadID, e.SessionID = text(session.HeadID), text(session.SessionID)
	default:
		return nil, false
	}
	return e, true
}

// mayBeCall reports whether an object has no name twice and none that a back end could
// read as event_type. Otherwise an event without a signature would pass for a tool call.
func mayBeCall(object []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, _ = decoder.Token()
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		name, _ := token.(string)
		plain := strings.NewReplacer("_", "", "-", "", " ", "").Replace(name)
		if err != nil || seen[name] || strings.EqualFold(plain, "eventtype") {
			return false
		}
		seen[name] = true
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return false
		}
	}
	return true
}

// text returns a JSON string, or any other value as it was written.
func text(value json.RawMessage) string {
	var s string
	if len(value) == 0 || json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// Text is bytes that are a JSON string where they are UTF-8, and base64 otherwise.
type Text []byte

// members returns the two members that hold a text: one of them is nil.
func (t Text) members() (plain *string, encoded []byte) {
	if utf8.Valid(t) {
		s := string(t)
		return &s, nil
	}
	return nil, t
}

type plainEntry Entry

type plainAnswer Answer

type wireAnswer struct {
	plainAnswer
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitempty"`
}

type wireEntry struct {
	plainEntry
	Body       *string    `json:"body,omitempty"`
	BodyBase64 []byte     `json:"body_base64,omitempty"`
	Answer     wireAnswer `json:"answer"`
}

// encode returns a value as one line.
func encode(value any) ([]byte, error) {
	if e, ok := value.(*Entry); ok {
		wire := wireEntry{plainEntry: plainEntry(*e), Answer: wireAnswer{plainAnswer: plainAnswer(e.Answer)}}
		wire.Body, wire.BodyBase64 = e.Body.members()
		wire.Answer.Body, wire.Answer.BodyBase64 = e.Answer.Body.members()
		value = wire
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return line.Bytes(), err
}
