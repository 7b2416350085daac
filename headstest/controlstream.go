package headstest

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// The stream sends at most maxBatch entries of each journal at once, the newest ones. The
// lists have the others. After each batch it waits for streamPause, or for floodPause if
// there were more entries, so a flood of requests does not become a flood of batches.
const (
	maxBatch    = 100
	streamPause = 40 * time.Millisecond
	floodPause  = 500 * time.Millisecond
)

// position is how far a reader has read the stream.
type position struct {
	epoch                     string
	requests, deliveries, log int
	version                   int
}

// id returns the id of a batch, which a browser sends back as Last-Event-ID.
func (p position) id() string {
	return fmt.Sprintf("%s %d %d %d %d", p.epoch, p.requests, p.deliveries, p.log, p.version)
}

func parsePosition(id string) (p position, ok bool) {
	n, err := fmt.Sscanf(id, "%s %d %d %d %d", &p.epoch, &p.requests, &p.deliveries, &p.log, &p.version)
	return p, n == 5 && err == nil && min(p.requests, p.deliveries, p.log) >= 0
}

// batch is one server-sent event of the stream. A fresh batch tells the reader to read
// everything again, after a reset.
type batch struct {
	Fresh      bool          `json:"fresh"`
	State      bool          `json:"state"` // heads, webhooks, sessions or faults have changed
	Requests   []requestRow  `json:"requests"`
	Deliveries []deliveryRow `json:"deliveries"`
	Log        []logEntry    `json:"log"`
	more       bool          // there are more entries than the batch has
}

// next returns what has happened since a position, and the position after it.
func (c *core) next(p position) (batch, position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rn := c.run
	now := position{rn.epoch, rn.requests.total(), rn.deliveries.total(), rn.log.total(), c.version}
	if p.epoch != now.epoch || p.requests > now.requests || p.deliveries > now.deliveries || p.log > now.log {
		return batch{Fresh: true, State: true}, now
	}
	b := batch{State: p.version != now.version}
	b.more = now.requests-p.requests > maxBatch || now.deliveries-p.deliveries > maxBatch || now.log-p.log > maxBatch
	for _, r := range rn.requests.since(max(p.requests, now.requests-maxBatch)) {
		b.Requests = append(b.Requests, rowOfRequest(r))
	}
	for _, d := range rn.deliveries.since(max(p.deliveries, now.deliveries-maxBatch)) {
		b.Deliveries = append(b.Deliveries, rowOfDelivery(d))
	}
	b.Log = rn.log.since(max(p.log, now.log-maxBatch))
	return b, now
}

// stream sends batches until the caller disconnects or the emulator is closed. It continues
// after Last-Event-ID.
func (c *control) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, "retry: 500\n\n")
	at := positionOf(r)
	changed, stop := c.emulator.listen()
	defer stop()
	flush := http.NewResponseController(w).Flush
	for {
		b, next := c.emulator.next(at)
		if next != at {
			data, _ := encodeJSON(b) // it can always be encoded
			if _, err := fmt.Fprintf(w, "id: %s\ndata: %s\n\n", next.id(), data); err != nil {
				return
			}
			at = next
		}
		if flush() != nil || !c.pause(r, b.more) {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-c.emulator.lifetime.Done():
			return
		}
	}
}

// positionOf returns the position at which the reader has stopped. A browser that
// opens a new stream sends no Last-Event-ID, so the page sends it as after.
func positionOf(r *http.Request) position {
	at, _ := parsePosition(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	return at
}

// pause waits between two batches. It returns false if the stream has ended.
func (c *control) pause(r *http.Request, flood bool) bool {
	if flood {
		return c.emulator.delay(r, floodPause)
	}
	return c.emulator.delay(r, streamPause)
}
