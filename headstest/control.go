package headstest

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headsapi/heads-go/internal/loopback"
)

// controlPrefix begins every path of the control API and no path of the contract.
const controlPrefix = "/_emulator/"

// maxControlBody is the longest body of a request to the control API.
const maxControlBody = 4 << 20

// control serves the console and the control API, which does what the contract has no
// operation for. It requires no token, so it answers requests of this machine only, and
// refuses those of web pages of other sites. It sends a token, a key or a URL with a secret
// only if the request asks for that secret.
type control struct {
	emulator *Emulator
	mux      *http.ServeMux
	origins  *http.CrossOriginProtection
}

// admit refuses requests of other machines, and requests that pages of other sites cause in
// a browser on this machine. If such a page makes its own host name resolve to a loopback
// address, the header Host has that name. A page can't send application/json to another site
// without a preflight request, which admit refuses.
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

// admitSecret guards a read whose answer holds a secret. It requires a header that only the
// console's own page, or a caller that is not a web page, can send.
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

func nothingAt(r *http.Request) error {
	return refuse(http.StatusNotFound, "there is nothing at %s; GET %s lists the control API", r.URL.Path, controlPrefix)
}

func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }

// action answers one request of the control API. The answer is encoded as JSON unless it is
// a rawJSON.
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
	_, _ = w.Write(raw) // an error means that the caller has disconnected
}

// writeRefusal answers with an error, in the form of the operations. The status of an error
// that is neither a refusal nor an error of the state is 409.
func writeRefusal(w http.ResponseWriter, err error) {
	r := cmp.Or(refusalIn(err), refuse(http.StatusConflict, "%s", strings.TrimPrefix(err.Error(), "headstest: ")))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, _ = w.Write(r.reply().body) // an error means that the caller has disconnected
}

// readBody reads the body of a request.
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

var errQuery = errors.New("not a key or a value of the query")

// page is the part of a journal that a query selects: the newest entries, or the
// newest before an id.
type page struct{ before, limit int }

func (p *page) set(key, value string) error {
	target, ok := map[string]*int{"before": &p.before, "limit": &p.limit}[key]
	if !ok {
		return errQuery
	}
	n, err := strconv.Atoi(value)
	if *target = n; err != nil || n < 1 {
		return errQuery
	}
	return nil
}

// find returns the entry of a journal with the id of a path.
func find[T any](c *core, journalOf func(*run) *journal[T], id, what string) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := strconv.Atoi(id) // not a number: 0, which no entry has
	v, ok := journalOf(c.run).at(n)
	if !ok || strconv.Itoa(n) != id {
		return v, refuse(http.StatusNotFound, "the journal holds no %s %q", what, id)
	}
	return v, nil
}

// requireHead returns an error if there is no such head.
func (c *control) requireHead(headID string) error {
	if !slices.Contains(c.emulator.Heads(), headID) {
		return refuse(http.StatusNotFound, "there is no head %q", headID)
	}
	return nil
}
