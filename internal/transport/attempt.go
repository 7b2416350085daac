package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
)

var errNoResponse = errors.New("the transport returned neither a response nor an error")

// MaxAnswer is how much of an answer is read: 8 MiB.
const MaxAnswer = 8 << 20

// RoundTrip makes one whole attempt: it limits the time, reads the answer to its end and
// stores the outcome in the call. It always returns an empty body, so nothing is left to
// drain or to close.
func (c *Call) RoundTrip(req *http.Request) (*http.Response, error) {
	c.waited, c.WaitErr = c.client.pace.wait(req.Context())
	if c.WaitErr != nil {
		return nil, c.WaitErr
	}
	start := time.Now()
	c.Attempts++
	ctx, header := req.Context(), c.newHeader()
	if cookies := req.Header["Cookie"]; cookies != nil {
		header["Cookie"] = cookies
		delete(req.Header, "Cookie") // http.Client adds them again before a retry
	}
	if len(c.client.Observers) > 0 {
		ctx = c.startObservers(ctx, header)
	}
	c.Err = c.attempt(ctx, req, header)
	c.duration = time.Since(start)
	c.pauseOthers()
	if c.Err != nil || c.Status >= http.StatusInternalServerError {
		c.inDoubt = true
	}
	if c.Err != nil {
		return nil, c.Err
	}
	c.reply = http.Response{StatusCode: c.Status, Header: c.Header, Request: req, Body: http.NoBody}
	return &c.reply, nil
}

// attempt limits one attempt in time.
func (c *Call) attempt(ctx context.Context, req *http.Request, header http.Header) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(c.client.AttemptTimeout, cancel) // cheaper than context.WithTimeout
	err := c.roundTrip(limited, req, header)
	if err != nil && !timer.Stop() && ctx.Err() == nil {
		return fmt.Errorf("no whole answer within %v: %w", c.client.AttemptTimeout, context.DeadlineExceeded)
	}
	timer.Stop()
	return err
}

func (c *Call) roundTrip(ctx context.Context, req *http.Request, header http.Header) error {
	if !c.Op.Repeatable {
		ctx = c.trace.attach(ctx)
	}
	attempt := &c.first
	if c.Attempts > 1 {
		attempt = new(http.Request) // the transport may still use the one before
	}
	*attempt = *req.WithContext(ctx)
	attempt.Header = header
	resp, err := c.client.RoundTripper.RoundTrip(attempt)
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

// read copies the answer into the call. An answer that breaks off is an error. One that is
// too long is cut.
func (c *Call) read(resp *http.Response) error {
	c.Status, c.Header, c.TooLong = resp.StatusCode, resp.Header, false
	c.Body.Reset()
	c.limit = io.LimitedReader{R: resp.Body, N: MaxAnswer + 1}
	_, err := c.Body.ReadFrom(&c.limit)
	closeErr := resp.Body.Close()
	if err != nil {
		return fmt.Errorf("status %d, but the answer broke off: %w", resp.StatusCode, errors.Join(err, closeErr))
	}
	if c.Body.Len() > MaxAnswer {
		c.Body.Truncate(MaxAnswer)
		c.TooLong = true
	}
	return nil
}

// newAttempt describes an attempt that has no outcome yet.
func (c *Call) newAttempt() Attempt {
	return Attempt{
		Operation: c.Op.Name, Method: c.Op.Method, Route: c.Op.Route, Host: c.client.Base.Host,
		Number: c.Attempts, Waited: c.waited,
	}
}

// startObservers tells the observers that an attempt begins, and adds their entries to its
// header. It returns the context of the attempt.
func (c *Call) startObservers(ctx context.Context, header http.Header) context.Context {
	var added, own http.Header // by the next observer; of the client alone
	c.observed = c.observed[:0]
	for _, o := range c.client.Observers {
		if o.Start != nil {
			if added == nil {
				added = http.Header{}
			}
			a := c.newAttempt()
			a.Header = added
			ctx = o.Start(ctx, a)
			if len(added) > 0 {
				if own == nil {
					own = maps.Clone(header)
				}
				addHeader(header, own, added)
				added = nil
			}
		}
		c.observed = append(c.observed, ctx)
	}
	return ctx
}

// addHeader adds what an observer has added, unless the client sets the key itself.
func addHeader(header, own, added http.Header) {
	for name, values := range added {
		name = http.CanonicalHeaderKey(name)
		if _, taken := own[name]; !taken && !OwnHeader(name) {
			header[name] = values
		}
	}
}

// OwnHeader reports whether only the client may set a header, given in its canonical form.
func OwnHeader(canonical string) bool {
	switch canonical {
	case "Authorization", "Host", "Content-Length", "Transfer-Encoding", "Cookie":
		return true
	}
	return false
}

// report tells observers and the log about the attempt that has just ended.
func (c *Call) report(ctx context.Context, final bool) {
	if c.client.Log == nil && len(c.client.Observers) == 0 {
		return
	}
	a := c.newAttempt()
	a.Duration, a.Final = c.duration, final
	if c.wait > atOnce {
		a.RetryIn = c.wait
	}
	if c.Err == nil {
		a.StatusCode, a.RequestID = c.Status, c.RequestID()
	}
	if c.Err != nil || !IsSuccess(c.Status) {
		a.Err = c.client.Failure(c)
	}
	for i, o := range slices.Backward(c.client.Observers) {
		if o.End != nil {
			o.End(c.observed[i], a)
		}
	}
	if c.client.Log != nil {
		c.client.Log(ctx, a)
	}
}
