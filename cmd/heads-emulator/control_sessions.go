package main

import (
	"net/http"
	"sync"

	"github.com/headsapi/heads-go/headstest"
)

// maxSessions is how many sessions are kept; the oldest are forgotten first.
const maxSessions = 4096

// sessions are those started through the control API.
type sessions struct {
	mu    sync.Mutex
	byID  map[string]*session
	order []string // oldest first
}

type session struct {
	*headstest.Session
	headID string
	closed bool // guarded by the mutex of sessions
}

type sessionView struct {
	ID     string `json:"id"`
	HeadID string `json:"headId"`
	Closed bool   `json:"closed"`
}

func (s *sessions) add(headID string, opened *headstest.Session) sessionView {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*session{}
	}
	s.byID[opened.ID()] = &session{Session: opened, headID: headID}
	s.order = append(s.order, opened.ID())
	if len(s.order) > maxSessions {
		delete(s.byID, s.order[0])
		s.order = s.order[1:]
	}
	return s.byID[opened.ID()].view()
}

func (s *sessions) find(r *http.Request) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byID[r.PathValue("id")]
	if !ok {
		return nil, refuse(http.StatusNotFound, "there is no session %q", r.PathValue("id"))
	}
	return found, nil
}

func (s *sessions) list() []sessionView {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []sessionView{}
	for _, id := range s.order {
		list = append(list, s.byID[id].view())
	}
	return list
}

func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID, s.order = nil, nil
}

// acted notes whether a session is over, and shows it.
func (s *sessions) acted(on *session, over bool) sessionView {
	s.mu.Lock()
	defer s.mu.Unlock()
	on.closed = on.closed || over
	return on.view()
}

func (s *session) view() sessionView { return sessionView{s.ID(), s.headID, s.closed} }

func (c *control) listSessions(*http.Request) (any, error) { return c.sessions.list(), nil }

// startSession opens a head's current address, as a browser does.
func (c *control) startSession(r *http.Request) (any, error) {
	var sent struct {
		HeadID string `json:"headId"`
	}
	if err := decode(r, &sent); err != nil {
		return nil, err
	}
	if err := knows(c.emulator, sent.HeadID); err != nil {
		return nil, err
	}
	return c.sessions.add(sent.HeadID, c.emulator.StartSession(sent.HeadID)), nil
}

// actInSession does what a user does.
func (c *control) actInSession(r *http.Request) (any, error) {
	var sent struct {
		Text string `json:"text"`
	}
	if err := decode(r, &sent); err != nil {
		return nil, err
	}
	s, err := c.sessions.find(r)
	if err != nil {
		return nil, err
	}
	over := false
	switch name := r.PathValue("action"); name {
	case "message":
		err = s.UserMessage(sent.Text)
	case "inactive":
		err = s.Inactive()
	case "timeout":
		over, err = true, s.Timeout()
	case "close":
		over, err = true, s.Close()
	default:
		return nil, refuse(http.StatusNotFound, "a session has no %q; it has message, inactive, timeout, close and tool-calls", name)
	}
	if err != nil {
		return nil, err
	}
	return c.sessions.acted(s, over), nil
}
