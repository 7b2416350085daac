package headstest

import (
	"context"
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Deliveries returns the attempts made, oldest first.
func (e *Emulator) Deliveries() []Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.st.deliveries.since(0)
}

// WaitDelivery returns the first attempt in the journal that matches. If there is
// none, it waits for one. A nil match matches every attempt. WaitDelivery returns
// an error when the context ends, and ErrClosed when the emulator is closed.
func (e *Emulator) WaitDelivery(ctx context.Context, match func(Delivery) bool) (Delivery, error) {
	if match == nil {
		match = func(Delivery) bool { return true }
	}
	changed, stop := e.listen()
	defer stop()
	var st *state
	seen := 0
	for {
		e.mu.Lock()
		if e.st != st {
			st, seen = e.st, 0
		}
		fresh := st.deliveries.since(seen)
		seen = st.deliveries.total()
		e.mu.Unlock()
		if i := slices.IndexFunc(fresh, match); i >= 0 {
			return fresh[i], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Delivery{}, fmt.Errorf("headstest: no delivery matched: %w", context.Cause(ctx))
		case <-e.lifetime.Done():
			return Delivery{}, ErrClosed
		}
	}
}

// Redeliver sends the event of an earlier delivery once more, with the same body
// and signature, after the events that wait for its registration. If the
// registration was deleted, Redeliver returns ErrRemoved.
func (e *Emulator) Redeliver(d Delivery) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.st.webhooks[d.WebhookID]
	if !ok {
		return ErrRemoved
	}
	e.st.undelivered[d.Event.SessionID]++
	e.push(w, job{webhookID: w.id, url: d.URL, event: d.Event, body: d.Body, signature: d.Header.Get(signatureHeader), eventID: d.eventID})
	return nil
}

// enqueue signs an event for a registration and applies a fault. Like push, it is
// called under the lock.
func (c *core) enqueue(w *webhook, e heads.Event, eventID int) {
	f := c.st.takeDeliveryFault(w.id, e.Type)
	c.notify() // a fault may be used up
	e.Timestamp.Time = e.Timestamp.Add(-f.Age)
	e.Timestamp.Text = e.Timestamp.Format(c.cfg.timestampLayout)
	body := eventBody(e, c.cfg.timestampLayout)
	e.Raw = heads.NewRaw(body)
	j := job{webhookID: w.id, url: w.url, event: e, body: body, delay: f.Delay, eventID: eventID}
	j.signature = sign(j.body, w.sharedKey, or(f.Encoding, c.cfg.encoding))
	if f.CorruptSignature {
		j.signature = corrupt(j.signature)
	}
	c.st.undelivered[e.SessionID]++
	if f.Drop {
		c.give(c.st, j, 0, ErrDropped)
		return
	}
	jobs := []job{j}
	if f.Duplicate {
		c.st.undelivered[e.SessionID]++
		jobs = append(jobs, j)
	}
	if f.Reorder {
		w.queue.held = append(w.queue.held, jobs...)
		return
	}
	c.push(w, append(jobs, w.queue.held...)...)
	w.queue.held = nil
}

func (c *core) push(w *webhook, jobs ...job) {
	q, st := w.queue, c.st
	for _, j := range jobs {
		switch {
		case c.closed:
			c.give(st, j, 0, ErrClosed)
		case len(q.jobs) >= c.cfg.backlog:
			c.give(st, j, 0, ErrBacklog)
		default:
			q.jobs = append(q.jobs, j)
		}
	}
	if !q.working && len(q.jobs) > 0 {
		q.working = true
		c.workers.Go(func() { c.work(st, q) })
	}
}

func (c *core) work(st *state, q *queue) {
	for {
		c.mu.Lock()
		if len(q.jobs) == 0 {
			q.working = false
			c.mu.Unlock()
			return
		}
		j := q.jobs[0]
		q.jobs[0] = job{} // the array is kept until append moves it
		q.jobs = q.jobs[1:]
		c.mu.Unlock()
		c.deliver(st, j)
	}
}

// deliver makes attempts until one succeeds or the schedule is used up.
func (c *core) deliver(st *state, j job) {
	wait := j.delay
	for attempt := 1; ; attempt++ {
		if !sleep(st.ctx, wait) {
			c.giveUp(st, j, attempt-1, ErrClosed)
			return
		}
		if !c.registered(st, j.webhookID) {
			c.giveUp(st, j, attempt-1, ErrRemoved)
			return
		}
		d := c.attempt(st.ctx, j)
		d.Attempt = attempt
		d.Final = d.answered() || attempt > len(c.cfg.retrySchedule) || st.ctx.Err() != nil
		if !d.Final {
			d.RetryIn = c.cfg.retrySchedule[attempt-1]
		}
		c.mu.Lock()
		c.note(st, d)
		c.mu.Unlock()
		if d.Final {
			return
		}
		wait = d.RetryIn
	}
}

// attempt posts the event once. A redirect is an error answer.
func (c *core) attempt(ctx context.Context, j job) Delivery {
	d := j.delivery()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.deliveryTimeout)
	defer cancel()
	req, err := eventRequest(j.url, j.body, j.signature)
	if err != nil {
		d.Err = withoutURL(err)
		return d
	}
	resp, reply, err := c.exchange(req.WithContext(ctx), maxReply) //nolint:bodyclose // exchange has closed it
	d.Reply, d.Err, d.Duration = reply, err, time.Since(d.At)
	if resp != nil {
		d.Status = resp.StatusCode
	}
	return d
}

// giveUp calls give under the lock.
func (c *core) giveUp(st *state, j job, attempts int, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.give(st, j, attempts, why)
}

// give records that an event is not attempted again, after the given number of
// attempts.
func (c *core) give(st *state, j job, attempts int, why error) {
	d := j.delivery()
	d.Attempt, d.Err, d.Final = attempts, why, true
	c.note(st, d)
}

// note adds an attempt to the journal and wakes the waiting callers. Every delivery
// that enqueue or Redeliver has begun ends with one final attempt.
func (c *core) note(st *state, d Delivery) {
	c.cfg.logger.Info("delivery", "webhook", d.WebhookID, "event", string(d.Event.Type), "session", d.Event.SessionID,
		"attempt", d.Attempt, "status", d.Status, "took", d.Duration, "retry_in", d.RetryIn, "final", d.Final, "err", d.Err)
	if d.Final {
		st.ended(d.Event.SessionID)
	}
	d.ID = st.deliveries.total() + 1
	st.deliveries.add(d, len(d.Body)+len(d.Reply))
	c.wake()
}

// ended counts down the deliveries of a session that have not ended.
func (st *state) ended(sessionID string) {
	if st.undelivered[sessionID]--; st.undelivered[sessionID] <= 0 {
		delete(st.undelivered, sessionID)
	}
}

func (c *core) registered(st *state, id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := st.webhooks[id]
	return ok
}

// sleep waits and reports whether the context has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
