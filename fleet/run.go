package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	heads "github.com/headsapi/heads-go"
)

// ErrStopped is wrapped by the error of a run that skipped heads because StopAfter was reached.
var ErrStopped = errors.New("the service failed for too many heads in a row")

// run is one call of Plan or Apply.
type run struct {
	callerLeft func() error // returns the error of the caller's context
	client     *heads.Client
	o          Options
	apply      bool
	results    []Result

	calls sync.Mutex // held while OnResult or OnStep runs

	mu       sync.Mutex
	failures int   // temporary failures in a row
	stopped  error // why no further head is started
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped != nil || r.callerLeft() != nil
}

// ended counts the result of a head and calls OnResult.
func (r *run) ended(result Result) {
	r.calls.Lock()
	defer r.calls.Unlock()
	r.count(result)
	if r.o.OnResult != nil {
		r.o.OnResult(result)
	}
}

func (r *run) count(result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil && errors.Is(result.Err, heads.ErrUnauthorized) { // every other head would get the same answer
		r.stopped = fmt.Errorf("the service refused the access token: %w", result.Err)
	}
	temporary := result.Reason == heads.ReasonTemporary || result.Reason == heads.ReasonUnknownOutcome
	if result.Outcome != OutcomeFailed || !temporary {
		r.failures = 0
		return
	}
	r.failures++
	if r.stopped == nil && r.failures == r.o.StopAfter {
		r.stopped = fmt.Errorf("%w (%d); the last error was: %w", ErrStopped, r.failures, result.Err)
	}
}

// stop prevents further heads from being started.
func (r *run) stop(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = err
	}
}

// step calls OnStep for a step of a conversion.
func (r *run) step(headID string, step heads.ConversionStep) {
	if r.o.OnStep == nil {
		return
	}
	r.calls.Lock()
	defer r.calls.Unlock()
	r.o.OnStep(headID, step)
}

// cutShort returns the reason why some heads were not finished, or nil.
func (r *run) cutShort() error {
	var causes []error
	skipped, cut := 0, false
	for i := range r.results {
		if r.results[i].Outcome == OutcomeSkipped {
			skipped++
		}
		cut = cut || errors.Is(r.results[i].Err, context.Canceled)
	}
	if err := r.callerLeft(); err != nil && (skipped > 0 || cut) {
		causes = append(causes, err)
	}
	journal := r.o.Journal.broken()
	if r.stopped != nil && (skipped > 0 || journal != nil) {
		causes = append(causes, r.stopped)
	}
	if len(causes) == 0 {
		return nil
	}
	return fmt.Errorf("fleet: cut short, %d of %d heads were skipped: %w", skipped, len(r.results), errors.Join(causes...))
}
