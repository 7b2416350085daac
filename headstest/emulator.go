package headstest

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBody is the longest body of a request.
const maxBody = 1 << 20

// Emulator emulates the service as an http.Handler. Its methods prepare and read
// its state. An Emulator is safe for concurrent use.
type Emulator struct{ *core }

// core is a type of its own, so printing an Emulator by value copies no lock and
// shows no token.
type core struct {
	cfg      config
	token    string
	mux      *http.ServeMux
	client   *http.Client
	hangUp   func()          // closes the client's idle connections
	lifetime context.Context //nolint:containedctx // ends with Close
	end      context.CancelFunc
	workers  sync.WaitGroup // the deliveries, and the calls of a handler in memory, under way

	control *control // nil without WithConsole

	mu        sync.Mutex
	st        *state
	start     Seed // what the control API's reset returns to
	closed    bool
	listeners map[chan struct{}]struct{} // the callers that wait for a change
	version   int                        // counts the changes outside the journals
}

// NewEmulator returns an emulator without records. Close it when the test ends.
func NewEmulator(opts ...Option) *Emulator {
	cfg := newConfig(opts)
	c := &core{cfg: cfg, token: cfg.token, mux: http.NewServeMux(), listeners: map[chan struct{}]struct{}{}}
	if cfg.deliveryHandler != nil {
		cfg.deliveryClient = &http.Client{Transport: handlerTransport{c, cfg.deliveryHandler}}
	}
	c.client, c.hangUp = outboundClient(cfg.deliveryClient)
	if c.token == "" {
		c.token = newIDs(cfg.seed, tokenStream).hex(24)
	}
	c.lifetime, c.end = context.WithCancel(context.Background())
	c.st = newState(c.lifetime, &c.cfg)
	for pattern, op := range c.operations() {
		c.mux.Handle(pattern, op)
	}
	if cfg.console {
		c.control = newControl(c)
	}
	return &Emulator{c}
}

// BearerToken returns the token that requests must carry.
func (e *Emulator) BearerToken() string { return e.token }

// Reset removes all heads, visuals, registrations, sessions, journals and faults,
// and ends the deliveries under way. It keeps the options and the token.
func (e *Emulator) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.st.end()
	e.st = newState(e.lifetime, &e.cfg)
	e.notify()
}

// Close ends the deliveries and delayed answers under way, and waits for the
// goroutines of the deliveries. Nothing is delivered afterwards. Close may be
// called more than once.
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

func (e *Emulator) serveOperation(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	held, done := e.hold(r)
	if held.Body == nil { // a request without a server
		held.Body = http.NoBody
	}
	body, readErr := io.ReadAll(http.MaxBytesReader(w, held.Body, maxBody))
	held.Body = io.NopCloser(bytes.NewReader(body))
	rep, cut := e.underLimits(held, func() reply { return e.answer(held, readErr) })
	e.record(Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Header: r.Header.Clone(), Body: body, Status: rep.status, At: at, effect: done,
	})
	rep.write(w, cut)
}

// hold returns a copy of a request whose body can be replaced. The effect is nil
// without a console.
func (c *core) hold(r *http.Request) (*http.Request, *effect) {
	if c.control == nil || r.Method == http.MethodGet {
		return r.WithContext(r.Context()), nil
	}
	return withEffect(r)
}

// answer performs the operation of a request. A request without a token is told, too,
// that there is no such operation.
func (c *core) answer(r *http.Request, readErr error) reply {
	known := c.hasOperation(r)
	var allowed []string
	if !known {
		if allowed = methodsWith(r, operationMethods, c.hasOperation); len(allowed) == 0 {
			return c.notAnOperation(r).reply()
		}
	}
	switch {
	case !c.authorized(r):
		rep := refuse(http.StatusUnauthorized, "the header Authorization must be Bearer followed by the access token").reply()
		rep.header.Set("WWW-Authenticate", "Bearer")
		return rep
	case readErr != nil:
		return unreadable(readErr).reply()
	case !known:
		rep := refuse(http.StatusMethodNotAllowed, "%s is not a method of %s", r.Method, r.URL.Path).reply()
		rep.header.Set("Allow", strings.Join(allowed, ", "))
		return rep
	}
	rec := &recorder{}
	c.mux.ServeHTTP(rec, r)
	return rec.reply
}

func unreadable(err error) *refusal {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	}
	return refuse(http.StatusBadRequest, "the body broke off")
}

// authorized requires exactly one header, in exactly the contract's form.
func (c *core) authorized(r *http.Request) bool {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return false
	}
	token, ok := strings.CutPrefix(given[0], "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(c.token)) == 1
}

func (c *core) record(r Request) {
	r.Duration = time.Since(r.At)
	c.cfg.logger.Info("request", "method", r.Method, "path", concealPath(r.Path), "status", r.Status, "took", r.Duration)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ID = c.st.requests.total() + 1
	c.st.requests.add(r, len(r.Body))
	if r.Method == http.MethodGet {
		c.wake()
	} else {
		c.notify()
	}
}
