package keycache

import (
	"context"
	"fmt"
	"time"
)

const (
	fetchTimeout = 10 * time.Second // for a request, and for the wait before it

	maxFetches   = 16 // requests at once, each about another head
	maxLimited   = 12 // of these, about heads that are not known; the others are for known heads
	maxStrangers = 1024

	// Anyone can send an event of an unknown head, so requests that find no keys are
	// limited: 5 a second after a burst of 20.
	unknownEvery = time.Second / 5
	unknownBurst = 20

	// How long reading in the background pauses after a failure, and how long after the
	// last answer it ends. The first event of a head asks for its keys in any case.
	minPause      = time.Second
	maxPause      = time.Minute
	readingEndsIn = 10 * time.Minute
)

// class says who wants to know the keys of a head.
type class int

const (
	acquainted class = iota // a delivery of a known or named head
	strangers               // a delivery of any other head
	reading                 // no delivery: Cache.Read
)

// fetch is a request that waits or is under way. keys and err may be read once done
// is closed.
type fetch struct {
	ctx      context.Context //nolint:containedctx // of the delivery that asked first, without its end
	headID   string
	from     class
	mismatch bool
	waiting  bool // it has not begun
	wanted   bool // a delivery has asked
	reread   bool // Read has asked: try again after a failure
	begun    time.Time
	asked    time.Time // when the request began
	done     chan struct{}
	keys     []string
	err      error
}

// questions says which request comes next. Deliveries of known heads go first, and no
// number of strangers takes their places.
type questions struct {
	running, limited int // limited are those not about known heads
	lines            [2][]*fetch
	budget           budget
	later            later
	wake             time.Time // of the timer that calls begin
}

// ask returns the request for a head that waits or is under way, or adds one. The
// caller holds the lock.
func (c *Cache) ask(ctx context.Context, headID string, from class, mismatch bool) (*fetch, error) {
	line := &c.questions.lines[from]
	f := c.fetches[headID]
	switch {
	case f != nil:
		f.wanted = true
		if f.waiting && from < f.from {
			f.from = from
			*line = append(*line, f)
			c.begin()
		}
		return f, nil
	case from == strangers && len(*line) >= maxStrangers:
		return nil, errUnknownHeads
	}
	// Later deliveries use the answer too, so it does not end with this one.
	f = c.newFetch(context.WithoutCancel(ctx), headID, from)
	f.mismatch, f.wanted, f.waiting = mismatch, true, true
	*line = append(*line, f)
	c.begin()
	return f, nil
}

func (c *Cache) newFetch(ctx context.Context, headID string, from class) *fetch {
	f := &fetch{ctx: ctx, headID: headID, from: from, begun: time.Now(), done: make(chan struct{})}
	c.fetches[headID] = f
	return f
}

// wait returns the answer. If there are stale keys, it returns them instead of an
// error, or if the answer takes too long.
func (c *Cache) wait(ctx context.Context, f *fetch, stale []string) ([]string, error) {
	var tooLong <-chan time.Time
	if stale != nil {
		tooLong = time.After(time.Until(f.begun.Add(refreshPatience)))
	}
	select {
	case <-f.done:
		if f.err != nil && stale != nil {
			return stale, nil
		}
		return f.keys, f.err
	case <-tooLong:
		return stale, nil
	case <-ctx.Done():
		return nil, c.whyNot(ctx, f)
	}
}

// whyNot returns why a delivery has no answer at its end.
func (c *Cache) whyNot(ctx context.Context, f *fetch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting {
		return fmt.Errorf("%w: %w", f.tooLate(), ctx.Err())
	}
	return ctx.Err()
}

// tooLate is the error of a request whose turn did not come.
func (f *fetch) tooLate() error {
	if f.from == strangers {
		return errUnknownHeads
	}
	return errTooBusy
}

// begin begins the requests whose turn it is, and sets a timer for those after them.
// Whatever may give a request its turn calls begin. The caller holds the lock.
func (c *Cache) begin() {
	now := time.Now()
	for {
		f := c.next(now)
		if f == nil {
			break
		}
		q := &c.questions
		q.running++
		if f.from != acquainted {
			q.limited++
		}
		f.waiting, f.asked = false, now
		go c.run(f)
	}
	c.wakeAt(now, c.nextTurn(now))
}

// next returns the request whose turn it is, or nil.
func (c *Cache) next(now time.Time) *fetch {
	q := &c.questions
	known, unknown := c.front(acquainted, now), c.front(strangers, now)
	switch {
	case q.running >= maxFetches:
		return nil
	case known != nil:
		return q.pop(acquainted)
	case q.limited >= maxLimited:
		return nil
	case unknown != nil && q.budget.take(now):
		return q.pop(strangers)
	default:
		return c.nextReading(now)
	}
}

// front returns the first request of a line. Before it, it takes out those that were
// answered meanwhile, and those that have waited for too long.
func (c *Cache) front(from class, now time.Time) *fetch {
	q := &c.questions
	for len(q.lines[from]) > 0 {
		f := q.lines[from][0]
		if f.waiting && f.from == from && now.Before(f.begun.Add(fetchTimeout)) {
			return f
		}
		q.pop(from)
		if f.waiting && f.from == from {
			f.err = f.tooLate()
			c.finish(f, now)
		}
	}
	return nil
}

func (q *questions) pop(from class) *fetch {
	f := q.lines[from][0]
	q.lines[from][0] = nil
	q.lines[from] = q.lines[from][1:]
	return f
}

// nextReading returns a request for a head that is to be read in the background, or
// nil.
func (c *Cache) nextReading(now time.Time) *fetch {
	l := &c.questions.later
	for l.mayRead(now) {
		headID := l.heads[0]
		l.heads = l.heads[1:]
		if f := c.fetches[headID]; f != nil {
			f.reread = true
		} else if _, known := c.known[headID]; !known {
			l.running++
			f := c.newFetch(context.Background(), headID, reading)
			f.reread = true
			return f
		}
	}
	return nil
}

// nextTurn returns when a request that waits may get its turn, or has waited for too
// long, though none ends before. It is zero if there is none.
func (c *Cache) nextTurn(now time.Time) (next time.Time) {
	q := &c.questions
	earliest := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for from := range q.lines {
		if f := c.front(class(from), now); f != nil {
			earliest(f.begun.Add(fetchTimeout))
		}
	}
	if len(q.lines[strangers]) > 0 && q.limited < maxLimited && q.running < maxFetches {
		earliest(q.budget.next())
	}
	if len(q.later.heads) > 0 && now.Before(q.later.until) {
		earliest(q.later.until)
	}
	return next
}

// wakeAt calls begin at that time, unless a timer does so before.
func (c *Cache) wakeAt(now, at time.Time) {
	q := &c.questions
	if at.IsZero() || now.Before(q.wake) && !at.Before(q.wake) {
		return
	}
	q.wake = at
	time.AfterFunc(at.Sub(now), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.begin()
	})
}

func (c *Cache) run(f *fetch) {
	ctx, cancel := context.WithTimeout(f.ctx, fetchTimeout)
	defer cancel()
	f.err = errFetchEnded
	defer func() { // even if the user's code ends the goroutine
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended(f)
	}()
	f.keys, f.err = c.list(ctx, f.headID, f.from != strangers)
}

// ended stores what a request has found, and lets the next one begin.
func (c *Cache) ended(f *fetch) {
	q := &c.questions
	q.running--
	if f.from != acquainted {
		q.limited--
	}
	if f.from == reading {
		q.later.running--
	}
	c.remember(f.headID, f)
	if f.from == strangers && f.err == nil && len(f.keys) > 0 {
		q.budget.giveBack()
	}
	c.finish(f, time.Now())
	c.begin()
}

// finish passes the answer to those who wait for it.
func (c *Cache) finish(f *fetch, now time.Time) {
	if f.reread {
		c.questions.later.heard(f.headID, f.err, now)
	}
	f.waiting = false
	delete(c.fetches, f.headID)
	close(f.done)
}

// answerWaiting answers a request that has not begun with what was learned meanwhile.
func (c *Cache) answerWaiting(headID string) {
	f, e := c.fetches[headID], c.known[headID]
	if f != nil && f.waiting && e.keys != nil {
		f.keys = e.keys
		c.finish(f, time.Now())
	}
}

// budget is a number of requests that grows with time. A request that found keys gives
// back what it took.
type budget struct {
	empty time.Time // when it was empty, or would have been without its limit
}

func (b *budget) take(now time.Time) bool {
	if full := now.Add(-unknownBurst * unknownEvery); b.empty.Before(full) {
		b.empty = full
	}
	if now.Before(b.next()) {
		return false
	}
	b.empty = b.next()
	return true
}

func (b *budget) giveBack() { b.empty = b.empty.Add(-unknownEvery) }

// next returns when there is enough for one request.
func (b *budget) next() time.Time { return b.empty.Add(unknownEvery) }

// later holds the heads that are to be read in the background. After a failure all of
// them pause, then one is tried.
type later struct {
	heads    []string
	running  int
	pause    time.Duration // 0 after an answer
	until    time.Time     // when the pause ends
	answered time.Time     // the last time, or when reading began
}

func (l *later) add(headIDs []string, now time.Time) {
	l.heads = append(l.heads, headIDs...)
	l.pause, l.until, l.answered = 0, time.Time{}, now
}

// mayRead reports whether it is the turn of the first head. It gives up if nothing was
// answered for long.
func (l *later) mayRead(now time.Time) bool {
	if now.Sub(l.answered) >= readingEndsIn {
		l.heads = nil
	}
	return len(l.heads) > 0 && !now.Before(l.until) && (l.pause == 0 || l.running == 0)
}

// heard notes the outcome of a request.
func (l *later) heard(headID string, err error, now time.Time) {
	if err == nil {
		l.pause, l.until, l.answered = 0, time.Time{}, now
		return
	}
	l.heads = append(l.heads, headID)
	if !now.Before(l.until) {
		l.pause = min(max(minPause, 2*l.pause), maxPause)
		l.until = now.Add(l.pause)
	}
}
