package heads

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The base URL of the tests has a path, so that a request which does not start
// at the base URL misses the service.
const (
	prefix    = "/api/v3"
	memoryURL = "https://api.example.com" + prefix
	pathToken = "token-of-the-tests"
	testHead  = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	headJSON  = `{"id":"` + testHead + `","name":"Ada"}`
)

// atOncePolicy repeats as often as the default, without waits.
var atOncePolicy = RetryPolicy{MaxRetries: 3}

// newTestClient returns a client over a transport, that repeats at once.
func newTestClient(t testing.TB, baseURL string, transport http.RoundTripper, opts ...Option) *Client {
	t.Helper()
	all := []Option{WithHTTPClient(&http.Client{Transport: transport}), WithRetryPolicy(atOncePolicy)}
	client, err := New(baseURL, pathToken, append(all, opts...)...)
	require.NoError(t, err)
	return client
}

// serve starts a service on a socket, in which h sees paths without the
// prefix, and returns a client of it with connections of its own.
func serve(t testing.TB, h http.HandlerFunc, opts ...Option) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		assert.Fail(t, "a request beside the base URL", r.URL.Path)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return newTestClient(t, server.URL+prefix, newTransport(t), opts...)
}

// newTransport returns a transport whose connections end with the test.
func newTransport(t testing.TB) *http.Transport {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// step answers one request in memory.
type step func(*http.Request) (*http.Response, error)

// answer is a step: a status with a body, and headers as "Name: value".
func answer(status int, body string, headers ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		header := http.Header{}
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			header.Add(name, value)
		}
		return &http.Response{
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
		}, nil
	}
}

// fail is a step: no answer, but an error of the transport.
func fail(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hang is a step: no answer until the request is given up.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// script is a transport in memory that takes one step a request, and the last
// one for ever. It keeps what it was sent.
type script struct {
	mu       sync.Mutex
	steps    []step
	requests []*http.Request
	bodies   []string
}

func newScript(steps ...step) *script { return &script{steps: steps} }

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("reading the request's body: %w", err)
		}
		r.Body.Close()
		body = string(raw)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.bodies = append(s.bodies, body)
	next := s.steps[min(len(s.requests), len(s.steps))-1]
	s.mu.Unlock()
	return next(r)
}

// sent is how many requests the transport has seen.
func (s *script) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// calls are real methods, one for each HTTP method.
var calls = []struct {
	method string
	run    func(context.Context, *Client) error
}{
	{"GET", func(ctx context.Context, c *Client) error {
		_, err := c.Heads.Get(ctx, testHead)
		return err
	}},
	{"PUT", func(ctx context.Context, c *Client) error {
		_, err := c.Heads.Update(ctx, NewHeadUpdate(testHead).Name("Ada"))
		return err
	}},
	{"PATCH", func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, true))
		return err
	}},
	{"DELETE", func(ctx context.Context, c *Client) error {
		return c.Webhooks.Delete(ctx, 7)
	}},
	{"POST", func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{
			HeadID: testHead, URL: "https://hooks.example.com/heads", Events: []EventType{EventStartConversation},
		})
		return err
	}},
}

// getHead is a call without a body, postHook one that must not be repeated
// lightly.
var getHead, postHook = calls[0].run, calls[4].run
