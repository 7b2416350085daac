package console

import (
	"fmt"
	"sync"
	"time"
)

const (
	rateWindow = time.Minute
	rateStep   = 500 * time.Millisecond // between samples that are kept
)

// sample is what the page saw at a time.
type sample struct {
	at       time.Time
	sequence int64 // the latest
	open     int64 // neither handled nor deleted
}

// rates compares what the page sees with what it saw up to a minute ago.
type rates struct {
	mu   sync.Mutex
	seen []sample
}

// add returns events a minute, and whether there is something to compare with.
func (r *rates) add(now sample) (stored, handled float64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.seen) > 0 && now.at.Sub(r.seen[0].at) > rateWindow {
		r.seen = r.seen[1:]
	}
	if n := len(r.seen); n == 0 || now.at.Sub(r.seen[n-1].at) >= rateStep {
		r.seen = append(r.seen, now)
	}
	first := r.seen[0]
	minutes := now.at.Sub(first.at).Minutes()
	if minutes <= 0 {
		return 0, 0, false
	}
	growth := float64(now.sequence - first.sequence)
	return max(growth, 0) / minutes, max(growth-float64(now.open-first.open), 0) / minutes, true
}

func perMinute(rate float64, known bool) string {
	if !known {
		return "not known yet"
	}
	return fmt.Sprintf("%.0f", rate)
}
