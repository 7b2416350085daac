package headstest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"
)

// operation answers a request to one of the operations. The body of the request is in memory.
type operation func(r *http.Request) (reply, error)

// ServeHTTP passes the reply to the recorder that Emulator.ServeHTTP passed to the
// mux.
func (op operation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rep, err := op(r)
	if err != nil {
		// Any other error is a fault of this package.
		rep = cmp.Or(refusalIn(err), refuse(http.StatusInternalServerError, "%v", err)).reply()
	}
	w.(*recorder).reply = rep
}

// recorder keeps the answer of the mux or of an operation.
type recorder struct{ reply }

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }

// reply is a whole answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func jsonReply(status int, body []byte) reply {
	return reply{status, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body}
}

// cutting is how much of an answer is not sent.
type cutting int

const (
	cutNothing cutting = iota
	cutMiddle
	cutWhole
)

// write sends the answer up to the cut.
func (rep reply) write(w http.ResponseWriter, cut cutting) {
	if cut == cutWhole {
		panic(http.ErrAbortHandler)
	}
	for key, values := range rep.header {
		w.Header()[key] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(rep.body)))
	w.WriteHeader(rep.status)
	if cut == cutMiddle {
		_, _ = w.Write(rep.body[:len(rep.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(rep.body) // an error means that the caller has disconnected
}

// refusal is an error with the status that it is answered with.
type refusal struct {
	status  int
	message string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func (r *refusal) Error() string { return r.message }

func (r *refusal) reply() reply {
	body, _ := encodeJSON(struct {
		StatusCode int    `json:"statusCode"`
		Message    string `json:"message"`
		Error      string `json:"error"`
	}{r.status, r.message, http.StatusText(r.status)}) // these types can always be encoded
	return jsonReply(r.status, body)
}

// statusOf has the statuses of the state's errors.
var statusOf = map[errorKind]int{
	badValue:   http.StatusBadRequest,
	noRecord:   http.StatusNotFound,
	wrongMode:  http.StatusConflict,
	cantStream: http.StatusUnprocessableEntity,
}

// refusalIn returns the refusal that err wraps, or that answers the error of the state
// that err wraps. For any other error it returns nil.
func refusalIn(err error) *refusal {
	var r *refusal
	var s *stateError
	if !errors.As(err, &r) && errors.As(err, &s) {
		return &refusal{statusOf[s.kind], s.message}
	}
	return r
}

// object decodes the body of a request, a JSON object.
func object(r *http.Request) (document, error) {
	body, _ := io.ReadAll(r.Body) // in memory
	if len(body) == 0 {
		return nil, refuse(http.StatusBadRequest, "the body is empty; send a JSON object")
	}
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the Content-Type of the body must be application/json")
	}
	if !utf8.Valid(body) {
		return nil, refuse(http.StatusBadRequest, "the body is not UTF-8")
	}
	var d document
	err := json.Unmarshal(body, &d)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) || err == nil && d == nil {
		return nil, refuse(http.StatusBadRequest, "the body is not a JSON object")
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is not JSON: %v", err)
	}
	return d, nil
}

// switchQuery returns a required boolean of the query.
func switchQuery(r *http.Request, name string) (bool, error) {
	query, err := queryOf(r)
	if err != nil {
		return false, err
	}
	switch values := query[name]; {
	case len(values) == 1 && values[0] == "true":
		return true, nil
	case len(values) == 1 && values[0] == "false":
		return false, nil
	default:
		return false, refuse(http.StatusBadRequest, "the query must hold %s once, with the value true or false", name)
	}
}

// queryOf refuses a malformed query. URL.Query would silently ignore a part of it.
func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the query is malformed")
	}
	return query, nil
}

// wholeSeconds writes a Retry-After, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}

func unreadable(err error) *refusal {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	}
	return refuse(http.StatusBadRequest, "the body broke off")
}
