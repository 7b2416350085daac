package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-querystring/query"
	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/rawjson"
)

// call is one method call: what all its attempts share, and the outcome of the
// last one. It is the transport of its own http.Client, so every attempt is one
// call of its RoundTrip.
type call struct {
	core       *core
	op         *operation
	path       string // escaped, without the prefix of the base URL
	credential *credential
	refused    *credential // the one before, after a renewal
	renewed    bool
	tokenErr   error
	hasBody    bool
	added      http.Header // by the caller of Client.Do

	// Parts that a call needs once, kept here to be allocated with it.
	url     url.URL
	request http.Request // as the retry loop sees it
	first   http.Request // the first attempt's
	client  http.Client
	loop    retryLoop
	retry   retryRequest
	reply   http.Response // what http.Client is shown of the last answer

	waited            time.Duration // of the attempt, for its turn
	heldBack          error         // why its turn did not come
	attempts, retries int
	maxRetries        int
	wait              time.Duration // before the next attempt
	inDoubt           bool          // an attempt may have been carried out without saying so

	// the last attempt
	observed []context.Context // one for each observer
	err      error             // why no whole answer came
	duration time.Duration
	trace    connTrace

	// the last answer; kept when a later attempt gets none
	status  int
	header  http.Header
	body    *bytes.Buffer
	limit   io.LimitedReader
	tooLong bool
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled keeps one huge answer from holding its memory for ever.
const maxPooled = 1 << 20

// release returns the answer's buffer to the pool. The body must not be used
// afterwards.
func (c *call) release() {
	if c.body.Cap() <= maxPooled {
		c.body.Reset()
		bodies.Put(c.body)
	}
	c.body = nil
}

// prepare builds the request without parsing its URL again, and with header
// values that all requests share.
func (c *call) prepare(ctx context.Context, p payload) error {
	c.address(p)
	switch {
	case p.query != nil:
		values, err := query.Values(p.query)
		if err != nil {
			return fmt.Errorf("heads: %s: query: %w", c.op.name, err)
		}
		c.url.RawQuery = values.Encode()
	case p.values != nil:
		c.url.RawQuery = p.values.Encode()
	}
	c.hasBody, c.added = p.body != nil, p.header
	c.request = *(&http.Request{
		Method:     c.op.method,
		URL:        &c.url,
		Host:       c.core.base.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     noHeader,
	}).WithContext(ctx)
	if c.core.jar != nil {
		c.request.Header = http.Header{} // for its cookies
	}
	c.retry.Request = &c.request
	return nil
}

// address puts the path of the operation behind that of the base URL.
func (c *call) address(p payload) {
	base := c.core.base
	c.url = *base
	if p.path != "" {
		c.url.Path, c.path = base.Path+p.path, p.escapedPath
	} else {
		c.url.Path = base.Path + c.op.before + p.param + c.op.after
		c.path = c.url.Path[len(base.Path):]
		if escaped := url.PathEscape(p.param); escaped != p.param {
			c.path = c.op.before + escaped + c.op.after
		}
	}
	if c.path != c.url.Path[len(base.Path):] || base.RawPath != "" {
		c.url.RawPath = base.EscapedPath() + c.path
	}
}

// newHeader returns the header of an attempt, of values that all requests
// share.
func (c *call) newHeader() http.Header {
	header := http.Header{"Accept": jsonHeader, "User-Agent": c.core.userAgent, "Authorization": c.credential.header}
	if c.hasBody {
		header["Content-Type"] = jsonHeader
	}
	maps.Copy(header, c.added)
	return header
}

// noHeader is shared by all requests on their way through http.Client, which
// copies it. Attempts get their header in RoundTrip.
var noHeader = http.Header{}

// response is the answer to a call that succeeded.
func (c *call) response() *Response {
	return &Response{
		StatusCode: c.status,
		Header:     c.shownHeader(),
		Body:       c.shownBody(maxAnswer),
		Attempts:   c.attempts,
		RequestID:  c.requestID(),
		operation:  c.op.name,
	}
}

// outcome returns nil if the call succeeded, else its error.
func (c *call) outcome(ctx context.Context) error {
	switch {
	case c.heldBack != nil:
		return c.heldBackError(ctx)
	case c.err != nil:
		return c.transportError(ctx)
	case c.status == http.StatusNotFound && c.op.method == http.MethodDelete && c.inDoubt:
		return nil // an earlier attempt, whose answer was lost, has deleted it
	case !isSuccess(c.status):
		return c.answerError(ctx)
	case c.tooLong:
		return c.decodeError(errTooLarge)
	}
	return nil
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// answerError makes an *Error of the last answer.
func (c *call) answerError(ctx context.Context) *Error {
	e := c.newError()
	e.Header = c.shownHeader()
	e.Body = c.shownBody(maxErrorBody)
	e.cause = c.tokenErr
	if c.wait > 0 || c.retries < c.maxRetries && c.repeatable() {
		e.cause = ctx.Err() // the call would have gone on
	}
	return e
}

// newError returns an *Error without header and body.
func (c *call) newError() *Error {
	text := readErrorText(c.body.Bytes())
	wait, _ := parseRetryAfter(c.header.Get("Retry-After"), time.Now())
	e := &Error{
		Operation: c.op.name, Method: c.op.method, Path: c.path,
		StatusCode: c.status, Code: answerText(text.code, maxLabel, c.tokens()...), Message: answerText(text.message, maxMessage, c.tokens()...),
		RequestID: c.requestID(), RetryAfter: wait, Attempts: c.attempts,
	}
	if target := c.redirectTarget(); target != "" {
		e.Message = mask.OneLine("redirected to "+target+", which is not followed; give the URL at which the service itself answers", maxMessage)
	}
	return e
}

// redirectTarget names the host that a redirect points to, for its error.
func (c *call) redirectTarget() string {
	if c.status < 300 || c.status > 399 || c.header.Get("Location") == "" {
		return ""
	}
	target, err := url.Parse(c.header.Get("Location"))
	switch {
	case err != nil:
		return "an unreadable URL"
	case target.Host == "":
		return "another path of host " + c.core.base.Host
	default:
		return "host " + mask.Secrets(target.Host, c.tokens()...)
	}
}

// heldBackError is the outcome of a call whose next attempt was not made.
func (c *call) heldBackError(ctx context.Context) error {
	switch {
	case c.attempts == 0:
		return fmt.Errorf("heads: %s: nothing was sent: %w", c.op.name, c.heldBack)
	case c.err != nil:
		c.err = fmt.Errorf("%w: %w", c.heldBack, c.err)
		return c.transportError(ctx)
	}
	e := c.answerError(ctx)
	e.cause = c.heldBack
	return e
}

// transportError is the outcome of a call whose last attempt got no whole answer.
func (c *call) transportError(ctx context.Context) error {
	err := redactURLError(c.err)
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	e := &transportError{where: c.where(), text: errorTextOf(err, c.tokens()...), attempts: c.attempts, err: seal(err)}
	if !c.op.repeatable && c.mayBeWritten() {
		e.text += "; the request was not retried and may have been carried out"
	}
	if c.status != 0 && !isSuccess(c.status) {
		e.last = c.answerError(ctx)
	}
	return e
}

// shownHeader returns the header of the last answer. What can be a credential in
// it is [redacted]: cookies of the service, parts of a redirect's address, and a
// token that the answer repeats.
func (c *call) shownHeader() http.Header {
	shown := c.header.Clone()
	for name, values := range shown {
		for i, value := range values {
			switch values[i] = mask.Secrets(value, c.tokens()...); name {
			case "Set-Cookie":
				values[i] = redacted
			case "Location":
				values[i] = mask.URL(values[i])
			}
		}
	}
	return shown
}

// shownBody returns the body of the last answer, at most limit bytes. JSON does not
// show a token that it repeats.
func (c *call) shownBody(limit int) Raw {
	text := bytes.Clone(c.body.Bytes()[:min(c.body.Len(), limit)])
	raw := rawText{text: text}
	if tokens := c.tokens(); mask.Secrets(string(text), tokens...) != string(text) {
		raw.secrets = tokens
	}
	return Raw{text: seal(raw)}
}

func (c *call) decodeError(err error) error {
	failure := newDecodeError(c.op.name, nil, err)
	failure.Body = c.shownBody(maxDecodeBody)
	return failure
}

func (c *call) where() string { return c.op.name + ": " + c.op.method + " " + c.path }

// tokens are the tokens of this call, which nothing may show.
func (c *call) tokens() []string {
	tokens := []string{c.credential.token}
	if c.refused != nil {
		tokens = append(tokens, c.refused.token)
	}
	slices.SortFunc(tokens, func(a, b string) int { return len(b) - len(a) }) // one may begin with the other
	return tokens
}

func (c *call) requestID() string {
	id := c.header.Get("X-Request-Id")
	if id == "" {
		id = c.header.Get("X-Correlation-Id")
	}
	if id == "" {
		return ""
	}
	return answerText(id, maxLabel, c.tokens()...)
}

// Response is the answer to Client.Do: any status from 200 to 299, with a body
// that may be empty and need not be JSON.
type Response struct {
	StatusCode int
	Header     http.Header // Set-Cookie and the query of Location are [redacted]
	Body       Raw
	Attempts   int
	RequestID  string

	operation string
}

// Decode reads a JSON body into v. It returns a DecodeError for a body that is
// empty or of another shape.
func (r *Response) Decode(v any) error { return decodeInto(r.operation, r.Body.bytes(), v) }

// decodeInto reads JSON into a value of the caller's.
func decodeInto(operation string, text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		failure := newDecodeError(operation, text, err)
		failure.foreign = true
		return failure
	}
	return nil
}

// proves reports whether the answer to a change can only be the service's own:
// it is empty, true, or the record with that id, given once.
func (r *Response) proves(id string) bool {
	body := bytes.TrimSpace(r.Body.bytes())
	if len(body) == 0 || string(body) == "true" {
		return true
	}
	found, _ := rawjson.Value(body, "id")
	return json.Valid(body) && exactjson.Once(body, "id") == nil && strings.EqualFold(strings.Trim(string(found), `"`), id)
}

// isPage reports whether the answer is HTML, which the service never sends.
func (r *Response) isPage() bool {
	return bytes.HasPrefix(bytes.TrimSpace(r.Body.bytes()), []byte("<"))
}

// confirm reads back what a change has made, unless its answer proves that the
// service has seen it. A status of 200 alone does not: a proxy that is under
// maintenance sends it with a page of its own.
func confirm[T any](operation string, answer *Response, id string, read func() (T, error), made func(T) bool) error {
	if answer.proves(id) {
		return nil
	}
	now, err := read()
	switch {
	case err != nil:
		return fmt.Errorf("heads: %s: the answer to the change may not be the service's, and a follow-up read that would show the change failed: %w", operation, err)
	case !made(now):
		return fmt.Errorf("heads: %s: the answer to the change may not be the service's, and a follow-up read does not show the change; try again", operation)
	}
	return nil
}
