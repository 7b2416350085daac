package headstest

import (
	"encoding/json"
	"net/http"
	"time"
)

// underLimits answers a request under the latency, the rate limit and the faults.
func (c *core) underLimits(r *http.Request, answer func() reply) (reply, cutting) {
	wait := c.overRate()
	switch {
	case !c.delay(r, c.cfg.latency):
		return reply{}, cutWhole
	case wait > 0:
		rep := refuse(http.StatusTooManyRequests, "there are too many requests; try again after %s s", wholeSeconds(wait)).reply()
		rep.header.Set("Retry-After", wholeSeconds(wait))
		return rep, cutNothing
	default:
		return c.underFaults(r, answer)
	}
}

// overRate returns how long to wait until the rate limit allows the request, or 0
// if it allows the request now.
func (c *core) overRate() time.Duration {
	limit, now := c.cfg.rateLimit, time.Now()
	if limit == nil || limit.AllowN(now, 1) {
		return 0
	}
	seconds := (1 - limit.TokensAt(now)) / float64(limit.Limit())
	return max(time.Duration(seconds*float64(time.Second)), 1)
}

// underFaults answers a request and applies a fault that matches it.
func (c *core) underFaults(r *http.Request, answer func() reply) (reply, cutting) {
	f, ok := c.takeFault(r)
	if !ok {
		return answer(), cutNothing
	}
	late := f.After || f.Cut == CutAfter
	if !late && !c.delay(r, f.Latency) || f.Cut == CutBefore {
		return reply{}, cutWhole
	}
	var rep reply
	if late || f.Status == 0 {
		rep = answer()
	}
	if late && !c.delay(r, f.Latency) || f.Cut == CutAfter {
		return reply{}, cutWhole
	}
	rep = f.reshape(rep)
	switch {
	case !f.CutBody:
		return rep, cutNothing
	case len(rep.body) == 0:
		return reply{}, cutWhole
	default:
		return rep, cutMiddle
	}
}

// reshape replaces the status, body and Retry-After of an answer with the fault's.
func (f Fault) reshape(rep reply) reply {
	if f.Status != 0 {
		rep = reply{f.Status, http.Header{}, nil}
	}
	if f.Body != "" {
		rep.body = []byte(f.Body)
		rep.header.Set("Content-Type", "text/plain; charset=utf-8")
		if json.Valid(rep.body) {
			rep.header.Set("Content-Type", "application/json")
		}
	}
	if f.RetryAfter > 0 {
		rep.header.Set("Retry-After", wholeSeconds(f.RetryAfter))
	}
	return rep
}
