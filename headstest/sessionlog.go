package headstest

import "time"

// session is the record of a Session.
type session struct {
	id        string
	userID    string
	headID    string
	streaming bool // the mode of the access URL at which the session was opened
	started   bool
	closed    bool
}

// Kinds of entries in the log.
const (
	entryStart    = "start"
	entryMessage  = "message"
	entryInactive = "inactive"
	entryTimeout  = "timeout"
	entryClose    = "close"
	entryEvent    = "event"
	entryToolCall = "tool call"
)

// logEntry describes one thing that happened in a session. The console shows it.
type logEntry struct {
	ID        int       `json:"id"` // counts from 1
	Kind      string    `json:"kind"`
	SessionID string    `json:"sessionId"`
	HeadID    string    `json:"headId"`
	At        time.Time `json:"at"`
	Took      duration  `json:"took,omitzero"`

	Text      string `json:"text,omitempty"`      // of a message
	Event     string `json:"event,omitempty"`     // its type
	Receivers int    `json:"receivers,omitempty"` // the webhooks that an event is delivered to
	Why       string `json:"why,omitempty"`       // why there are none

	Tool string `json:"tool,omitempty"`
	Sent string `json:"sent,omitempty"`
	toolOutcome
}

// toolOutcome is how a tool call ended.
type toolOutcome struct {
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	Problem string `json:"problem,omitempty"`
	Reply   string `json:"reply,omitempty"`
}
