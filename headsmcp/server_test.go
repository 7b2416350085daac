package headsmcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// rawServer is an MCP server made of the bytes of the protocol, so that it can
// do what a library would refuse.
type rawServer struct {
	pages   []string                                    // each the value of tools and what follows it
	answer  func(params json.RawMessage) (reply string) // the member result or error of an answer to tools/call; "" for none
	handled func(method string, params json.RawMessage) // told of every message
	send    func(line string)                           // set by connect
	close   func()                                      // set by connect
	session *mcp.ClientSession                          // set by connect
	client  *mcp.ClientOptions
}

// toolsOf is a page of tools with these input schemas. Their output schema is a lie, and makes no
// difference.
func toolsOf(schemas ...string) string {
	var tools []string
	for i, s := range schemas {
		tools = append(tools, `{"name":"tool`+strings.Repeat("x", i)+`","description":"A tool.","inputSchema":`+s+`,"outputSchema":{"type":"object","required":["lie"]}}`)
	}
	return "[" + strings.Join(tools, ",") + "]"
}

// connect serves until the test ends.
func (s *rawServer) connect(t testing.TB) *mcp.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	var writing sync.Mutex
	s.send = func(line string) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = io.WriteString(toClient, line+"\n")
	}
	s.close = func() {
		_ = toClient.Close()
		_ = fromClient.Close()
	}
	go s.serve(fromClient)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, s.client)
	var err error
	s.session, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.close()
		_ = s.session.Close()
	})
	return s.session
}

func (s *rawServer) serve(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		if s.handled != nil {
			s.handled(m.Method, m.Params)
		}
		if m.ID == nil {
			continue
		}
		if reply := s.replyTo(m.Method, m.Params); reply != "" {
			go s.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + reply + `}`)
		}
	}
}

func (s *rawServer) replyTo(method string, params json.RawMessage) string {
	switch method {
	case "initialize":
		return `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`
	case "ping":
		return `"result":{}`
	case "tools/list":
		var p struct{ Cursor string }
		_ = json.Unmarshal(params, &p)
		at := min(len(p.Cursor), len(s.pages)-1)
		page := s.pages[at]
		if strings.HasPrefix(page, "{") { // an error
			return `"error":` + page
		}
		if at+1 < len(s.pages) {
			page += `,"nextCursor":"` + strings.Repeat("x", at+1) + `"`
		}
		return `"result":{"tools":` + page + `}`
	case "tools/call":
		if s.answer == nil {
			return textAnswer("done")(nil)
		}
		return s.answer(params)
	default:
		return `"error":{"code":-32601,"message":"unknown method"}`
	}
}

// textAnswer answers every call with a text.
func textAnswer(text string) func(json.RawMessage) string {
	return func(json.RawMessage) string { return `"result":{"content":[{"type":"text","text":"` + text + `"}]}` }
}

// received keeps the arguments of calls.
func (s *rawServer) received() *[]string {
	var all []string
	s.answer = func(params json.RawMessage) string {
		var p struct{ Arguments json.RawMessage }
		_ = json.Unmarshal(params, &p)
		all = append(all, string(p.Arguments))
		return textAnswer("done")(nil)
	}
	return &all
}

func newHandler(t testing.TB, opts ...heads.ToolHandlerOption) *heads.ToolHandler {
	t.Helper()
	h, err := heads.NewToolHandler("https://tools.example.com", opts...)
	require.NoError(t, err)
	return h
}

func addTools(ctx context.Context, t testing.TB, h *heads.ToolHandler, session *mcp.ClientSession, opts ...Option) {
	t.Helper()
	_, err := AddTools(ctx, h, session, opts...)
	require.NoError(t, err)
}

// tryAdd adds the tools of a server with these pages.
func tryAdd(t testing.TB, h *heads.ToolHandler, pages []string, opts ...Option) ([]string, error) {
	t.Helper()
	s := rawServer{pages: pages}
	return AddTools(t.Context(), h, s.connect(t), opts...)
}

// offered returns a handler with the tools of a page.
func offered(t testing.TB, page string) *heads.ToolHandler {
	t.Helper()
	s, h := rawServer{pages: []string{page}}, newHandler(t)
	addTools(t.Context(), t, h, s.connect(t))
	return h
}

func logTo(w io.Writer) heads.ToolHandlerOption {
	return heads.WithToolLogger(slog.New(slog.NewTextHandler(w, nil)))
}

// call returns the message of the reply to a call as the service sends it.
func call(t testing.TB, h *heads.ToolHandler, name, body string) string {
	t.Helper()
	return callContext(t.Context(), t, h, name, body)
}

func callContext(ctx context.Context, t testing.TB, h *heads.ToolHandler, name, body string) string {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/"+name, strings.NewReader(body)).WithContext(ctx))
	require.Equal(t, http.StatusOK, rec.Code)
	var reply struct{ Message string }
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &reply))
	return reply.Message
}
