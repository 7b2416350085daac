package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/internal/loopback"
)

// controlPrefix is where the control API begins. No operation of the contract
// does.
const controlPrefix = "/_emulator/"

// maxControlBody bounds the body of a request to the control API.
const maxControlBody = 4 << 20

// openAPI describes the operations: the eleven of the contract, and three that
// are marked as not in it.
//
//go:embed openapi.json
var openAPI []byte

// newHandler serves the operations, to the pages of some origins too, and the
// control API.
func newHandler(e *headstest.Emulator, start *seed, origins []string, logger *slog.Logger) http.Handler {
	c, operations := newControl(e, start, logger), allowOrigins(e, origins)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", controlPrefix) {
			c.ServeHTTP(w, r)
			return
		}
		operations.ServeHTTP(w, r)
	})
}

// control does what the contract has no operation for. It asks for no token,
// so it answers this machine alone, never a web page of another site, and
// shows no token, key or address with a secret in it.
type control struct {
	emulator *headstest.Emulator
	start    *seed
	logger   *slog.Logger
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
	sessions sessions

	changing sync.Mutex // held by reset and seed, so that they don't mix
}

func newControl(e *headstest.Emulator, start *seed, logger *slog.Logger) *control {
	c := &control{emulator: e, start: start, logger: logger, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection()}
	for pattern, do := range c.actions() {
		c.mux.Handle(pattern, do)
	}
	return c
}

// actions are the whole control API.
func (c *control) actions() map[string]action {
	return map[string]action{
		"GET /_emulator/{$}":                       c.index,
		"GET /_emulator/health":                    c.health,
		"GET /_emulator/openapi.json":              c.openAPI,
		"GET /_emulator/state":                     c.state,
		"POST /_emulator/seed":                     c.seed,
		"POST /_emulator/reset":                    c.reset,
		"POST /_emulator/heads/{id}/splitter":      c.splitter,
		"GET /_emulator/sessions":                  c.listSessions,
		"POST /_emulator/sessions":                 c.startSession,
		"POST /_emulator/sessions/{id}/{action}":   c.actInSession,
		"POST /_emulator/sessions/{id}/tool-calls": c.callToolInSession,
		"POST /_emulator/tool-calls":               c.callTool,
		"GET /_emulator/deliveries":                c.listDeliveries,
		"GET /_emulator/deliveries/{id}":           c.getDelivery,
		"GET /_emulator/deliveries/{id}/body":      c.getDeliveryBody,
		"POST /_emulator/deliveries/{id}/resend":   c.resend,
		"GET /_emulator/faults":                    c.listFaults,
		"POST /_emulator/faults/requests":          c.addRequestFault,
		"POST /_emulator/faults/deliveries":        c.addDeliveryFault,
		"DELETE /_emulator/faults":                 c.removeFaults,
	}
}

// ServeHTTP logs a line, as the emulator does for an operation.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
	seen.Header().Set("X-Content-Type-Options", "nosniff")
	seen.Header().Set("Cache-Control", "no-store")
	r.Body = http.MaxBytesReader(seen, r.Body, maxControlBody)
	if err := c.admit(r); err != nil {
		writeError(seen, err)
	} else if err := c.routed(seen, r); err != nil {
		writeError(seen, err)
	} else {
		c.mux.ServeHTTP(seen, r)
	}
	c.logger.Info("control", "method", r.Method, "path", r.URL.Path, "status", seen.status, "took", time.Since(start))
}

// admit keeps other machines out, and the pages of other sites in a browser of
// this one. A page can make its own name resolve to a loopback address, which
// Host gives away; what it may send elsewhere without being asked for consent
// is not application/json.
func (c *control) admit(r *http.Request) error {
	if host, _, _ := net.SplitHostPort(r.RemoteAddr); !loopback.Is(host) {
		return refuse(http.StatusForbidden, "the control API is for the machine that the emulator runs on")
	}
	if !loopback.Is(hostname(r.Host)) {
		return refuse(http.StatusForbidden, "the control API is to be called at a loopback address")
	}
	if err := c.origins.Check(r); err != nil || fromAnotherSite(r) {
		return refuse(http.StatusForbidden, "the control API takes no request of another site")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "the Content-Type must be application/json, with and without a body")
	}
	return nil
}

// fromAnotherSite reports whether a browser says that a page of another origin
// has caused the request, a read too. Another port of this machine is the same
// site, and another origin.
func fromAnotherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// routed refuses what no action takes, in the form of every other refusal.
func (c *control) routed(w http.ResponseWriter, r *http.Request) error {
	if _, pattern := c.mux.Handler(r); pattern != "" {
		return nil
	}
	if allowed := c.methodsOf(r); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return refuse(http.StatusMethodNotAllowed, "%s is not a method of %s; it takes %s", r.Method, r.URL.Path, strings.Join(allowed, ", "))
	}
	return refuse(http.StatusNotFound, "there is nothing at %s; GET %s lists the control API", r.URL.Path, controlPrefix)
}

// methodsOf returns the methods that a path takes.
func (c *control) methodsOf(r *http.Request) (methods []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := c.mux.Handler(other); pattern != "" {
			methods = append(methods, method)
		}
	}
	return methods
}

func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }

// action answers with a value that is written as JSON, or as it is when it is
// a rawJSON.
type action func(r *http.Request) (any, error)

// rawJSON is an answer that is JSON already and is sent byte for byte.
type rawJSON []byte

func (do action) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, err := do(r)
	if err != nil {
		writeError(w, err)
		return
	}
	if raw, ok := v.(rawJSON); ok {
		writeBody(w, http.StatusOK, raw)
		return
	}
	writeJSON(w, http.StatusOK, v)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // a fault of this program
		status, b = http.StatusInternalServerError, bytes.Buffer{}
	}
	writeBody(w, status, b.Bytes())
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that is gone needs no answer
}

// refusal is an error with the status that it is answered with.
type refusal struct {
	status  int
	message string
}

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func (r *refusal) Error() string { return r.message }

// writeError answers in the form that the operations have. An error without a
// status says that the emulator's state doesn't allow the request.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusConflict
	var r *refusal
	if errors.As(err, &r) {
		status = r.status
	}
	writeJSON(w, status, map[string]any{"statusCode": status, "message": err.Error(), "error": http.StatusText(status)})
}

// decode reads a body into v and leaves v alone when there is none.
func decode(r *http.Request, v any) error {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case err != nil:
		return refuse(http.StatusBadRequest, "the body broke off")
	case len(body) == 0:
		return nil
	}
	if err := decodeStrictly(bytes.NewReader(body), v); err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// statusWriter remembers the status for the log.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// duration is written as in "1.5s".
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New(`a duration must be written as in "1.5s"`)
	}
	*d = duration(parsed)
	return nil
}
