package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

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

// send runs the attempts in a retry loop of this call. Their outcome is in the call: the loop
// drops the last answer if a wait is cut short, and its error texts contain the URL. The
// error that send returns matters only if no attempt was made.
func (c *Call) send(body []byte) error {
	if body != nil {
		if err := c.retry.SetBody(body); err != nil {
			return err
		}
	}
	c.httpClient = http.Client{Transport: c, Jar: c.client.Jar, CheckRedirect: lastResponse}
	c.loop.HTTPClient = &c.httpClient
	c.loop.RetryMax = math.MaxInt // next counts them, and also knows the method
	c.loop.CheckRetry = func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
		again := c.next(ctx)
		c.loop.RetryWaitMin = c.wait
		return again, nil
	}
	c.loop.Backoff = minWait
	_, err := c.loop.Do(&c.retry) //nolint:bodyclose // RoundTrip has read and closed it
	return err
}

// lastResponse keeps http.Client from following a redirect.
func lastResponse(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// minWait makes the retry loop wait as long as next has decided.
func minWait(minimum, _ time.Duration, _ int, _ *http.Response) time.Duration { return minimum }

// next decides after each attempt whether another one follows, and after what wait.
func (c *Call) next(ctx context.Context) bool {
	if c.WaitErr != nil {
		return false
	}
	again := c.renewToken(ctx) || c.planRetry(ctx)
	if !again {
		c.wait = 0
	}
	c.report(ctx, !again)
	return again
}

// renewToken asks the token source again after a 401, at most once in a call.
func (c *Call) renewToken(ctx context.Context) bool {
	if c.Status != http.StatusUnauthorized || c.Err != nil || c.renewed || c.client.credentials.source == nil {
		return false
	}
	c.renewed = true
	fresh, err := c.client.credentials.renew(ctx, c.credential)
	if err != nil {
		c.TokenErr = err
		return false
	}
	if fresh == c.credential {
		return false
	}
	c.refused, c.credential = c.credential, fresh
	c.wait = atOnce
	return true
}

// planRetry decides whether a retry follows under the policy, and sets its wait.
func (c *Call) planRetry(ctx context.Context) bool {
	if ctx.Err() != nil || c.retries >= c.maxRetries || !c.repeatable() {
		return false
	}
	wait, asked := c.retryAfter()
	if !asked || wait == 0 {
		wait = c.client.Retry.backoff(c.retries)
	}
	if asked && wait > c.client.Retry.MaxWait {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	c.wait = max(wait, atOnce)
	c.retries++
	return true
}

// repeatable reports whether the request may be retried after the outcome of the last
// attempt.
func (c *Call) repeatable() bool {
	if c.Err != nil {
		return c.Op.Repeatable || !c.mayBeWritten()
	}
	switch c.Status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		_, asked := c.retryAfter()
		return asked || c.Op.Repeatable
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return c.Op.Repeatable
	}
	return false
}

// Interrupted reports whether another attempt would have followed the last one, if the
// context had not ended.
func (c *Call) Interrupted() bool { return c.wait > 0 || c.retries < c.maxRetries && c.repeatable() }

// MayBeCarriedOut reports whether the service may have done what a call asked for that got
// no answer and was not retried.
func (c *Call) MayBeCarriedOut() bool {
	return c.Err != nil && !c.Op.Repeatable && c.mayBeWritten()
}

// mayBeWritten reports whether a byte of the request may have been sent. The trace of the
// connection shows it, or else, for a transport without a trace, the kind of the error.
func (c *Call) mayBeWritten() bool {
	if c.trace.connected.Load() {
		return true
	}
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	return !c.trace.dialed.Load() &&
		!(errors.As(c.Err, &op) && op.Op == "dial") &&
		!errors.As(c.Err, &dns) &&
		!errors.As(c.Err, &certificate)
}

// backoff returns the wait before a retry, counted from 0, with full jitter: a random
// duration below Longest.
func (p RetryPolicy) backoff(retry int) time.Duration {
	return rand.N(max(p.Longest(retry), 1)) // it panics on 0
}

// Longest returns the upper limit of the wait before a retry, counted from 0: MinWait,
// doubled for each retry before, at most MaxWait.
func (p RetryPolicy) Longest(retry int) time.Duration {
	if p.MinWait <= p.MaxWait>>retry {
		return p.MinWait << retry
	}
	return p.MaxWait
}

// retryAfter returns the wait that the last attempt was asked for.
func (c *Call) retryAfter() (time.Duration, bool) {
	if c.Err != nil {
		return 0, false
	}
	return parseRetryAfter(c.Header.Get("Retry-After"), time.Now())
}

// RetryAfter returns the wait that the last answer asks for, or 0.
func (c *Call) RetryAfter() time.Duration {
	wait, _ := parseRetryAfter(c.Header.Get("Retry-After"), time.Now())
	return wait
}

// pauseOthers makes every attempt of the client wait for as long as the last answer asks
// this call to wait.
func (c *Call) pauseOthers() {
	if c.Status != http.StatusTooManyRequests && c.Status != http.StatusServiceUnavailable {
		return
	}
	if wait, _ := c.retryAfter(); wait > 0 {
		c.client.pace.pauseFor(min(wait, c.client.Retry.MaxWait))
	}
}

// parseRetryAfter reads both forms of the header: seconds and an HTTP date. A number too
// large for a Duration becomes the largest Duration.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(date.Sub(now), 0), true
}
