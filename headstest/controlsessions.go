package headstest

import "net/http"

type sessionView struct {
	ID     string `json:"id"`
	HeadID string `json:"headId"`
	Closed bool   `json:"closed"`
}

// sessionLog is a session and what happened in it.
type sessionLog struct {
	sessionView
	Log []logEntry `json:"log"` // oldest first
}

// view is called under the lock.
func (s *session) view() sessionView { return sessionView{s.id, s.headID, s.closed} }

func (rn *run) sessionViews() []sessionView {
	list := []sessionView{}
	for _, s := range rn.sessions {
		list = append(list, s.view())
	}
	return list
}

func (c *control) findSession(r *http.Request) (*Session, error) {
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	for _, s := range c.emulator.run.sessions {
		if s.id == r.PathValue("id") {
			return &Session{c.emulator.core, c.emulator.run, s}, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "there is no session %q", r.PathValue("id"))
}

func (c *control) listSessions(*http.Request) (any, error) {
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	return c.emulator.run.sessionViews(), nil
}

func (c *control) getSession(r *http.Request) (any, error) {
	s, err := c.findSession(r)
	if err != nil {
		return nil, err
	}
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	log := s.run.log.newest(0, c.emulator.cfg.journalSize, func(h logEntry) bool { return h.SessionID == s.id })
	return sessionLog{s.view(), log}, nil
}

// startSession opens a session at a head's current access URL, as a browser does.
func (c *control) startSession(r *http.Request) (any, error) {
	var sent struct {
		HeadID string `json:"headId"`
	}
	if err := decodeBody(r, &sent); err != nil {
		return nil, err
	}
	if err := c.requireHead(sent.HeadID); err != nil {
		return nil, err
	}
	return c.viewSession(c.emulator.StartSession(sent.HeadID)), nil
}

func (c *control) viewSession(s *Session) sessionView {
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	return s.view()
}

// actInSession acts as the user of a session.
func (c *control) actInSession(r *http.Request) (any, error) {
	var sent struct {
		Text string `json:"text"`
	}
	if err := decodeBody(r, &sent); err != nil {
		return nil, err
	}
	s, err := c.findSession(r)
	if err != nil {
		return nil, err
	}
	switch name := r.PathValue("action"); name {
	case "message":
		err = s.UserMessage(sent.Text)
	case "inactive":
		err = s.Inactive()
	case "timeout":
		err = s.Timeout()
	case "close":
		err = s.Close()
	default:
		return nil, refuse(http.StatusNotFound, "a session has no %q; it has message, inactive, timeout, close and tool-calls", name)
	}
	if err != nil {
		return nil, err
	}
	return c.viewSession(s), nil
}
