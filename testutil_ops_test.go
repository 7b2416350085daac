package heads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	guideID   = "3fa85f64-5717-4562-b3fc-2c963f66afa6" // the head of testdata/head_full.json
	otherID   = "9b2c1d3e-4f50-4a6b-8c7d-0e1f2a3b4c5d"
	basePath  = "/base/v1" // every test runs below a prefix, so that an absolute path fails
	testToken = "canary-token"
)

// sentRequest is a request as a fake service has received it.
type sentRequest struct {
	route  string // "PUT /head/update", without the prefix of the base URL
	query  string
	header http.Header
	body   string
}

// fakeAPI answers each route with a fixed body, and notes what was asked.
// A route without an answer is a 404.
type fakeAPI struct {
	*Client

	mu      sync.Mutex
	answers map[string]string
	sent    []sentRequest
}

func newFakeAPI(t *testing.T, answers map[string]string) *fakeAPI {
	t.Helper()
	f := &fakeAPI{answers: answers}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	client, err := New(srv.URL+basePath, testToken, WithHTTPClient(srv.Client()))
	require.NoError(t, err)
	f.Client = client
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	path, prefixed := strings.CutPrefix(r.URL.EscapedPath(), basePath)
	if !prefixed {
		http.Error(w, "the prefix of the base URL is missing", http.StatusTeapot)
		return
	}
	route := r.Method + " " + path
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, sentRequest{route, r.URL.RawQuery, r.Header, string(body)})
	answer, ok := f.answers[route]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, answer)
}

// requests returns what was sent since the last call.
func (f *fakeAPI) requests() []sentRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := f.sent
	f.sent = nil
	return sent
}

// routes returns the routes of what was sent since the last call.
func (f *fakeAPI) routes() []string {
	routes := []string{}
	for _, r := range f.requests() {
		routes = append(routes, r.route)
	}
	return routes
}

// bodyOf returns the body of the one request to a route since the last call.
func (f *fakeAPI) bodyOf(t *testing.T, route string) string {
	t.Helper()
	var bodies []string
	for _, r := range f.requests() {
		if r.route == route {
			bodies = append(bodies, r.body)
		}
	}
	require.Len(t, bodies, 1, "requests to %s", route)
	return bodies[0]
}

// answering gives the routes of one head: GET with a document, the changes
// with an empty body.
func answering(document string) map[string]string {
	return map[string]string{
		"GET /head/" + guideID:                            document,
		"PUT /head/update":                                "",
		"PUT /head/" + guideID + "/conversation-settings": "",
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(data)
}

// golden reads a body of testdata/bodies, which is laid out for people, as it
// is sent: without white space.
func golden(t testing.TB, name string) string {
	t.Helper()
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, []byte(readFile(t, "bodies/"+name))))
	return compact.String()
}

// object is a JSON document that a test takes apart with encoding/json alone.
type object map[string]json.RawMessage

func parseObject(t testing.TB, document string) object {
	t.Helper()
	var o object
	require.NoError(t, json.Unmarshal([]byte(document), &o))
	return o
}

// with returns the document with a field set; in "organisation.slots" the
// field is inside an object.
func (o object) with(t testing.TB, field, value string) object {
	t.Helper()
	changed := object{}
	for k, v := range o {
		changed[k] = v
	}
	outer, inner, nested := strings.Cut(field, ".")
	if nested {
		value = parseObject(t, string(o[outer])).with(t, inner, value).String()
	}
	changed[outer] = json.RawMessage(value)
	return changed
}

func (o object) without(fields ...string) object {
	changed := object{}
	for k, v := range o {
		changed[k] = v
	}
	for _, field := range fields {
		delete(changed, field)
	}
	return changed
}

func (o object) String() string {
	raw, err := json.Marshal(map[string]json.RawMessage(o))
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// invalidErrors returns the InvalidErrors in err, which must be nothing else.
func invalidErrors(t testing.TB, err error) []*InvalidError {
	t.Helper()
	require.ErrorIs(t, err, ErrInvalid)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*InvalidError
		for _, e := range joined.Unwrap() {
			all = append(all, invalidErrors(t, e)...)
		}
		return all
	}
	var one *InvalidError
	require.ErrorAs(t, err, &one)
	return []*InvalidError{one}
}

// invalidFields returns the fields that err complains of, in order.
func invalidFields(t testing.TB, err error) []string {
	t.Helper()
	var fields []string
	for _, e := range invalidErrors(t, err) {
		fields = append(fields, e.Field)
	}
	return fields
}

// assertHides prints v in every way there is, and wants no trace of a secret.
func assertHides(t *testing.T, v any, secrets ...string) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
		assertNoSecret(t, verb, fmt.Sprintf(verb, v), secrets)
		assertNoSecret(t, verb+" in a slice", fmt.Sprintf(verb, []any{v}), secrets)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
	assertNoSecret(t, "slog", log.String(), secrets)
	if err, ok := v.(error); ok {
		assertNoSecret(t, "Error", errors.Join(err).Error(), secrets)
	}
}

func assertNoSecret(t *testing.T, how, text string, secrets []string) {
	t.Helper()
	for _, secret := range secrets {
		assert.NotContains(t, text, secret, how)
		assert.NotContains(t, text, fmt.Sprintf("%x", secret), how)
		assert.NotContains(t, text, fmt.Sprintf("%X", secret), how)
	}
}
