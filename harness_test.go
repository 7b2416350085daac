package heads

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests of the root package have three fakes of the service: a script, whose
// steps are answers and faults in memory; a wire, which reads and writes bytes on
// a socket; and a world, which is the emulator of headstest. headstest imports
// this package, so only tests of package heads_test can use a world, and it is
// in world_test.go. Everything else that tests share is here.

// Helpers that the tests of package heads_test use too.
var (
	Answer        = answer
	AssertHides   = assertHides
	InParallel    = inParallel
	InvalidErrors = invalidErrors
	ReadFile      = readFile
	Sources       = sources
)

// Step is a step for them.
type Step = step

// Must returns the result of a call that must not fail: Must(ParseEvent(body))(t).
func Must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return result
	}
}

// As returns the error of type E in err, which must hold one.
func As[E error](t testing.TB, err error) (e E) {
	t.Helper()
	require.ErrorAs(t, err, &e)
	return e
}

// ErrorOf returns the error of a call.
func ErrorOf[T any](_ T, err error) error { return err }

// Edit is change as Modify takes it.
func Edit[T any](change func(*T)) func(*T) error {
	return func(v *T) error {
		change(v)
		return nil
	}
}

// Bubble runs a subtest in a bubble of synctest.
func Bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// The base URL of the tests has a path, so a request that does not start at the
// base URL misses the service.
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

// newTestClient returns a client over a transport. It retries without waits.
func newTestClient(t testing.TB, baseURL string, transport http.RoundTripper, opts ...Option) *Client {
	t.Helper()
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(atOncePolicy)}
	client := Must(New(baseURL, pathToken, append(all, opts...)...))(t)
	return client
}

// serve starts a service on a socket and returns a client of it, which shares no
// connections. h sees paths without the prefix.
func serve(t testing.TB, h http.HandlerFunc, opts ...Option) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		assert.Fail(t, "a request outside the base URL", r.URL.Path)
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

// RoundTrip makes a step a transport of its own, for tests and benchmarks that
// need no record of the requests.
func (s step) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	return s(r)
}

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

// fail is a step: the transport returns an error.
func fail(err error) step { return func(*http.Request) (*http.Response, error) { return nil, err } }

// hang is a step: it waits until the request's context ends.
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
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(zeros{}, 10), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return resp, err
	}
}

// script is a transport in memory. It takes one step for each request, and
// repeats the last one. It keeps what it was sent.
type script struct {
	mu       sync.Mutex
	steps    []step
	requests []*http.Request
	bodies   []string
	shown    int          // how many of the requests since has returned
	closed   atomic.Int64 // calls of CloseIdleConnections
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

func (s *script) CloseIdleConnections() { s.closed.Add(1) }

// sent is how many requests the transport has seen.
func (s *script) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// sentRequest is a request that a script was sent.
type sentRequest struct {
	route string // "PUT /head/update", without the prefix of the base URL
	query string
	body  string
}

// since returns the requests since the last call.
func (s *script) since() []sentRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent []sentRequest
	for i, r := range s.requests[s.shown:] {
		route := r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), prefix)
		sent = append(sent, sentRequest{route, r.URL.RawQuery, s.bodies[s.shown+i]})
	}
	s.shown = len(s.requests)
	return sent
}

// routes returns the routes of the requests since the last call.
func (s *script) routes() []string {
	routes := []string{}
	for _, r := range s.since() {
		routes = append(routes, r.route)
	}
	return routes
}

// bodyOf returns the body of the one request to a route since the last call.
func (s *script) bodyOf(t *testing.T, route string) string {
	t.Helper()
	var bodies []string
	for _, r := range s.since() {
		if r.route == route {
			bodies = append(bodies, r.body)
		}
	}
	require.Len(t, bodies, 1, "requests to %s", route)
	return bodies[0]
}

// fakeAPI is a client over a script that answers each route with a fixed body,
// and any other with 404.
type fakeAPI struct {
	*Client
	*script
	responders *httpmock.MockTransport
}

func newFakeAPI(t *testing.T, answers map[string]string) *fakeAPI {
	t.Helper()
	f := &fakeAPI{responders: httpmock.NewMockTransport()}
	f.responders.RegisterNoResponder(httpmock.NewStringResponder(http.StatusNotFound, ""))
	for route, body := range answers {
		f.answer(route, body)
	}
	f.script = newScript(f.responders.RoundTrip)
	f.Client = newTestClient(t, memoryURL, f.script)
	return f
}

// answer sets the body with which a route such as "PUT /head/update" is answered.
func (f *fakeAPI) answer(route, body string) {
	method, path, _ := strings.Cut(route, " ")
	f.responders.RegisterResponder(method, memoryURL+path, httpmock.NewStringResponder(http.StatusOK, body))
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

// SyncBuffer is a log that several goroutines may write.
type SyncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *SyncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *SyncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// SilentWriter is a ResponseWriter that does no work.
type SilentWriter struct {
	Headers http.Header
	Status  int
}

func (w *SilentWriter) Header() http.Header         { return w.Headers }
func (w *SilentWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *SilentWriter) WriteHeader(status int)      { w.Status = status }

// SetReadDeadline is what the ResponseWriter of a server has, too.
func (w *SilentWriter) SetReadDeadline(time.Time) error { return nil }

// BenchBody is a body that can be read again.
type BenchBody struct{ *bytes.Reader }

func (BenchBody) Close() error { return nil }

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

// wire is a service on a socket. It reads and writes bytes without net/http, so
// a test sees exactly what was sent.
type wire struct {
	addr        string
	url         string
	transport   *http.Transport  // used by this test alone
	requests    chan wireRequest // the first eight that were read
	seen, dials atomic.Int64
	unreachable bool // no connection is ever ready for a request
}

type wireRequest struct {
	line   string
	header http.Header
	body   string
	bytes  string // all of it
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

// read reads a request from a connection.
func (w *wire) read(conn net.Conn) error {
	var all strings.Builder
	in := bufio.NewReader(io.TeeReader(conn, &all))
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
	case w.requests <- wireRequest{line, http.Header(header), string(body), all.String()}:
	default:
	}
	return nil
}

// listening is a service that handles one connection at a time and then closes
// it.
func listening(t testing.TB, handle func(*wire, *net.TCPConn)) *wire {
	listener := Must(net.Listen("tcp", "127.0.0.1:0"))(t)
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

// serveBytes is a service that answers the one request of each connection with
// the bytes.
func serveBytes(t testing.TB, answer string) *wire {
	return listening(t, func(w *wire, conn *net.TCPConn) {
		if w.read(conn) == nil {
			_, _ = io.WriteString(conn, answer)
		}
	})
}

// serveWire is a service that answers the one request of each connection with
// status and body.
func serveWire(t testing.TB, status int, body string, headers ...string) *wire {
	lines := append([]string{fmt.Sprintf("HTTP/1.1 %d Answer", status), "Connection: close", fmt.Sprint("Content-Length: ", len(body))}, headers...)
	return serveBytes(t, strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
}

// refusing is an address on which nothing listens.
func refusing(t testing.TB) *wire {
	listener := Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, listener.Close())
	w := newWire(t, "http", listener.Addr().String())
	w.unreachable = true
	return w
}

// unknownHost is a host that the resolver does not find.
func unknownHost(t testing.TB) *wire {
	w := newWire(t, "https", "api.example.com")
	w.unreachable = true
	w.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		w.dials.Add(1)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: w.addr, IsNotFound: true}}
	}
	return w
}

// untrusted is a service with a self-signed certificate.
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

// resetting is a service that resets each connection, either after the whole
// request or after its first byte.
func resetting(read bool) func(testing.TB) *wire {
	return func(t testing.TB) *wire {
		return listening(t, func(w *wire, conn *net.TCPConn) {
			if read {
				_ = w.read(conn)
			} else { // a reset before the first byte could happen during the handshake
				_, _ = conn.Read(make([]byte, 1))
			}
			_ = conn.SetLinger(0)
		})
	}
}

// SendRaw writes bytes to a server and returns its answer, whose body has arrived.
func SendRaw(t testing.TB, conn net.Conn, text string) *http.Response {
	t.Helper()
	Must(io.WriteString(conn, text))(t)
	response := Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	response.Body = io.NopCloser(bytes.NewReader(Must(io.ReadAll(response.Body))(t)))
	return response
}

// sources returns the files of Go that match the patterns and hold no tests, by path.
func sources(t testing.TB, patterns ...string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, pattern := range patterns {
		for _, path := range Must(filepath.Glob(pattern))(t) {
			if !strings.HasSuffix(path, "_test.go") {
				files[path] = Must(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
			}
		}
	}
	return files
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	data := Must(os.ReadFile("testdata/" + name))(t)
	return string(data)
}

// golden returns a body of testdata/bodies as it is sent: without white space.
func golden(t testing.TB, name string) string {
	t.Helper()
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, []byte(readFile(t, "bodies/"+name))))
	return compact.String()
}

// object is a JSON document that a test reads with encoding/json alone.
type object map[string]json.RawMessage

func parseObject(t testing.TB, document string) object {
	t.Helper()
	var o object
	require.NoError(t, json.Unmarshal([]byte(document), &o))
	return o
}

// with returns the document with a field set. "organisation.slots" is the field
// slots of the object organisation.
func (o object) with(t testing.TB, field, value string) object {
	t.Helper()
	changed := maps.Clone(o)
	outer, inner, nested := strings.Cut(field, ".")
	if nested {
		value = parseObject(t, string(o[outer])).with(t, inner, value).String()
	}
	changed[outer] = json.RawMessage(value)
	return changed
}

func (o object) without(fields ...string) object {
	changed := maps.Clone(o)
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

// invalidErrors returns the InvalidErrors in err, which must hold nothing else.
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
	one := As[*InvalidError](t, err)
	return []*InvalidError{one}
}

// invalidFields returns the fields of the InvalidErrors in err, in order.
func invalidFields(t testing.TB, err error) []string {
	t.Helper()
	var fields []string
	for _, e := range invalidErrors(t, err) {
		fields = append(fields, e.Field)
	}
	return fields
}

// inParallel runs f n times in parallel.
func inParallel(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// assertHides prints v with every verb and logger, and fails if a secret shows.
func assertHides(t testing.TB, v any, secrets ...string) {
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

func assertNoSecret(t testing.TB, how, text string, secrets []string) {
	t.Helper()
	for _, secret := range secrets {
		assert.NotContains(t, text, secret, how)
		assert.NotContains(t, text, fmt.Sprintf("%x", secret), how)
		assert.NotContains(t, text, fmt.Sprintf("%X", secret), how)
	}
}

// callOf calls one method of the client and returns its error.
type callOf func(context.Context, *Client) error

// method is a method of the client. Lists of calls are made from the one table of
// methods.
type method struct {
	name   string // and the form of the call, where there are several
	call   func(ctx context.Context, c *Client, headID string) error
	answer string // what the contract describes; "" if it describes nothing

	headless bool // takes no head id
	composed bool // of several operations of the service
}

// run is the call for the head of the tests.
func (m method) run(ctx context.Context, c *Client) error { return m.call(ctx, c, testHead) }

const hookJSON = `{"id":7,"headId":"` + testHead + `","sharedKey":"k"}`

func hookFor(headID string) WebhookSpec {
	return WebhookSpec{HeadID: headID, URL: "https://hooks.example.com/heads", Events: []EventType{EventEndConversation}}
}

var methods = []method{
	{name: "Heads.Get", answer: `{"id":"` + testHead + `"}`, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Heads.Get(ctx, id))
	}},
	{name: "Heads.Update", call: func(ctx context.Context, c *Client, id string) error {
		return c.Heads.Update(ctx, id, NewHeadUpdate().Voice("elevenlabs", "rachel_eleven_turbo_v2_5"))
	}},
	{name: "HeadVisuals.Get", headless: true, answer: `{"id":"8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f","mode":"default"}`,
		call: func(ctx context.Context, c *Client, _ string) error {
			return ErrorOf(c.HeadVisuals.Get(ctx, "8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f"))
		}},
	{name: "HeadVisuals.Get with an id that has to be escaped", headless: true, answer: `{"id":"a/b c?d#e%2F..é","mode":"default"}`,
		call: func(ctx context.Context, c *Client, _ string) error {
			return ErrorOf(c.HeadVisuals.Get(ctx, "a/b c?d#e%2F..é"))
		}},
	{name: "Heads.SetVideoStreaming on", call: func(ctx context.Context, c *Client, id string) error { return c.Heads.SetVideoStreaming(ctx, id, true) }},
	{name: "Heads.SetVideoStreaming off", call: func(ctx context.Context, c *Client, id string) error {
		return c.Heads.SetVideoStreaming(ctx, id, false)
	}},
	{name: "ConversationSettings.Replace", call: func(ctx context.Context, c *Client, id string) error {
		return c.ConversationSettings.Replace(ctx, id, &ConversationSettings{Tools: []Tool{{
			Name: "weather", Description: "Tells the weather", URL: "https://tools.example.com/weather",
			Parameters: []ToolParameter{{Name: "city", Type: "string", Description: "Where"}},
		}}})
	}},
	{name: "Webhooks.Create", answer: `{"sharedKey":"k"}`, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Webhooks.Create(ctx, hookFor(id)))
	}},
	{name: "Webhooks.List", answer: "[" + hookJSON + "]", call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Webhooks.List(ctx, id))
	}},
	{name: "Webhooks.Get", headless: true, answer: strings.Replace(hookJSON, "7", "9007199254740993", 1),
		call: func(ctx context.Context, c *Client, _ string) error {
			return ErrorOf(c.Webhooks.Get(ctx, 9007199254740993)) // no float64 holds this
		}},
	{name: "Webhooks.Update", headless: true, call: func(ctx context.Context, c *Client, _ string) error {
		return c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, false))
	}},
	{name: "Webhooks.Delete", headless: true, call: func(ctx context.Context, c *Client, _ string) error { return c.Webhooks.Delete(ctx, 7) }},
	{name: "Webhooks.SetDelivery on", call: func(ctx context.Context, c *Client, id string) error { return c.Webhooks.SetDelivery(ctx, id, true) }},
	{name: "Webhooks.SetDelivery off", call: func(ctx context.Context, c *Client, id string) error { return c.Webhooks.SetDelivery(ctx, id, false) }},
	{name: "Webhooks.Update of the head", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return c.Webhooks.Update(ctx, 7, NewWebhookUpdate().HeadID(id))
	}},
	{name: "Webhooks.Ensure", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Webhooks.Ensure(ctx, hookFor(id), EnsureOptions{}))
	}},
	{name: "Heads.Modify", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Heads.Modify(ctx, id, func(h *Head) error {
			h.Phrases = append(h.Phrases, "hello")
			return nil
		}))
	}},
	{name: "Heads.Examine", composed: true, call: func(ctx context.Context, c *Client, id string) error { return ErrorOf(c.Heads.Examine(ctx, id)) }},
	{name: "Heads.PlanStreaming", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Heads.PlanStreaming(ctx, id, ConvertOptions{}))
	}},
	{name: "Heads.ConvertToStreaming", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Heads.ConvertToStreaming(ctx, id, ConvertOptions{Voice: &Voice{"azure", "v"}}))
	}},
	{name: "Heads.ConvertToLegacy", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.Heads.ConvertToLegacy(ctx, id, ConvertOptions{}))
	}},
	{name: "ConversationSettings.Get", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.ConversationSettings.Get(ctx, id))
	}},
	{name: "ConversationSettings.Modify", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.ConversationSettings.Modify(ctx, id, func(cs *ConversationSettings) error {
			return cs.SetExtra("model", []byte(`1`))
		}))
	}},
	{name: "ConversationSettings.SetTools", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.ConversationSettings.SetTools(ctx, id, weatherTool()))
	}},
	{name: "ConversationSettings.PutTool", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.ConversationSettings.PutTool(ctx, id, weatherTool()))
	}},
	{name: "ConversationSettings.RemoveTool", composed: true, call: func(ctx context.Context, c *Client, id string) error {
		return ErrorOf(c.ConversationSettings.RemoveTool(ctx, id, "weather"))
	}},
}

// operations are the methods that make one request, in all forms.
func operations() []method {
	return slices.DeleteFunc(slices.Clone(methods), func(m method) bool { return m.composed })
}

// operation is the name without the form of the call.
func (m method) operation() string {
	name, _, _ := strings.Cut(m.name, " ")
	return name
}

// calls has one operation for each HTTP method.
var calls = []struct {
	method string
	run    callOf
}{
	{"GET", named("Heads.Get")}, {"PUT", named("Heads.Update")}, {"PATCH", named("Webhooks.Update")},
	{"DELETE", named("Webhooks.Delete")}, {"POST", named("Webhooks.Create")},
}

// named returns the call of the method with a name.
func named(name string) callOf {
	i := slices.IndexFunc(methods, func(m method) bool { return m.name == name })
	return methods[i].run
}

// getHead is a call without a body. postHook is a call that is retried only if
// the service can't have carried it out.
var getHead, postHook = calls[0].run, calls[4].run

func weatherTool() Tool {
	return Tool{Name: "weather", Description: "Tells the weather of today", URL: "https://tools.example.com/weather"}
}
