package headstest

import (
	"cmp"
	_ "embed"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/console"
)

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
		"DELETE /_emulator/faults/{n}":               c.removeFault,
		"DELETE /_emulator/webhooks/{id}":            c.deleteWebhook,
	}
}

// isControl reports whether a request is for the control API.
func isControl(r *http.Request) bool { return strings.HasPrefix(r.URL.Path+"/", controlPrefix) }

// ServeHTTP answers a request and logs one line, as for an operation.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK, forPage: r.Header.Get(consoleHeader) != ""}
	console.SetSecurityHeaders(seen.Header())
	r.Body = http.MaxBytesReader(seen, r.Body, maxControlBody)
	if err := c.admit(r); err != nil {
		writeRefusal(seen, err)
	} else if err := c.routed(seen, r); err != nil {
		writeRefusal(seen, err)
	} else if r.URL.Path == controlPrefix && isBrowser(r) {
		console.ServePage(seen)
	} else {
		c.mux.ServeHTTP(seen, r)
	}
	c.emulator.cfg.logger.Info("control", "method", r.Method, "path", r.URL.Path, "status", seen.status, "took", time.Since(start))
}

// isBrowser reports whether the caller accepts HTML.
func isBrowser(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// routed refuses paths and methods that no action has.
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

// index lists the control API.
func (c *control) index(*http.Request) (any, error) {
	var requests []string
	for _, pattern := range c.patterns() {
		requests = append(requests, strings.TrimSuffix(pattern, "{$}"))
	}
	slices.SortFunc(requests, func(a, b string) int { return cmp.Compare(pathOf(a), pathOf(b)) })
	return map[string]any{"about": "The control API of the emulator; docs/emulator.md describes it.", "requests": requests}, nil
}

// patterns returns the patterns of all actions and of the stream.
func (c *control) patterns() []string {
	patterns := []string{"GET /_emulator/stream"}
	for pattern := range c.actions() {
		patterns = append(patterns, pattern)
	}
	return patterns
}

// pathOf returns the path of a pattern, followed by its method, to sort by.
func pathOf(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	return path + " " + method
}

func (c *control) health(*http.Request) (any, error) {
	return map[string]string{"status": "ok"}, nil
}

// openAPI describes the operations and the control API.
//
//go:embed openapi.json
var openAPI []byte

func (c *control) openAPI(*http.Request) (any, error) { return rawJSON(openAPI), nil }

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
