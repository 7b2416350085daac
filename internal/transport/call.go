package transport

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/headsapi/heads-go/internal/mask"
)

// Call is one call: what all its attempts share, and the outcome of the last one. It is the
// transport of its own http.Client, so every attempt is one call of its RoundTrip.
type Call struct {
	Op       *Operation
	Path     string // escaped, without that of the base URL
	Attempts int    // that were made
	TokenErr error  // why the token source returned no other token after a 401
	WaitErr  error  // why a further attempt could not wait for the rate limit or a Retry-After
	Err      error  // why the last attempt got no whole answer

	// The last answer. It is kept if a later attempt gets none.
	Status  int // 0 for no answer
	Header  http.Header
	Body    *bytes.Buffer
	TooLong bool // the answer is longer than MaxAnswer

	client     *Client
	credential *credential
	refused    *credential // the one before, after a renewal
	renewed    bool
	hasBody    bool
	added      http.Header

	// Parts that a call needs once, kept here to be allocated with it.
	url        url.URL
	request    http.Request // as the retry loop sees it
	first      http.Request // the first attempt's
	httpClient http.Client
	loop       retryablehttp.Client
	retry      retryablehttp.Request
	reply      http.Response // what http.Client is shown of the last answer
	limit      io.LimitedReader

	retries, maxRetries int
	wait                time.Duration // before the next attempt
	inDoubt             bool          // an attempt may have been carried out without saying so

	// the last attempt
	waited   time.Duration     // for the rate limit and a Retry-After
	observed []context.Context // one for each observer
	duration time.Duration
	trace    connTrace
}

// connTrace records whether a request can have reached a connection.
type connTrace struct{ dialed, connected atomic.Bool }

func (t *connTrace) attach(ctx context.Context) context.Context {
	t.dialed.Store(false)
	t.connected.Store(false)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.connected.Store(true) },
	})
}

// atOnce is the wait before a retry without a wait. It is not 0, which means that no retry
// follows.
const atOnce = time.Nanosecond

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled is the largest buffer that is used again, in bytes.
const maxPooled = 1 << 20

// Release returns the answer's buffer to the pool. The body must not be used afterwards.
func (c *Call) Release() {
	if c.Body.Cap() <= maxPooled {
		c.Body.Reset()
		bodies.Put(c.Body)
	}
	c.Body = nil
}

// prepare builds the request without parsing its URL again, and with header values that all
// requests share.
func (c *Call) prepare(ctx context.Context, r Request) {
	c.setPath(r.Param)
	c.url.RawQuery = r.RawQuery
	c.request = *(&http.Request{
		Method:     c.Op.Method,
		URL:        &c.url,
		Host:       c.client.Base.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     noHeader,
	}).WithContext(ctx)
	if c.client.Jar != nil {
		c.request.Header = http.Header{} // for its cookies
	}
	c.retry.Request = &c.request
}

// setPath puts the path of the operation behind that of the base URL.
func (c *Call) setPath(param string) {
	base, op := c.client.Base, c.Op
	c.url = *base
	c.url.Path = base.Path + op.before + param + op.after
	c.Path = c.url.Path[len(base.Path):]
	if escaped := url.PathEscape(param); op.escaped != "" {
		c.Path = op.escaped
	} else if escaped != param {
		c.Path = op.before + escaped + op.after
	}
	if c.Path != c.url.Path[len(base.Path):] || base.RawPath != "" {
		c.url.RawPath = base.EscapedPath() + c.Path
	}
}

// jsonHeader is shared by all requests and never changed.
var jsonHeader = []string{"application/json"}

// newHeader returns the header of an attempt, of values that all requests share.
func (c *Call) newHeader() http.Header {
	header := http.Header{"Accept": jsonHeader, "User-Agent": c.client.userAgent, "Authorization": c.credential.header}
	if c.hasBody {
		header["Content-Type"] = jsonHeader
	}
	maps.Copy(header, c.added)
	return header
}

// noHeader is shared by all requests on their way through http.Client, which copies it.
// Attempts get their header in RoundTrip.
var noHeader = http.Header{}

// Deleted reports whether a DELETE was answered 404 after an attempt that may have deleted the
// resource.
func (c *Call) Deleted() bool {
	return c.Status == http.StatusNotFound && c.Op.Method == http.MethodDelete && c.inDoubt
}

// IsSuccess reports whether a status is from 200 to 299.
func IsSuccess(status int) bool { return status >= 200 && status <= 299 }

// Tokens returns the tokens of the call, which nothing may show. The longer one comes first,
// since it may begin with the other.
func (c *Call) Tokens() []string {
	tokens := []string{c.credential.token}
	if c.refused != nil {
		tokens = append(tokens, c.refused.token)
	}
	slices.SortFunc(tokens, func(a, b string) int { return len(b) - len(a) })
	return tokens
}

// Host returns the host of the base URL, with its port if it has one.
func (c *Call) Host() string { return c.client.Base.Host }

const maxRequestID = 128 // in characters

// RequestID returns the id that the service gave the last request, without secrets.
func (c *Call) RequestID() string {
	id := c.Header.Get("X-Request-Id")
	if id == "" {
		id = c.Header.Get("X-Correlation-Id")
	}
	if id == "" {
		return ""
	}
	return mask.Answer(id, maxRequestID, c.Tokens()...)
}
