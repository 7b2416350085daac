package heads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openConnections counts the open connections of a server.
type openConnections struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	made int
}

func (o *openConnections) watch(conn net.Conn, state http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew:
		o.made++
		o.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(o.open, conn)
	}
}

func (o *openConnections) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open)
}

// countingServer is a service that counts its connections.
func countingServer(t testing.TB, h http.HandlerFunc) (*httptest.Server, *openConnections) {
	connections := &openConnections{open: map[net.Conn]bool{}}
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = connections.watch
	server.Start()
	t.Cleanup(server.Close)
	return server, connections
}

// failures are the ways in which a call on a socket can fail.
var failures = map[string]struct {
	handler http.HandlerFunc
	call    func(context.Context, *Client) error // getHead when nil
	opts    []Option
}{
	"400":      {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }},
	"500":      {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }},
	"redirect": {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }},
	"hour to wait": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
	}},
	"long error": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 100<<10))
	}},
	"text": {handler: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "OK") }},
	"too long": {handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 9<<20))
	}},
	"cut off": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "{")
	}},
	"hung up":           {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"hung up on a POST": {call: postHook, handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"refused token":     {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }},
	"cancelled in an attempt": {
		handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		call:    withTimeout(time.Millisecond),
	},
	"cancelled in an answer": {
		handler: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		call: withTimeout(time.Millisecond),
	},
	"cancelled in a wait": {
		handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		call: func(ctx context.Context, c *Client) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return getHead(context.WithValue(ctx, cancelKey{}, cancel), c)
		},
		opts: []Option{
			WithRetryPolicy(RetryPolicy{MaxRetries: 3, MinWait: time.Hour, MaxWait: time.Hour}),
			WithObserver(Observer[Attempt]{End: func(ctx context.Context, _ Attempt) {
				if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
					time.AfterFunc(time.Microsecond, cancel)
				}
			}}),
		},
	},
	"attempt took too long": {
		handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		opts:    []Option{WithAttemptTimeout(time.Millisecond), WithRetryPolicy(RetryPolicy{MaxRetries: 1})},
	},
}

type cancelKey struct{}

func withTimeout(d time.Duration) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return getHead(ctx, c)
	}
}

func TestFailingCallsLeaveNothingBehind(t *testing.T) {
	for name, row := range failures {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			server, connections := countingServer(t, row.handler)
			transport := &http.Transport{}
			client := newTestClient(t, server.URL+prefix, transport, row.opts...)
			call := row.call
			if call == nil {
				call = getHead
			}
			for range 20 {
				require.Error(t, call(t.Context(), client))
			}
			// An attempt that timed out may have opened a second connection.
			settles(t, func() bool { return connections.count() <= http.DefaultMaxIdleConnsPerHost }, "only idle connections are open")
			transport.CloseIdleConnections()
			settles(t, func() bool { return connections.count() == 0 }, "no connection is open")
			server.Close()
			settles(t, func() bool { return runtime.NumGoroutine() <= before }, "no goroutine is left")
		})
	}
}

func TestUnreachableServiceLeavesNothingBehind(t *testing.T) {
	for name, make := range map[string]func(testing.TB) *wire{
		"refused": refusing, "reset": resetting(true), "unknown host": unknownHost, "untrusted": untrusted,
	} {
		t.Run(name, func(t *testing.T) {
			server := make(t)
			client := newTestClient(t, server.url+prefix, server.transport)
			require.Error(t, getHead(t.Context(), client))
			before := runtime.NumGoroutine()
			for range 20 {
				require.Error(t, getHead(t.Context(), client))
			}
			settles(t, func() bool { return runtime.NumGoroutine() <= before }, "no goroutine is left")
		})
	}
}

func TestFailuresBeforeSendingLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	tr := newScript(answer(200, ""))
	client := sourceClient(t, tr, func(context.Context, string) (string, error) { return "", errors.New("no token") })
	for range 20 {
		require.Error(t, getHead(t.Context(), client))
		require.ErrorIs(t, withTimeout(-1)(t.Context(), client), context.DeadlineExceeded)
		_, err := client.Heads.Get(t.Context(), "li-28379")
		require.ErrorIs(t, err, ErrInvalid)
	}
	assert.Equal(t, 0, tr.sent())
	settles(t, func() bool { return runtime.NumGoroutine() <= before }, "no goroutine is left")
}

// A connection can be reused only if the answer is read to its end.
func TestFailuresKeepTheConnection(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"short": "no", "4 KiB": strings.Repeat("x", 4<<10), "1 MiB": strings.Repeat("x", 1<<20)} {
		for _, code := range []int{200, 400, 503} {
			t.Run(fmt.Sprint(name, " ", code), func(t *testing.T) {
				requests := 0
				server, connections := countingServer(t, func(w http.ResponseWriter, _ *http.Request) {
					requests++
					w.WriteHeader(code)
					_, _ = io.WriteString(w, body)
				})
				client := newTestClient(t, server.URL+prefix, newTransport(t))
				for range 5 {
					require.Error(t, getHead(t.Context(), client))
				}
				assert.GreaterOrEqual(t, requests, 5)
				assert.LessOrEqual(t, connections.made, 2, "net/http gives up a connection that is not idle again within 50 ms")
			})
		}
	}
}

// settles waits for a condition that the server or the transport meets after a
// call has returned.
func settles(t testing.TB, done func() bool, says string) {
	t.Helper()
	timeout, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			stacks := make([]byte, 1<<20)
			require.Fail(t, says, string(stacks[:runtime.Stack(stacks, true)]))
		}
	}
}
