package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program is the command, run inside the test.
type program struct {
	announcement
	t    testing.TB
	hc   *http.Client
	log  *os.File
	stop func() error // may be called more than once
}

func newProgram(t testing.TB) *program {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	return &program{t: t, hc: &http.Client{Transport: &http.Transport{}}, log: log}
}

// logged returns all log lines so far.
func (p *program) logged() string {
	text, err := os.ReadFile(p.log.Name())
	require.NoError(p.t, err)
	return string(text)
}

// start runs the command on a free port until the test ends.
func start(t testing.TB, args ...string) *program {
	t.Helper()
	p := newProgram(t)
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-addr", "127.0.0.1:0", "-json"}, args...), in, p.log)
		_ = in.CloseWithError(err)
		ended <- err
	}()
	p.stop = sync.OnceValue(func() error {
		cancel()
		_ = out.Close() // also ends a write that still waits
		p.hc.CloseIdleConnections()
		return <-ended
	})
	t.Cleanup(func() { assert.NoError(t, p.stop()) })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &p.announcement))
	return p
}

// startAndStop runs the command with an ended context, so the command ends even if a
// start that should fail succeeds.
func startAndStop(t testing.TB, out, log io.Writer, args ...string) error {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return run(ctx, args, out, log)
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (p *program) send(req *http.Request) answer {
	p.t.Helper()
	resp, err := p.hc.Do(req)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// request returns a request with lines of a header.
func (p *program) request(method, path, body string, header ...string) *http.Request {
	req, err := http.NewRequest(method, p.BaseURL+path, strings.NewReader(body))
	require.NoError(p.t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	return req
}

// api calls an operation of the contract.
func (p *program) api(method, path, body string) answer {
	p.t.Helper()
	header := []string{"Authorization: Bearer " + p.Token, "Content-Type: application/json"}
	if body == "" {
		header = header[:1]
	}
	return p.send(p.request(method, path, body, header...))
}

// control calls the control API, without the token.
func (p *program) control(method, path, body string) answer {
	p.t.Helper()
	return p.send(p.request(method, controlPrefix+path, body, "Content-Type: application/json"))
}

// ok reads a successful answer into v, unless that is nil.
func (a answer) ok(t testing.TB, v any) {
	t.Helper()
	require.Less(t, a.status, 300, a.body)
	if v != nil {
		require.NoError(t, json.Unmarshal([]byte(a.body), v), a.body)
	}
}

// refused asserts a refusal in the form that all refusals have.
func (a answer) refused(t testing.TB, status int, says string) {
	t.Helper()
	var body struct {
		StatusCode     int
		Message, Error string
	}
	require.Equal(t, status, a.status, a.body)
	require.NoError(t, json.Unmarshal([]byte(a.body), &body), a.body)
	assert.Equal(t, status, body.StatusCode)
	assert.Equal(t, http.StatusText(status), body.Error)
	assert.Contains(t, body.Message, says)
}

// receiver accepts events and tool calls.
func receiver(t testing.TB, answer http.HandlerFunc) string {
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return srv.URL
}

func accept(http.ResponseWriter, *http.Request) {}

// hook registers a URL for events of the first head.
func (p *program) hook(address string) (sharedKey string) {
	p.t.Helper()
	p.api("PUT", "/head/"+p.Heads[0]+"/enable-events?enableEvents=true", "").ok(p.t, nil)
	var created struct{ SharedKey string }
	p.api("POST", "/head-events", `{"headId":"`+p.Heads[0]+`","webhookUrl":"`+address+`","startConversation":true,"inactivityWarning":true}`).ok(p.t, &created)
	return created.SharedKey
}

// session starts a session with some steps, such as "message inactive".
func (p *program) session(steps string) (id string) {
	p.t.Helper()
	var s struct{ ID string }
	p.control("POST", "sessions", `{"headId":"`+p.Heads[0]+`"}`).ok(p.t, &s)
	for step := range strings.FieldsSeq(steps) {
		p.control("POST", "sessions/"+s.ID+"/"+step, "").ok(p.t, nil)
	}
	return s.ID
}

type delivery struct {
	Status      int
	Error, Body string
	Headers     map[string]string
}

// deliveries waits for a delivery that matches the query.
func (p *program) deliveries(query string) (list []delivery) {
	p.t.Helper()
	p.control("GET", "deliveries?wait=30s&"+query, "").ok(p.t, &list)
	return list
}

func writeFile(t testing.TB, text string) string {
	name := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}
