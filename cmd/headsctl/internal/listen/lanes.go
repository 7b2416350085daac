package listen

import (
	"fmt"
	"sync"
	"time"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

// lanes hold what was acknowledged. That of one head is passed on in order, one after
// the other; heads do not wait for each other.
type lanes struct {
	mu          sync.Mutex
	waiting     map[string][]*request // by head; the first one is being passed on
	pass        func(*request) bool   // reports whether it was delivered
	running     sync.WaitGroup
	undelivered int

	ending chan struct{}
}

func (l *lanes) init(pass func(*request) bool) {
	l.waiting, l.pass, l.ending = map[string][]*request{}, pass, make(chan struct{})
}

// add puts a request behind those of its head if write, which records it, succeeds. So
// the recording has the order of the lanes.
func (l *lanes) add(q *request, write func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := write(); err != nil {
		return err
	}
	head := q.entry.HeadID
	l.waiting[head] = append(l.waiting[head], q)
	if len(l.waiting[head]) == 1 {
		l.running.Go(func() { l.run(head) })
	}
	return nil
}

// run passes on what waits for a head.
func (l *lanes) run(head string) {
	for {
		l.mu.Lock()
		q := l.waiting[head][0]
		l.mu.Unlock()
		delivered := l.pass(q)
		l.mu.Lock()
		if !delivered {
			l.undelivered++
		}
		l.waiting[head] = l.waiting[head][1:]
		done := len(l.waiting[head]) == 0
		if done {
			delete(l.waiting, head)
		}
		l.mu.Unlock()
		if done {
			return
		}
	}
}

func (l *lanes) close() (undelivered int) {
	close(l.ending)
	l.running.Wait()
	return l.undelivered
}

// pause waits, and reports whether there is time for another attempt.
func (l *lanes) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !l.isEnding()
	case <-l.ending:
		return false
	}
}

func (l *lanes) isEnding() bool {
	select {
	case <-l.ending:
		return true
	default:
		return false
	}
}

// pass passes on an event that was acknowledged until the back end accepts it or the listener
// ends, and records the outcome.
func (l *Listener) pass(q *request) bool {
	outcome := recording.Outcome{Type: recording.KindOutcome, Entry: q.entry.ID}
	for again := !l.lanes.isEnding(); again; {
		answer, note := l.forward(q)
		outcome.Attempts++
		outcome.Delivered, outcome.Status = recording.Accepted(answer.Status), 0
		if answer.By == recording.ByBackEnd {
			outcome.Status = answer.Status
		}
		wait := l.Retry[min(outcome.Attempts, len(l.Retry))-1]
		l.Report(attemptLine(q.entry, answer, outcome, note, wait))
		again = !outcome.Delivered && l.lanes.pause(wait)
	}
	outcome.At = time.Now().UTC()
	_ = l.noteOf(l.Record.Append(outcome, true))
	return outcome.Delivered
}

func attemptLine(e *recording.Entry, answer recording.Answer, outcome recording.Outcome, note string, wait time.Duration) Line {
	line := lineOf(e)
	line.At, line.Status, line.DurationMS = time.Now().UTC(), answer.Status, answer.DurationMS
	line.Note = joinNotes(fmt.Sprintf("attempt %d", outcome.Attempts), note)
	if !outcome.Delivered {
		line.Note += fmt.Sprintf("; next in %v", wait)
	}
	return line
}
