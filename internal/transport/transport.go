// Package transport makes calls of an HTTP API. One call may take several attempts: the
// package retries, limits the rate, renews the token and tells observers. It knows requests
// and answers, not heads.
package transport

import (
	"context"
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
	Log            func(context.Context, Attempt) // nil for none

	// Failure returns the error of an attempt that failed, for observers and the log. It
	// shows no secret.
	Failure func(*Call) error
}

// RetryPolicy sets how often a request is retried and how long the waits are.
type RetryPolicy struct {
	MaxRetries       int
	MinWait, MaxWait time.Duration
}

// Attempt describes one attempt. What is known only after it is zero when it begins.
type Attempt struct {
	Operation  string
	Method     string
	Route      string
	Host       string
	Number     int
	StatusCode int
	Duration   time.Duration
	RequestID  string
	Err        error
	Final      bool
	RetryIn    time.Duration
	Waited     time.Duration
	Header     http.Header
}

// Observer is told when an attempt begins and when it has ended. Start returns the context of
// the attempt, and End is called with it. Either may be nil. They don't panic.
type Observer struct {
	Start func(ctx context.Context, a Attempt) context.Context
	End   func(ctx context.Context, a Attempt)
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
