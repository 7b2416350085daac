package inbox

import "sync"

// wakes wakes the workers of this process. Each has a channel.
type wakes struct {
	mu       sync.Mutex
	channels map[chan struct{}]struct{}
}

func (w *wakes) add() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels == nil {
		w.channels = make(map[chan struct{}]struct{})
	}
	c := make(chan struct{}, 1)
	w.channels[c] = struct{}{}
	return c
}

func (w *wakes) remove(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.channels, c)
}

func (w *wakes) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.channels {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
