package heads

import (
	"context"
	"sync"
)

// eventQueue runs the deliveries of each session one after the other, and up to
// workers sessions at once. A worker exists only while there is work for it.
type eventQueue struct {
	workers int
	limit   int // deliveries running and waiting
	work    func(*delivery)

	mu      sync.Mutex
	held    int // running and waiting
	running int
	lanes   map[eventLaneKey]*eventLane
	keys    map[string]struct{} // of the events running and waiting
	ready   []*eventLane        // whose first delivery waits for a worker
}

type eventLaneKey struct{ headID, sessionID string }

// eventLane is a session that has deliveries; while it runs, the first of them is
// the one being worked on.
type eventLane struct {
	key        eventLaneKey
	running    bool
	deliveries []*delivery
}

func newEventQueue(workers, size int, work func(*delivery)) *eventQueue {
	return &eventQueue{workers: workers, limit: workers + size, work: work, lanes: make(map[eventLaneKey]*eventLane), keys: make(map[string]struct{})}
}

// holds reports whether an event of that key is running or waiting.
func (q *eventQueue) holds(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, held := q.keys[key]
	return held
}

// push reports false when the queue is full.
func (q *eventQueue) push(d *delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held >= q.limit {
		return false
	}
	q.held++
	q.keys[d.claim.key] = struct{}{}
	key := eventLaneKey{d.event.HeadID, d.event.SessionID}
	l := q.lanes[key]
	if l == nil {
		l = &eventLane{key: key}
		q.lanes[key] = l
		q.ready = append(q.ready, l)
	}
	l.deliveries = append(l.deliveries, d)
	q.startNext()
	return true
}

// startNext gives the next session to a free worker. The caller holds the lock.
func (q *eventQueue) startNext() {
	if q.running == q.workers || len(q.ready) == 0 {
		return
	}
	l := q.ready[0]
	q.ready = q.ready[1:]
	l.running = true
	q.running++
	go q.run(l, l.deliveries[0])
}

// run is a goroutine for one delivery, so that one which ends by
// runtime.Goexit takes no worker with it.
func (q *eventQueue) run(l *eventLane, d *delivery) {
	defer q.finish(l)
	q.work(d)
}

func (q *eventQueue) finish(l *eventLane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held--
	q.running--
	l.running = false
	delete(q.keys, l.deliveries[0].claim.key)
	l.deliveries = l.deliveries[1:]
	if len(l.deliveries) == 0 {
		delete(q.lanes, l.key)
	} else {
		q.ready = append(q.ready, l)
	}
	q.startNext()
}

// drop returns what was waiting, and lets nothing more in.
func (q *eventQueue) drop() []*delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	var dropped []*delivery
	for key, l := range q.lanes {
		waiting := l.deliveries
		if l.running {
			l.deliveries, waiting = waiting[:1:1], waiting[1:]
		} else {
			delete(q.lanes, key)
		}
		dropped = append(dropped, waiting...)
	}
	for _, d := range dropped {
		delete(q.keys, d.claim.key)
	}
	q.ready = nil
	q.limit = 0
	return dropped
}

// deliveryGate counts the deliveries under way and can be closed.
type deliveryGate struct {
	mu     sync.Mutex
	inside int
	closed bool
	empty  chan struct{} // closed when the gate is and nobody is inside
}

// enter reports false when the gate is closed.
func (g *deliveryGate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

// stay counts one more for somebody who is inside.
func (g *deliveryGate) stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

func (g *deliveryGate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and waits until all have left, or ctx ends.
func (g *deliveryGate) close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		if g.inside == 0 {
			close(g.empty)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
		return nil
	case <-ctx.Done():
	}
	select { // both may have happened
	case <-g.empty:
		return nil
	default:
		return ctx.Err()
	}
}
