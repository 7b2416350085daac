package headstest

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

// maxBody is the longest body of a request.
const maxBody = 1 << 20

// operations returns the operations by their patterns.
func (c *core) operations() map[string]operation {
	return map[string]operation{
		"PUT /head/update":                         c.updateHead,
		"GET /head/{id}":                           c.getHead,
		"GET /head_visual/{headVisualId}":          c.getVisual,
		"PUT /head/{headId}/video-streaming":       c.putVideoStreaming,
		"PUT /head/{headId}/conversation-settings": c.putSettings,
		"PUT /head/{headId}/enable-events":         c.putEnableEvents,
		"POST /head-events":                        c.createWebhook,
		"GET /head-events":                         c.listWebhooks,
		"GET /head-events/{webhookId}":             c.getWebhook,
		"PATCH /head-events/{webhookId}":           c.patchWebhook,
		"DELETE /head-events/{webhookId}":          c.deleteWebhook,

		"GET /head/{headId}/enable-events":         c.getEnableEvents, // not in the contract
		"GET /head/{headId}/conversation-settings": c.getSettings,     // not in the contract
		"PUT /head/{headId}/splitter":              c.putSplitter,     // not in the contract
	}
}

// operationMethods are the methods that an operation can have.
var operationMethods = []string{
	http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut,
}

// serveOperation answers a request to an operation and records it.
func (e *Emulator) serveOperation(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	req, done := e.copyRequest(r)
	if req.Body == nil { // the request does not come from a server
		req.Body = http.NoBody
	}
	body, readErr := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	req.Body = io.NopCloser(bytes.NewReader(body))
	headID := e.headOf(req, body)
	rep, cut := e.underLimits(req, func() reply { return e.answer(req, readErr) })
	e.recordRequest(Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Header: r.Header.Clone(), Body: body, Status: rep.status, At: at, effect: done, headID: headID,
	})
	rep.write(w, cut)
}

// copyRequest returns a copy of a request, whose body can be replaced. The effect is nil
// without a console.
func (c *core) copyRequest(r *http.Request) (*http.Request, *effect) {
	if !c.cfg.console || r.Method == http.MethodGet {
		return r.WithContext(r.Context()), nil
	}
	return withEffect(r)
}

// answer performs the operation of a request. A request to a path that has
// no operation is refused even without a token.
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

// authorized requires exactly one header, in the contract's form. As HTTP has it, the name
// of the scheme may be in any case.
func (c *core) authorized(r *http.Request) bool {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(token), []byte(c.token)) == 1
}

// hasOperation reports whether the emulator has an operation for the method and
// path of a request. A path with a name in the place of an id at its end has none, so
// GET /head/all and DELETE /head/update are not operations, as on the service.
func (c *core) hasOperation(r *http.Request) bool {
	if path.Clean(r.URL.Path) != r.URL.Path { // the mux would redirect
		return false
	}
	_, pattern := c.mux.Handler(r)
	return pattern != "" && !c.namesNoRecord(pattern, path.Base(r.URL.Path))
}

// namesNoRecord reports whether the last segment of a path is a name where a route
// has an id. A test may have added a record whose id is such a name.
func (c *core) namesNoRecord(pattern, last string) bool {
	if !strings.HasSuffix(pattern, "}") || !name.MatchString(last) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, isHead := c.run.heads[last]
	_, isVisual := c.run.visuals[last]
	return !isHead && !isVisual
}

// notAnOperation refuses a request for which the service may have an operation and
// the emulator has none.
func (c *core) notAnOperation(r *http.Request) *refusal {
	refused := refuse(http.StatusNotFound, "%s %s is not an operation of this emulator; the nearest one is %s",
		r.Method, r.URL.Path, nearestOperation(r.Method, r.URL.Path))
	// The name may be meant as an id.
	if _, pattern := c.mux.Handler(r); strings.HasSuffix(pattern, "}") {
		refused.message += fmt.Sprintf("; there is no %s %q", recordOf(pattern), path.Base(r.URL.Path))
	}
	return refused
}

func (c *core) recordRequest(r Request) {
	r.Duration = time.Since(r.At)
	c.cfg.logger.Info("request", "method", r.Method, "path", concealPath(r.Path), "status", r.Status, "took", r.Duration)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.ID = c.run.requests.total() + 1
	c.run.requests.add(r, len(r.Body))
	if r.Method == http.MethodGet {
		c.wake()
	} else {
		c.notify()
	}
}

// Requests returns the answered requests, oldest first. A request is in the list
// before its caller receives the answer.
func (e *Emulator) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.run.requests.since(0)
}
