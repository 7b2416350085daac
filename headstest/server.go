package headstest

import (
	"context"
	"net/http"
	"net/http/httptest"

	heads "github.com/headsapi/heads-go"
)

// NewEmulator returns an emulator without records. Close it when the test ends.
func NewEmulator(opts ...Option) *Emulator {
	cfg := newConfig(opts)
	c := &core{cfg: cfg, token: cfg.token, mux: http.NewServeMux(), listeners: map[chan struct{}]struct{}{}}
	if cfg.deliveryHandler != nil {
		cfg.deliveryClient = &http.Client{Transport: handlerTransport{c, cfg.deliveryHandler}}
	}
	c.client, c.hangUp = outboundClient(cfg.deliveryClient, cfg.callbackHosts)
	if c.token == "" {
		c.token = newIDs(cfg.seed, tokenStream).hex(24)
	}
	c.lifetime, c.end = context.WithCancel(context.Background())
	c.run = newRun(c.lifetime, &c.cfg)
	operations := c.operations()
	for _, pattern := range patterns {
		c.mux.Handle(pattern, operations[pattern])
	}
	if cfg.console {
		c.control = newControl(c)
	}
	return &Emulator{c}
}

// Reset removes all heads, visuals, webhooks, sessions, journals and faults,
// and ends running deliveries. It keeps the options and the token.
func (e *Emulator) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.run.end()
	e.run = newRun(e.lifetime, &e.cfg)
	e.notify()
}

// Close ends running deliveries and delayed answers, and waits for the goroutines of the
// deliveries. Nothing is delivered afterwards. Close may be called more than once.
func (e *Emulator) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end()
	e.workers.Wait()
	e.hangUp()
}

// ServeHTTP answers one request. The answer is complete before its first byte
// is written, so the journal holds a request before its caller sees the answer.
// A fault that cuts the connection panics with http.ErrAbortHandler.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.control != nil && isControl(r) {
		e.control.ServeHTTP(w, r)
		return
	}
	if e.control != nil && r.URL.Path == "/" && isBrowser(r) {
		http.Redirect(w, r, controlPrefix, http.StatusSeeOther)
		return
	}
	e.serveOperation(w, r)
}

// Server is an emulator that listens on a loopback port chosen by the system.
// Close it when the test ends.
type Server struct {
	*Emulator
	URL   string // the base URL, without a slash at its end
	Token string // what BearerToken returns

	listener *httptest.Server
}

// NewServer starts an emulator. Like httptest.NewServer, it panics if it can't
// listen.
func NewServer(opts ...Option) *Server {
	e := NewEmulator(opts...)
	l := httptest.NewServer(e)
	return &Server{Emulator: e, URL: l.URL, Token: e.BearerToken(), listener: l}
}

// Client returns a client that reaches the server over its socket. It panics if an
// option is refused.
func (s *Server) Client(opts ...heads.Option) *heads.Client {
	return newClient(s.URL, s.Token, opts)
}

// Close ends the deliveries and the delayed answers under way, then the
// listener and its connections.
func (s *Server) Close() {
	s.Emulator.Close()
	s.listener.Close()
}
