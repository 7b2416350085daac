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
	Host       string // of the base URL, with its port if it has one
	Number     int    // 1 for the first
	StatusCode int    // 0 when no response came
	Duration   time.Duration
	RequestID  string
	Err        error         // redacted; nil for a status from 200 to 299
	RetryIn    time.Duration // 0 when this attempt is the last; 1 ns for a repeat at once
	Waited     time.Duration // for WithRateLimit and for a Retry-After that holds the client back, before Duration began
}

// call is one method call on its way: what all its attempts share, and what the
// last of them brought. It is the transport of its own http.Client, so that
// every attempt is one call of its RoundTrip.
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
	wait              time.Duration // before the next attempt
	inDoubt           bool          // an attempt may have been carried out without saying so

	// the last attempt
	hooked   hookedContexts
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

// RoundTrip makes one attempt whole: it limits its time, reads the answer to
// its end and keeps the outcome in the call. The body that it returns is always
// empty, so nothing is left to drain or to close.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	c.waited, c.heldBack = c.core.pace.wait(req.Context())
	if c.heldBack != nil {
		return nil, c.heldBack
	}
	start := time.Now()
	c.attempts++
	if len(c.core.hooks) > 0 {
		req = c.startHooks(req)
	}
	c.err = c.attempt(req)
	c.duration = time.Since(start)
	c.holdOthers()
	if c.err != nil || c.status >= http.StatusInternalServerError {
		c.inDoubt = true
	}
	if c.err != nil {
		return nil, c.err
	}
	c.reply = http.Response{StatusCode: c.status, Header: c.header, Request: req, Body: http.NoBody}
	return &c.reply, nil
}

// attempt limits one attempt in time.
func (c *call) attempt(req *http.Request) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	timer := time.AfterFunc(c.core.attemptTimeout, cancel) // cheaper than context.WithTimeout
	err := c.roundTrip(ctx, req)
	if err != nil && !timer.Stop() && req.Context().Err() == nil {
		return fmt.Errorf("no whole answer within %v: %w", c.core.attemptTimeout, context.DeadlineExceeded)
	}
	timer.Stop()
	return err
}

func (c *call) roundTrip(ctx context.Context, req *http.Request) error {
	if !c.op.repeatable {
		ctx = c.trace.attach(ctx)
	}
	attempt := &c.first
	if c.attempts > 1 {
		attempt = new(http.Request) // the transport may still hold the one before
	}
	*attempt = *req.WithContext(ctx)
	resp, err := c.core.transport.RoundTrip(attempt)
	switch {
	case err != nil:
		return err
	case resp == nil:
		return errNoResponse
	case resp.Body == nil: // allowed in a fake, as http.Client allows it
		resp.Body = http.NoBody
	}
	return c.read(resp)
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
func (c *call) outcome(ctx context.Context) error {
	switch {
	case c.heldBack != nil:
		return c.heldBackError(ctx)
	case c.err != nil:
		return c.transportError(ctx)
	case c.status == http.StatusNotFound && c.op.method == http.MethodDelete && c.inDoubt:
		return nil // the attempt that got no answer has done it
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
	e := c.describe()
	e.Header = c.header
	e.Body = bytes.Clone(c.body.Bytes()[:min(c.body.Len(), maxErrorBody)])
	e.cause = c.tokenErr
	if c.wait > 0 || c.retries < c.core.retry.MaxRetries && c.repeatable() {
		e.cause = ctx.Err() // the call would have gone on
	}
	return e
}

// describe is an *Error without header and body.
func (c *call) describe() *Error {
	text := readErrorText(c.body.Bytes())
	wait, _ := parseRetryAfter(c.header.Get("Retry-After"), time.Now())
	e := &Error{
		Operation: c.op.name, Method: c.op.method, Path: c.path,
		StatusCode: c.status, Code: answerText(text.code, maxLabel, c.tokens()...), Message: answerText(text.message, maxMessage, c.tokens()...),
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
		return "host " + maskSecrets(target.Host, c.tokens()...)
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
	e := &transportError{where: c.where(), attempts: c.attempts, err: redactURLError(c.err)}
	if ended := ctx.Err(); ended != nil && !errors.Is(e.err, ended) {
		e.err = fmt.Errorf("%w: %w", ended, e.err)
	}
	e.text = errorTextOf(e.err, c.tokens()...)
	if !c.op.repeatable && c.mayBeWritten() {
		e.text += "; the request was not repeated, and may have been carried out"
	}
	if c.status != 0 && !isSuccess(c.status) {
		e.last = c.answerError(ctx)
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

// newAttempt is what is known of an attempt when it begins.
func (c *call) newAttempt() Attempt {
	return Attempt{
		Operation: c.op.name, Method: c.op.method, Route: c.op.route, Host: c.core.base.Host,
		Number: c.attempts, Waited: c.waited,
	}
}

// report tells hooks, observer and logger of the attempt that just ended.
func (c *call) report(ctx context.Context) {
	if c.core.observer == nil && c.core.logger == nil && len(c.core.hooks) == 0 {
		return
	}
	a := c.newAttempt()
	a.Duration, a.RetryIn = c.duration, c.wait
	if c.err == nil {
		a.StatusCode, a.RequestID = c.status, c.requestID()
	}
	switch {
	case c.err != nil:
		a.Err = redact(c.err, c.tokens()...)
	case !isSuccess(c.status):
		a.Err = c.describe()
	}
	c.core.hooks.end(c.hooked, a, c.complainOfHook)
	if c.core.observer != nil {
		c.core.observer(ctx, a)
	}
	if c.core.logger != nil {
		logAttempt(ctx, c.core.logger, a)
	}
}

func logAttempt(ctx context.Context, logger *slog.Logger, a Attempt) {
	level := slog.LevelDebug
	if a.Err != nil {
		level = slog.LevelWarn
	}
	logger.LogAttrs(ctx, level, "heads: attempt", a.attrs()...)
}

// LogValue returns the fields of a log line of WithLogger: request_id where
// there is one, error and retry_in where the attempt failed.
func (a Attempt) LogValue() slog.Value { return slog.GroupValue(a.attrs()...) }

// MarshalJSON writes the fields of LogValue, durations in nanoseconds. Err is
// written as its text.
func (a Attempt) MarshalJSON() ([]byte, error) { return marshalGroup(a.LogValue()) }

func (a Attempt) attrs() []slog.Attr {
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
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", a.Err.Error()), slog.Duration("retry_in", a.RetryIn))
	}
	return attrs
}
