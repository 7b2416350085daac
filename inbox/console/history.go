package console

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	historyStep = 10 * time.Second // between the samples that are kept
	historyLong = 60               // minutes that are kept
)

// sample is a set of counts at one time.
type sample struct {
	at        time.Time
	stored    int64 // the sequence of the latest event
	open      int64 // neither handled nor deleted
	estimated bool  // open is
}

// history has the samples of the last hour, at least 10 seconds apart, and the latest one.
type history struct {
	mu     sync.Mutex
	kept   []sample
	latest sample
}

func (h *history) add(now sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.kept) > 0 && now.at.Sub(h.kept[0].at) > (historyLong+1)*time.Minute {
		h.kept = h.kept[1:]
	}
	if n := len(h.kept); n == 0 || now.at.Sub(h.kept[n-1].at) >= historyStep {
		h.kept = append(h.kept, now)
	}
	h.latest = now
}

// minute has the events of one minute. Known is false where there is no sample before or after it.
type minute struct {
	stored, handled           float64
	storedKnown, handledKnown bool
}

// minutes returns the numbers of the last 60 minutes until now, the oldest first.
func (h *history) minutes(now time.Time) []minute {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.kept
	if len(seen) > 0 && h.latest.at.After(seen[len(seen)-1].at) {
		seen = append(seen[:len(seen):len(seen)], h.latest)
	}
	all := make([]minute, historyLong)
	for i := range all {
		from := now.Add(time.Duration(i-historyLong) * time.Minute)
		a, b := at(seen, from), at(seen, from.Add(time.Minute))
		if i == len(all)-1 && a != nil && b == nil { // the last sample is a moment old
			b = at(seen, h.latest.at)
		}
		if a == nil || b == nil {
			continue
		}
		m := &all[i]
		m.stored, m.storedKnown = max(b.stored-a.stored, 0), true
		m.handled, m.handledKnown = max(b.handled-a.handled, 0), !a.estimated && !b.estimated
	}
	return all
}

// point has the numbers of events since the inbox was created, less a constant.
type point struct {
	stored, handled float64
	estimated       bool
}

// at interpolates between the samples around a time. It returns nil outside of them.
func at(seen []sample, t time.Time) *point {
	for i, s := range seen {
		switch {
		case s.at.Equal(t):
			return &point{float64(s.stored), float64(s.stored - s.open), s.estimated}
		case s.at.After(t) && i > 0:
			a := seen[i-1]
			part := float64(t.Sub(a.at)) / float64(s.at.Sub(a.at))
			between := func(from, to int64) float64 { return float64(from) + part*float64(to-from) }
			return &point{between(a.stored, s.stored), between(a.stored-a.open, s.stored-s.open), a.estimated || s.estimated}
		case s.at.After(t):
			return nil
		}
	}
	return nil
}

// The size of the drawing.
const (
	chartWidth  = 900
	chartHeight = 160
)

// chart is the drawing of the last hour, and the same in words.
type chart struct {
	Width, Height   int
	Stored, Handled []string // the points of the pieces of each line
	Most            int
	Words           string
}

// drawn draws the minutes. A line has a gap where a number is not known.
func drawn(all []minute) chart {
	c := chart{Width: chartWidth, Height: chartHeight}
	most := 1.0
	for _, m := range all {
		most = max(most, m.stored, m.handled)
	}
	c.Most = int(most + 0.5)
	line := func(value func(minute) (float64, bool)) (pieces []string, words string) {
		var b strings.Builder
		last, top, known := 0.0, 0.0, false
		for i, m := range all {
			v, ok := value(m)
			if !ok {
				if b.Len() > 0 {
					pieces = append(pieces, b.String())
					b.Reset()
				}
				continue
			}
			if b.Len() == 0 {
				fmt.Fprintf(&b, "%d,%.1f ", i*chartWidth/len(all), chartHeight*(1-v/most))
			}
			fmt.Fprintf(&b, "%d,%.1f ", (i+1)*chartWidth/len(all), chartHeight*(1-v/most))
			last, top, known = v, max(top, v), true
		}
		if b.Len() > 0 {
			pieces = append(pieces, b.String())
		}
		if !known {
			return pieces, "not known yet"
		}
		return pieces, fmt.Sprintf("%.0f in the last minute, at most %.0f", last, top)
	}
	var stored, handled string
	c.Stored, stored = line(func(m minute) (float64, bool) { return m.stored, m.storedKnown })
	c.Handled, handled = line(func(m minute) (float64, bool) { return m.handled, m.handledKnown })
	c.Words = "Stored: " + stored + ". Handled: " + handled + "."
	return c
}
