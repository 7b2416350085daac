package heads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var errNoResponse = errors.New("the transport returned neither a response nor an error")

// maxAnswer is how much of an answer is read: 8 MiB.
const maxAnswer = 8 << 20

// Attempt is what WithObserver's function is told of one attempt. No field
// holds a secret, a query string or a body.
type Attempt struct {
	Operation  string // "Heads.Get"
	Method     string // "GET"
	Route      string // "/head/{id}": safe as a metric label
	Number     int    // 1 for the first
	StatusCode int    // 0 when no response came
	Duration   time.Duration
	RequestID  string
	Err        error         // redacted; nil for a status from 200 to 299
	RetryIn    time.Duration // 0 when this attempt is the last; 1 ns for a repeat at once
}

// call is one method call on its way: the context of all its attempts and what
// the last of them brought.
type call struct {
	context.Context // the caller's

	core       *core
	op         *operation
	path       string // escaped, without the prefix of the base URL
	credential *credential
	refused    *credential // the one before, after a renewal
	renewed    bool
	tokenErr   error

	// Parts that a call needs once, kept here to be allocated with it.
	url     url.URL
	request http.Request // as the retry loop sees it; its context is the call
	first   http.Request // the first attempt's
	retry   retryRequest
	reply   http.Response // what the retry loop is shown of every answer

	attempts, retries int
	maxRetries        int
	wait              time.Duration // before the next attempt
	inDoubt           bool          // an attempt may have been carried out without saying so

	// the last attempt
	err      error // why no whole answer came
	duration time.Duration
	trace    connTrace

	// the last answer; kept when a later attempt gets none
	status  int
	header  http.Header
	body    *bytes.Buffer
	limit   io.LimitedReader
	tooLong bool
}

type callKey struct{}

// Value hands out the call itself to the pieces that see only its context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callFrom(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled keeps one huge answer from holding its memory for ever.
const maxPooled = 1 << 20

// release gives the answer's buffer back. Nothing may look at the body after it.
func (c *call) release() {
	if c.body.Cap() <= maxPooled {
		c.body.Reset()
		bodies.Put(c.body)
	}
	c.body = nil
}

func (c *call) authorize(req *http.Request) {
	req.Header["Authorization"] = c.credential.header
}

// refresh prepares the next attempt. The one before may still hold the old
// header, and http.Client has put the cookies of its jar there, which it is
// about to do again.
func (c *call) refresh(req *http.Request) {
	req.Header = req.Header.Clone()
	delete(req.Header, "Cookie")
	c.authorize(req)
}

// connTrace tells whether a request can have reached a connection.
type connTrace struct{ dialed, connected atomic.Bool }

func (t *connTrace) attach(ctx context.Context) context.Context {
	t.dialed.Store(false)
	t.connected.Store(false)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.dialed.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { t.connected.Store(true) },
	})
}

// attemptTransport makes each attempt whole: it limits its time, reads the
// answer to its end and leaves the outcome in the call. It has no
// CloseIdleConnections, so that the failure of one call does not close the
// connections of the others.
type attemptTransport struct {
	base    http.RoundTripper
	timeout time.Duration
}

// RoundTrip always returns an empty 200 and no error: the retry loop hands its
// Backoff nothing but the response, and http.Client would follow redirects and
// wrap errors in a text that holds the URL.
func (t *attemptTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	call := callFrom(req.Context())
	start := time.Now()
	call.attempts++
	call.err = t.exchange(call, req)
	call.duration = time.Since(start)
	if call.err != nil || call.status >= http.StatusInternalServerError {
		call.inDoubt = true
	}
	call.reply = http.Response{StatusCode: http.StatusOK, Header: call.header, Request: req, Body: http.NoBody}
	return &call.reply, nil
}

func (t *attemptTransport) exchange(call *call, req *http.Request) error {
	ctx, cancel := context.WithCancel(call)
	defer cancel()
	timer := time.AfterFunc(t.timeout, cancel) // cheaper than context.WithTimeout
	err := t.roundTrip(ctx, call, req)
	if err != nil && !timer.Stop() && call.Err() == nil {
		return fmt.Errorf("no whole answer within %v: %w", t.timeout, context.DeadlineExceeded)
	}
	timer.Stop()
	return err
}

func (t *attemptTransport) roundTrip(ctx context.Context, call *call, req *http.Request) error {
	if call.op.method == http.MethodPost {
		ctx = call.trace.attach(ctx)
	}
	attempt := &call.first
	if call.attempts > 1 {
		attempt = new(http.Request) // the transport may still hold the one before
	}
	*attempt = *req.WithContext(ctx)
	resp, err := t.base.RoundTrip(attempt)
	switch {
	case err != nil:
		return err
	case resp == nil:
		return errNoResponse
	case resp.Body == nil: // allowed in a fake, as http.Client allows it
		resp.Body = http.NoBody
	}
	return call.read(resp)
}

// read takes the answer over into the call. An answer that breaks off is an
// error; one that is too long is cut.
func (c *call) read(resp *http.Response) error {
	c.status, c.header, c.tooLong = resp.StatusCode, resp.Header, false
	c.body.Reset()
	c.limit = io.LimitedReader{R: resp.Body, N: maxAnswer + 1}
	_, err := c.body.ReadFrom(&c.limit)
	closeErr := resp.Body.Close()
	if err != nil {
		return fmt.Errorf("status %d, but the answer broke off: %w", resp.StatusCode, errors.Join(err, closeErr))
	}
	if c.body.Len() > maxAnswer {
		c.body.Truncate(maxAnswer)
		c.tooLong = true
	}
	return nil
}

// outcome is nil when the call succeeded, and else its error.
func (c *call) outcome() error {
	switch {
	case c.err != nil:
		return c.transportError()
	case c.status == http.StatusNotFound && c.op.method == http.MethodDelete && c.inDoubt:
		return nil // the attempt that got no answer has done it
	case !isSuccess(c.status):
		return c.answerError()
	case c.tooLong:
		return c.decodeError(errTooLarge)
	}
	return nil
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// answerError makes an *Error of the last answer.
func (c *call) answerError() *Error {
	e := c.describe()
	e.Header = c.header
	e.Body = bytes.Clone(c.body.Bytes()[:min(c.body.Len(), maxErrorBody)])
	e.cause = c.tokenErr
	if c.wait > 0 || c.retries < c.maxRetries && c.repeatable() {
		e.cause = c.Err() // the call would have gone on
	}
	return e
}

// describe is an *Error without header and body.
func (c *call) describe() *Error {
	text := readErrorText(c.body.Bytes())
	wait, _ := parseRetryAfter(c.header.Get("Retry-After"), time.Now())
	e := &Error{
		Operation: c.op.name, Method: c.op.method, Path: c.path,
		StatusCode: c.status, Code: oneLine(c.mask(text.code), maxLabel), Message: oneLine(c.mask(text.message), maxMessage),
		RequestID: c.requestID(), RetryAfter: wait, Attempts: c.attempts,
	}
	if target := c.redirectTarget(); target != "" {
		e.Message = oneLine("redirected to "+target+", which is not followed; give New the address that the service itself answers at", maxMessage)
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
		return "an unreadable address"
	case target.Host == "":
		return "another path of host " + c.core.base.Host
	default:
		return "host " + c.mask(target.Host)
	}
}

// transportError is the outcome of a call whose last attempt got no whole answer.
func (c *call) transportError() error {
	e := &transportError{where: c.where(), attempts: c.attempts, err: redactURLError(c.err)}
	if ended := c.Err(); ended != nil && !errors.Is(e.err, ended) {
		e.err = fmt.Errorf("%w: %w", ended, e.err)
	}
	e.text = redactText(c.mask(e.err.Error()))
	if c.op.method == http.MethodPost && c.mayBeWritten() {
		e.text += "; the request was not repeated, and may have been carried out"
	}
	if c.status != 0 && !isSuccess(c.status) {
		e.last = c.answerError()
	}
	return e
}

func (c *call) decodeError(err error) error {
	return &DecodeError{
		Operation: c.op.name,
		Body:      bytes.Clone(c.body.Bytes()[:min(c.body.Len(), maxDecodeBody)]),
		Err:       err,
	}
}

func (c *call) where() string { return c.op.name + ": " + c.op.method + " " + c.path }

// mask takes the tokens of this call out of a text.
func (c *call) mask(text string) string { return maskSecrets(text, c.tokens()...) }

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
	return oneLine(c.mask(id), maxLabel)
}

// report tells observer and logger of the attempt that just ended.
func (c *call) report() {
	if c.core.observer == nil && c.core.logger == nil {
		return
	}
	a := Attempt{
		Operation: c.op.name, Method: c.op.method, Route: c.op.route,
		Number: c.attempts, Duration: c.duration, RetryIn: c.wait,
	}
	if c.err == nil {
		a.StatusCode, a.RequestID = c.status, c.requestID()
	}
	switch {
	case c.err != nil:
		a.Err = redact(c.err, c.tokens()...)
	case !isSuccess(c.status):
		a.Err = c.describe()
	}
	if c.core.observer != nil {
		c.core.observer(c.Context, a)
	}
	if c.core.logger != nil {
		logAttempt(c.Context, c.core.logger, a)
	}
}

func logAttempt(ctx context.Context, logger *slog.Logger, a Attempt) {
	attrs := []slog.Attr{
		slog.String("operation", a.Operation),
		slog.String("method", a.Method),
		slog.String("route", a.Route),
		slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode),
		slog.Duration("duration", a.Duration),
	}
	if a.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", a.RequestID))
	}
	level := slog.LevelDebug
	if a.Err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", a.Err.Error()), slog.Duration("retry_in", a.RetryIn))
	}
	logger.LogAttrs(ctx, level, "heads: attempt", attrs...)
}
