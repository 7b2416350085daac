package heads

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the tests of the package share. Its services are three: a script, whose
// steps are answers and faults in memory; a wire, which speaks bytes on a
// socket; and the emulator of headstest, which the tests of package heads_test
// use (see world_test.go). Where a fixed body for each route is enough, a fakeAPI
// answers, on httpmock.

// The base URL of the tests has a path, so that a request which does not start
// at the base URL misses the service.
const (
	prefix    = "/api/v3"
	memoryURL = "https://api.example.com" + prefix
	pathToken = "token-of-the-tests"
	testHead  = "3fa85f64-5717-4562-b3fc-2c963f66afa6" // also of testdata/head_full.json
	otherID   = "9b2c1d3e-4f50-4a6b-8c7d-0e1f2a3b4c5d"
	headJSON  = `{"id":"` + testHead + `","name":"Ada"}`
)

// atOncePolicy retries as often as the default policy, without waits.
var atOncePolicy = RetryPolicy{MaxRetries: 3}

// newTestClient returns a client over a transport, which retries at once.
func newTestClient(t testing.TB, baseURL string, transport http.RoundTripper, opts ...Option) *Client {
	t.Helper()
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(atOncePolicy)}
	client, err := New(baseURL, pathToken, append(all, opts...)...)
	require.NoError(t, err)
	return client
}

// serve starts a service on a socket, in which h sees paths without the
// prefix, and returns a client of it with connections of its own.
func serve(t testing.TB, h http.HandlerFunc, opts ...Option) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		assert.Fail(t, "a request beside the base URL", r.URL.Path)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return newTestClient(t, server.URL+prefix, newTransport(t), opts...)
}

// newTransport returns a transport whose connections end with the test.
func newTransport(t testing.TB) *http.Transport {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// step answers one request in memory.
type step func(*http.Request) (*http.Response, error)

// answer is a step: a status with a body, and headers as "Name: value".
func answer(status int, body string, headers ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		header := http.Header{}
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			header.Add(name, value)
		}
		return &http.Response{
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
		}, nil
	}
}

// fail is a step: no answer, but an error of the transport.
func fail(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hang is a step: no answer until the request is given up.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// hangInBody is a step whose answer never ends.
func hangInBody(r *http.Request) (*http.Response, error) {
	resp, err := answer(200, "")(r)
	resp.Body = io.NopCloser(readerFunc(func([]byte) (int, error) {
		<-r.Context().Done()
		return 0, r.Context().Err()
	}))
	resp.ContentLength = -1
	return resp, err
}

// cutOff is a step whose answer breaks off.
func cutOff(code int) step {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := answer(code, "")(r)
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(zeros{}, 10), readerFunc(func([]byte) (int, error) {
			return 0, io.ErrUnexpectedEOF
		})))
		return resp, err
	}
}

// script is a transport in memory that takes one step a request, and the last
// one for ever. It keeps what it was sent.
type script struct {
	mu       sync.Mutex
	steps    []step
	requests []*http.Request
	bodies   []string
}

func newScript(steps ...step) *script { return &script{steps: steps} }

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("reading the request's body: %w", err)
		}
		r.Body.Close()
		body = string(raw)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.bodies = append(s.bodies, body)
	next := s.steps[min(len(s.requests), len(s.steps))-1]
	s.mu.Unlock()
	return next(r)
}

// sent is how many requests the transport has seen.
func (s *script) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// zeros is an endless reader of the digit 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// wire is a service on a socket that reads and answers bytes without net/http,
// so that nothing is tidied up before the test sees it.
type wire struct {
	addr        string
	url         string
	transport   *http.Transport  // a test's own way to it
	requests    chan wireRequest // the first eight that were read
	seen, dials atomic.Int64
	unreachable bool // no request can reach it
}

type wireRequest struct {
	line   string
	header http.Header
	body   string
}

func newWire(t testing.TB, scheme, addr string) *wire {
	w := &wire{addr: addr, url: scheme + "://" + addr, transport: newTransport(t), requests: make(chan wireRequest, 8)}
	dialer := &net.Dialer{}
	w.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.dials.Add(1)
		return dialer.DialContext(ctx, network, addr)
	}
	return w
}

// client returns a client of the service that does not retry.
func (w *wire) client(t testing.TB) *Client {
	t.Helper()
	return newTestClient(t, w.url+prefix, w.transport, WithRetryPolicy(RetryPolicy{}))
}

// read takes a request off a connection.
func (w *wire) read(conn net.Conn) error {
	in := bufio.NewReader(conn)
	text := textproto.NewReader(in)
	line, err := text.ReadLine()
	if err != nil {
		return err
	}
	header, err := text.ReadMIMEHeader()
	if err != nil {
		return err
	}
	length, _ := strconv.Atoi(header.Get("Content-Length"))
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	select {
	case w.requests <- wireRequest{line, http.Header(header), string(body)}:
	default:
	}
	return nil
}

// listening handles one connection after the other, and closes each.
func listening(t testing.TB, handle func(*wire, *net.TCPConn)) *wire {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := newWire(t, "http", listener.Addr().String())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.seen.Add(1)
			handle(w, conn.(*net.TCPConn))
			conn.Close()
		}
	})
	t.Cleanup(func() { listener.Close(); done.Wait() })
	return w
}

// serveBytes answers every request with the bytes, one a connection.
func serveBytes(t testing.TB, answer string) *wire {
	return listening(t, func(w *wire, conn *net.TCPConn) {
		if w.read(conn) == nil {
			_, _ = io.WriteString(conn, answer)
		}
	})
}

// serveWire answers every request with status and body, one a connection.
func serveWire(t testing.TB, status int, body string, headers ...string) *wire {
	lines := append([]string{fmt.Sprintf("HTTP/1.1 %d Answer", status), "Connection: close", fmt.Sprint("Content-Length: ", len(body))}, headers...)
	return serveBytes(t, strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
}

// refusing is an address at which nobody listens.
func refusing(t testing.TB) *wire {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	w := newWire(t, "http", listener.Addr().String())
	w.unreachable = true
	return w
}

// unknownHost is a host that the resolver does not know.
func unknownHost(t testing.TB) *wire {
	w := newWire(t, "https", "api.example.com")
	w.unreachable = true
	w.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		w.dials.Add(1)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: w.addr, IsNotFound: true}}
	}
	return w
}

// untrusted is a service whose certificate nobody has signed.
func untrusted(t testing.TB) *wire {
	var w *wire
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.seen.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	w = newWire(t, "https", server.Listener.Addr().String())
	w.unreachable = true
	return w
}

// resetting is a service that resets each connection: after it has read the
// request, or when it has seen no more than that there is one.
func resetting(read bool) func(testing.TB) *wire {
	return func(t testing.TB) *wire {
		return listening(t, func(w *wire, conn *net.TCPConn) {
			if read {
				_ = w.read(conn)
			} else { // a reset before its first byte could still hit the handshake
				_, _ = conn.Read(make([]byte, 1))
			}
			_ = conn.SetLinger(0)
		})
	}
}

// sentRequest is a request as a fakeAPI has received it.
type sentRequest struct {
	route string // "PUT /head/update", without the prefix of the base URL
	query string
	body  string
}

// fakeAPI is a client of a service in memory, which answers each route with a
// fixed body, and any other with 404. It keeps what it was sent.
type fakeAPI struct {
	*Client
	*httpmock.MockTransport

	mu   sync.Mutex
	sent []sentRequest
}

func newFakeAPI(t *testing.T, answers map[string]string) *fakeAPI {
	t.Helper()
	f := &fakeAPI{MockTransport: httpmock.NewMockTransport()}
	f.RegisterNoResponder(f.noting(httpmock.NewStringResponder(http.StatusNotFound, "")))
	for route, body := range answers {
		f.answer(route, body)
	}
	f.Client = newTestClient(t, memoryURL, f)
	return f
}

// answer sets what a route such as "PUT /head/update" is answered with.
func (f *fakeAPI) answer(route, body string) {
	method, path, _ := strings.Cut(route, " ")
	f.RegisterResponder(method, memoryURL+path, f.noting(httpmock.NewStringResponder(http.StatusOK, body)))
}

// noting returns a responder that notes each request before it is answered.
func (f *fakeAPI) noting(next httpmock.Responder) httpmock.Responder {
	return func(r *http.Request) (*http.Response, error) {
		sent := sentRequest{route: r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), prefix), query: r.URL.RawQuery}
		if r.Body != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			sent.body = string(body)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent = append(f.sent, sent)
		return next(r)
	}
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

// answering returns the routes of one head: GET with a document, the changes
// with an empty body.
func answering(document string) map[string]string {
	return map[string]string{
		"GET /head/" + testHead:                            document,
		"PUT /head/update":                                 "",
		"PUT /head/" + testHead + "/conversation-settings": "",
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

// calls are real methods, one for each HTTP method.
var calls = []struct {
	method string
	run    func(context.Context, *Client) error
}{
	{"GET", func(ctx context.Context, c *Client) error {
		_, err := c.Heads.Get(ctx, testHead)
		return err
	}},
	{"PUT", func(ctx context.Context, c *Client) error {
		_, err := c.Heads.Update(ctx, NewHeadUpdate(testHead).Name("Ada"))
		return err
	}},
	{"PATCH", func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, true))
		return err
	}},
	{"DELETE", func(ctx context.Context, c *Client) error {
		return c.Webhooks.Delete(ctx, 7)
	}},
	{"POST", func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{
			HeadID: testHead, URL: "https://hooks.example.com/heads", Events: []EventType{EventStartConversation},
		})
		return err
	}},
}

// getHead is a call without a body, postHook one that must not be retried
// lightly.
var getHead, postHook = calls[0].run, calls[4].run
