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
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

const toolToken = "6ab1d4e77c0f4b0e9d2f"

type weatherArguments struct {
	City string `json:"city" jsonschema:"City to report on"`
	Days int    `json:"days,omitempty" jsonschema:"Days ahead, 0 for today"`
}

func newToolHandler(t testing.TB, opts ...heads.ToolHandlerOption) *heads.ToolHandler {
	t.Helper()
	h, err := heads.NewToolHandler("https://tools.example.com/heads", opts...)
	require.NoError(t, err)
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

func toolDocument(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/tools/" + name)
	require.NoError(t, err)
	return string(data)
}

// toolLog is a log that can be read while a function still writes to it.
type toolLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *toolLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *toolLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
		{"empty", "", "is blank"},
		{"relative", "/heads", "not an absolute URL"},
		{"no scheme", "tools.example.com", "not an absolute URL"},
		{"no host", "https:///heads", "not an absolute URL"},
		{"port alone", "https://:8443/heads", "not an absolute URL"},
		{"unreadable", "https://user:hunter2secret@a b/", "not an absolute URL"},
		{"plain http", "http://tools.example.com", "plain http to tools.example.com"},
		{"another scheme", "ftp://tools.example.com", "scheme ftp"},
		{"password", "https://user:hunter2secret@tools.example.com", "user name or a password"},
		{"query", "https://tools.example.com/?key=hunter2secret", "query or a fragment"},
		{"bare question mark", "https://tools.example.com/?", "query or a fragment"},
		{"fragment", "https://tools.example.com/#hunter2secret", "query or a fragment"},
		{"copied space", "https://tools.example.com/heads ", "a space"},
		{"dots", "https://tools.example.com/a/../b", ". or .."},
		{"escaped dots", "https://tools.example.com/a/%2e%2E/b", ". or .."},
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
			_, err := heads.NewToolHandler("https://tools.example.com", row.opt)
			faults := requireInvalid(t, err, "NewToolHandler")
			require.Len(t, faults, 1)
			assert.Contains(t, faults[0], row.reason)
			assert.NotContains(t, faults[0], "hunter2")
		})
	}
}

func TestPathTokenOfSixteenCharactersIsEnough(t *testing.T) {
	_, err := heads.NewToolHandler("https://tools.example.com", heads.WithPathToken("hunter2-secret12"))
	assert.NoError(t, err)
}

func TestPathTokenTakesUnreservedCharactersOnly(t *testing.T) {
	const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
	for c := range rune(0x180) {
		_, err := heads.NewToolHandler("https://tools.example.com", heads.WithPathToken("hunter2-secret12"+string(c)))
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
			h, err := heads.NewToolHandler(row.base, row.opts...)
			require.NoError(t, err)
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
	for _, row := range []struct{ name, path string }{
		{"wrong token", "/6ab1d4e77c0f4b0e9d20/get_weather"},
		{"wrong token and tool", "/wrong/no_such_tool"},
		{"no token", "/get_weather"},
		{"empty token", "//get_weather"},
		{"start of the token", "/" + toolToken[:10] + "/get_weather"},
		{"token not before the name", "/" + toolToken + "/x/get_weather"},
		{"name before the token", "/get_weather/" + toolToken},
		{"token alone", "/" + toolToken},
		{"token and slash", "/" + toolToken + "/"},
		{"slash at the end", "/" + toolToken + "/get_weather/"},
		{"another case", "/" + toolToken + "/GET_WEATHER"},
		{"root", "/"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := postTool(h, row.path, `{"city":"Oslo"}`)
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
			var debug, info toolLog
			for log, level := range map[*toolLog]slog.Level{&debug: slog.LevelDebug, &info: slog.LevelInfo} {
				h := newToolHandler(t, heads.WithPathToken(toolToken),
					heads.WithToolLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))))
				addWeather(t, h)
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(row.method, row.path, strings.NewReader(`{"city":"Oslo"}`)))
			}
			assert.Contains(t, debug.String(), row.want)
			for _, secret := range []string{toolToken, "not-the-token", "no_such_tool", "Oslo"} {
				assert.NotContains(t, debug.String(), secret)
			}
			assert.Empty(t, info.String())
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
	var log toolLog
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
	var log toolLog
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := newToolHandler(t, heads.WithPathToken(toolToken), heads.WithToolLogger(logger),
		heads.WithToolAuth(func(r *http.Request) error { return r.Context().Err() }))
	addWeather(t, h)
	fails := func(context.Context, weatherArguments) (string, error) { return "", errors.New("broken") }
	require.NoError(t, heads.AddTool(h, "fails", "Fails", fails))
	var replies []string
	for _, call := range []struct{ path, body string }{
		{"/" + toolToken + "/get_weather", `{"city":"Oslo"}`},
		{"/" + toolToken + "/get_weather", `{`},
		{"/" + toolToken + "/get_weather", `{"city":[]}`},
		{"/" + toolToken + "/fails", `{"city":"Oslo"}`},
		{"/" + toolToken + "/no_such_tool", `{}`},
		{"/x/get_weather", `{}`},
	} {
		replies = append(replies, postTool(h, call.path, call.body).Body.String())
	}
	require.Contains(t, log.String(), "broken", "the log is on")
	logger.Info("handler", "value", *h, "pointer", h, "nested", map[string]any{"h": h})

	shown := []string{log.String(), strings.Join(replies, "\n")}
	for _, value := range []any{*h, h, struct{ H heads.ToolHandler }{*h}, struct{ h *heads.ToolHandler }{h}, []any{h}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t", "%p"} {
			shown = append(shown, fmt.Sprintf(verb, value))
		}
		shown = append(shown, fmt.Errorf("at %w", errors.New(fmt.Sprint(value))).Error())
	}
	shown = append(shown, heads.AddTool(h, "get weather", "", fails).Error())
	for _, text := range shown {
		assert.NotContains(t, text, toolToken)
		assert.NotContains(t, strings.ToLower(text), fmt.Sprintf("%x", toolToken))
	}
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
