package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// newTransport returns a transport that opens a connection for each request: one that
// is kept could be that of a back end that was killed.
func newTransport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
}

// outbound sends the deliveries and the tool calls of an emulator. The time to answer
// begins when an attempt is made, not while it is held at the gate.
type outbound struct {
	transport                 http.RoundTripper
	gate                      *gate
	strays                    func(*url.URL) bool
	eventTimeout, toolTimeout time.Duration
}

var errNobodyElse = errors.New("the URL is not below the url of the back end, and a test calls nobody else")

// signature is the header that an event has and a tool call has not.
const signature = "X-Signature-256"

func (o *outbound) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.strays(r.URL) {
		return nil, errNobodyElse
	}
	limit := o.toolTimeout
	if r.Header.Get(signature) != "" {
		limit = o.eventTimeout
		if err := o.gate.pass(r.Context()); err != nil {
			return nil, err
		}
	}
	late := fmt.Errorf("no answer within %v", limit)
	ctx, cancel := context.WithTimeoutCause(r.Context(), limit, late)
	response, err := o.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, orCause(ctx, err)
	}
	response.Body = &limitedBody{response.Body, ctx, cancel}
	return response, nil
}

// orCause returns why a context has ended, or the error of a request.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// limitedBody is a body that must be complete before a time.
type limitedBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the request
	cancel context.CancelFunc
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = orCause(b.ctx, err)
	}
	return n, err
}

func (b *limitedBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// gate holds deliveries while a back end gets ready.
type gate struct {
	mu     sync.Mutex
	depth  int           // of close without open
	opened chan struct{} // closed while the gate is open
	since  time.Time     // when it was closed
	closed []span
}

// span is a time during which the gate was closed.
type span struct{ from, to time.Time }

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.depth++; g.depth == 1 {
		g.opened, g.since = make(chan struct{}), time.Now()
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.depth--; g.depth == 0 {
		g.closed = append(g.closed, span{g.since, time.Now()})
		close(g.opened)
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// held returns how much of an attempt was spent at the gate.
func (g *gate) held(from time.Time, took time.Duration) (held time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	to := from.Add(took)
	for _, s := range g.closed {
		first, last := s.from, s.to
		if first.Before(from) {
			first = from
		}
		if last.After(to) {
			last = to
		}
		held += max(last.Sub(first), 0)
	}
	return held
}
