package heads_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// addStuck adds a tool that ignores its context until free is closed.
func addStuck(t testing.TB, h *heads.ToolHandler) (free chan struct{}) {
	t.Helper()
	free = make(chan struct{})
	answerWith(t, h, func(context.Context) (string, error) {
		<-free
		return "done", nil
	})
	return free
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
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log toolLog
				h := newToolHandler(t, append(row.opts, loggedTo(&log))...)
				free, functions := make(chan struct{}), atomic.Int32{}
				answerWith(t, h, func(context.Context) (string, error) {
					functions.Add(1)
					<-free
					return "done", nil
				})
				for range row.limit {
					assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
				}
				started := time.Now()
				for range 10 {
					assert.Equal(t, toolBusy, toolReply(t, postTool(h, "/answer", "{}")))
				}
				assert.Zero(t, time.Since(started), "a busy handler answers at once")
				assert.EqualValues(t, row.limit, functions.Load())
				assert.Contains(t, log.String(), "too many functions are running")

				close(free)
				synctest.Wait()
				assert.Equal(t, "done", toolReply(t, postTool(h, "/answer", "{}")), "a function that returned makes room")
			})
		})
	}
}

func TestFunctionsThatReturnMakeRoom(t *testing.T) {
	h := newToolHandler(t, heads.WithToolConcurrency(1))
	outcomes := map[string]func() (string, error){
		"text":  func() (string, error) { return "done", nil },
		"error": func() (string, error) { return "", errors.New("broken") },
		"panic": func() (string, error) { panic("broken") },
		"exit":  func() (string, error) { runtime.Goexit(); return "", nil },
	}
	var f func() (string, error)
	answerWith(t, h, func(context.Context) (string, error) { return f() })
	for name := range outcomes {
		f = outcomes[name]
		for range 3 {
			assert.NotEqual(t, toolBusy, toolReply(t, postTool(h, "/answer", "{}")), name)
		}
	}
}

func TestShutdownWaitsForCallsUnderWay(t *testing.T) {
	for _, row := range []struct {
		name  string
		after time.Duration
	}{
		{"in time", time.Second},
		{"after the call was answered", time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newToolHandler(t)
				started, finished := time.Now(), false
				answerWith(t, h, func(context.Context) (string, error) {
					<-time.After(row.after)
					finished = true
					return "done", nil
				})
				replied := make(chan *httptest.ResponseRecorder, 1)
				go func() { replied <- postTool(h, "/answer", "{}") }()
				synctest.Wait()
				require.NoError(t, h.Shutdown(t.Context()))
				assert.True(t, finished)
				assert.Equal(t, row.after, time.Since(started))
				want := "done"
				if row.after == time.Hour {
					want = toolFailed
				}
				assert.Equal(t, want, toolReply(t, <-replied))
			})
		})
	}
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newToolHandler(t)
		free := addStuck(t, h)
		assert.Equal(t, toolFailed, toolReply(t, postTool(h, "/answer", "{}")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		started := time.Now()
		require.ErrorIs(t, h.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(started))
		close(free)
		require.NoError(t, h.Shutdown(t.Context()), "Shutdown may be called again")
	})
}

func TestAfterShutdownNoFunctionIsCalled(t *testing.T) {
	var log toolLog
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

func TestToolObserverSeesEveryOutcome(t *testing.T) {
	broken := errors.New("broken")
	answers := func(text string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, err }
	}
	for _, row := range []struct {
		name, body string
		f          func(context.Context) (string, error)
		opts       []heads.ToolHandlerOption
		shutDown   bool
		want       heads.ToolCallInfo
		err        string
	}{
		{name: "text", f: answers("done", nil), want: heads.ToolCallInfo{Outcome: heads.ToolAnswered, SessionID: "s-1"}},
		{name: "ToolError", f: answers("", fmt.Errorf("wrapped: %w", heads.ToolError{Message: "ask"})),
			want: heads.ToolCallInfo{Outcome: heads.ToolTold, SessionID: "s-1"}},
		{name: "error", f: answers("", broken), want: heads.ToolCallInfo{Outcome: heads.ToolFailed, SessionID: "s-1"}, err: "broken"},
		{name: "panic", f: func(context.Context) (string, error) { panic("luck") },
			want: heads.ToolCallInfo{Outcome: heads.ToolPanicked, SessionID: "s-1"}, err: "luck"},
		{name: "ended goroutine", f: func(context.Context) (string, error) { runtime.Goexit(); return "", nil },
			want: heads.ToolCallInfo{Outcome: heads.ToolPanicked, SessionID: "s-1"}, err: "ended its goroutine"},
		{name: "time-out", f: func(ctx context.Context) (string, error) { <-time.After(time.Minute); return "late", nil },
			want: heads.ToolCallInfo{Outcome: heads.ToolTimedOut, SessionID: "s-1", Duration: 10 * time.Second}, err: "deadline exceeded"},
		{name: "error at the deadline", f: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			want: heads.ToolCallInfo{Outcome: heads.ToolTimedOut, SessionID: "s-1", Duration: 10 * time.Second}, err: "deadline exceeded"},
		{name: "unreadable", body: "{", want: heads.ToolCallInfo{Outcome: heads.ToolUnreadable}, err: "not a JSON object"},
		{name: "too large", body: strings.Repeat(" ", 65<<10), want: heads.ToolCallInfo{Outcome: heads.ToolUnreadable}, err: "too large"},
		{name: "unauthorized", opts: []heads.ToolHandlerOption{heads.WithToolAuth(func(*http.Request) error { return broken })},
			want: heads.ToolCallInfo{Outcome: heads.ToolUnauthorized}, err: "broken"},
		{name: "shut down", shutDown: true, want: heads.ToolCallInfo{Outcome: heads.ToolBusy}, err: "shut down"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []heads.ToolCallInfo
				h := newToolHandler(t, append(row.opts, observed(&calls))...)
				answerWith(t, h, row.f)
				if row.shutDown {
					require.NoError(t, h.Shutdown(t.Context()))
				}
				body := row.body
				if body == "" {
					body = `{"session_metadata":{"session_id":"s-1"}}`
				}
				postTool(h, "/answer", body)
				require.Len(t, calls, 1)
				if row.err == "" {
					assert.NoError(t, calls[0].Err)
				} else {
					assert.ErrorContains(t, calls[0].Err, row.err)
				}
				row.want.Tool, row.want.Err = "answer", calls[0].Err
				assert.Equal(t, row.want, calls[0])
				<-time.After(time.Hour)
				assert.Len(t, calls, 1, "a function that returns late is not observed again")
			})
		})
	}
}

func TestToolObserverSeesBusyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []heads.ToolCallInfo
		h := newToolHandler(t, heads.WithToolConcurrency(1), observed(&calls))
		free := addStuck(t, h)
		postTool(h, "/answer", "{}")
		postTool(h, "/answer", "{}")
		close(free)
		require.Len(t, calls, 2)
		assert.Equal(t, heads.ToolTimedOut, calls[0].Outcome)
		assert.Equal(t, heads.ToolBusy, calls[1].Outcome)
		assert.ErrorContains(t, calls[1].Err, "too many functions are running")
	})
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

func TestToolObserverIsToldTheSession(t *testing.T) {
	var sessionID string
	h := newToolHandler(t, heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: func(_ context.Context, call heads.ToolCallInfo) {
		sessionID = call.SessionID
	}}))
	addWeather(t, h)
	postTool(h, "/get_weather", toolDocument(t, "call_flat.json"))
	assert.Equal(t, "5c0f1f6e-6f53-4a35-9d0c-3a8f2f1f7a10", sessionID)
}

func TestToolObserverDoesNotSeeRequestsThatMissEveryTool(t *testing.T) {
	var calls []heads.ToolCallInfo
	h := newToolHandler(t, heads.WithPathToken(toolToken), observed(&calls))
	addWeather(t, h)
	postTool(h, "/"+toolToken+"/no_such_tool", "{}")
	postTool(h, "/wrong/get_weather", "{}")
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/"+toolToken+"/get_weather", nil))
	assert.Empty(t, calls)
}

func TestToolObserverMayPanic(t *testing.T) {
	var log toolLog
	h := newToolHandler(t, loggedTo(&log), heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: func(context.Context, heads.ToolCallInfo) { panic("observer broke") }}))
	addWeather(t, h)
	assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", `{"city":"Oslo"}`)))
	assert.Contains(t, log.String(), "observer broke")
	require.NoError(t, h.Shutdown(t.Context()), "the call has ended")
}
