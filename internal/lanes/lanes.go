// Package lanes has a bounded queue. It works on the items of one lane in order, and
// on several lanes at once.
package lanes

import "sync"

// Queue works on items of type T. Items with the same lane L keep their order.
type Queue[L comparable, T any] struct {
	workers int
	limit   int // items running and waiting
	work    func(T)

	mu      sync.Mutex
	held    int // running and waiting
	running int
	lanes   map[L]*lane[L, T]
	keys    map[string]struct{} // of the items running and waiting
	ready   []*lane[L, T]       // whose first item waits for a worker
}

// lane holds at least one item. While the lane runs, the first item is the one
// being worked on.
type lane[L comparable, T any] struct {
	name    L
	running bool
	items   []entry[T]
}

type entry[T any] struct {
	key  string
	item T
}

// New returns a queue that calls work on up to that many goroutines at once. Up to
// size items may wait. A goroutine exists only while it has work.
func New[L comparable, T any](workers, size int, work func(T)) *Queue[L, T] {
	return &Queue[L, T]{workers: workers, limit: workers + size, work: work, lanes: make(map[L]*lane[L, T]), keys: make(map[string]struct{})}
}

// Holds reports whether an item with that key is running or waiting.
func (q *Queue[L, T]) Holds(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, held := q.keys[key]
	return held
}

// Push adds an item to the end of a lane and reports whether the queue had room.
func (q *Queue[L, T]) Push(name L, key string, item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held >= q.limit {
		return false
	}
	q.held++
	q.keys[key] = struct{}{}
	l := q.lanes[name]
	if l == nil {
		l = &lane[L, T]{name: name}
		q.lanes[name] = l
		q.ready = append(q.ready, l)
	}
	l.items = append(l.items, entry[T]{key, item})
	q.startNext()
	return true
}

// startNext starts the next lane if a worker is free. The caller holds the lock.
func (q *Queue[L, T]) startNext() {
	if q.running == q.workers || len(q.ready) == 0 {
		return
	}
	l := q.ready[0]
	q.ready = q.ready[1:]
	l.running = true
	q.running++
	go q.run(l, l.items[0].item)
}

// run works on one item on its own goroutine, so work that calls runtime.Goexit does
// not end a worker.
func (q *Queue[L, T]) run(l *lane[L, T], item T) {
	defer q.finish(l)
	q.work(item)
}

func (q *Queue[L, T]) finish(l *lane[L, T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held--
	q.running--
	l.running = false
	delete(q.keys, l.items[0].key)
	l.items = l.items[1:]
	if len(l.items) == 0 {
		delete(q.lanes, l.name)
	} else {
		q.ready = append(q.ready, l)
	}
	q.startNext()
}

// Drop removes and returns the items that are waiting. Push then reports false.
func (q *Queue[L, T]) Drop() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	var dropped []T
	for name, l := range q.lanes {
		waiting := l.items
		if l.running {
			l.items, waiting = waiting[:1:1], waiting[1:]
		} else {
			delete(q.lanes, name)
		}
		for _, e := range waiting {
			delete(q.keys, e.key)
			dropped = append(dropped, e.item)
		}
	}
	q.ready = nil
	q.limit = 0
	return dropped
}
