package heads

import (
	"encoding/json"
	"time"
)

// EventType names what happened in a session. Other values than the constants
// may arrive.
type EventType string

const (
	EventStartConversation   EventType = "start_conversation"
	EventEndConversation     EventType = "end_conversation"
	EventInactivityWarning   EventType = "inactivity_warning"
	EventTimeoutConversation EventType = "timeout_conversation"
)

// Event is one webhook event.
type Event struct {
	Type          EventType
	Timestamp     time.Time
	TimestampText string
	HeadID        string
	SessionID     string
	PublicHeadID  string
	PublicOrgID   string
	Raw           json.RawMessage
}
