package headstest

import "time"

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

// happened records a happening in a session and returns its id. It is called under
// the lock.
func (s *Session) happened(h happening) int {
	h.ID, h.SessionID, h.HeadID = s.st.log.total()+1, s.id, s.headID
	if h.At.IsZero() {
		h.At = time.Now()
	}
	h.At = h.At.UTC()
	s.st.log.add(h, len(h.Text)+len(h.Sent)+len(h.Reply)+len(h.Message))
	s.core.wake()
	return h.ID
}

// listen returns a channel that receives after something has changed, until
// stop is called.
func (c *core) listen() (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[ch] = struct{}{}
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
	}
}

// wake tells the listeners that a journal has grown. Like notify, it is called
// under the lock.
func (c *core) wake() {
	for ch := range c.listeners {
		select {
		case ch <- struct{}{}:
		default: // a signal already waits
		}
	}
}

// notify tells the listeners that something outside the journals has changed.
func (c *core) notify() {
	c.version++
	c.wake()
}
