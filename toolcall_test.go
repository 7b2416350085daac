package heads_test

import (
	"bufio"
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
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

const (
	toolFailed     = "The tool failed; tell the user that this does not work right now and go on without it"
	toolUnreadable = "The call could not be read; call the tool again"
	toolBusy       = "The tool is busy; call it again in a moment"
)

// answerWith adds a tool without parameters that returns text and err.
func answerWith(t testing.TB, h *heads.ToolHandler, f func(context.Context) (string, error)) {
	t.Helper()
	require.NoError(t, heads.AddTool(h, "answer", "Answers", func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) }))
}

func loggedTo(w io.Writer) heads.ToolHandlerOption {
	return heads.WithToolLogger(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

func TestToolArgumentsAreFoundWhereTheServicePutsThem(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       weatherArguments
	}{
		{"flat", toolDocument(t, "call_flat.json"), weatherArguments{"Oslo", 3}},
		{"under parameters", toolDocument(t, "call_parameters.json"), weatherArguments{"Oslo", 3}},
		{"under arguments", toolDocument(t, "call_arguments.json"), weatherArguments{"Oslo", 3}},
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
	var log toolLog
	h := newToolHandler(t, loggedTo(&log))
	got := addWeather(t, h)
	for _, row := range []struct{ name, body string }{
		{"empty", ""},
		{"spaces", "  \n"},
		{"cut off", `{"city":"Os`},
		{"not JSON", "city=Oslo"},
		{"null", "null"},
		{"list", `[{"city":"Oslo"}]`},
		{"text", `"Oslo"`},
		{"number", "5"},
		{"two documents", `{"city":"Oslo"}{"city":"Rome"}`},
		{"something after", `{"city":"Oslo"}]`},
		{"comma at the end", `{"city":"Oslo",}`},
		{"single quotes", `{'city':'Oslo'}`},
		{"byte order mark", "\ufeff" + `{"city":"Oslo"}`},
		{"too deep", `{"city":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			assert.Equal(t, toolUnreadable, toolReply(t, postTool(h, "/get_weather", row.body)))
			assert.Zero(t, *got, "the function is not called")
		})
	}
	assert.NotContains(t, log.String(), "Oslo", "no log shows a body")
}

func TestToolAnswersWithoutABody(t *testing.T) {
	h := newToolHandler(t)
	addWeather(t, h)
	r, err := http.NewRequest(http.MethodPost, "https://tools.example.com/get_weather", nil)
	require.NoError(t, err)
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
			h := newToolHandler(t)
			answerWith(t, h, func(context.Context) (string, error) { return "ignored beside an error", row.err })
			assert.Equal(t, row.want, toolReply(t, postTool(h, "/answer", "{}")))
		})
	}
}

type panickingError struct{}

func (panickingError) Error() string   { panic("in Error") }
func (panickingError) As(any) bool     { panic("in As") }
func (panickingError) Is(_ error) bool { return false }

func TestLogHoldsTheReason(t *testing.T) {
	for _, row := range []struct {
		name string
		f    func(context.Context) (string, error)
		want []string
	}{
		{"error", func(context.Context) (string, error) { return "", errors.New("dial db:5432") },
			[]string{`msg="tool failed"`, "tool=answer", `error="dial db:5432"`}},
		{"nil pointer", func(context.Context) (string, error) { return "", (*heads.ToolError)(nil) },
			[]string{`msg="tool failed"`, "tool=answer"}},
		{"panic", func(context.Context) (string, error) { panic("index out of luck") },
			[]string{`msg="tool panicked"`, "tool=answer", "index out of luck", "toolcall_test.go"}},
		{"ended goroutine", func(context.Context) (string, error) { runtime.Goexit(); return "", nil },
			[]string{`msg="tool panicked"`, "tool=answer"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log toolLog
			h := newToolHandler(t, loggedTo(&log))
			answerWith(t, h, row.f)
			assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
			for _, want := range row.want {
				assert.Contains(t, log.String(), want)
			}
		})
	}
}

func TestToolLogIsSilentByDefault(t *testing.T) {
	var log toolLog
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	h := newToolHandler(t)
	answerWith(t, h, func(context.Context) (string, error) { panic("loud") })
	assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
	assert.Empty(t, log.String())
}

func TestLogNamesUnusableArgumentsWithoutTheirValues(t *testing.T) {
	var log toolLog
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

func TestRepliesAreOneLine(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"plain", "5 degrees", "5 degrees"},
		{"empty", "", ""},
		{"newline", "one\ntwo", "one two"},
		{"windows newline", "one\r\ntwo", "one two"},
		{"many newlines", "\n\none \n\n  two\n", "one two"},
		{"tab and other controls", "one\ttwo\x00three\x1b[31m\u0085four\v\f", "one two three [31m four"},
		{"unicode separators", "one\u2028two\u2029three", "one two three"},
		{"spaces inside stay", "one  two", "one  two"},
		{"spaces around", "  one  ", "one"},
		{"invalid UTF-8", "caf\xe9 \xff\xfe!", "caf\ufffd \ufffd!"},
		{"quotes and markup", `"a" <b> & \c`, `"a" <b> & \c`},
		{"other scripts", "Zażółć 東京 🌦️", "Zażółć 東京 🌦️"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newToolHandler(t)
			answerWith(t, h, func(context.Context) (string, error) { return row.text, nil })
			rec := postTool(h, "/answer", "{}")
			assert.Equal(t, row.want, toolReply(t, rec))
			assert.True(t, utf8.Valid(rec.Body.Bytes()))
			assert.NotContains(t, rec.Body.String(), "\n")
		})
	}
	t.Run("of errors too", func(t *testing.T) {
		h := newToolHandler(t)
		answerWith(t, h, func(context.Context) (string, error) { return "", heads.ToolError{Message: "one\ntwo"} })
		assert.Equal(t, "one two", toolReply(t, postTool(h, "/answer", "{}")))
	})
}

func TestRepliesAreCut(t *testing.T) {
	for _, row := range []struct {
		name, text, want string
		limit            int
	}{
		{"fits", "12345", "12345", 5},
		{"one too many", "123456", "1234…", 5},
		{"fits in characters", "ééééé", "ééééé", 5},
		{"characters, not bytes", "éééééé", "éééé…", 5},
		{"no space before the cut", "123 56", "123…", 5},
		{"one character", "12", "…", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newToolHandler(t, heads.WithToolReplyLimit(row.limit))
			answerWith(t, h, func(context.Context) (string, error) { return row.text, nil })
			assert.Equal(t, row.want, toolReply(t, postTool(h, "/answer", "{}")))
		})
	}
	t.Run("default", func(t *testing.T) {
		h := newToolHandler(t)
		answerWith(t, h, func(context.Context) (string, error) { return strings.Repeat("x", 4001), nil })
		assert.Equal(t, strings.Repeat("x", 3999)+"…", toolReply(t, postTool(h, "/answer", "{}")))
	})
}

func TestFunctionThatIgnoresItsContextDoesNotHangTheReply(t *testing.T) {
	for _, row := range []struct {
		name string
		opts []heads.ToolHandlerOption
		want time.Duration
	}{
		{"default", nil, 10 * time.Second},
		{"set", []heads.ToolHandlerOption{heads.WithToolTimeout(3 * time.Second)}, 3 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log toolLog
				h := newToolHandler(t, append(row.opts, loggedTo(&log))...)
				answerWith(t, h, func(context.Context) (string, error) {
					<-time.After(time.Hour)
					return "late", nil
				})
				started := time.Now()
				assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
				assert.Equal(t, row.want, time.Since(started))
				assert.Contains(t, log.String(), `msg="tool call ended before its tool"`)
				assert.Contains(t, log.String(), "deadline exceeded")

				assert.NotContains(t, log.String(), "returned after")
				<-time.After(2 * time.Hour)
				synctest.Wait()
				assert.Contains(t, log.String(), `msg="tool returned after its call had ended"`)
				assert.Contains(t, log.String(), "took=1h0m0s")
			})
		})
	}
}

func TestLatePanicIsCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log toolLog
		h := newToolHandler(t, loggedTo(&log))
		answerWith(t, h, func(context.Context) (string, error) {
			<-time.After(time.Minute)
			panic("too late to matter")
		})
		assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
		<-time.After(2 * time.Minute)
		synctest.Wait()
		assert.Contains(t, log.String(), "too late to matter")
	})
}

func TestFunctionSeesTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t)
		started := time.Now()
		var deadline time.Time
		var ended error
		answerWith(t, h, func(ctx context.Context) (string, error) {
			deadline, _ = ctx.Deadline()
			<-ctx.Done()
			ended = ctx.Err()
			return "", ctx.Err()
		})
		assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
		synctest.Wait()
		assert.Equal(t, started.Add(10*time.Second), deadline)
		assert.ErrorIs(t, ended, context.DeadlineExceeded)
	})
}

func TestCallerThatLeavesEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t)
		var ended error
		answerWith(t, h, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			ended = ctx.Err()
			return "", ctx.Err()
		})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		started := time.Now()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/answer", strings.NewReader("{}")).WithContext(ctx))
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

func sendRaw(t *testing.T, conn net.Conn, text string) *http.Response {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	return response
}

func TestBodyMustArriveInTime(t *testing.T) {
	for _, row := range []struct {
		name string
		opts []heads.ToolHandlerOption
		code int
	}{
		{"in the handler", nil, http.StatusOK},
		{"in the check", []heads.ToolHandlerOption{heads.WithToolAuth(func(r *http.Request) error {
			_, err := io.ReadAll(r.Body)
			return err
		})}, http.StatusUnauthorized},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newToolHandler(t, row.opts...)
				addWeather(t, h)
				started := time.Now()
				response := sendRaw(t, overPipe(t, h), "POST /get_weather HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n{\"city\":")
				assert.Equal(t, row.code, response.StatusCode)
				assert.Equal(t, 5*time.Second, time.Since(started))
				if row.code == http.StatusOK {
					body, err := io.ReadAll(response.Body)
					require.NoError(t, err)
					assert.JSONEq(t, `{"message":"`+toolUnreadable+`"}`, string(body))
					assert.True(t, response.Close)
				}
			})
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
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newToolHandler(t, append(row.opts, heads.WithPathToken(toolToken))...)
				addWeather(t, h)
				if row.shutDown {
					require.NoError(t, h.Shutdown(t.Context()))
				}
				started := time.Now()
				conn := overPipe(t, h)
				response := sendRaw(t, conn, row.method+" "+row.path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n")
				_, err := io.Copy(io.Discard, response.Body)
				require.NoError(t, err)
				assert.Equal(t, row.code, response.StatusCode)
				_, err = conn.Read(make([]byte, 1))
				assert.ErrorIs(t, err, io.EOF, "the server closes the connection")
				assert.InDelta(t, 5, time.Since(started).Seconds(), 0.6, "net/http may linger for half a second")
			})
		})
	}
}

func TestTimeForTheBodyDoesNotEndTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t)
		answerWith(t, h, func(ctx context.Context) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(8 * time.Second):
				return "slow but sure", nil
			}
		})
		response := sendRaw(t, overPipe(t, h), "POST /answer HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.JSONEq(t, `{"message":"slow but sure"}`, string(body))
	})
}

// deadlineWriter keeps the read deadlines that are set.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *deadlineWriter) SetReadDeadline(d time.Time) error {
	w.deadlines = append(w.deadlines, d)
	return nil
}

func TestTimeForTheBodyIsTakenBackBeforeTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t)
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
		var atCall []time.Time
		answerWith(t, h, func(context.Context) (string, error) {
			atCall = w.deadlines
			return "done", nil
		})
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/answer", strings.NewReader("{}")))
		assert.Equal(t, "done", toolReply(t, w.ResponseRecorder))
		assert.Equal(t, []time.Time{time.Now().Add(5 * time.Second), {}}, atCall)
	})
}

func TestSlowCheckLeavesTimeForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t, heads.WithToolAuth(func(*http.Request) error { <-time.After(6 * time.Second); return nil }))
		got := addWeather(t, h)
		conn := overPipe(t, h)
		time.AfterFunc(7*time.Second, func() { _, _ = io.WriteString(conn, `{"city":"Oslo"}`) })
		response := sendRaw(t, conn, "POST /get_weather HTTP/1.1\r\nHost: a\r\nContent-Length: 15\r\n\r\n")
		assert.Equal(t, http.StatusOK, response.StatusCode)
		_, err := io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
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
