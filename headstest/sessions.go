package headstest

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
)

// maxSessions is how many sessions the control API knows; the oldest are
// forgotten first.
const maxSessions = 4096

// Session is a conversation with a head, as a user's browser holds it. Its
// methods say what the user does; what they do may be delivered as events.
// All of them may be called at the same time.
type Session struct {
	core      *core
	st        *state
	id        string
	userID    string
	headID    string
	streaming bool // the address that the session was opened at
	started   bool
	closed    bool
}

// StartSession opens a session at the head's current access address. Whether
// that is possible is said by the session's methods.
func (e *Emulator) StartSession(headID string) *Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &Session{
		core: e.core, st: e.st, id: e.st.ids.uuid(), userID: e.st.ids.uuid(),
		headID: headID, streaming: e.st.heads[headID].is("videoStreaming"),
	}
	if _, known := e.st.heads[headID]; known {
		e.st.addSession(s)
		s.happened(happening{Kind: happenedStart})
		e.notify()
	}
	return s
}

// addSession keeps the newest sessions for the control API.
func (st *state) addSession(s *Session) {
	st.sessions = append(st.sessions, s)
	if len(st.sessions) > maxSessions {
		st.sessions[0] = nil // the array lives on until append moves it
		st.sessions = st.sessions[1:]
	}
}

// ID is the session id that the session's events carry.
func (s *Session) ID() string { return s.id }

// UserMessage sends a message to the head; the first one is the event
// start_conversation. It is an error when the head is unknown or not active,
// when a tool whose parameters are an object keeps the head from loading, when
// the session is closed, and when the head has changed its mode since the
// session was opened, since the old address is then no longer accessible.
func (s *Session) UserMessage(text string) error {
	return s.act(func(h document) {
		s.happened(happening{Kind: happenedMessage, Text: text})
		if !s.started {
			s.started = true
			s.emit(h, heads.EventStartConversation)
		}
	})
}

// Inactive lets the user be idle until the warning is shown, which is the
// event inactivity_warning. It is refused as UserMessage is.
func (s *Session) Inactive() error {
	return s.act(func(h document) {
		s.happened(happening{Kind: happenedInactive})
		s.emit(h, heads.EventInactivityWarning)
	})
}

// Timeout lets the user be idle for the longest time allowed, which closes the
// session with the events timeout_conversation and end_conversation. It is
// refused as UserMessage is.
func (s *Session) Timeout() error {
	return s.act(func(h document) {
		s.close(happenedTimeout)
		s.emit(h, heads.EventTimeoutConversation)
		s.emit(h, heads.EventEndConversation)
	})
}

// Close closes the connection, which is the event end_conversation. It is
// possible at any address, and an error for a closed session.
func (s *Session) Close() error {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	h, err := s.open()
	if err != nil {
		return err
	}
	s.close(happenedClose)
	s.emit(h, heads.EventEndConversation)
	return nil
}

// close ends the session in one of two ways. It is called under the lock.
func (s *Session) close(how string) {
	s.closed = true
	s.happened(happening{Kind: how})
	s.core.notify()
}

// act does what needs an accessible address.
func (s *Session) act(do func(document)) error {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	h, err := s.accessible()
	if err != nil {
		return err
	}
	do(h)
	return nil
}

func (s *Session) accessible() (document, error) {
	h, err := s.open()
	switch {
	case err != nil:
		return nil, err
	case !h.is("isActive"):
		return nil, fmt.Errorf("headstest: the head %q is not active", s.headID)
	case h.is("videoStreaming") != s.streaming:
		return nil, errors.New("headstest: the head has changed its mode, so the address of this session is no longer accessible; start another one")
	}
	return h, loads(h)
}

func (s *Session) open() (document, error) {
	h, ok := s.st.heads[s.headID]
	switch {
	case s.st != s.core.st:
		return nil, errors.New("headstest: the session ended when the emulator was reset")
	case !ok:
		return nil, fmt.Errorf("headstest: there is no head %q", s.headID)
	case s.closed:
		return nil, errors.New("headstest: the session is closed")
	}
	return h, nil
}

// emit queues an event for every registration that wants it now.
func (s *Session) emit(h document, t heads.EventType) {
	wanted := s.wanted(h, t)
	id := s.happened(happening{Kind: happenedEvent, Event: string(t), Receivers: len(wanted)})
	e := heads.Event{
		Type: t, Timestamp: time.Now().UTC(), HeadID: s.headID, SessionID: s.id,
		PublicHeadID: h.str("publicId"), PublicOrgID: h.str("orgPublicId"),
	}
	for _, w := range wanted {
		s.core.enqueue(w, e, id)
	}
}

// wanted returns the registrations that an event is delivered to.
func (s *Session) wanted(h document, t heads.EventType) []*webhook {
	if !h.is("enableEvents") {
		return nil
	}
	return slices.DeleteFunc(s.st.webhooksOf(s.headID), func(w *webhook) bool { return !w.events[t] })
}

func (s Session) text() string { return "headstest.Session " + s.id }

// Format writes the session id, whatever the verb.
func (s Session) Format(f fmt.State, _ rune) { writeText(f, s.text()) }

// LogValue returns the session id.
func (s Session) LogValue() slog.Value { return slog.StringValue(s.text()) }
