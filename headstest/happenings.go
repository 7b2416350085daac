package headstest

import "time"

// session is what the emulator knows of a session.
type session struct {
	id        string
	userID    string
	headID    string
	streaming bool // the mode of the access URL at which the session was opened
	started   bool
	closed    bool
}

// What happens in a session.
const (
	happenedStart    = "start"
	happenedMessage  = "message"
	happenedInactive = "inactive"
	happenedTimeout  = "timeout"
	happenedClose    = "close"
	happenedEvent    = "event"
	happenedToolCall = "tool call"
)

// happening is one thing that happened in a session, shown by the console.
type happening struct {
	ID        int       `json:"id"` // counts from 1
	Kind      string    `json:"kind"`
	SessionID string    `json:"sessionId"`
	HeadID    string    `json:"headId"`
	At        time.Time `json:"at"`
	Took      duration  `json:"took,omitzero"`

	Text      string `json:"text,omitempty"`      // of a message
	Event     string `json:"event,omitempty"`     // its type
	Receivers int    `json:"receivers,omitempty"` // the registrations that an event is delivered to
	Why       string `json:"why,omitempty"`       // there is none

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
