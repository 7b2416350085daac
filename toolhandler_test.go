package heads_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const toolToken = "6ab1d4e77c0f4b0e9d2f"

type weatherArguments struct {
	City string `json:"city" jsonschema:"City to report on"`
	Days int    `json:"days,omitempty" jsonschema:"Days ahead, 0 for today"`
}

func newToolHandler(t testing.TB, opts ...heads.ToolHandlerOption) *heads.ToolHandler {
	t.Helper()
	h := heads.Must(heads.NewToolHandler("https://tools.example.com/heads", opts...))(t)
	return h
}

// addTool adds a tool that keeps the arguments of its last call.
func addTool[In any](t testing.TB, h *heads.ToolHandler, name string) *In {
	t.Helper()
	var got In
	require.NoError(t, heads.AddTool(h, name, "A tool", func(_ context.Context, in In) (string, error) {
		got = in
		return "done", nil
	}))
	return &got
}

func addWeather(t testing.TB, h *heads.ToolHandler) *weatherArguments {
	t.Helper()
	return addTool[weatherArguments](t, h, "get_weather")
}

func postTool(h http.Handler, path, body string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return rec
}

// toolReply returns the message of a reply, which must have the documented form.
func toolReply(t testing.TB, rec *httptest.ResponseRecorder) string {
	t.Helper()
	require.Equal(t, http.StatusOK, rec.Code)
	require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
	var members map[string]any
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &members))
	require.Len(t, members, 1)
	message, ok := members["message"].(string)
	require.True(t, ok, "message is a string")
	require.NotContains(t, message, "\n")
	return message
}

// requireInvalid returns the texts of the InvalidErrors in err, in order. All
// must be of the operation.
func requireInvalid(t testing.TB, err error, operation string) []string {
	t.Helper()
	var faults []string
	for _, invalid := range heads.InvalidErrors(t, err) {
		assert.Equal(t, operation, invalid.Operation)
		faults = append(faults, invalid.Error())
	}
	return faults
}

func TestNewToolHandlerRefusesInvalidBaseURLs(t *testing.T) {
	for _, row := range []struct{ name, url, reason string }{
		{"unreadable", "https://user:hunter2secret@a b/", "not an absolute URL"},
		{"plain http", "http://tools.example.com", "plain http to tools.example.com"},
		{"password", "https://user:hunter2secret@tools.example.com", "user name or a password"},
		{"query", "https://tools.example.com/?key=hunter2secret", "query or a fragment"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, err := heads.NewToolHandler(row.url)
			assert.Nil(t, h)
			faults := requireInvalid(t, err, "NewToolHandler")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], "base URL ")
			assert.Contains(t, faults[0], row.reason)
			assert.NotContains(t, faults[0], "hunter2secret")
		})
	}
}

func TestToolHandlerOptionsRefuseInvalidValues(t *testing.T) {
	for _, row := range []struct {
		name, reason string
		opt          heads.ToolHandlerOption
	}{
		{"no option", "option is nil", nil},
		{"empty path token", "path token is empty", heads.WithPathToken("")},
		{"path token with a slash", "path token holds a character", heads.WithPathToken("hunter2/secret")},
		{"path token with a space", "path token holds a character", heads.WithPathToken("hunter2 secret")},
		{"path token with a percent sign", "path token holds a character", heads.WithPathToken("hunter2%20secret")},
		{"path token of a dot", "path token is dots alone", heads.WithPathToken(".")},
		{"path token of 15 characters", "has 15 characters; give 16 or more", heads.WithPathToken("hunter2-secret1")},
		{"path token of dots", "path token is dots alone", heads.WithPathToken("..")},
		{"no logger", "tool logger is nil", heads.WithToolLogger(nil)},
		{"no check", "tool auth is nil", heads.WithToolAuth(nil)},
		{"no time", "tool timeout is 0s", heads.WithToolTimeout(0)},
		{"less than no time", "tool timeout is -1s", heads.WithToolTimeout(-1e9)},
		{"no concurrency", "is 0; give a number above 0", heads.WithToolConcurrency(0)},
		{"no location", "is nil; give a location", heads.WithToolLocation(nil)},
		{"no observer", "has neither Start nor End", heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{})},
		{"no reply", "tool reply limit is 0", heads.WithToolReplyLimit(0)},
	} {
		t.Run(row.name, func(t *testing.T) {
			faults := requireInvalid(t, heads.ErrorOf(heads.NewToolHandler("https://tools.example.com", row.opt)), "NewToolHandler")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], row.reason)
			assert.NotContains(t, faults[0], "hunter2")
		})
	}
}

func TestPathTokenTakesUnreservedCharactersOnly(t *testing.T) {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	for c := range rune(0x180) {
		_, err := heads.NewToolHandler("https://tools.example.com", heads.WithPathToken("hunter2-secret1"+string(c)))
		assert.Equal(t, strings.ContainsRune(unreserved, c), err == nil, "%q", c)
	}
}

func TestNewToolHandlerReturnsAllFaultsAtOnce(t *testing.T) {
	_, err := heads.NewToolHandler("http://tools.example.com/?a", heads.WithPathToken(""), heads.WithToolTimeout(0))
	assert.Len(t, requireInvalid(t, err, "NewToolHandler"), 4)
}

func TestToolURLsAreUnderTheBaseURL(t *testing.T) {
	for _, row := range []struct {
		name, base, want string
		opts             []heads.ToolHandlerOption
	}{
		{name: "host", base: "https://tools.example.com", want: "https://tools.example.com/get_weather"},
		{name: "slash", base: "https://tools.example.com/", want: "https://tools.example.com/get_weather"},
		{name: "port", base: "https://tools.example.com:8443", want: "https://tools.example.com:8443/get_weather"},
		{name: "prefix", base: "https://tools.example.com/a/b/", want: "https://tools.example.com/a/b/get_weather"},
		{name: "escaped prefix", base: "https://tools.example.com/a%2Fb", want: "https://tools.example.com/a%2Fb/get_weather"},
		{name: "loopback name", base: "http://localhost:8080", want: "http://localhost:8080/get_weather"},
		{name: "loopback address", base: "http://127.0.0.1:8080", want: "http://127.0.0.1:8080/get_weather"},
		{name: "loopback v6", base: "http://[::1]:8080", want: "http://[::1]:8080/get_weather"},
		{name: "path token", base: "https://tools.example.com/a", want: "https://tools.example.com/a/" + toolToken + "/get_weather",
			opts: []heads.ToolHandlerOption{heads.WithPathToken(toolToken)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := heads.Must(heads.NewToolHandler(row.base, row.opts...))(t)
			addWeather(t, h)
			assert.Equal(t, row.want, h.Tools()[0].URL)
		})
	}
}

func TestToolsReturnsToolsInTheOrderOfAdding(t *testing.T) {
	h := newToolHandler(t)
	assert.Empty(t, h.Tools())
	for _, name := range []string{"zeta", "alpha", "mid"} {
		addTool[struct{}](t, h, name)
	}
	var names []string
	for _, tool := range h.Tools() {
		names = append(names, tool.Name)
		assert.NotNil(t, tool.Parameters, "an empty list is not null on the wire")
	}
	assert.Equal(t, []string{"zeta", "alpha", "mid"}, names)
}

func TestToolsReturnsCopies(t *testing.T) {
	h := newToolHandler(t)
	addWeather(t, h)
	h.Tools()[0].Parameters[0].Name = "changed"
	assert.Equal(t, "city", h.Tools()[0].Parameters[0].Name)
}

func TestToolHandlerCanBeMountedAnywhere(t *testing.T) {
	for _, token := range []string{"", toolToken} {
		var opts []heads.ToolHandlerOption
		end := "/get_weather"
		if token != "" {
			opts, end = append(opts, heads.WithPathToken(token)), "/"+token+end
		}
		h := newToolHandler(t, opts...)
		addWeather(t, h)
		mux := http.NewServeMux()
		mux.Handle("/heads/", h)
		stripped := http.NewServeMux()
		stripped.Handle("/heads/", http.StripPrefix("/heads", h))
		noSlash := http.NewServeMux()
		noSlash.Handle("/heads/", http.StripPrefix("/heads/", h))
		for _, row := range []struct {
			name, path string
			handler    http.Handler
		}{
			{"at the root", end, h},
			{"under its prefix", "/heads" + end, mux},
			{"with the prefix stripped", "/heads" + end, stripped},
			{"with the slash stripped too", "/heads" + end, noSlash},
			{"under a longer prefix", "/proxy/v1/heads" + end, h},
		} {
			t.Run(row.name+" with token "+token, func(t *testing.T) {
				assert.Equal(t, "done", toolReply(t, postTool(row.handler, row.path, `{"city":"Oslo"}`)))
			})
		}
	}
}

func TestUnknownToolAndWrongTokenAnswerAlike(t *testing.T) {
	h := newToolHandler(t, heads.WithPathToken(toolToken))
	addWeather(t, h)
	require.Equal(t, http.StatusOK, postTool(h, "/"+toolToken+"/get_weather", `{"city":"Oslo"}`).Code)

	want := postTool(h, "/"+toolToken+"/no_such_tool", `{}`)
	require.Equal(t, http.StatusNotFound, want.Code)
	for name, path := range map[string]string{
		"wrong token": "/6ab1d4e77c0f4b0e9d20/get_weather", "wrong token and tool": "/wrong/no_such_tool", "no token": "/get_weather",
		"empty token": "//get_weather", "start of the token": "/" + toolToken[:10] + "/get_weather", "another case": "/" + toolToken + "/GET_WEATHER",
		"token not before the name": "/" + toolToken + "/x/get_weather", "name before the token": "/get_weather/" + toolToken, "root": "/",
		"token alone": "/" + toolToken, "token and slash": "/" + toolToken + "/", "slash at the end": "/" + toolToken + "/get_weather/",
	} {
		t.Run(name, func(t *testing.T) {
			got := postTool(h, path, `{"city":"Oslo"}`)
			assert.Equal(t, want.Code, got.Code)
			assert.Equal(t, want.Header(), got.Header())
			assert.Equal(t, want.Body.String(), got.Body.String())
		})
	}
}

func TestOtherMethodsAnswerAlikeForEveryPath(t *testing.T) {
	h := newToolHandler(t, heads.WithPathToken(toolToken))
	addWeather(t, h)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, "post"} {
		for _, path := range []string{"/" + toolToken + "/get_weather", "/" + toolToken + "/no_such_tool", "/wrong/get_weather", "/"} {
			t.Run(method+" "+path, func(t *testing.T) {
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
				assert.Equal(t, http.StatusMethodNotAllowed, rec.Code)
				assert.Equal(t, "POST", rec.Header().Get("Allow"))
				assert.Equal(t, "method not allowed\n", rec.Body.String())
			})
		}
	}
}

func TestRequestsThatMissEveryToolAreLoggedForDebugging(t *testing.T) {
	for _, row := range []struct{ name, method, path, want string }{
		{"wrong method", http.MethodGet, "/" + toolToken + "/get_weather", `msg="request is not a tool call: wrong method" method=GET`},
		{"unknown tool", http.MethodPost, "/" + toolToken + "/no_such_tool", "known_tool=false right_path_token=true path_segments=2"},
		{"wrong token", http.MethodPost, "/not-the-token/get_weather", "known_tool=true right_path_token=false path_segments=2"},
		{"no token", http.MethodPost, "/get_weather", "known_tool=true right_path_token=false path_segments=1"},
		{"token alone", http.MethodPost, "/a/" + toolToken, "known_tool=false right_path_token=false path_segments=2"},
		{"slash at the end", http.MethodPost, "/" + toolToken + "/get_weather/", "known_tool=false right_path_token=false path_segments=3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var debug, info heads.SyncBuffer
			var calls []heads.ToolCallInfo
			for log, level := range map[*heads.SyncBuffer]slog.Level{&debug: slog.LevelDebug, &info: slog.LevelInfo} {
				h := newToolHandler(t, heads.WithPathToken(toolToken), observed(&calls),
					heads.WithToolLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))))
				addWeather(t, h)
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(row.method, row.path, strings.NewReader(`{"city":"Oslo"}`)))
			}
			assert.Contains(t, debug.String(), row.want)
			for _, secret := range []string{toolToken, "not-the-token", "no_such_tool", "Oslo"} {
				assert.NotContains(t, debug.String(), secret)
			}
			assert.Empty(t, info.String())
			assert.Empty(t, calls, "no tool was called")
		})
	}
}

func TestToolBodyIsCapped(t *testing.T) {
	const limit = 64 << 10
	body := func(size int) string {
		start := `{"city":"Oslo","pad":"`
		return start + strings.Repeat("x", size-len(start)-2) + `"}`
	}
	h := newToolHandler(t)
	got := addWeather(t, h)
	assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", body(limit))))
	assert.Equal(t, "Oslo", got.City)

	*got = weatherArguments{}
	rec := postTool(h, "/get_weather", body(limit+1))
	assert.Equal(t, http.StatusRequestEntityTooLarge, rec.Code)
	assert.Zero(t, *got, "the function is not called")
}

func TestToolAuthDecides(t *testing.T) {
	check := func(r *http.Request) error {
		switch r.Header.Get("X-Caller") {
		case "head":
			return nil
		case "panic":
			panic("check broke")
		default:
			return errors.New("caller is not the head")
		}
	}
	call := func(h *heads.ToolHandler, caller, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("X-Caller", caller)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	var log heads.SyncBuffer
	h := newToolHandler(t, heads.WithToolAuth(check), heads.WithToolLogger(slog.New(slog.NewTextHandler(&log, nil))))
	got := addWeather(t, h)

	t.Run("lets in", func(t *testing.T) {
		assert.Equal(t, "done", toolReply(t, call(h, "head", "/get_weather", `{"city":"Oslo"}`)))
		*got = weatherArguments{}
	})
	for caller, truth := range map[string]string{"": "caller is not the head", "panic": "check broke"} {
		t.Run("refuses caller "+caller, func(t *testing.T) {
			rec := call(h, caller, "/get_weather", `{"city":"Oslo"}`)
			assert.Equal(t, http.StatusUnauthorized, rec.Code)
			assert.Equal(t, "unauthorized\n", rec.Body.String())
			assert.Contains(t, log.String(), truth)
			assert.Zero(t, *got, "the function is not called")
		})
	}
	t.Run("is not asked about an unknown tool", func(t *testing.T) {
		assert.Equal(t, http.StatusNotFound, call(h, "panic", "/no_such_tool", `{}`).Code)
	})
	t.Run("comes before the size of the body", func(t *testing.T) {
		assert.Equal(t, http.StatusUnauthorized, call(h, "", "/get_weather", strings.Repeat(" ", 70<<10)).Code)
	})
}

func TestToolAuthMayReadTheBody(t *testing.T) {
	var seen int
	h := newToolHandler(t, heads.WithToolAuth(func(r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		seen = len(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err
	}))
	got := addWeather(t, h)
	assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", `{"city":"Oslo"}`)))
	assert.Equal(t, "Oslo", got.City)

	assert.Equal(t, http.StatusUnauthorized, postTool(h, "/get_weather", strings.Repeat(" ", 1<<20)).Code)
	assert.Equal(t, 64<<10, seen, "no check reads more than the cap")
}

func TestToolHandlerShowsNoPathToken(t *testing.T) {
	var log heads.SyncBuffer
	h := newToolHandler(t, heads.WithPathToken(toolToken), loggedTo(&log),
		heads.WithToolAuth(func(r *http.Request) error { return r.Context().Err() }))
	addWeather(t, h)
	fails := func(context.Context, weatherArguments) (string, error) { return "", errors.New("broken") }
	require.NoError(t, heads.AddTool(h, "fails", "Fails", fails))
	for _, call := range []struct{ path, body string }{
		{"/" + toolToken + "/get_weather", `{"city":"Oslo"}`},
		{"/" + toolToken + "/get_weather", `{`},
		{"/" + toolToken + "/get_weather", `{"city":[]}`},
		{"/" + toolToken + "/fails", `{"city":"Oslo"}`},
		{"/" + toolToken + "/no_such_tool", `{}`},
		{"/x/get_weather", `{}`},
	} {
		assert.NotContains(t, postTool(h, call.path, call.body).Body.String(), toolToken)
	}
	require.Contains(t, log.String(), "broken", "the log is on")
	assert.NotContains(t, log.String(), toolToken)
	heads.AssertHides(t, heads.AddTool(h, "get weather", "", fails), toolToken)
}

func TestZeroToolHandlerHasNoTools(t *testing.T) {
	var h heads.ToolHandler
	assert.Empty(t, h.Tools())
	assert.Equal(t, http.StatusNotFound, postTool(&h, "/get_weather", `{}`).Code)
	f := func(context.Context, struct{}) (string, error) { return "", nil }
	require.ErrorIs(t, heads.AddTool(&h, "a", "A", f), heads.ErrInvalid)
	require.ErrorIs(t, heads.AddTool(nil, "a", "A", f), heads.ErrInvalid)
	require.NoError(t, h.Shutdown(t.Context()))
}

func TestToolsCanBeAddedWhileServing(t *testing.T) {
	h := newToolHandler(t)
	echo := func(_ context.Context, in weatherArguments) (string, error) { return in.City, nil }
	require.NoError(t, heads.AddTool(h, "first", "Echo", echo))
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 25 {
				city := fmt.Sprintf("city-%d-%d", worker, i)
				assert.NoError(t, heads.AddTool(h, fmt.Sprintf("tool_%d_%d", worker, i), "Echo", echo))
				assert.Equal(t, city, toolReply(t, postTool(h, "/first", `{"city":"`+city+`"}`)))
				assert.Equal(t, city, toolReply(t, postTool(h, fmt.Sprintf("/tool_%d_%d", worker, i), `{"city":"`+city+`"}`)))
				assert.NotEmpty(t, h.Tools())
			}
		})
	}
	group.Wait()
	assert.Len(t, h.Tools(), 101)
}

func TestOneNameIsTakenOnceUnderConcurrency(t *testing.T) {
	h := newToolHandler(t)
	var group sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		group.Go(func() {
			errs <- heads.AddTool(h, "one", "One", func(context.Context, struct{}) (string, error) { return "", nil })
		})
	}
	group.Wait()
	close(errs)
	taken := 0
	for err := range errs {
		if err != nil {
			taken++
			assert.Contains(t, requireInvalid(t, err, "AddTool")[0], "is taken")
		}
	}
	assert.Equal(t, 7, taken)
	assert.Len(t, h.Tools(), 1)
}

// addToolFunc adds a tool of the spec that keeps the arguments of its last call.
func addToolFunc(t testing.TB, h *heads.ToolHandler, spec heads.ToolSpec) *string {
	t.Helper()
	var got string
	require.NoError(t, heads.AddToolFunc(h, spec, func(_ context.Context, arguments json.RawMessage) (string, error) {
		got = string(arguments)
		return "done", nil
	}))
	return &got
}

func parametersOf(types ...string) []heads.ToolParameter {
	var parameters []heads.ToolParameter
	for i, wireType := range types {
		parameters = append(parameters, heads.ToolParameter{Name: string(rune('a' + i)), Type: wireType, Description: "A value"})
	}
	return parameters
}

func TestAddToolFuncReadsByType(t *testing.T) {
	for _, row := range []struct{ wireType, given, want, problem string }{
		{wireType: "string", given: `"seven"`, want: `"seven"`},
		{wireType: "string", given: `7`, want: `"7"`},
		{wireType: "string", given: `true`, want: `"true"`},
		{wireType: "string", given: `""`, want: `""`},
		{wireType: "string", given: `"a\n\"b\u00e9"`, want: `"a\n\"b\u00e9"`},
		{wireType: "string", given: "\"a\xff\"", want: `"a` + "\uFFFD" + `"`},
		{wireType: "string", given: `{}`, problem: "must be text, but an object was given"},
		{wireType: "integer", given: `5`, want: `5`},
		{wireType: "integer", given: `"5"`, want: `5`},
		{wireType: "integer", given: `5.0`, want: `5`},
		{wireType: "integer", given: `-5e2`, want: `-500`},
		{wireType: "integer", given: `12345678901234567890123`, want: `12345678901234567890123`},
		{wireType: "integer", given: `5.5`, problem: "must be a whole number, but 5.5 was given"},
		{wireType: "number", given: `5.50`, want: `5.50`},
		{wireType: "number", given: `" +5.5 "`, want: `5.5`},
		{wireType: "number", given: `"1e30"`, want: `1e+30`},
		{wireType: "number", given: `"many"`, problem: `must be a number, but "many" was given`},
		{wireType: "number", given: `1e999`, problem: "must be a number closer to zero"},
		{wireType: "boolean", given: `"Yes"`, want: `true`},
		{wireType: "boolean", given: `0`, want: `false`},
		{wireType: "boolean", given: `"perhaps"`, problem: "must be true or false"},
		{wireType: "array", given: `[1, null]`, want: `[1, null]`},
		{wireType: "array", given: `"one"`, want: `["one"]`},
		{wireType: "array", given: `{"k":1}`, want: `[{"k":1}]`},
		{wireType: "object", given: `{"k": 1}`, want: `{"k": 1}`},
		{wireType: "object", given: `[1]`, want: `[1]`},
		{wireType: "object", given: `5`, want: `5`},
		{wireType: "object", given: `"{\"k\": 1}"`, want: `{"k": 1}`},
		{wireType: "array", given: `"[\"a\", 1]"`, want: `["a", 1]`},
		{wireType: "array", given: `"[a]"`, want: `["[a]"]`},
		{wireType: "string|integer", given: `7`, want: `7`},
		{wireType: "string|integer", given: `"7"`, want: `"7"`},
		{wireType: "integer|boolean", given: `true`, want: `true`},
		{wireType: "integer|boolean", given: `[1]`, problem: "must be text, but a list was given"},
	} {
		t.Run(row.wireType+" "+row.given, func(t *testing.T) {
			h := newToolHandler(t)
			got := addToolFunc(t, h, heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf(row.wireType), Required: []string{"a"}})
			reply := toolReply(t, postTool(h, "/tool", `{"a": `+row.given+` }`))
			value, err := heads.ReadArgument(row.wireType, json.RawMessage(row.given))
			if row.problem != "" {
				assert.Contains(t, reply, "a "+row.problem)
				assert.Empty(t, *got)
				assert.Error(t, err)
				return
			}
			assert.Equal(t, "done", reply)
			assert.Equal(t, `{"a":`+row.want+`}`, *got)
			if len(row.wireType) <= len("boolean") {
				assert.Equal(t, row.want, string(value))
			}
		})
	}
}

func TestAddToolFuncTakesNullAndBlanksForAbsent(t *testing.T) {
	for _, wireType := range []string{"string", "number", "integer", "boolean", "array", "object", "string|integer", "integer|boolean"} {
		for _, given := range []string{`{}`, `{"a":null}`, `{"a":" "}`} {
			t.Run(wireType+" "+given, func(t *testing.T) {
				h := newToolHandler(t)
				required := addToolFunc(t, h, heads.ToolSpec{Name: "required", Description: "A tool", Parameters: parametersOf(wireType), Required: []string{"a"}})
				optional := addToolFunc(t, h, heads.ToolSpec{Name: "optional", Description: "A tool", Parameters: parametersOf(wireType)})
				if text := wireType == "string" || wireType == "string|integer"; text && given == `{"a":" "}` {
					assert.Equal(t, "done", toolReply(t, postTool(h, "/required", given)))
					assert.Equal(t, `{"a":" "}`, *required)
					return
				}
				assert.Equal(t, "a is missing; ask the user for it", toolReply(t, postTool(h, "/required", given)))
				assert.Equal(t, "done", toolReply(t, postTool(h, "/optional", given)))
				assert.Equal(t, `{}`, *optional)
			})
		}
	}
}

func TestAddToolFuncPassesDeclaredArgumentsInTheirOrder(t *testing.T) {
	h := newToolHandler(t)
	got := addToolFunc(t, h, heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("string", "integer", "array")})
	for _, body := range []string{
		`{"c":1,"unknown":{"a":1},"b":"2","a":3,"session_metadata":{"session_id":"s"}}`,
		`{"arguments":{"c":1,"b":"2","a":3},"session_metadata":{"session_id":"s"}}`,
	} {
		*got = ""
		assert.Equal(t, "done", toolReply(t, postTool(h, "/tool", body)))
		assert.Equal(t, `{"a":"3","b":2,"c":[1]}`, *got)
	}
	addToolFunc(t, h, heads.ToolSpec{Name: "none", Description: "A tool"})
	assert.Equal(t, "done", toolReply(t, postTool(h, "/none", `{"a":1}`)))
}

func TestAddToolFuncReturnsEveryFaultAtOnce(t *testing.T) {
	var calls []heads.ToolCallInfo
	h := newToolHandler(t, observed(&calls))
	addToolFunc(t, h, heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("integer", "string", "string"), Required: []string{"c", "b"}})
	assert.Equal(t, `b and c are missing; ask the user for them. a must be a whole number, but "x" was given; correct it or ask the user for it`,
		toolReply(t, postTool(h, "/tool", `{"a":"x"}`)))
	assert.Equal(t, heads.ToolArguments, calls[0].Outcome)
}

func TestAddToolFuncRegistersTheSpec(t *testing.T) {
	h := newToolHandler(t, heads.WithPathToken(toolToken))
	spec := heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("integer", "integer|boolean"), Required: []string{"a"}}
	got := addToolFunc(t, h, spec)
	want := []heads.Tool{{Name: "tool", Description: "A tool", URL: "https://tools.example.com/heads/" + toolToken + "/tool", Parameters: parametersOf("integer", "string")}}
	assert.Equal(t, want, h.Tools())
	assert.Equal(t, "integer|boolean", spec.Parameters[1].Type, "the caller's spec is left as it is")

	spec.Parameters[0].Name, spec.Required[0] = "changed", "changed"
	assert.Equal(t, want, h.Tools(), "the spec is copied")
	toolReply(t, postTool(h, "/"+toolToken+"/tool", `{"a":1}`))
	assert.Equal(t, `{"a":1}`, *got)
}

func TestAddToolFuncRefuses(t *testing.T) {
	f := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	good := func() heads.ToolSpec {
		return heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("string", "integer"), Required: []string{"a"}}
	}
	for name, row := range map[string]struct {
		change func(*heads.ToolSpec)
		want   string
	}{
		"taken":              {func(s *heads.ToolSpec) { s.Name = "taken" }, "taken by a tool"},
		"parameter twice":    {func(s *heads.ToolSpec) { s.Parameters[1].Name = "a" }, "defined twice"},
		"type":               {func(s *heads.ToolSpec) { s.Parameters[1].Type = "int" }, `type "int" is unknown`},
		"types":              {func(s *heads.ToolSpec) { s.Parameters[1].Type = "string|array" }, `type "string|array" is unknown`},
		"session metadata":   {func(s *heads.ToolSpec) { s.Parameters[1].Name = "session_metadata" }, "carries the session"},
		"required unknown":   {func(s *heads.ToolSpec) { s.Required = []string{"a", "z"} }, `required "z" is not the name of a parameter`},
		"required twice":     {func(s *heads.ToolSpec) { s.Required = []string{"a", "a"} }, `required "a" is given twice`},
		"required and empty": {func(s *heads.ToolSpec) { s.Required = []string{""} }, `required "" is not the name of a parameter`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newToolHandler(t)
			require.NoError(t, heads.AddToolFunc(h, heads.ToolSpec{Name: "taken", Description: "A tool"}, f))
			spec := good()
			row.change(&spec)
			err := heads.AddToolFunc(h, spec, f)
			fault := heads.As[*heads.InvalidError](t, err)
			assert.Equal(t, "AddToolFunc", fault.Operation)
			assert.ErrorContains(t, err, row.want)
			assert.Len(t, h.Tools(), 1, "nothing is added")
		})
	}
	require.ErrorIs(t, heads.AddToolFunc(nil, good(), f), heads.ErrInvalid)
	require.ErrorIs(t, heads.AddToolFunc(&heads.ToolHandler{}, good(), f), heads.ErrInvalid)
	err := heads.AddToolFunc(newToolHandler(t), heads.ToolSpec{Required: []string{"a"}}, nil)
	for _, part := range []string{"function", "required", "description", "name"} {
		assert.ErrorContains(t, err, part, "all faults come back joined")
	}
}

func TestReadArgumentRefusesWhatIsNoArgument(t *testing.T) {
	for wireType, raw := range map[string]string{"int": "1", "": "1", "string": "", "number": "1 2", "object": "{", "array": "nul"} {
		require.ErrorIs(t, heads.ErrorOf(heads.ReadArgument(wireType, json.RawMessage(raw))), heads.ErrInvalid, strconv.Quote(wireType))
	}
	require.EqualError(t, heads.ErrorOf(heads.ReadArgument("integer", json.RawMessage("null"))), "the value is missing; ask the user for it")
	_, err := heads.ReadArgument("integer", json.RawMessage(` "x" `))
	require.EqualError(t, err, `the value must be a whole number, but "x" was given; correct it or ask the user for it`)
}

// There is one type for every way in which a value can be read.
type (
	toolColor   string
	toolAddress struct {
		Street string   `json:"street"`
		Number *int     `json:"number"`
		Lines  []string `json:"lines,omitempty"`
	}
	toolPage struct {
		Page uint `json:"page" jsonschema:"Page to show"`
	}
	toolGrade int // a type with its own JSON
)

// toolCode is a string of a form of its own.
type toolCode string

func (c *toolCode) UnmarshalText(text []byte) error {
	*c = toolCode(text)
	return nil
}

// toolChoice is a struct with its own JSON.
type toolChoice struct{ Chosen string }

func (c *toolChoice) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &c.Chosen) }

func (g *toolGrade) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"low"`:
		*g = 1
	case `"high"`:
		*g = 2
	default:
		return fmt.Errorf("no grade")
	}
	return nil
}

func (g toolGrade) MarshalJSON() ([]byte, error) {
	return []byte([]string{`""`, `"low"`, `"high"`}[g]), nil
}

// toolKinds has a field of every supported kind.
type toolKinds struct {
	toolPage
	Text        string                 `json:"text" jsonschema:"Text"`
	Color       toolColor              `json:"color" jsonschema:"Named string"`
	Yes         bool                   `json:"yes" jsonschema:"Boolean"`
	Int         int                    `json:"int" jsonschema:"Integer"`
	Int8        int8                   `json:"int8" jsonschema:"Integer of 8 bits"`
	Int16       int16                  `json:"int16" jsonschema:"Integer of 16 bits"`
	Int32       int32                  `json:"int32" jsonschema:"Integer of 32 bits"`
	Int64       int64                  `json:"int64" jsonschema:"Integer of 64 bits"`
	Uint        uint                   `json:"uint" jsonschema:"Unsigned integer"`
	Uint8       uint8                  `json:"uint8" jsonschema:"Unsigned integer of 8 bits"`
	Uint16      uint16                 `json:"uint16" jsonschema:"Unsigned integer of 16 bits"`
	Uint32      uint32                 `json:"uint32" jsonschema:"Unsigned integer of 32 bits"`
	Uint64      uint64                 `json:"uint64" jsonschema:"Unsigned integer of 64 bits"`
	Float32     float32                `json:"float32" jsonschema:"Number of 32 bits"`
	Float64     float64                `json:"float64" jsonschema:"Number of 64 bits"`
	Time        time.Time              `json:"time" jsonschema:"Time"`
	Stamp       heads.Time             `json:"stamp" jsonschema:"Time with its text"`
	Address     netip.Addr             `json:"address" jsonschema:"Text of a form"`
	Grade       toolGrade              `json:"grade" jsonschema:"JSON of a form, low or high"`
	Bytes       []byte                 `json:"bytes" jsonschema:"Bytes in base64"`
	Raw         json.RawMessage        `json:"raw" jsonschema:"Any value"`
	List        []string               `json:"list" jsonschema:"List of texts"`
	Lists       [][]int                `json:"lists" jsonschema:"List of lists"`
	Pair        [2]float64             `json:"pair" jsonschema:"List of two"`
	Map         map[toolColor]int      `json:"map" jsonschema:"Number by name"`
	Maps        map[string][]string    `json:"maps" jsonschema:"Lists by name"`
	Home        toolAddress            `json:"home" jsonschema:"Object with street, number, lines"`
	Homes       []toolAddress          `json:"homes" jsonschema:"List of objects"`
	ByName      map[string]toolAddress `json:"by_name" jsonschema:"Objects by name"`
	Pointers    []*int                 `json:"pointers" jsonschema:"List with gaps"`
	MaybeText   *string                `json:"maybe_text" jsonschema:"Optional text"`
	MaybeInt    *int64                 `json:"maybe_int" jsonschema:"Optional integer"`
	MaybeHome   *toolAddress           `json:"maybe_home" jsonschema:"Optional object"`
	EmptyText   string                 `json:"empty_text,omitempty" jsonschema:"Text that may be left out"`
	EmptyFloat  float64                `json:"empty_float,omitempty" jsonschema:"Number that may be left out"`
	EmptyList   []int                  `json:"empty_list,omitempty" jsonschema:"List that may be left out"`
	ZeroTime    time.Time              `json:"zero_time,omitzero" jsonschema:"Time that may be left out"`
	Untagged    bool                   `jsonschema:"Boolean under its Go name"`
	NameOmitted int                    `json:",omitempty" jsonschema:"Integer under its Go name"`
	Ignored     func()                 `json:"-"`
	unexported  int
}

func TestParametersComeFromTheStruct(t *testing.T) {
	h := newToolHandler(t, heads.WithPathToken(toolToken))
	addTool[toolKinds](t, h, "all_kinds")
	addWeather(t, h)
	addTool[struct{}](t, h, "nothing")
	_ = toolKinds{}.unexported
	for _, tool := range h.Tools() {
		require.NoError(t, tool.Validate())
	}
	got := heads.Must(json.MarshalIndent(h.Tools(), "", "  "))(t)
	assert.JSONEq(t, heads.ReadFile(t, "tools/definitions.json"), string(got))
}

type (
	withDuplicate struct {
		City string `json:"Town" jsonschema:"City"`
		Town string `jsonschema:"Town"`
	}
	withEmbeddedDuplicate struct {
		toolPage
		Number int `json:"page" jsonschema:"Page"`
	}
	withInnerDuplicate struct {
		Home struct {
			A string `json:"B"`
			B string
		} `json:"home" jsonschema:"Home"`
	}
	withUnexported struct{ city string }
	withInnerLock  struct {
		Lock struct{ state int32 } `json:"lock" jsonschema:"Lock"`
	}
	withTaggedUnexported struct {
		City string `json:"city" jsonschema:"City"`
		town string `json:""`
	}
	withEmbeddedString  struct{ toolColor }
	withEmbeddedPointer struct{ *toolPage }
	withEmbeddedTime    struct{ time.Time }
	withEmbeddedAddr    struct{ netip.Addr }
	withEmbeddedChoice  struct{ toolChoice }
	withTree            struct {
		Tree toolTree `json:"tree" jsonschema:"Tree"`
	}
	toolTree struct {
		Children []toolTree `json:"children"`
	}
	toolNest           []toolNest
	requiredArg[T any] struct {
		V T `json:"v" jsonschema:"A value"`
	}
)

func TestAddToolRefusesStructsThatNoCallCanFill(t *testing.T) {
	_ = withUnexported{}.city
	_ = withTaggedUnexported{}.town
	_ = withInnerLock{}.Lock.state
	_ = withEmbeddedString{}.toolColor
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"string", addBroken[string](t), "type In is of type string; give a struct"},
		{"pointer", addBroken[*weatherArguments](t), "type In is of type *heads_test.weatherArguments; give a struct"},
		{"map", addBroken[map[string]string](t), "type In is of type map[string]string; give a struct"},
		{"any", addBroken[any](t), "type In is of type interface {}; give a struct"},
		{"channel", addBroken[requiredArg[chan int]](t), "field V is of type chan int, which no argument can fill"},
		{"function", addBroken[requiredArg[func()]](t), "field V is of type func(), which no argument can fill"},
		{"complex", addBroken[requiredArg[complex128]](t), "field V is of type complex128, which"},
		{"uintptr", addBroken[requiredArg[uintptr]](t), "field V is of type uintptr, which"},
		{"any field", addBroken[requiredArg[any]](t), "field V is of type interface {}, which no argument can fill; use a string, number, bool, slice, map, struct or json.RawMessage"},
		{"interface field", addBroken[requiredArg[fmt.Stringer]](t), "field V is of type fmt.Stringer, which"},
		{"list of channels", addBroken[requiredArg[[]chan int]](t), "field V is of type chan int, which"},
		{"array of channels", addBroken[requiredArg[[2]chan int]](t), "field V is of type chan int, which"},
		{"pointer to a channel", addBroken[requiredArg[*chan int]](t), "field V is of type chan int, which"},
		{"map of channels", addBroken[requiredArg[map[string]chan int]](t), "field V is of type chan int, which"},
		{"map by number", addBroken[requiredArg[map[int]string]](t), "field V is a map with keys of type int; use string keys"},
		{"map by text of a form", addBroken[requiredArg[map[toolCode]string]](t), "field V is a map with keys of type heads_test.toolCode; use string keys"},
		{"map by address", addBroken[requiredArg[map[netip.Addr]string]](t), "field V is a map with keys of type netip.Addr"},
		{"inner channel", addBroken[requiredArg[struct{ C chan int }]](t), "field V.C is of type chan int, which"},
		{"deeper channel", addBroken[requiredArg[[]map[string]struct{ C []chan int }]](t), "field V.C is of type chan int, which"},
		{"unexported fields alone", addBroken[withUnexported](t), "type In is a struct without an exported field"},
		{"inner unexported fields alone", addBroken[withInnerLock](t), "field Lock is a struct without an exported field"},
		{"unexported field with a tag", addBroken[withTaggedUnexported](t), "field town is unexported"},
		{"embedded string", addBroken[withEmbeddedString](t), "field toolColor is embedded and not a plain struct"},
		{"embedded pointer", addBroken[withEmbeddedPointer](t), "field toolPage is embedded and not a plain struct"},
		{"embedded time", addBroken[withEmbeddedTime](t), "field Time is embedded and not a plain struct"},
		{"embedded address", addBroken[withEmbeddedAddr](t), "field Addr is embedded and not a plain struct"},
		{"embedded struct with its own JSON", addBroken[withEmbeddedChoice](t), "field toolChoice is embedded and not a plain struct"},
		{"struct in itself", addBroken[withTree](t), "field Tree.Children is of type heads_test.toolTree, which holds itself; use json.RawMessage"},
		{"slice of itself", addBroken[requiredArg[toolNest]](t), "field V is of type heads_test.toolNest, which holds itself"},
		{"one name twice", addBroken[withDuplicate](t), "field Town has the json name Town of field City"},
		{"one name twice by embedding", addBroken[withEmbeddedDuplicate](t), "field Number has the json name page of field toolPage.Page"},
		{"one inner name twice", addBroken[withInnerDuplicate](t), "field Home.B has the json name B of field Home.A"},
		{"name of the session", addBroken[struct {
			S string `json:"session_metadata" jsonschema:"Session"`
		}](t), "field S is named session_metadata"},
		{"no description", addBroken[struct{ City string }](t), "field City has no description; write one into its jsonschema tag"},
		{"blank description", addBroken[struct {
			City string `jsonschema:"  "`
		}](t), "field City has no description"},
	} {
		t.Run(row.name, func(t *testing.T) {
			faults := requireInvalid(t, row.err, "AddTool")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], `heads: AddTool: tool "broken" `+row.want)
		})
	}
}

// addBroken returns the error of AddTool for a tool whose struct alone is invalid.
func addBroken[In any](t *testing.T) error {
	t.Helper()
	h := newToolHandler(t)
	err := heads.AddTool(h, "broken", "A tool", func(context.Context, In) (string, error) { return "", nil })
	require.Empty(t, h.Tools(), "nothing incomplete is kept")
	return err
}

func TestAddToolRefusesTagsOfOtherLibraries(t *testing.T) {
	for tag, err := range map[string]error{
		"description=City": addBroken[struct {
			City string `jsonschema:"description=City"`
		}](t),
		"required,description=City": addBroken[struct {
			City string `jsonschema:"required,description=City"`
		}](t),
		"nullable,minLength=1": addBroken[struct {
			City string `jsonschema:"nullable,minLength=1"`
		}](t),
		"description:City": addBroken[struct {
			City string `jsonschema:"description:City"`
		}](t),
	} {
		t.Run(tag, func(t *testing.T) {
			faults := requireInvalid(t, err, "AddTool")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], `field City`)
			assert.Contains(t, faults[0], `"`+tag+`" in the syntax of another library; write the description alone`)
			assert.Contains(t, faults[0], "required unless it is a pointer or its json tag has omitempty")
		})
	}
}

func TestDescriptionsMayHoldWordsOfOtherLibraries(t *testing.T) {
	h := newToolHandler(t)
	addTool[struct {
		Filter string `json:"filter" jsonschema:"Filter like size=large, required"`
		Zone   string `json:"zone" jsonschema:"Required zone"`
		Text   string `json:"text" jsonschema:"Description of the case"`
	}](t, h, "find")
	assert.Equal(t, "Filter like size=large, required", h.Tools()[0].Parameters[0].Description)
}

func TestEmbeddedStructWithANameIsOneParameter(t *testing.T) {
	type Page struct {
		Number int `json:"number"`
	}
	type in struct {
		Page `json:"page" jsonschema:"Page to show"`
	}
	got, reply := callWith[in](t, `{"page":{"number":3}}`)
	require.Equal(t, "done", reply)
	assert.Equal(t, 3, got.Number)
}

func TestOneTypeMayOccurTwice(t *testing.T) {
	h := newToolHandler(t)
	got := addTool[struct {
		From toolAddress   `json:"from" jsonschema:"From"`
		To   []toolAddress `json:"to" jsonschema:"To"`
	}](t, h, "move")
	assert.Equal(t, "done", toolReply(t, postTool(h, "/move", `{"from":{"street":"A"},"to":[{"street":"B"}]}`)))
	assert.Equal(t, "A", got.From.Street)
	assert.Equal(t, "B", got.To[0].Street)
}

func TestAddToolReturnsAllFaultsAtOnce(t *testing.T) {
	h := newToolHandler(t)
	err := heads.AddTool[struct {
		City  string   `json:"Town"`
		Town  string   `jsonschema:"Town"`
		Chan  chan int `json:"chan" jsonschema:"Channel"`
		Other string   `json:"an other" jsonschema:"Other"`
	}](h, "get weather", "", nil)
	all := strings.Join(requireInvalid(t, err, "AddTool"), "\n")
	for _, want := range []string{"field City has no description", "field Town has the json name", "field Chan is of type",
		"an other", "get weather", "function is nil", "description"} {
		assert.Contains(t, all, want)
	}
}

// callWith returns the arguments that a tool receives, and its reply.
func callWith[In any](t testing.TB, body string) (In, string) {
	t.Helper()
	h := newToolHandler(t)
	got := addTool[In](t, h, "tool")
	reply := toolReply(t, postTool(h, "/tool", body))
	return *got, reply
}

// No argument may share memory with a buffer that the next call uses.
func TestArgumentsOutliveTheirCall(t *testing.T) {
	type keeping struct {
		Raw  json.RawMessage   `json:"raw" jsonschema:"Raw"`
		Raws []json.RawMessage `json:"raws" jsonschema:"Raws"`
		Text string            `json:"text" jsonschema:"Text"`
	}
	h := newToolHandler(t)
	got := addTool[keeping](t, h, "keep")
	body := func(letter string) string {
		word := `"` + strings.Repeat(letter, 50) + `"`
		return `{"raw":` + word + `,"raws":[` + word + `],"text":` + word + `}`
	}
	require.Equal(t, "done", toolReply(t, postTool(h, "/keep", body("a"))))
	kept := *got
	for range 20 {
		require.Equal(t, "done", toolReply(t, postTool(h, "/keep", body("b"))))
	}
	want := strings.Repeat("a", 50)
	assert.Equal(t, `"`+want+`"`, string(kept.Raw))
	assert.Equal(t, `"`+want+`"`, string(kept.Raws[0]))
	assert.Equal(t, want, kept.Text)
}

// FuzzToolBody checks that every body is answered with one line of valid JSON, and
// that the status is 200 unless the body is too large.
func FuzzToolBody(f *testing.F) {
	for _, name := range []string{"call_flat.json", "call_parameters.json", "call_arguments.json"} {
		f.Add([]byte(heads.ReadFile(f, "tools/"+name)))
	}
	h := newToolHandler(f)
	addTool[toolKinds](f, h, "all_kinds")
	addTool[struct {
		Kinds *toolKinds        `json:"kinds" jsonschema:"All of them"`
		Wait  time.Duration     `json:"wait,omitempty" jsonschema:"How long"`
		Maybe map[string]string `json:"maybe,omitempty" jsonschema:"Maybe"`
	}](f, h, "nested")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/all_kinds", "/nested"} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
			if len(body) > 64<<10 {
				require.Equal(t, http.StatusRequestEntityTooLarge, rec.Code)
				continue
			}
			require.NotEqual(t, toolFailed, toolReply(t, rec), "a panic or an unnamed error")
			require.True(t, utf8.Valid(rec.Body.Bytes()) && !bytes.ContainsAny(rec.Body.Bytes(), "\r\n"), "%q", rec.Body)
		}
	})
}
