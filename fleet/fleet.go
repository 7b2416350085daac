package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	heads "github.com/headsapi/heads-go"
	"golang.org/x/sync/errgroup"
)

// ErrStopped is in the error of a run that skipped heads because StopAfter was
// reached.
var ErrStopped = errors.New("the service failed for too many heads in a row")

const (
	defaultConcurrency = 4
	defaultStopAfter   = 10

	// As in heads.ConvertOptions.
	defaultConfirmTimeout = 25 * time.Second
	defaultSettleTimeout  = 10 * time.Second
)

// Options say how Plan and Apply work. The zero value works on four heads at a
// time, without a journal.
type Options struct {
	Concurrency int                  // heads at a time; 0 means 4
	Journal     *Journal             // nil: nothing outlives the process
	Convert     heads.ConvertOptions // Voice and OnStep are not used; ConvertToLegacy has the default timeouts
	StopAfter   int                  // temporary failures in a row after which the rest is skipped; 0 means 10, -1 never
	OnResult    func(Result)         // called when a head ends, in that order

	// OnStep is called for every step of a conversion. Of OnResult and OnStep
	// only one call runs at a time. A head that goes back to legacy mode reports
	// its steps when the conversion has ended.
	OnStep func(headID string, step heads.ConversionStep)
}

// Plan reads the heads and reports what Apply would change. It changes nothing.
//
// For each head: GET /head/{id}; GET /head_visual/{headVisualId} before a
// switch of the mode; GET /head-events if the spec has webhooks.
//
// The errors are those of Apply.
func Plan(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return start(ctx, "fleet.Plan", c, specs, o)
}

// Apply brings every head to the state that its spec wants, in this order:
// fields and voice, mode, delivery, webhooks, tools. The voice of a head that is
// converted to streaming is part of the conversion, and rolled back with it.
// What is as wanted is not sent, so that Apply run again only reads.
//
// For each head the requests of Plan, then those of Heads.Modify,
// Heads.ConvertToStreaming or ConvertToLegacy, Webhooks.SetDelivery,
// Webhooks.Ensure and Delete, and ConversationSettings.SetTools, each only where
// needed.
//
// Faulty specs and options return an error that joins an InvalidError for every
// fault, and no report; nothing is sent. A run that is cut short returns both:
// the report, and an error with the context's error, ErrStopped, or that of the
// journal. When ctx ends, no further head begins, and those that have begun are
// finished within SettleTimeout. Failures of heads are only in the report.
func Apply(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return start(ctx, "fleet.Apply", c, specs, o)
}

// run is one call of Plan or Apply.
type run struct {
	callerLeft func() error // the error of the caller's context
	client     *heads.Client
	o          Options
	apply      bool
	results    []Result

	calls sync.Mutex // held while OnResult or OnStep runs

	mu       sync.Mutex
	failures int   // temporary ones in a row
	stopped  error // why no further head begins
}

func start(ctx context.Context, operation string, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	switch {
	case ctx == nil:
		return nil, &heads.InvalidError{Operation: operation, Field: "context", Reason: "is nil; use context.Background()"}
	case c == nil || c.Heads == nil:
		return nil, &heads.InvalidError{Operation: operation, Field: "client", Reason: "was not made by heads.New; use heads.New or heads.NewFromEnv"}
	}
	if err := validate(operation, specs, o); err != nil {
		return nil, err
	}
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.StopAfter = cmp.Or(o.StopAfter, defaultStopAfter)
	// One half for the requests of a head, the other for what a conversion has
	// to settle after they have ended.
	grace := cmp.Or(o.Convert.SettleTimeout, defaultSettleTimeout) / 2
	o.Convert.SettleTimeout = max(grace, 1)
	work, cancel := outlive(ctx, grace)
	defer cancel()
	r := &run{callerLeft: ctx.Err, client: c, o: o, apply: operation == "fleet.Apply", results: make([]Result, len(specs))}
	report := &Report{Started: time.Now()}
	var group errgroup.Group
	group.SetLimit(o.Concurrency)
	for i := range specs {
		group.Go(func() error {
			r.one(work, &specs[i], &r.results[i])
			return nil
		})
	}
	_ = group.Wait() // no head returns an error
	report.Ended, report.Results = time.Now(), r.results
	return report, r.cutShort()
}

// outlive returns a context that ends d after ctx has ended.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { stop(); cancel() }
}

// one works on one head, unless the run was stopped. ctx ends later than that of
// the caller, so that what has begun is finished.
func (r *run) one(ctx context.Context, spec *Spec, result *Result) {
	result.HeadID, result.Label, result.Outcome = spec.ID, spec.Label, OutcomeSkipped
	if r.isStopped() {
		return
	}
	result.Started = time.Now()
	h := &headRun{run: r, spec: spec, result: result}
	if err := h.do(ctx); err != nil {
		result.Outcome, result.Err, result.Reason = OutcomeFailed, err, reasonOf(err)
	}
	result.Duration = time.Since(result.Started)
	r.ended(*result)
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped != nil || r.callerLeft() != nil
}

// ended counts a head that has ended, and tells the caller.
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

// stop keeps further heads from beginning.
func (r *run) stop(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = err
	}
}

// step tells the caller of a step of a conversion.
func (r *run) step(headID string, step heads.ConversionStep) {
	if r.o.OnStep == nil {
		return
	}
	r.calls.Lock()
	defer r.calls.Unlock()
	r.o.OnStep(headID, step)
}

// cutShort returns why not every head was worked on to its end, or nil.
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
