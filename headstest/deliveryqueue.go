package headstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/timing"
)

// Deliveries returns the attempts made, oldest first.
func (e *Emulator) Deliveries() []Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.run.deliveries.since(0)
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
	var rn *run
	seen := 0
	for {
		e.mu.Lock()
		if e.run != rn {
			rn, seen = e.run, 0
		}
		fresh := rn.deliveries.since(seen)
		seen = rn.deliveries.total()
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
// and signature, after the events in the queue of its webhook. If the webhook was deleted,
// Redeliver returns ErrRemoved.
func (e *Emulator) Redeliver(d Delivery) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.run.webhooks[d.WebhookID]; !ok {
		return ErrRemoved
	}
	e.run.undelivered[d.Event.SessionID]++
	e.push(e.run.queue(d.WebhookID), job{
		webhookID: d.WebhookID, url: d.URL, event: d.Event, body: d.Body,
		signature: d.Header.Get(signatureHeader), eventID: d.eventID,
	})
	return nil
}

// enqueue signs an event for a webhook and applies a fault. Like push, it is
// called under the lock.
func (c *core) enqueue(w *webhook, e heads.Event, eventID int) {
	// If no fault matches, take returns the zero fault, which does nothing.
	f, _ := c.run.deliveryFaults.take(func(f DeliveryFault) bool { return f.Status == 0 && f.matches(w.id, e.Type) })
	c.notify() // a fault may be used up
	e.Timestamp.Time = e.Timestamp.Add(-f.Age)
	e.Timestamp.Text = e.Timestamp.Format(c.cfg.timestampLayout)
	body := eventBody(e, c.cfg.timestampLayout)
	e.Raw = heads.NewRaw(body)
	j := job{webhookID: w.id, url: w.url, event: e, body: body, delay: f.Delay, eventID: eventID}
	j.signature = sign(j.body, w.sharedKey, cmp.Or(f.Encoding, c.cfg.encoding))
	if f.CorruptSignature {
		j.signature = corrupt(j.signature)
	}
	c.run.undelivered[e.SessionID]++
	if f.Drop {
		c.giveUp(c.run, j, 0, ErrDropped)
		return
	}
	jobs := []job{j}
	if f.Duplicate {
		c.run.undelivered[e.SessionID]++
		jobs = append(jobs, j)
	}
	q := c.run.queue(w.id)
	if f.Reorder {
		q.held = append(q.held, jobs...)
		return
	}
	c.push(q, append(jobs, q.held...)...)
	q.held = nil
}

func (c *core) push(q *queue, jobs ...job) {
	rn := c.run
	for _, j := range jobs {
		switch {
		case c.closed:
			c.giveUp(rn, j, 0, ErrClosed)
		case len(q.jobs) >= c.cfg.backlog:
			c.giveUp(rn, j, 0, ErrBacklog)
		default:
			q.jobs = append(q.jobs, j)
		}
	}
	if !q.working && len(q.jobs) > 0 {
		q.working = true
		c.workers.Go(func() { c.work(rn, q) })
	}
}

func (c *core) work(rn *run, q *queue) {
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
		c.deliver(rn, j)
	}
}

// deliver makes attempts until one succeeds or the schedule is used up.
func (c *core) deliver(rn *run, j job) {
	wait := j.delay
	for attempt := 1; ; attempt++ {
		if err := c.waitForAttempt(rn, j, wait); err != nil {
			c.mu.Lock()
			c.giveUp(rn, j, attempt-1, err)
			c.mu.Unlock()
			return
		}
		d, answered := c.answerByFault(rn, j)
		if !answered {
			d = c.attempt(rn.ctx, j)
		}
		d.Attempt = attempt
		d.Final = d.answered() || attempt > len(c.cfg.retrySchedule) || rn.ctx.Err() != nil
		if !d.Final {
			d.RetryIn = c.cfg.retrySchedule[attempt-1]
		}
		c.mu.Lock()
		c.recordDelivery(rn, d)
		c.mu.Unlock()
		if d.Final {
			return
		}
		wait = d.RetryIn
	}
}

// waitForAttempt returns an error if the emulator or the webhook is gone after the wait.
func (c *core) waitForAttempt(rn *run, j job, wait time.Duration) error {
	if timing.Sleep(rn.ctx, wait) != nil {
		return ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := rn.webhooks[j.webhookID]; !ok {
		return ErrRemoved
	}
	return nil
}

// answerByFault returns the attempt as a fault with a status answers it. answered is
// false if there is no such fault.
func (c *core) answerByFault(rn *run, j job) (d Delivery, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, answered := rn.deliveryFaults.take(func(f DeliveryFault) bool { return f.Status != 0 && f.matches(j.webhookID, j.event.Type) })
	if !answered {
		return d, false
	}
	c.notify()
	d = j.delivery()
	d.Status, d.Reply = f.Status, []byte(notSent)
	return d, true
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
	resp, reply, err := exchange(c.client, req.WithContext(ctx), maxReply) //nolint:bodyclose // closed there
	d.Reply, d.Err, d.Duration = reply, err, time.Since(d.At)
	if resp != nil {
		d.Status = resp.StatusCode
	}
	return d
}

// giveUp records that an event is not attempted again, after the given number of attempts.
// Like recordDelivery, it is called under the lock.
func (c *core) giveUp(rn *run, j job, attempts int, why error) {
	d := j.delivery()
	d.Attempt, d.Err, d.Final = attempts, why, true
	c.recordDelivery(rn, d)
}

// recordDelivery adds an attempt to the journal and wakes the waiting callers. Every delivery
// that enqueue or Redeliver has begun ends with one final attempt.
func (c *core) recordDelivery(rn *run, d Delivery) {
	c.cfg.logger.Info("delivery", "webhook", d.WebhookID, "event", string(d.Event.Type), "session", d.Event.SessionID,
		"attempt", d.Attempt, "status", d.Status, "took", d.Duration, "retry_in", d.RetryIn, "final", d.Final, "err", d.Err)
	if d.Final {
		rn.ended(d.Event.SessionID)
	}
	d.ID = rn.deliveries.total() + 1
	rn.deliveries.add(d, len(d.Body)+len(d.Reply))
	c.wake()
}
