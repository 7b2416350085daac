package headstest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"

	heads "github.com/headsapi/heads-go"
)

// memoryURL is the base URL of clients that reach the emulator in memory. Its
// host is never looked up.
const memoryURL = "https://emulator.example.test"

// Client returns a client that reaches the emulator in memory, without a socket. It
// can be used in a testing/synctest bubble. Client panics if an option is refused.
func (e *Emulator) Client(opts ...heads.Option) *heads.Client {
	inMemory := heads.WithHTTPClient(&http.Client{Transport: e.Transport()})
	return newClient(memoryURL, e.BearerToken(), append([]heads.Option{inMemory}, opts...))
}

func newClient(baseURL, token string, opts []heads.Option) *heads.Client {
	c, err := heads.New(baseURL, token, opts...)
	if err != nil {
		panic("headstest: " + err.Error())
	}
	return c
}

// Transport returns a transport that passes every request to the emulator without a
// socket, whatever its host. If a fault cuts the connection, the transport returns
// io.EOF, or the body returns io.ErrUnexpectedEOF.
func (e *Emulator) Transport() http.RoundTripper { return transport{e} }

// transport passes requests to a handler in the goroutine of the caller.
type transport struct{ handler http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	rec := httptest.NewRecorder()
	cut := serve(t.handler, rec, received(r))
	if r.Body != nil {
		_ = r.Body.Close()
	}
	switch {
	case cut && !rec.Flushed && r.Context().Err() != nil:
		return nil, context.Cause(r.Context())
	case cut && !rec.Flushed: // a server would have sent nothing
		return nil, io.EOF
	}
	resp := rec.Result()
	resp.Request = r
	if cut {
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, broken{}))
	}
	return resp, nil
}

// received returns a request as a server passes it to its handler.
func received(r *http.Request) *http.Request {
	got := r.Clone(r.Context())
	got.RemoteAddr = remoteAddr
	got.RequestURI = r.URL.RequestURI()
	if got.Body == nil {
		got.Body = http.NoBody
	}
	return got
}

// serve reports whether the handler cut the connection.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (cut bool) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			cut = true
		default:
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return false
}

// broken is the rest of a body whose connection was cut.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// handlerTransport passes deliveries and tool calls to a handler, each in its own goroutine,
// so a handler that exceeds its time limit does not block the emulator. Close waits for these
// goroutines.
type handlerTransport struct {
	core    *core
	handler http.Handler
}

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	type result struct {
		resp *http.Response
		err  error
	}
	done := make(chan result, 1)
	t.core.mu.Lock()
	if t.core.closed {
		t.core.mu.Unlock()
		return nil, ErrClosed
	}
	t.core.workers.Go(func() {
		resp, err := transport{t.handler}.RoundTrip(r) //nolint:bodyclose // the caller closes it
		done <- result{resp, err}
	})
	t.core.mu.Unlock()
	select {
	case got := <-done:
		return got.resp, got.err
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}
