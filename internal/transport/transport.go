// Package transport makes calls of an HTTP API. One call may take several attempts: the
// package retries, limits the rate, renews the token and tells observers. It knows requests
// and answers, not heads.
package transport

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Config is what a Client is made of. Nothing changes it afterwards.
type Config struct {
	Base           *url.URL // its path has no slash at the end
	RoundTripper   http.RoundTripper
	Jar            http.CookieJar // nil for none
	UserAgent      string
	Token          string      // unless there is a TokenSource
	TokenSource    TokenSource // nil for a fixed token
	Retry          RetryPolicy
	Limiter        *rate.Limiter // nil for no limit
	AttemptTimeout time.Duration
	Observers      []Observer
	Logger         *slog.Logger // nil for none

	// Failure returns the error of an attempt that failed, for observers and the log. It
	// shows no secret.
	Failure func(*Call) error
}

// Client makes calls. It is safe for concurrent use.
type Client struct {
	Config
	userAgent   []string // shared by all requests
	credentials *credentials
	pace        pace
}

// New returns a client.
func New(c Config) *Client {
	return &Client{
		Config:      c,
		userAgent:   []string{c.UserAgent},
		credentials: newCredentials(c.Token, c.TokenSource),
		pace:        pace{limiter: c.Limiter},
	}
}

// Operation is one endpoint of the service.
type Operation struct {
	Name, Method, Route string // "Heads.Get", "GET", "/head/{id}"
	Repeatable          bool   // it may be retried even if it may have been carried out

	before, after string // the path around its parameter
	escaped       string // the whole path, if it is not that of the route
}

// NewOperation returns an operation whose path is its route, with the parameter in place of
// the braces.
func NewOperation(name, method, route string) *Operation {
	op := &Operation{Name: name, Method: method, Route: route, Repeatable: method != http.MethodPost}
	before, rest, found := strings.Cut(route, "{")
	op.before = before
	if found {
		_, op.after, _ = strings.Cut(rest, "}")
	}
	return op
}

// At returns the operation with a path of its own, given unescaped and escaped. The route is
// only a label.
func (op Operation) At(path, escaped string) *Operation {
	op.before, op.after, op.escaped = path, "", escaped
	return &op
}

// Request is what a call sends.
type Request struct {
	Param    string // of the route, unescaped
	RawQuery string
	Body     []byte      // JSON; nil for none
	Header   http.Header // added to that of the client, and instead of it
	Once     bool        // without retries
}

// Do makes a call. It returns an error if no attempt was made, because there was no token or
// the context left no time. The caller has to release the call.
func (c *Client) Do(ctx context.Context, op *Operation, r Request) (*Call, error) {
	cred, err := c.credentials.get(ctx)
	if err != nil {
		return nil, err
	}
	call := &Call{
		Op:         op,
		client:     c,
		credential: cred,
		hasBody:    r.Body != nil,
		added:      r.Header,
		Body:       bodies.Get().(*bytes.Buffer),
	}
	if !r.Once {
		call.maxRetries = c.Retry.MaxRetries
	}
	call.prepare(ctx, r)
	if err = call.send(r.Body); call.Attempts > 0 {
		return call, nil
	}
	if call.WaitErr != nil {
		err = call.WaitErr
	}
	call.Release()
	return nil, err
}
