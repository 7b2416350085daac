package headstest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Session is a conversation of a user with a head. Its methods act as the user,
// which may cause events. A Session is safe for concurrent use.
type Session struct {
	core *core
	run  *run
	*session
}

// StartSession opens a session at the head's current access URL. If that is not
// possible, the methods of the session return an error.
func (e *Emulator) StartSession(headID string) *Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &Session{e.core, e.run, &session{
		id: e.run.ids.uuid(), userID: e.run.ids.uuid(), headID: headID, streaming: e.run.heads[headID].is("videoStreaming"),
	}}
	if _, known := e.run.heads[headID]; known {
		e.run.addSession(s.session)
		s.addEntry(logEntry{Kind: entryStart})
		e.notify()
	}
	return s
}

// Undelivered returns how many deliveries of the session's events have not ended: those that
// wait for earlier events, for their next attempt or because of a fault, and those that are
// running. A duplicate and a call of Redeliver count as further deliveries. When Undelivered
// returns 0, the journal has the last attempt of each.
func (s *Session) Undelivered() int {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if s.run.ctx.Err() != nil { // Reset and Close end every delivery
		return 0
	}
	return s.run.undelivered[s.id]
}

// ID returns the session id, which the session's events carry.
func (s *Session) ID() string { return s.id }

// UserMessage sends a message to the head. The first message causes the event
// start_conversation. UserMessage returns an error if the head is unknown or not
// active, if a tool whose parameters are an object prevents the head from loading,
// if the session is closed, or if the head has changed its mode since the session
// was opened, since the old access URL is then no longer accessible.
func (s *Session) UserMessage(text string) error {
	return s.act(func(h document) {
		s.addEntry(logEntry{Kind: entryMessage, Text: concealText(text)})
		if !s.started {
			s.started = true
			s.emit(h, heads.EventStartConversation)
		}
	})
}

// Inactive acts as a user who is idle until the warning is shown, which causes the
// event inactivity_warning. It returns an error in the same cases as UserMessage.
func (s *Session) Inactive() error {
	return s.act(func(h document) {
		s.addEntry(logEntry{Kind: entryInactive})
		s.emit(h, heads.EventInactivityWarning)
	})
}

// Timeout acts as a user who is idle for too long. It closes the session, which
// causes the events timeout_conversation and end_conversation. It returns an error
// in the same cases as UserMessage.
func (s *Session) Timeout() error {
	return s.act(func(h document) {
		s.close(entryTimeout)
		s.emit(h, heads.EventTimeoutConversation)
		s.emit(h, heads.EventEndConversation)
	})
}

// Close closes the session, which causes the event end_conversation. It does not
// need an accessible URL. It returns an error if the session is already closed.
func (s *Session) Close() error {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	h, err := s.open()
	if err != nil {
		return err
	}
	s.close(entryClose)
	s.emit(h, heads.EventEndConversation)
	return nil
}

// close ends the session. It is called under the lock.
func (s *Session) close(how string) {
	s.closed = true
	s.addEntry(logEntry{Kind: how})
	s.core.notify()
}

// act calls do with the head if the access URL of the session is accessible.
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

// accessible returns the head of a session whose access URL is accessible.
func (s *Session) accessible() (document, error) {
	h, err := s.open()
	switch {
	case err != nil:
		return nil, err
	case !h.is("isActive"):
		return nil, fmt.Errorf("headstest: the head %q is not active", s.headID)
	case h.is("videoStreaming") != s.streaming:
		return nil, errors.New("headstest: the head has changed its mode, so the access URL of this session is no longer accessible; start another session")
	}
	return h, loads(h)
}

// open returns the head of a session that is open.
func (s *Session) open() (document, error) {
	h, ok := s.run.heads[s.headID]
	switch {
	case s.run != s.core.run:
		return nil, errors.New("headstest: the session ended when the emulator was reset")
	case !ok:
		return nil, fmt.Errorf("headstest: there is no head %q", s.headID)
	case s.closed:
		return nil, errors.New("headstest: the session is closed")
	}
	return h, nil
}

// emit queues an event for every webhook that receives it.
func (s *Session) emit(h document, t heads.EventType) {
	wanted, why := s.wanted(h, t)
	id := s.addEntry(logEntry{Kind: entryEvent, Event: string(t), Receivers: len(wanted), Why: why})
	e := heads.Event{
		Type: t, Timestamp: heads.Time{Time: time.Now().UTC()}, HeadID: s.headID, SessionID: s.id,
		PublicHeadID: h.str("publicId"), PublicOrgID: h.str("orgPublicId"),
	}
	for _, w := range wanted {
		s.core.enqueue(w, e, id)
	}
}

// wanted returns the webhooks that an event is delivered to, or why there is none.
func (s *Session) wanted(h document, t heads.EventType) (list []*webhook, why string) {
	list = s.run.webhooksOf(s.headID)
	if !h.is("enableEvents") {
		return nil, "delivery is off"
	}
	if len(list) == 0 {
		return nil, "the head has none"
	}
	if list = slices.DeleteFunc(list, func(w *webhook) bool { return !w.events[t] }); len(list) == 0 {
		return nil, "none asks for this event"
	}
	if !s.core.cfg.strictOrder {
		return list, ""
	}
	if list = slices.DeleteFunc(list, func(w *webhook) bool { return w.early }); len(list) == 0 {
		return nil, "made before delivery was enabled"
	}
	return list, ""
}

// addEntry adds what happened to the log and returns the id of the entry. It is called
// under the lock.
func (s *Session) addEntry(h logEntry) int {
	h.ID, h.SessionID, h.HeadID = s.run.log.total()+1, s.id, s.headID
	if h.At.IsZero() {
		h.At = time.Now()
	}
	h.At = h.At.UTC()
	s.run.log.add(h, len(h.Text)+len(h.Sent)+len(h.Reply)+len(h.Message))
	s.core.wake()
	return h.ID
}
