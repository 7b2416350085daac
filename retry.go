package heads

import (
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

	"github.com/hashicorp/go-retryablehttp"
)

// RetryPolicy says how often and after what waits a request is repeated. The
// wait before retry n is random between 0 and MinWait·2ⁿ⁻¹, at most MaxWait,
// unless the service asks for another one with Retry-After.
type RetryPolicy struct {
	MaxRetries       int // 0 means one attempt
	MinWait, MaxWait time.Duration
}

// DefaultRetryPolicy returns the policy of a client that is given none:
// 3 retries, 200 ms, 10 s.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{MaxRetries: 3, MinWait: 200 * time.Millisecond, MaxWait: 10 * time.Second}
}

// atOnce is the wait of a repeat that need not wait: not 0, which in
// Attempt.RetryIn means that there is none.
const atOnce = time.Nanosecond

// The rest of the package knows go-retryablehttp by these names alone.
type (
	retryClient  = retryablehttp.Client
	retryRequest = retryablehttp.Request
)

// newRetrier builds the retry loop around the transport. Its outcome is read
// from the call, never from what the loop returns: every decision is made in
// call.next, and every attempt has been read to its end by attemptTransport.
// So there is no body left to drain, close or lose, and no error text of the
// loop, which would hold the URL, is ever used.
func newRetrier(hc *http.Client) *retryClient {
	return &retryClient{
		HTTPClient: hc,
		RetryMax:   math.MaxInt, // counted in call.next, which also knows the method
		CheckRetry: func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
			return callFrom(ctx).next(), nil
		},
		Backoff: func(_, _ time.Duration, _ int, resp *http.Response) time.Duration {
			return callFrom(resp.Request.Context()).wait
		},
		PrepareRetry: func(req *http.Request) error {
			callFrom(req.Context()).refresh(req)
			return nil
		},
		ErrorHandler: func(_ *http.Response, err error, _ int) (*http.Response, error) {
			return nil, err
		},
	}
}

// send runs the attempts. What they brought is in the call; the error is that
// of a request which could not even be tried.
func (c *call) send(body []byte) error {
	if body != nil {
		if err := c.retry.SetBody(body); err != nil {
			return err
		}
	}
	_, err := c.core.retrier.Do(&c.retry) //nolint:bodyclose // read and closed by attemptTransport
	return err
}

// next decides after each attempt whether there is another one, and after what
// wait.
func (c *call) next() bool {
	again := c.renewToken() || c.repeat()
	if !again {
		c.wait = 0
	}
	c.report()
	return again
}

// renewToken asks the token source again, once a call, after a 401.
func (c *call) renewToken() bool {
	if c.status != http.StatusUnauthorized || c.err != nil || c.renewed || c.core.credentials.source == nil {
		return false
	}
	c.renewed = true
	fresh, err := c.core.credentials.renew(c.Context, c.credential)
	if err != nil {
		c.tokenErr = err
		return false
	}
	if fresh == c.credential {
		return false
	}
	c.refused, c.credential = c.credential, fresh
	c.wait = atOnce
	return true
}

func (c *call) repeat() bool {
	if c.Err() != nil || c.retries >= c.maxRetries || !c.repeatable() {
		return false
	}
	wait, asked := c.retryAfter()
	if !asked {
		wait = c.core.retry.backoff(c.retries)
	}
	if asked && wait > c.core.retry.MaxWait {
		return false
	}
	if deadline, ok := c.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	c.wait = max(wait, atOnce)
	c.retries++
	return true
}

// repeatable says whether the request may be sent once more after what the
// last attempt brought.
func (c *call) repeatable() bool {
	if c.err != nil {
		return c.op.method != http.MethodPost || !c.mayBeWritten()
	}
	switch c.status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		_, asked := c.retryAfter()
		return asked || c.op.method != http.MethodPost
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return c.op.method != http.MethodPost
	}
	return false
}

// mayBeWritten says whether any byte of the request can have left. The
// connection's own trace is the proof; where a transport has none, the kind of
// the error is.
func (c *call) mayBeWritten() bool {
	if c.trace.connected.Load() {
		return true
	}
	var op *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	return !c.trace.dialed.Load() &&
		!(errors.As(c.err, &op) && op.Op == "dial") &&
		!errors.As(c.err, &dns) &&
		!errors.As(c.err, &certificate)
}

// backoff is the wait before the given retry, counted from 0, with full
// jitter: random between 0 and the doubled MinWait, never over MaxWait.
func (p RetryPolicy) backoff(retry int) time.Duration {
	limit := p.MaxWait
	if p.MinWait <= p.MaxWait>>retry {
		limit = p.MinWait << retry
	}
	return rand.N(max(limit, 1)) // it panics on 0
}

// retryAfter is the wait that the last answer asks for.
func (c *call) retryAfter() (time.Duration, bool) {
	if c.err != nil {
		return 0, false
	}
	return parseRetryAfter(c.header.Get("Retry-After"), time.Now())
}

// parseRetryAfter reads both forms of the header: seconds and an HTTP date. A
// number too large for a Duration becomes the largest one.
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
