package inbox

import "time"

// The distances from which a Run looks for due sessions. Sessions become visible when
// their transaction commits, which may be long after the time in next_at.
const (
	lookBack     = 50 * time.Millisecond // of every look
	farLookBack  = 2 * time.Second       // of a look every farLookEvery
	farLookEvery = 200 * time.Millisecond
	// A look from the beginning finds all, every fullLookEvery, or fullLookShare times as
	// long as it takes.
	fullLookEvery = 30 * time.Second
	fullLookShare = 100
)

// horizon knows from which time on sessions may be due. The index of due sessions is not
// read from its beginning, where an open transaction of anyone keeps every entry that
// there was.
type horizon struct {
	low  int64 // the database's time; no session seen is due earlier
	full bool  // the look under way reads from the beginning

	nextFar, nextFull time.Time
}

// from returns the time from which the next look reads.
func (h *horizon) from(now time.Time) int64 {
	h.full = !now.Before(h.nextFull)
	switch {
	case h.full:
		h.nextFull = now.Add(fullLookEvery)
		return 0
	case !now.Before(h.nextFar):
		h.nextFar = now.Add(farLookEvery)
		return h.low - micros(farLookBack)
	}
	return h.low - micros(lookBack)
}

// took records how long the look under way has taken.
func (h *horizon) took(d time.Duration, now time.Time) {
	if h.full {
		h.nextFull = now.Add(max(fullLookEvery, fullLookShare*d))
	}
}

// include makes the next look see a session that is due at a time.
func (h *horizon) include(due int64) { h.low = min(h.low, due) }
