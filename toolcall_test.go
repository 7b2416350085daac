package heads_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	toolFailed     = "The tool failed; tell the user that this does not work right now and go on without it"
	toolUnreadable = "The call could not be read; call the tool again"
	toolBusy       = "The tool is busy; call it again in a moment"
)

// answering is a handler of one tool without parameters, with what it logs and tells its
// observer.
type answering struct {
	*heads.ToolHandler
	log   heads.SyncBuffer
	calls []heads.ToolCallInfo
}

func newAnswering(t testing.TB, f func(context.Context) (string, error), opts ...heads.ToolHandlerOption) *answering {
	t.Helper()
	a := &answering{}
	a.ToolHandler = newToolHandler(t, append(opts, loggedTo(&a.log), observed(&a.calls))...)
	require.NoError(t, heads.AddTool(a.ToolHandler, "answer", "Answers", func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) }))
	return a
}

// call returns the reply to a call of the tool.
func (a *answering) call(t testing.TB) string {
	t.Helper()
	return toolReply(t, postTool(a, "/answer", "{}"))
}

func answers(text string, err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, err }
}

func loggedTo(w io.Writer) heads.ToolHandlerOption {
	return heads.WithToolLogger(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

func TestToolArgumentsAreFoundWhereTheServicePutsThem(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       weatherArguments
	}{
		{"flat", heads.ReadFile(t, "tools/call_flat.json"), weatherArguments{"Oslo", 3}},
		{"under parameters", heads.ReadFile(t, "tools/call_parameters.json"), weatherArguments{"Oslo", 3}},
		{"under arguments", heads.ReadFile(t, "tools/call_arguments.json"), weatherArguments{"Oslo", 3}},
		{"flat wins", `{"city":"Oslo","parameters":{"city":"Rome","days":9}}`, weatherArguments{"Oslo", 0}},
		{"parameters win over arguments", `{"arguments":{"city":"Rome"},"parameters":{"city":"Oslo"}}`, weatherArguments{"Oslo", 0}},
		{"parameters of something else", `{"parameters":{"unit":"C"},"arguments":{"city":"Oslo"}}`, weatherArguments{"Oslo", 0}},
		{"unknown keys", `{"city":"Oslo","unit":"C","more":{"a":[1]}}`, weatherArguments{"Oslo", 0}},
		{"given twice", `{"city":"Rome","city":"Oslo"}`, weatherArguments{"Oslo", 0}},
		{"spaces everywhere", " \n{ \"city\" :\t\"Oslo\" , \"days\" : 2 } \n", weatherArguments{"Oslo", 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newToolHandler(t)
			got := addWeather(t, h)
			assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", row.body)))
			assert.Equal(t, row.want, *got)
		})
	}
}

func TestFlatNullKeepsNestedArgumentsOut(t *testing.T) {
	h := newToolHandler(t)
	addWeather(t, h)
	reply := toolReply(t, postTool(h, "/get_weather", `{"city":null,"parameters":{"city":"Rome"}}`))
	assert.Equal(t, "city is missing; ask the user for it", reply)
}

func TestParameterMayBeNamedParameters(t *testing.T) {
	h := newToolHandler(t)
	got := addTool[struct {
		Parameters map[string]string `json:"parameters" jsonschema:"Settings by name"`
	}](t, h, "configure")
	assert.Equal(t, "done", toolReply(t, postTool(h, "/configure", `{"parameters":{"parameters":"x"}}`)))
	assert.Equal(t, map[string]string{"parameters": "x"}, got.Parameters)
}

func TestBodiesThatCannotBeRead(t *testing.T) {
	var log heads.SyncBuffer
	h := newToolHandler(t, loggedTo(&log))
	got := addWeather(t, h)
	for name, body := range map[string]string{
		"empty": "", "spaces": "  \n", "cut off": `{"city":"Os`, "not JSON": "city=Oslo", "null": "null", "list": `[{"city":"Oslo"}]`, "text": `"Oslo"`, "number": "5",
		"two documents": `{"city":"Oslo"}{"city":"Rome"}`, "something after": `{"city":"Oslo"}]`, "comma at the end": `{"city":"Oslo",}`,
		"single quotes": `{'city':'Oslo'}`, "byte order mark": "\ufeff" + `{"city":"Oslo"}`,
		"too deep": `{"city":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, toolUnreadable, toolReply(t, postTool(h, "/get_weather", body)))
			assert.Zero(t, *got, "the function is not called")
		})
	}
	assert.NotContains(t, log.String(), "Oslo", "no log shows a body")
}

func TestToolAnswersWithoutABody(t *testing.T) {
	h := newToolHandler(t)
	addWeather(t, h)
	r := heads.Must(http.NewRequest(http.MethodPost, "https://tools.example.com/get_weather", nil))(t)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	assert.Equal(t, toolUnreadable, toolReply(t, rec))
}

func TestBodyThatBreaksOffIsAnUnreadableCall(t *testing.T) {
	h := newToolHandler(t)
	got := addWeather(t, h)
	rec := httptest.NewRecorder()
	// The body breaks off after a complete document.
	body := io.MultiReader(strings.NewReader(`{"city":"Oslo"}`), iotest.ErrReader(io.ErrUnexpectedEOF))
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/get_weather", body))
	assert.Equal(t, toolUnreadable, toolReply(t, rec))
	assert.Equal(t, "close", rec.Header().Get("Connection"))
	assert.Zero(t, *got)
}

// A recorder has no deadlines, as behind some middleware.
func TestBodyThatStallsIsAnUnreadableCallWithoutDeadlinesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t)
		got := addWeather(t, h)
		stalled, end := io.Pipe()
		rec := httptest.NewRecorder()
		begun := time.Now()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/get_weather", stalled))
		assert.Equal(t, 5*time.Second, time.Since(begun))
		assert.Equal(t, toolUnreadable, toolReply(t, rec))
		assert.Equal(t, "close", rec.Header().Get("Connection"))
		assert.Zero(t, *got)
		require.NoError(t, end.Close()) // as the server does with the connection
	})
}

func TestModelIsToldOnlyWhatIsMeantForIt(t *testing.T) {
	told := "no such order; ask for the number again"
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"value", heads.ToolError{Message: told}, told},
		{"pointer", &heads.ToolError{Message: told}, told},
		{"wrapped value", fmt.Errorf("query 7: %w", heads.ToolError{Message: told}), told},
		{"wrapped pointer", fmt.Errorf("query 7: %w", &heads.ToolError{Message: told}), told},
		{"joined", errors.Join(errors.New("dial db:5432"), heads.ToolError{Message: told}), told},
		{"plain", errors.New("dial db:5432: password hunter2"), toolFailed},
		{"deadline", context.DeadlineExceeded, toolFailed},
		{"no text", heads.ToolError{}, toolFailed},
		{"blank text", &heads.ToolError{Message: " \n"}, toolFailed},
		{"nil pointer", (*heads.ToolError)(nil), toolFailed},
		{"wrapped nil pointer", fmt.Errorf("query 7: %w", (*heads.ToolError)(nil)), toolFailed},
		{"error that panics", panickingError{}, toolFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			assert.Equal(t, row.want, newAnswering(t, answers("ignored beside an error", row.err)).call(t))
		})
	}
}

type panickingError struct{}

func (panickingError) Error() string   { panic("in Error") }
func (panickingError) As(any) bool     { panic("in As") }
func (panickingError) Is(_ error) bool { return false }

func TestLogNamesUnusableArgumentsWithoutTheirValues(t *testing.T) {
	var log heads.SyncBuffer
	h := newToolHandler(t, loggedTo(&log))
	addTool[struct {
		Count  int            `json:"count" jsonschema:"How many"`
		Prices map[string]int `json:"prices" jsonschema:"Price by name"`
		Sizes  []int          `json:"sizes" jsonschema:"Sizes"`
	}](t, h, "order")
	reply := toolReply(t, postTool(h, "/order", `{"count":"private-1","prices":{"private-2":"private-3"},"sizes":["private-4"]}`))
	assert.Contains(t, reply, "private-1", "the model sees its own words")
	assert.Contains(t, log.String(), `parameters="[count prices sizes]"`)
	assert.NotContains(t, log.String(), "private")
}

func TestRepliesAreShortAndOneLine(t *testing.T) {
	long := strings.Repeat("x", 3999)
	for _, row := range []struct {
		name, text, want string
		limit            int // 4000 if 0
	}{
		{"plain", "5 degrees", "5 degrees", 0},
		{"empty", "", "", 0},
		{"newline", "one\ntwo", "one two", 0},
		{"windows newline", "one\r\ntwo", "one two", 0},
		{"many newlines", "\n\none \n\n  two\n", "one two", 0},
		{"tab and other controls", "one\ttwo\x00three\x1b[31m\u0085four\v\f", "one two three [31m four", 0},
		{"unicode separators", "one\u2028two\u2029three", "one two three", 0},
		{"spaces inside stay", "one  two", "one  two", 0},
		{"spaces around", "  one  ", "one", 0},
		{"invalid UTF-8", "caf\xe9 \xff\xfe!", "caf\ufffd \ufffd!", 0},
		{"quotes and markup", `"a" <b> & \c`, `"a" <b> & \c`, 0},
		{"other scripts", "Zażółć 東京 🌦️", "Zażółć 東京 🌦️", 0},
		{"as long as allowed", long + "y", long + "y", 0},
		{"longer", long + "yy", long + "…", 0},
		{"fits", "12345", "12345", 5},
		{"one too many", "123456", "1234…", 5},
		{"fits in characters", "ééééé", "ééééé", 5},
		{"characters, not bytes", "éééééé", "éééé…", 5},
		{"no space before the cut", "123 56", "123…", 5},
		{"one character", "12", "…", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var opts []heads.ToolHandlerOption
			if row.limit > 0 {
				opts = append(opts, heads.WithToolReplyLimit(row.limit))
			}
			rec := postTool(newAnswering(t, answers(row.text, nil), opts...), "/answer", "{}")
			assert.Equal(t, row.want, toolReply(t, rec))
			assert.True(t, utf8.Valid(rec.Body.Bytes()))
			assert.NotContains(t, rec.Body.String(), "\n")
			told := newAnswering(t, answers("", heads.ToolError{Message: "x" + row.text}), opts...).call(t)
			assert.NotContains(t, told, "\n", "of errors too")
		})
	}
}

func TestFunctionThatIgnoresItsContextDoesNotHangTheReply(t *testing.T) {
	late := func(context.Context) (string, error) {
		<-time.After(time.Hour)
		return "late", nil
	}
	panics := func(context.Context) (string, error) {
		<-time.After(time.Hour)
		panic("too late to matter")
	}
	for _, row := range []struct {
		name string
		f    func(context.Context) (string, error)
		opts []heads.ToolHandlerOption
		want time.Duration
		log  string
	}{
		{"default", late, nil, 10 * time.Second, "took=1h0m0s"},
		{"set", late, []heads.ToolHandlerOption{heads.WithToolTimeout(3 * time.Second)}, 3 * time.Second, "took=1h0m0s"},
		{"panics", panics, nil, 10 * time.Second, "too late to matter"},
	} {
		heads.Bubble(t, row.name, func(t *testing.T) {
			h := newAnswering(t, row.f, row.opts...)
			started := time.Now()
			assert.Equal(t, toolFailed, h.call(t))
			assert.Equal(t, row.want, time.Since(started))
			assert.Contains(t, h.log.String(), `msg="tool call ended before its tool"`)
			assert.Contains(t, h.log.String(), "deadline exceeded")

			assert.NotContains(t, h.log.String(), "returned after")
			<-time.After(2 * time.Hour)
			synctest.Wait()
			assert.Contains(t, h.log.String(), `msg="tool returned after its call had ended"`)
			assert.Contains(t, h.log.String(), row.log)
			assert.Len(t, h.calls, 1, "it is not observed again")
		})
	}
}

func TestCallerThatLeavesEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended error
		h := newAnswering(t, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			ended = ctx.Err()
			return "", ctx.Err()
		})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		started := time.Now()
		r := httptest.NewRequest(http.MethodPost, "/answer", strings.NewReader("{}"))
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		synctest.Wait()
		assert.Equal(t, time.Second, time.Since(started))
		assert.Error(t, ended)
	})
}

// pipeListener accepts connections in memory, which work in a synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l pipeListener) Close() error   { close(l.closed); return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// overPipe serves h on one connection and returns the other end of it.
func overPipe(t *testing.T, h http.Handler) net.Conn {
	listener := pipeListener{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: h}
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()
	client, served := net.Pipe()
	listener.conns <- served
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		assert.ErrorIs(t, <-ended, http.ErrServerClosed)
		<-time.After(time.Second) // of the bubble: a connection may linger before it is closed
	})
	return client
}

func TestBodyMustArriveInTime(t *testing.T) {
	for _, row := range []struct {
		name string
		opts []heads.ToolHandlerOption
		code int
	}{
		{"in the handler", nil, http.StatusOK},
		{"in the check", []heads.ToolHandlerOption{heads.WithToolAuth(func(r *http.Request) error {
			return heads.ErrorOf(io.ReadAll(r.Body))
		})}, http.StatusUnauthorized},
	} {
		heads.Bubble(t, row.name, func(t *testing.T) {
			h := newToolHandler(t, row.opts...)
			addWeather(t, h)
			started := time.Now()
			response := heads.SendRaw(t, overPipe(t, h), "POST /get_weather HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n{\"city\":")
			assert.Equal(t, row.code, response.StatusCode)
			assert.Equal(t, 5*time.Second, time.Since(started))
			if row.code == http.StatusOK {
				body := heads.Must(io.ReadAll(response.Body))(t)
				assert.JSONEq(t, `{"message":"`+toolUnreadable+`"}`, string(body))
				assert.True(t, response.Close)
			}
		})
	}
}

// TestBodyMustArriveInTimeWhateverTheAnswer sends the head of a request and
// nothing of its body.
func TestBodyMustArriveInTimeWhateverTheAnswer(t *testing.T) {
	refuse := heads.WithToolAuth(func(*http.Request) error { return errors.New("no") })
	for _, row := range []struct {
		name, method, path string
		code               int
		opts               []heads.ToolHandlerOption
		shutDown           bool
	}{
		{name: "wrong method", method: http.MethodPut, path: "/" + toolToken + "/get_weather", code: http.StatusMethodNotAllowed},
		{name: "unknown tool", method: http.MethodPost, path: "/" + toolToken + "/no_such_tool", code: http.StatusNotFound},
		{name: "wrong path token", method: http.MethodPost, path: "/wrong/get_weather", code: http.StatusNotFound},
		{name: "refused", method: http.MethodPost, path: "/" + toolToken + "/get_weather", code: http.StatusUnauthorized,
			opts: []heads.ToolHandlerOption{refuse}},
		{name: "after Shutdown", method: http.MethodPost, path: "/" + toolToken + "/get_weather", code: http.StatusOK, shutDown: true},
	} {
		heads.Bubble(t, row.name, func(t *testing.T) {
			h := newToolHandler(t, append(row.opts, heads.WithPathToken(toolToken))...)
			addWeather(t, h)
			if row.shutDown {
				require.NoError(t, h.Shutdown(t.Context()))
			}
			started := time.Now()
			conn := overPipe(t, h)
			response := heads.SendRaw(t, conn, row.method+" "+row.path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n")
			heads.Must(io.Copy(io.Discard, response.Body))(t)
			assert.Equal(t, row.code, response.StatusCode)
			assert.ErrorIs(t, heads.ErrorOf(conn.Read(make([]byte, 1))), io.EOF, "the server closes the connection")
			assert.InDelta(t, 5, time.Since(started).Seconds(), 0.6, "net/http may linger for half a second")
		})
	}
}

func TestTimeForTheBodyDoesNotEndTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAnswering(t, func(ctx context.Context) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(8 * time.Second):
				return "slow but sure", nil
			}
		})
		response := heads.SendRaw(t, overPipe(t, h), "POST /answer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
		body := heads.Must(io.ReadAll(response.Body))(t)
		assert.JSONEq(t, `{"message":"slow but sure"}`, string(body))
	})
}

func TestSlowCheckLeavesTimeForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t, heads.WithToolAuth(func(*http.Request) error { <-time.After(6 * time.Second); return nil }))
		got := addWeather(t, h)
		conn := overPipe(t, h)
		time.AfterFunc(7*time.Second, func() { _, _ = io.WriteString(conn, `{"city":"Oslo"}`) })
		response := heads.SendRaw(t, conn, "POST /get_weather HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n")
		assert.Equal(t, http.StatusOK, response.StatusCode)
		heads.Must(io.Copy(io.Discard, response.Body))(t)
		assert.Equal(t, "Oslo", got.City)
	})
}

func TestRawArgumentsDoNotShareTheirCapacity(t *testing.T) {
	type raw struct {
		A json.RawMessage `json:"a" jsonschema:"A"`
		B json.RawMessage `json:"b" jsonschema:"B"`
	}
	got, reply := callWith[raw](t, `{"a":1,"b":2}`)
	require.Equal(t, "done", reply)
	_ = append(got.A, `,"b":9}`...)
	assert.Equal(t, "2", string(got.B))
}

// sessionOf returns the session that a tool called with body sees.
func sessionOf(t *testing.T, body string) (session heads.SessionMetadata, ok bool) {
	t.Helper()
	h := newAnswering(t, func(ctx context.Context) (string, error) {
		session, ok = heads.SessionFromContext(ctx)
		return "done", nil
	})
	require.Equal(t, "done", toolReply(t, postTool(h, "/answer", body)))
	return session, ok
}

func TestSessionIsTypedWhereItIsKnown(t *testing.T) {
	body := heads.ReadFile(t, "tools/call_flat.json")
	session, ok := sessionOf(t, body)
	require.True(t, ok)
	assert.Equal(t, "5c0f1f6e-6f53-4a35-9d0c-3a8f2f1f7a10", session.SessionID)
	assert.Equal(t, "user-77", session.UserID)
	assert.Equal(t, "grace", session.Username)
	assert.Equal(t, "2a9c6d0e-44cf-4f0a-8f58-0f4d0b1f2c3d", session.HeadID)
	assert.Equal(t, "9f1c2b3a-1d2e-4f5a-8b7c-6d5e4f3a2b1c", session.OrgID)
	assert.Equal(t, "li-28379", session.PublicHeadID)
	assert.Equal(t, "MyOrg-1234", session.PublicOrgID)
	assert.Equal(t, time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC), session.Timestamp.Time)
	assert.Equal(t, "2026-08-31 06:56:30", session.Timestamp.Text)

	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &members))
	assert.Equal(t, string(members["session_metadata"]), string(session.Raw.Bytes()), "the rest is there as it was sent")
}

// Names are exact, and what is given twice is taken for neither.
func TestSessionWithConfusedNames(t *testing.T) {
	session, ok := sessionOf(t, `{"session_metadata":{"SESSION_ID":"a","session_id":"b","User_Id":"c","head_id":"d","head\u005fid":"e",`+
		`"timestamp":"x","timestamp":"y"}}`)
	require.True(t, ok)
	assert.Equal(t, "b", session.SessionID)
	assert.Empty(t, session.UserID)
	assert.Empty(t, session.HeadID)
	assert.Empty(t, session.Timestamp.Text)
}

func TestSessionInAnyShapeIsNoReasonToFail(t *testing.T) {
	for _, row := range []struct {
		body, sessionID string
		ok              bool
	}{
		{`{}`, "", false},
		{`{"session_metadata":null}`, "", false},
		{`{"SESSION_METADATA":{"session_id":"a"}}`, "", false},
		{`{"session_metadata":{"session_id":"a"},"session_metadata":{"session_id":"b"}}`, "", false},
		{`{"session_metadata":{"session_id":"a","session_id":"b"}}`, "", true},
		{`{"session_metadata":"s-1"}`, "", true},
		{`{"session_metadata":["s-1"]}`, "", true},
		{`{"session_metadata":{}}`, "", true},
		{`{"session_metadata":{"session_id":null}}`, "", true},
		{`{"session_metadata":{"session_id":17}}`, "17", true},
		{`{"session_metadata":{"session_id":{"id":1}}}`, "", true},
		{`{"session_metadata":{"session_id":"s-1","timestamp":1756623390}}`, "s-1", true},
		{`{"session_metadata":{"session_id":"s-1","timestamp":{}}}`, "s-1", true},
		{`{"parameters":{"city":"Oslo"},"session_metadata":{"session_id":"s-2"}}`, "s-2", true},
	} {
		t.Run(row.body, func(t *testing.T) {
			session, ok := sessionOf(t, row.body)
			assert.Equal(t, row.ok, ok)
			assert.Equal(t, row.sessionID, session.SessionID)
			assert.Zero(t, session.Timestamp.Time)
			if _, raw, _ := strings.Cut(row.body, `"session_metadata":`); row.ok {
				assert.Equal(t, strings.TrimSuffix(raw, "}"), string(session.Raw.Bytes()))
			}
		})
	}
	_, ok := heads.SessionFromContext(t.Context())
	assert.False(t, ok)
}

func TestFunctionsThatIgnoreTheirContextAreBounded(t *testing.T) {
	for _, row := range []struct {
		name  string
		opts  []heads.ToolHandlerOption
		limit int
	}{
		{"default", nil, 64},
		{"set", []heads.ToolHandlerOption{heads.WithToolConcurrency(2)}, 2},
	} {
		heads.Bubble(t, row.name, func(t *testing.T) {
			free, functions := make(chan struct{}), atomic.Int32{}
			h := newAnswering(t, func(context.Context) (string, error) {
				functions.Add(1)
				<-free
				return "done", nil
			}, row.opts...)
			for range row.limit {
				assert.Equal(t, toolFailed, h.call(t))
			}
			started := time.Now()
			for range 10 {
				assert.Equal(t, toolBusy, h.call(t))
			}
			assert.Zero(t, time.Since(started), "a busy handler answers at once")
			assert.EqualValues(t, row.limit, functions.Load())
			assert.Contains(t, h.log.String(), "too many functions are running")
			assert.Equal(t, heads.ToolTimedOut, h.calls[row.limit-1].Outcome)
			assert.Equal(t, heads.ToolBusy, h.calls[row.limit].Outcome)
			assert.ErrorContains(t, h.calls[row.limit].Err, "too many functions are running")

			close(free)
			synctest.Wait()
			assert.Equal(t, "done", h.call(t), "a function that returned makes room")
		})
	}
}

func TestShutdownWaitsForCallsUnderWay(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Second: "done", time.Hour: toolFailed} {
		heads.Bubble(t, after.String(), func(t *testing.T) {
			started, finished := time.Now(), false
			h := newAnswering(t, func(context.Context) (string, error) {
				<-time.After(after)
				finished = true
				return "done", nil
			})
			replied := make(chan *httptest.ResponseRecorder, 1)
			go func() { replied <- postTool(h, "/answer", "{}") }()
			synctest.Wait()
			require.NoError(t, h.Shutdown(t.Context()))
			assert.True(t, finished)
			assert.Equal(t, after, time.Since(started))
			assert.Equal(t, want, toolReply(t, <-replied))
		})
	}
}

func TestToolLogIsSilentByDefault(t *testing.T) {
	var log heads.SyncBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	h := newToolHandler(t)
	require.NoError(t, heads.AddTool(h, "loud", "Loud", func(context.Context, struct{}) (string, error) { panic("loud") }))
	assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/loud", "{}")))
	assert.Empty(t, log.String())
}

func TestAfterShutdownNoFunctionIsCalled(t *testing.T) {
	var log heads.SyncBuffer
	checked := false
	h := newToolHandler(t, loggedTo(&log), heads.WithToolAuth(func(*http.Request) error { checked = true; return nil }))
	got := addWeather(t, h)
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Equal(t, toolBusy, toolReply(t, postTool(h, "/get_weather", `{"city":"Oslo"}`)))
	assert.Zero(t, *got)
	assert.False(t, checked)
	assert.Contains(t, log.String(), "shut down")
	assert.Equal(t, http.StatusNotFound, postTool(h, "/no_such_tool", `{}`).Code)
}

// observed returns an option whose observer keeps its arguments.
func observed(calls *[]heads.ToolCallInfo) heads.ToolHandlerOption {
	return heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: func(_ context.Context, info heads.ToolCallInfo) { *calls = append(*calls, info) }})
}

func TestEveryOutcomeIsLoggedAndObserved(t *testing.T) {
	broken := errors.New("dial db:5432")
	refuse := []heads.ToolHandlerOption{heads.WithToolAuth(func(*http.Request) error { return broken })}
	exits := func(context.Context) (string, error) { runtime.Goexit(); return "", nil }
	for _, row := range []struct {
		name, body string
		f          func(context.Context) (string, error)
		opts       []heads.ToolHandlerOption
		shutDown   bool
		outcome    heads.ToolOutcome
		err        string
		log        []string
	}{
		{name: "text", f: answers("done", nil), outcome: heads.ToolAnswered},
		{name: "ToolError", f: answers("", fmt.Errorf("wrapped: %w", heads.ToolError{Message: "ask"})), outcome: heads.ToolTold},
		{name: "error", f: answers("", broken), outcome: heads.ToolFailed, err: "dial db:5432",
			log: []string{`msg="tool failed"`, "tool=answer", `error="dial db:5432"`}},
		{name: "nil pointer", f: answers("", (*heads.ToolError)(nil)), outcome: heads.ToolFailed, err: "nil",
			log: []string{`msg="tool failed"`, "tool=answer"}},
		{name: "panic", f: func(context.Context) (string, error) { panic("index out of luck") }, outcome: heads.ToolPanicked, err: "out of luck",
			log: []string{`msg="tool panicked"`, "tool=answer", "index out of luck", "toolcall_test.go"}},
		{name: "ended goroutine", f: exits, outcome: heads.ToolPanicked, err: "ended its goroutine",
			log: []string{`msg="tool panicked"`, "tool=answer"}},
		{name: "time-out", f: func(context.Context) (string, error) { <-time.After(time.Minute); return "late", nil },
			outcome: heads.ToolTimedOut, err: "deadline exceeded"},
		{name: "error at the deadline", f: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			outcome: heads.ToolTimedOut, err: "deadline exceeded"},
		{name: "unreadable", body: "{", outcome: heads.ToolUnreadable, err: "not a JSON object", log: []string{"could not be read"}},
		{name: "too large", body: strings.Repeat(" ", 65<<10), outcome: heads.ToolUnreadable, err: "too large", log: []string{"is too large"}},
		{name: "unauthorized", opts: refuse, outcome: heads.ToolUnauthorized, err: "dial db:5432", log: []string{`msg="tool call refused"`}},
		{name: "shut down", shutDown: true, outcome: heads.ToolBusy, err: "shut down", log: []string{`msg="tool call refused"`}},
	} {
		heads.Bubble(t, row.name, func(t *testing.T) {
			h := newAnswering(t, row.f, append(row.opts, heads.WithToolConcurrency(1))...)
			if row.shutDown {
				require.NoError(t, h.Shutdown(t.Context()))
			}
			want := heads.ToolCallInfo{Tool: "answer", Outcome: row.outcome}
			if row.outcome == heads.ToolTimedOut {
				want.Duration = 10 * time.Second
			}
			body := row.body
			if body == "" {
				body = `{"session_metadata":{"session_id":"s-1"}}`
				if !row.shutDown && row.opts == nil {
					want.SessionID = "s-1"
				}
			}
			for call := range 2 { // what has ended makes room
				postTool(h, "/answer", body)
				require.Len(t, h.calls, call+1)
				info := h.calls[call]
				if row.err == "" {
					assert.NoError(t, info.Err)
				} else if row.err != "nil" {
					assert.ErrorContains(t, info.Err, row.err)
				}
				want.Err = info.Err
				assert.Equal(t, want, info)
				<-time.After(time.Hour)
			}
			for _, text := range row.log {
				assert.Contains(t, h.log.String(), text)
			}
		})
	}
}

func TestToolObserverSeesNoArgumentsAndReplies(t *testing.T) {
	var calls []heads.ToolCallInfo
	h := newToolHandler(t, observed(&calls))
	require.NoError(t, heads.AddTool(h, "echo", "Echoes", func(_ context.Context, in weatherArguments) (string, error) {
		if in.Days == 1 {
			return "", heads.ToolError{Message: in.City}
		}
		return in.City, nil
	}))
	for _, body := range []string{`{"city":"private"}`, `{"city":"private","days":1}`, `{"city":"private","days":"private"}`, `{"city":private`} {
		postTool(h, "/echo", body)
	}
	require.Len(t, calls, 4)
	assert.Equal(t, []heads.ToolOutcome{"answered", "told", "arguments", "unreadable"},
		[]heads.ToolOutcome{calls[0].Outcome, calls[1].Outcome, calls[2].Outcome, calls[3].Outcome})
	assert.ErrorContains(t, calls[2].Err, "days")
	for _, info := range calls {
		assert.NotContains(t, fmt.Sprintf("%+v %v", info, info.Err), "private")
	}
}
