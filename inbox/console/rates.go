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

// sample is a set of counts at one time.
type sample struct {
	at        time.Time
	sequence  int64 // of the latest event
	open      int64 // neither handled nor deleted
	estimated bool  // open is
}

// rates compares the current counts with those of up to a minute ago.
type rates struct {
	mu   sync.Mutex
	seen []sample
}

// add records a sample and returns the events per minute as texts. With an estimate, the number of
// handled events is unknown, since the error of the estimate is larger than the difference.
func (r *rates) add(now sample) (stored, handled string) {
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
		return "not known yet", "not known yet"
	}
	growth := float64(now.sequence - first.sequence)
	stored = fmt.Sprintf("%.0f", max(growth, 0)/minutes)
	if now.estimated || first.estimated {
		return stored, "not known"
	}
	return stored, fmt.Sprintf("%.0f", max(growth-float64(now.open-first.open), 0)/minutes)
}
