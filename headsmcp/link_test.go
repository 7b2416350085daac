package headsmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// With this variable, the test binary is an MCP server on standard input and output,
// with the tools that the file has as a page of tools/list.
const serverVariable = "HEADSMCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if file := os.Getenv(serverVariable); file != "" {
		serveStdio(file)
		return
	}
	os.Exit(m.Run())
}

func serveStdio(file string) {
	page, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	s := rawServer{pages: []string{string(page)}}
	s.answer = textAnswer(strconv.Itoa(os.Getpid()))
	s.send = func(line string) { fmt.Println(line) }
	s.serve(os.Stdin)
}

// process is a server as a process, which can be started again and again.
type process struct {
	t       testing.TB
	file    string
	started []*mcp.ClientSession
	pid     int
}

func newProcess(t testing.TB, tools string) *process {
	p := &process{t: t, file: filepath.Join(t.TempDir(), "tools.json")}
	p.offer(tools)
	t.Cleanup(func() {
		for _, session := range p.started {
			_ = session.Close()
		}
	})
	return p
}

// offer sets the tools from the next start on.
func (p *process) offer(tools string) {
	require.NoError(p.t, os.WriteFile(p.file, []byte(tools), 0o600))
}

func (p *process) connect(ctx context.Context) (*mcp.ClientSession, error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"="+p.file)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err == nil {
		p.started, p.pid = append(p.started, session), cmd.Process.Pid
	}
	return session, err
}

// kill ends the process and waits until the session has noticed.
func (p *process) kill() {
	running, err := os.FindProcess(p.pid)
	require.NoError(p.t, err)
	require.NoError(p.t, running.Kill())
	_ = p.started[len(p.started)-1].Wait()
}

// syncLog is a log that is read while it is written.
type syncLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// linked returns a handler with the tools of a session, and its log.
func linked(t testing.TB, session *mcp.ClientSession, opts ...Option) (*heads.ToolHandler, *syncLog) {
	t.Helper()
	var log syncLog
	h := newHandler(t, logTo(&log), heads.WithToolTimeout(time.Minute))
	addTools(t.Context(), t, h, session, opts...)
	return h, &log
}

func (p *process) handler(opts ...Option) (*heads.ToolHandler, *syncLog) {
	p.t.Helper()
	session, err := p.connect(p.t.Context())
	require.NoError(p.t, err)
	return linked(p.t, session, opts...)
}

func TestToolsWithAnotherSchemaAreRefused(t *testing.T) {
	const before = `[{"name":"same","description":"A tool.","inputSchema":{"type":"object","properties":{"x":{"type":"integer","description":"X"}}}},
		{"name":"other","description":"A tool.","inputSchema":{"properties":{"x":{"type":"integer","description":"X"}}}},
		{"name":"gone","description":"A tool.","inputSchema":{}}]`
	p := newProcess(t, before)
	h, log := p.handler(Prefix("my_"), Reconnect(p.connect))
	p.offer(`[{"name":"other","description":"A tool.","inputSchema":{"properties":{"x":{"type":"string","description":"X"}}}},
		{"name":"new","description":"A tool.","inputSchema":{}},
		{"name":"same","description":"Described anew.","inputSchema":{"properties":{"x":{"description":"X", "type":"integer"}},"type":"object"}}]`)
	p.kill()
	answer := call(t, h, "my_same", `{}`) // which starts the process
	assert.Equal(t, strconv.Itoa(p.pid), answer)
	assert.Empty(t, log.String())
	assert.Equal(t, failed, call(t, h, "my_other", `{"x":1}`))
	assert.Equal(t, failed, call(t, h, "my_gone", `{}`))
	for _, want := range []string{"has another input schema for the tool", "tool=my_other", "no longer has the tool", "tool=my_gone"} {
		assert.Contains(t, log.String(), want)
	}
	assert.Len(t, p.started, 2, "what is refused needs no further connection")

	p.offer(before)
	p.kill()
	for _, name := range []string{"my_same", "my_other", "my_gone"} {
		answer := call(t, h, name, `{}`)
		assert.Equal(t, strconv.Itoa(p.pid), answer, "as it was")
	}
}

// dying is a server whose sessions can be ended.
type dying struct {
	connects atomic.Int32
	last     *rawServer
}

func (d *dying) connect(t testing.TB, answer string) *mcp.ClientSession {
	return d.start(t, &rawServer{answer: textAnswer(answer)})
}

func (d *dying) start(t testing.TB, server *rawServer) *mcp.ClientSession {
	d.connects.Add(1)
	server.pages = []string{named("a")}
	d.last = server
	return server.connect(t)
}

func (d *dying) die() {
	d.last.close()
	_ = d.last.session.Wait()
}

func TestAttemptsWaitLongerAndLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dying
		var attempts []time.Duration
		died, mend := time.Now(), false
		h, log := linked(t, d.connect(t, "first"), Reconnect(func(context.Context) (*mcp.ClientSession, error) {
			attempts = append(attempts, time.Since(died))
			if !mend {
				return nil, errors.New("canary")
			}
			return d.connect(t, "second"), nil
		}))
		d.die()
		died = time.Now()
		seconds := func(n int, want string) {
			for range n {
				assert.Equal(t, want, call(t, h, "a", `{}`))
				<-time.After(time.Second)
			}
		}
		seconds(100, failed)
		assert.Equal(t, []time.Duration{0, 1e9, 3e9, 7e9, 15e9, 31e9, 61e9, 91e9}, attempts)
		assert.Contains(t, log.String(), "headsmcp: connect again: ")
		assert.Contains(t, log.String(), "the next attempt is made in 30s or later")
		assert.NotContains(t, log.String(), "canary")
		mend = true
		<-time.After(time.Minute)
		seconds(3, "second")

		// The session has answered, so its death is the first one again.
		d.die()
		attempts, died = nil, time.Now()
		seconds(1, "second")
		assert.Equal(t, []time.Duration{0}, attempts)
	})
}

func TestServerThatDiesAtOnceIsNotStartedAtEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dying
		connect := func(context.Context) (*mcp.ClientSession, error) {
			server := &rawServer{}
			server.handled = func(method string, _ json.RawMessage) {
				if method == "tools/call" {
					server.close()
				}
			}
			return d.start(t, server), nil
		}
		first, err := connect(t.Context())
		require.NoError(t, err)
		h, log := linked(t, first, Reconnect(connect))
		for range 1000 {
			assert.Equal(t, failed, call(t, h, "a", `{}`))
			<-time.After(100 * time.Millisecond)
		}
		assert.EqualValues(t, 9, d.connects.Load(), "after 0, 0.1, 1.1, 3.1, 7.1, 15.1, 31.1, 61.1 and 91.1 s")
		assert.Contains(t, log.String(), "connection closed before a call was answered; the next attempt")
	})
}

func TestCallsWaitForOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dying
		h, _ := linked(t, d.connect(t, "first"), Reconnect(func(context.Context) (*mcp.ClientSession, error) {
			<-time.After(2 * time.Second)
			return d.connect(t, "second"), nil
		}))
		d.die()
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() { assert.Equal(t, "second", call(t, h, "a", `{}`)) })
		}
		calls.Wait()
		assert.EqualValues(t, 2, d.connects.Load())
	})
}

func TestConnectThatHangsEndsAfterThirtySeconds(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var d dying
		var took time.Duration
		attempts := 0
		h := newHandler(t, heads.WithToolTimeout(3*time.Second))
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		addTools(ctx, t, h, d.connect(t, "first"), Reconnect(func(ctx context.Context) (*mcp.ClientSession, error) {
			begun := time.Now()
			attempts++
			assert.Equal(t, "value", ctx.Value(key{}))
			<-ctx.Done()
			took = time.Since(begun)
			return nil, ctx.Err()
		}))
		cancel() // ends nothing but AddTools
		d.die()
		for range 9 {
			begun := time.Now()
			assert.Equal(t, failed, call(t, h, "a", `{}`))
			assert.Equal(t, 3*time.Second, time.Since(begun))
		}
		assert.Equal(t, 1, attempts)
		<-time.After(3*time.Second + time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 30*time.Second, took)
	})
}

func TestContextOfConnectEndsWithTheSession(t *testing.T) {
	var d dying
	ended := make(chan struct{}, 9)
	h, _ := linked(t, d.connect(t, "first"), Reconnect(func(ctx context.Context) (*mcp.ClientSession, error) {
		context.AfterFunc(ctx, func() { ended <- struct{}{} })
		return d.connect(t, "second"), nil
	}))
	d.die()
	assert.Equal(t, "second", call(t, h, "a", `{}`))
	assert.Empty(t, ended, "the call has ended, the session has not")
	d.die()
	<-ended
}

func TestConnectThatReturnsNoSessionFails(t *testing.T) {
	for name, connect := range map[string]func() (*mcp.ClientSession, error){
		"nothing": func() (*mcp.ClientSession, error) { return nil, nil },
		"panic":   func() (*mcp.ClientSession, error) { panic("canary") },
		"error":   func() (*mcp.ClientSession, error) { return nil, exec.ErrNotFound },
	} {
		t.Run(name, func(t *testing.T) {
			var d dying
			h, log := linked(t, d.connect(t, "first"), Reconnect(func(context.Context) (*mcp.ClientSession, error) { return connect() }))
			d.die()
			assert.Equal(t, failed, call(t, h, "a", `{}`))
			assert.Contains(t, log.String(), "headsmcp: connect again: ")
			assert.NotContains(t, log.String(), "canary")
		})
	}
}

// The server may have done what it was asked before it died.
func TestCallInWhichTheConnectionBreaksIsNotRepeated(t *testing.T) {
	var d dying
	var calls atomic.Int32
	connect := func(context.Context) (*mcp.ClientSession, error) {
		server := &rawServer{}
		server.answer = func(json.RawMessage) string {
			if calls.Add(1) == 1 {
				server.close()
			}
			return textAnswer("answer")(nil)
		}
		return d.start(t, server), nil
	}
	session, err := connect(t.Context())
	require.NoError(t, err)
	h, _ := linked(t, session, Reconnect(connect))
	assert.Equal(t, failed, call(t, h, "a", `{}`))
	assert.EqualValues(t, 1, calls.Load())
	_ = session.Wait()
	assert.Equal(t, "answer", call(t, h, "a", `{}`))
	assert.EqualValues(t, 2, calls.Load())
}

// Over HTTP, a server that was started anew doesn't know the session.
func TestServerThatForgetsTheSessionIsConnectedAgain(t *testing.T) {
	var serving atomic.Pointer[http.Handler]
	start := func(answer string) {
		server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "a", Description: "A tool."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer}}}, nil, nil
		})
		var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
		serving.Store(&handler)
	}
	start("first")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*serving.Load()).ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	connect := func(ctx context.Context) (*mcp.ClientSession, error) {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err == nil {
			t.Cleanup(func() { _ = session.Close() })
		}
		return session, err
	}
	session, err := connect(t.Context())
	require.NoError(t, err)
	h, _ := linked(t, session, Reconnect(connect))
	assert.Equal(t, "first", call(t, h, "a", `{}`))
	start("second")
	web.CloseClientConnections()
	for call(t, h, "a", `{}`) != "second" { // the call that finds out fails
	}
}
