package heads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

var errNoResponse = errors.New("the transport returned neither a response nor an error")

// maxAnswer is how much of an answer is read: 8 MiB.
const maxAnswer = 8 << 20

// Attempt describes one attempt to an Observer. No field contains a secret, a
// query string or a body. What is known only after it is zero at its start.
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
	Final      bool          // no further attempt follows
	RetryIn    time.Duration // the wait before the next attempt, 0 for none
	Waited     time.Duration // for WithRateLimit and for a Retry-After that holds the client back, before Duration began

	// Header is empty at the start. Its entries are sent with this one attempt,
	// unless the client sets the key itself. It is nil at the end.
	Header http.Header
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

// RoundTrip makes one whole attempt: it limits its time, reads the answer to its
// end and keeps the outcome in the call. It always returns an empty body, so
// nothing is left to drain or to close.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	c.waited, c.heldBack = c.core.pace.wait(req.Context())
	if c.heldBack != nil {
		return nil, c.heldBack
	}
	start := time.Now()
	c.attempts++
	ctx, header := req.Context(), c.newHeader()
	if cookies := req.Header["Cookie"]; cookies != nil {
		header["Cookie"] = cookies
		delete(req.Header, "Cookie") // http.Client adds them again before a retry
	}
	if len(c.core.observers) > 0 {
		ctx = c.startObservers(ctx, header)
	}
	c.err = c.attempt(ctx, req, header)
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
func (c *call) attempt(ctx context.Context, req *http.Request, header http.Header) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(c.core.attemptTimeout, cancel) // cheaper than context.WithTimeout
	err := c.roundTrip(limited, req, header)
	if err != nil && !timer.Stop() && ctx.Err() == nil {
		return fmt.Errorf("no whole answer within %v: %w", c.core.attemptTimeout, context.DeadlineExceeded)
	}
	timer.Stop()
	return err
}

func (c *call) roundTrip(ctx context.Context, req *http.Request, header http.Header) error {
	if !c.op.repeatable {
		ctx = c.trace.attach(ctx)
	}
	attempt := &c.first
	if c.attempts > 1 {
		attempt = new(http.Request) // the transport may still hold the one before
	}
	*attempt = *req.WithContext(ctx)
	attempt.Header = header
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

// read copies the answer into the call. An answer that breaks off is an error;
// one that is too long is cut.
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

// newAttempt describes an attempt as it begins.
func (c *call) newAttempt() Attempt {
	return Attempt{
		Operation: c.op.name, Method: c.op.method, Route: c.op.route, Host: c.core.base.Host,
		Number: c.attempts, Waited: c.waited,
	}
}

// startObservers tells the observers that an attempt begins, and adds their
// entries to its header. It returns the context for the attempt.
func (c *call) startObservers(ctx context.Context, header http.Header) context.Context {
	var last, own http.Header // of the last Start; of the client alone
	add := func() {
		if len(last) > 0 && own == nil {
			own = maps.Clone(header)
		}
		for name, values := range last {
			name = http.CanonicalHeaderKey(name)
			if _, taken := own[name]; !taken && !ownHeader(name) {
				header[name] = values
			}
		}
	}
	ctx, c.observed = c.core.observers.start(ctx, c.core.logger, c.observed[:0], func() Attempt {
		if last == nil || len(last) > 0 {
			add()
			last = http.Header{}
		}
		a := c.newAttempt()
		a.Header = last
		return a
	})
	add()
	return ctx
}

// ownHeader reports whether the client alone sets a header.
func ownHeader(canonical string) bool {
	switch canonical {
	case "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Cookie":
		return true
	}
	return false
}

// report tells observers and logger of the attempt that just ended.
func (c *call) report(ctx context.Context, final bool) {
	if c.core.logger == nil && len(c.core.observers) == 0 {
		return
	}
	a := c.newAttempt()
	a.Duration, a.Final = c.duration, final
	if c.wait > atOnce {
		a.RetryIn = c.wait
	}
	if c.err == nil {
		a.StatusCode, a.RequestID = c.status, c.requestID()
	}
	switch {
	case c.err != nil:
		a.Err = redact(c.err, c.tokens()...)
	case !isSuccess(c.status):
		a.Err = c.newError()
	}
	c.core.observers.end(c.observed, c.core.logger, a)
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

// LogValue returns the fields of a log line of WithLogger: waited and request_id
// if they are set, error and retry_in if the attempt failed.
func (a Attempt) LogValue() slog.Value { return slog.GroupValue(a.attrs()...) }

func (a Attempt) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("operation", a.Operation),
		slog.String("method", a.Method),
		slog.String("route", a.Route),
		slog.Int("attempt", a.Number),
		slog.Int("status", a.StatusCode),
		slog.Duration("duration", a.Duration),
	}
	if a.Waited > 0 {
		attrs = append(attrs, slog.Duration("waited", a.Waited))
	}
	if a.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", a.RequestID))
	}
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", a.Err.Error()), slog.Duration("retry_in", a.RetryIn))
	}
	return attrs
}
