package headstest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
)

// Transport returns a transport that hands every request to the emulator
// without a socket, whatever its host. A connection that a fault cuts is an
// io.EOF, or an io.ErrUnexpectedEOF while the body is read.
func (e *Emulator) Transport() http.RoundTripper { return transport{e} }

type transport struct{ emulator *Emulator }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, context.Cause(r.Context())
	}
	w := &memoryWriter{header: http.Header{}}
	cut := w.serve(t.emulator, r.Clone(r.Context()))
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if cut && w.status == 0 {
		if r.Context().Err() != nil {
			return nil, context.Cause(r.Context())
		}
		return nil, io.EOF
	}
	return w.response(r, cut), nil
}

// memoryWriter is an http.ResponseWriter that keeps the answer.
type memoryWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) WriteHeader(status int)      { w.status = status }
func (w *memoryWriter) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *memoryWriter) Flush()                      {}

// serve reports whether the connection was cut.
func (w *memoryWriter) serve(h http.Handler, r *http.Request) (cut bool) {
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

func (w *memoryWriter) response(r *http.Request, cut bool) *http.Response {
	var body io.Reader = &w.body
	if cut {
		body = io.MultiReader(body, broken{})
	}
	length, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(body), ContentLength: length, Request: r,
	}
}

// broken is the rest of a body whose connection was cut.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
