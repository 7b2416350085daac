package heads

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drippingBody returns one byte each second. After its text it blocks until it is
// closed.
type drippingBody struct {
	text   string
	closed chan struct{}
}

func (r *drippingBody) Read(p []byte) (int, error) {
	if r.text == "" {
		<-r.closed
		return 0, io.EOF
	}
	<-time.After(time.Second)
	n := copy(p[:1], r.text)
	r.text = r.text[n:]
	return n, nil
}

func TestDrippingBodyIsRefusedAfterThreeSeconds(t *testing.T) {
	for name, text := range map[string]string{
		"a byte a second": strings.Repeat(" ", 10),
		"nothing":         "",
		"a beginning":     "{",
	} {
		Bubble(t, name, func(t *testing.T) {
			h := newReceiver(t, nil)
			body := &drippingBody{text: text, closed: make(chan struct{})}
			r := signedEvent("{}", testKeyA)
			r.Body = io.NopCloser(body)

			begun := time.Now()
			w := serveEvent(h, r)

			assert.Equal(t, 3*time.Second, time.Since(begun))
			assert.Equal(t, http.StatusRequestTimeout, w.Code)
			assert.Equal(t, "close", w.Header().Get("Connection"))
			assert.Zero(t, h.calls.Load())
			assert.Equal(t, []DeliveryOutcome{DeliveryTooSlow}, h.outcomes())
			close(body.closed) // as the server does with the connection

			// The abandoned reader must not write into a buffer that is in use.
			for i := range 10 {
				assert.Equal(t, 200, h.post(recentEventBody(testHeadA, fmt.Sprint(i)), testKeyA))
				<-time.After(time.Second)
			}
		})
	}
}

// slowBodyStart returns io.EOF after two seconds.
type slowBodyStart struct{}

func (slowBodyStart) Read([]byte) (int, error) {
	<-time.After(2 * time.Second)
	return 0, io.EOF
}

// plainEventWriter hides all optional methods of a ResponseWriter, as some
// middleware does.
type plainEventWriter struct{ w http.ResponseWriter }

func (h plainEventWriter) Header() http.Header         { return h.w.Header() }
func (h plainEventWriter) Write(p []byte) (int, error) { return h.w.Write(p) }
func (h plainEventWriter) WriteHeader(status int)      { h.w.WriteHeader(status) }

// wrappings are ways in which a server calls a handler.
var wrappings = map[string]func(http.Handler) http.Handler{
	"net/http": func(h http.Handler) http.Handler { return h },
	"behind middleware that hides the connection": func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(plainEventWriter{w}, r) })
	},
}

// On real connections, a body that stalls is answered, and the deadline is removed
// before the function is called.
func TestBodyDeadlineOnRealConnections(t *testing.T) {
	t.Parallel()
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 250 * time.Millisecond
			h := newReceiver(t, func(ctx context.Context, _ *Event) error {
				<-time.After(limit * 3 / 2)
				return ctx.Err()
			})
			h.bodyTimeout = limit
			server := httptest.NewServer(wrap(h))
			defer server.Close()

			conn := Must(net.Dial("tcp", server.Listener.Addr().String()))(t)
			defer func() { _ = conn.Close() }()
			answer := SendRaw(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n{")
			assert.Equal(t, http.StatusRequestTimeout, answer.StatusCode)
			assert.True(t, answer.Close, "the connection is not used again")

			for i := range 2 { // the second on the same connection
				r := signedEvent(recentEventBody(testHeadA, fmt.Sprint(i)), testKeyA)
				answer := Must(server.Client().Do(outgoingEvent(t, r, server.URL)))(t)
				_ = answer.Body.Close()
				assert.Equal(t, http.StatusOK, answer.StatusCode)
			}
		})
	}
}

// A delivery that is refused before its body is read must not wait for that body.
// If it has no body, its connection stays usable.
func TestRefusedDeliveryDoesNotHoldItsConnection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, method string
		shutDown     bool
		status       int
	}{
		{"wrong method", "PUT", false, http.StatusMethodNotAllowed},
		{"after Shutdown", "POST", true, http.StatusServiceUnavailable},
		{"wrong method after Shutdown", "DELETE", true, http.StatusServiceUnavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			const limit = 250 * time.Millisecond
			h := newReceiver(t, nil)
			h.bodyTimeout = limit
			if row.shutDown {
				require.NoError(t, h.Shutdown(t.Context()))
			}
			server := httptest.NewServer(h)
			defer server.Close()
			conn := Must(net.Dial("tcp", server.Listener.Addr().String()))(t)
			defer func() { _ = conn.Close() }()
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
			for range 2 {
				assert.Equal(t, row.status, SendRaw(t, conn, row.method+" / HTTP/1.1\r\nHost: x\r\n\r\n").StatusCode)
				<-time.After(limit * 3 / 2)
			}
			assert.Equal(t, row.status, SendRaw(t, conn, row.method+" / HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n{").StatusCode)
			assert.ErrorIs(t, ErrorOf(conn.Read(make([]byte, 1))), io.EOF, "the server ends the connection")
		})
	}
}

// HTTP/1 readers trim header values; HTTP/2 readers do not.
func TestSpaceAroundTheSignatureIsIgnored(t *testing.T) {
	body := recentEventBody(testHeadA, "s")
	good := Sign([]byte(body), testKeyA)
	for _, row := range []struct {
		name, value string
		status      int
	}{
		{"before", " " + good, 200},
		{"after", good + " ", 200},
		{"tabs and spaces", "\t  sha256=" + good + " \t", 200},
		{"inside", good[:32] + " " + good[32:], 401},
		{"nothing else", "  ", 401},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newReceiver(t, nil)
			r := signedEvent(body, testKeyA)
			r.Header.Set(SignatureHeader, row.value) // as an HTTP/2 reader returns it
			assert.Equal(t, row.status, serveEvent(h, r).Code)
			over2 := h.log.String()

			raw := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n" + SignatureHeader + ":" + row.value + "\r\n\r\n" + body
			r = Must(http.ReadRequest(bufio.NewReader(strings.NewReader(raw))))(t)
			assert.Equal(t, row.status, serveEvent(h, r).Code)
			if row.status != 200 {
				for _, reason := range []error{ErrSignatureMissing, ErrSignatureMalformed} {
					both := strings.Count(h.log.String(), reason.Error())
					assert.Equal(t, both, 2*strings.Count(over2, reason.Error()), "the same reason")
				}
			}
		})
	}
}

func TestLimitOfAHandlerInFrontIsTooLarge(t *testing.T) {
	t.Parallel()
	for name, wrap := range wrappings {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " chunked ", chunked), func(t *testing.T) {
				t.Parallel()
				h := newReceiver(t, nil)
				server := httptest.NewServer(http.MaxBytesHandler(wrap(h), 1000))
				defer server.Close()
				body := paddedBody(recentEventBody(testHeadA, "s"), 1001)
				r := outgoingEvent(t, signedEvent(body, testKeyA), server.URL)
				if !chunked {
					r.ContentLength = int64(len(body))
				}
				answer := Must(server.Client().Do(r))(t)
				_ = answer.Body.Close()
				assert.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
				assert.Zero(t, h.calls.Load())
				assert.Equal(t, []DeliveryOutcome{DeliveryTooLarge}, h.outcomes())
				assert.ErrorContains(t, h.seen[0].Err, "1000 bytes")
			})
		}
	}
}

// Over HTTP/2 the requests of all senders behind a proxy may share one connection.
func TestRefusedBodyLeavesAnHTTP2ConnectionOpen(t *testing.T) {
	t.Parallel()
	h := newReceiver(t, nil)
	h.bodyTimeout = 250 * time.Millisecond
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var reused []bool
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = append(reused, info.Reused) }}
	stalled, write := io.Pipe()
	defer func() { _ = write.Close() }()
	for _, row := range []struct {
		body   io.ReadCloser
		status int
	}{{io.NopCloser(strings.NewReader(strings.Repeat("x", 65<<10))), 413}, {nil, 200}, {stalled, 408}} {
		r := outgoingEvent(t, signedEvent(recentEventBody(testHeadA, "s"), testKeyA), server.URL)
		if row.body != nil {
			r.Body = row.body
		}
		answer := Must(server.Client().Do(r.WithContext(httptrace.WithClientTrace(t.Context(), trace))))(t)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		assert.Equal(t, row.status, answer.StatusCode)
		assert.Equal(t, 2, answer.ProtoMajor)
	}
	assert.Equal(t, []bool{false, true, true}, reused)
}

// outgoingEvent turns a request for a server into one that a client can send.
func outgoingEvent(t *testing.T, r *http.Request, url string) *http.Request {
	t.Helper()
	out := Must(http.NewRequestWithContext(t.Context(), r.Method, url, r.Body))(t)
	out.Header = r.Header
	return out
}
