package headstest

import (
	"net/http/httptest"

	heads "github.com/headsapi/heads-go"
)

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
