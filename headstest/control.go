package headstest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/console"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/loopback"
)

// controlPrefix begins every path of the control API and no path of the contract.
const controlPrefix = "/_emulator/"

// maxControlBody is the longest body of a request to the control API.
const maxControlBody = 4 << 20

// openAPI describes the operations and the control API.
//
//go:embed openapi.json
var openAPI []byte

// control serves the console and does what the contract has no operation for. It
// requires no token, so it answers requests of this machine only, and never those
// of a web page of another site. It shows a token, a key or a URL with a secret
// only in answer to a request for that one secret.
type control struct {
	emulator *Emulator
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
}

func newControl(c *core) *control {
	ctl := &control{emulator: &Emulator{c}, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection()}
	for pattern, do := range ctl.actions() {
		ctl.mux.Handle(pattern, do)
	}
	ctl.mux.HandleFunc("GET /_emulator/stream", ctl.stream)
	ctl.mux.HandleFunc("GET /_emulator/assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		if !console.ServeAsset(w, r.PathValue("name")) {
			writeRefusal(w, nothingAt(r))
		}
	})
	return ctl
}

// actions returns the control API without the stream and the files of the
// console.
func (c *control) actions() map[string]action {
	return map[string]action{
		"GET /_emulator/{$}":                         c.index,
		"GET /_emulator/health":                      c.health,
		"GET /_emulator/openapi.json":                c.openAPI,
		"GET /_emulator/state":                       c.state,
		"GET /_emulator/export":                      c.export,
		"POST /_emulator/seed":                       c.seed,
		"POST /_emulator/reset":                      c.reset,
		"GET /_emulator/heads/{id}":                  c.getHead,
		"GET /_emulator/heads/{id}/address":          c.getAddress,
		"POST /_emulator/heads/{id}/update":          c.updateHead,
		"POST /_emulator/heads/{id}/video-streaming": c.switchStreaming,
		"POST /_emulator/heads/{id}/enable-events":   c.switchEvents,
		"POST /_emulator/heads/{id}/splitter":        c.splitter,
		"GET /_emulator/sessions":                    c.listSessions,
		"POST /_emulator/sessions":                   c.startSession,
		"GET /_emulator/sessions/{id}":               c.getSession,
		"POST /_emulator/sessions/{id}/{action}":     c.actInSession,
		"POST /_emulator/sessions/{id}/tool-calls":   c.callToolInSession,
		"POST /_emulator/tool-calls":                 c.callTool,
		"GET /_emulator/deliveries":                  c.listDeliveries,
		"GET /_emulator/deliveries/{id}":             c.getDelivery,
		"GET /_emulator/deliveries/{id}/body":        c.getDeliveryBody,
		"GET /_emulator/deliveries/{id}/curl":        c.getDeliveryCurl,
		"GET /_emulator/deliveries/{id}/go-test":     c.getDeliveryTest,
		"POST /_emulator/deliveries/{id}/resend":     c.resend,
		"GET /_emulator/requests":                    c.listRequests,
		"GET /_emulator/requests/{id}":               c.getRequest,
		"GET /_emulator/faults":                      c.listFaults,
		"POST /_emulator/faults/requests":            c.addRequestFault,
		"POST /_emulator/faults/deliveries":          c.addDeliveryFault,
		"DELETE /_emulator/faults":                   c.removeFaults,
	}
}

// isControl reports whether a request is for the control API.
func isControl(r *http.Request) bool { return strings.HasPrefix(r.URL.Path+"/", controlPrefix) }

// ServeHTTP answers a request and logs one line, as for an operation.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK, forPage: r.Header.Get("Emulator-Console") != ""}
	console.SetSecurityHeaders(seen.Header())
	r.Body = http.MaxBytesReader(seen, r.Body, maxControlBody)
	if err := c.admit(r); err != nil {
		writeRefusal(seen, err)
	} else if err := c.routed(seen, r); err != nil {
		writeRefusal(seen, err)
	} else if r.URL.Path == controlPrefix && isBrowser(r) {
		c.page(seen)
	} else {
		c.mux.ServeHTTP(seen, r)
	}
	c.emulator.cfg.logger.Info("control", "method", r.Method, "path", r.URL.Path, "status", seen.status, "took", time.Since(start))
}

// isBrowser reports whether the caller accepts HTML.
func isBrowser(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// page serves the console with its initial state.
func (c *control) page(w http.ResponseWriter) {
	state, err := encodeJSON(c.viewState())
	if err == nil {
		err = console.ServePage(w, string(state))
	}
	if err != nil {
		writeRefusal(w, err)
	}
}

// admit refuses requests of other machines, and of pages of other sites in a
// browser of this one. If a page makes its own name resolve to a loopback address,
// Host shows that name. Without a preflight request, a page can't send
// application/json to another site.
func (c *control) admit(r *http.Request) error {
	if !fromThisMachine(r) {
		return refuse(http.StatusForbidden, "the control API answers only the machine on which the emulator runs")
	}
	if host := hostname(r.Host); !loopback.Is(host) && !isLocalAddress(r, host) {
		return refuse(http.StatusForbidden, "call the control API at a loopback address, or at the address on which the emulator listens")
	}
	if err := c.origins.Check(r); err != nil || fromAnotherSite(r) {
		return refuse(http.StatusForbidden, "the control API refuses requests of other sites")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead || isJSON(r) {
		return nil
	}
	return refuse(http.StatusUnsupportedMediaType, "the Content-Type must be application/json, with and without a body")
}

// admitSecret guards a read whose answer holds a secret. It requires a header that
// only the console's own page, or a caller that is not a page, can send.
func admitSecret(r *http.Request) error {
	sameOrigin := r.Header.Get("Sec-Fetch-Site") == "same-origin" || r.Header.Get("Origin") == "http://"+r.Host
	switch {
	case !sameOrigin:
		return refuse(http.StatusForbidden, "the answer holds a secret: the request must have the header Origin with the emulator's own address, http://%s", r.Host)
	case !isJSON(r):
		return refuse(http.StatusUnsupportedMediaType, "the answer holds a secret: the Content-Type of the request must be application/json")
	default:
		return nil
	}
}

func isJSON(r *http.Request) bool {
	mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mt == "application/json"
}

func fromThisMachine(r *http.Request) bool {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return loopback.Is(host) || isLocalAddress(r, host)
}

// isLocalAddress reports whether a host is the IP address at which the request
// arrived. It returns false for every name.
func isLocalAddress(r *http.Request, host string) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ip := net.ParseIP(host)
	return ok && ip != nil && ip.Equal(addr.IP)
}

// fromAnotherSite reports whether the browser's headers name a page of another
// origin as the cause of the request, also of a read. Another port of this machine
// is the same site, but another origin.
func fromAnotherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// routed refuses paths and methods that no action has, in the form of every other
// refusal.
func (c *control) routed(w http.ResponseWriter, r *http.Request) error {
	has := func(r *http.Request) bool { _, pattern := c.mux.Handler(r); return pattern != "" }
	if has(r) {
		return nil
	}
	if allowed := methodsWith(r, []string{http.MethodGet, http.MethodPost, http.MethodDelete}, has); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return refuse(http.StatusMethodNotAllowed, "%s is not a method of %s; use %s", r.Method, r.URL.Path, strings.Join(allowed, ", "))
	}
	return nothingAt(r)
}

func nothingAt(r *http.Request) error {
	return refuse(http.StatusNotFound, "there is nothing at %s; GET %s lists the control API", r.URL.Path, controlPrefix)
}

func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }

// action returns its answer, which is encoded as JSON unless it is a rawJSON.
type action func(r *http.Request) (any, error)

// rawJSON is an answer that is already JSON. It is sent byte for byte.
type rawJSON []byte

func (do action) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, err := do(r)
	if err != nil {
		writeRefusal(w, err)
		return
	}
	raw, ok := v.(rawJSON)
	if !ok {
		encoded, err := encodeJSON(v)
		if err != nil { // a fault of this package
			writeRefusal(w, refuse(http.StatusInternalServerError, "%v", err))
			return
		}
		raw = rawJSON(append(encoded, '\n'))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // an error means that the caller has left
}

// writeRefusal answers in the form of the operations. An error without a status
// means that the emulator's state does not allow the request.
func writeRefusal(w http.ResponseWriter, err error) {
	var r *refusal
	if !errors.As(err, &r) {
		r = refuse(http.StatusConflict, "%s", strings.TrimPrefix(err.Error(), "headstest: "))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, _ = w.Write(r.reply().body) // an error means that the caller has left
}

// readBody reads the body of a request to the control API.
func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, unreadable(err)
	}
	return body, nil
}

// decodeBody reads a body into v. Without a body, it does not change v.
func decodeBody(r *http.Request, v any) error {
	body, err := readBody(r)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := decodeStrictly(body, v); err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// decodeStrictly reads exactly one JSON value. It refuses unknown fields, which are
// also those in another letter case, and fields that occur twice.
func decodeStrictly(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return errors.New("the JSON can't be used: " + err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is something after the JSON value")
	}
	if err := exactjson.Known(text, v); err != nil {
		return errors.New("the JSON can't be used: " + err.Error())
	}
	return nil
}

// statusWriter keeps the status for the log. For the console's page it sends the
// status in a header, since a browser reports every refusal as an error of the
// page, while this page shows refusals itself.
type statusWriter struct {
	http.ResponseWriter
	status  int
	forPage bool
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	if w.forPage {
		w.Header().Set("Emulator-Status", strconv.Itoa(status))
		status = http.StatusOK
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the stream flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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
