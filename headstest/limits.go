package headstest

import (
	"net/http"
	"strconv"
	"time"
)

// underLimits applies the limits of every request, rate and latency, and then the
// faults.
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

// wholeSeconds writes a Retry-After, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}
