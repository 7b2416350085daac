package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/timing"
	"golang.org/x/sync/errgroup"
)

// ErrStopped is wrapped by the error of a run that skipped heads because StopAfter
// was reached.
var ErrStopped = errors.New("the service failed for too many heads in a row")

// errPlanChanged is in the result of a head that Apply left alone since its changes
// would not be those of Options.Planned.
var errPlanChanged = errors.New("fleet: the head is no longer as it was planned for, and was not changed; look at its changes and run it again")

const (
	defaultConcurrency = 4
	defaultStopAfter   = 10

	// As in heads.ConvertOptions.
	defaultConfirmTimeout = 25 * time.Second
	defaultSettleTimeout  = 10 * time.Second
)

// Options configure Plan and Apply. The zero value works on four heads at a time,
// without a journal.
type Options struct {
	Concurrency int                  // heads at a time; 0 means 4
	Journal     *Journal             // nil: nothing is recorded
	Convert     heads.ConvertOptions // of both directions; Voice and OnStep are ignored
	StopAfter   int                  // how many temporary failures in a row skip the remaining heads; 0 means 10, -1 never
	OnResult    func(Result)         // called for each head when its work ends

	// Planned is the report of Plan for the same specs, which someone has agreed to.
	// Apply compares each head with it before its first change. If Apply would
	// change other values, or other registrations, than the plan, it leaves the
	// head alone: its result is pending, with the changes that would be made now.
	// Plan ignores it.
	Planned *Report

	// OnStep is called for every step of a conversion. Calls of OnResult and
	// OnStep never overlap.
	OnStep func(headID string, step heads.ConversionStep)
}

// Plan reads the heads and reports what Apply would change. It changes nothing.
//
// For each head, it sends GET /head/{id}; before a switch of the mode, GET
// /head_visual/{headVisualId}; and if the spec has webhooks, GET /head-events.
//
// The report depends on the heads and the specs alone: its results have no times.
//
// It returns the same errors as Apply.
func Plan(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return start(ctx, "fleet.Plan", c, specs, o)
}

// Apply changes every head to the state in its spec, in this order: fields and
// voice, mode, delivery, webhooks, tools. If a head is converted, its voice is part
// of the conversion: it is set before a switch to streaming, and rolled back with
// it, and after a switch to legacy mode. Apply sends only what differs, so a second
// run only reads.
//
// For each head, it sends the requests of Plan, and then, as far as needed, those of
// Heads.Update and Heads.Get, Heads.ConvertToStreaming or ConvertToLegacy, Webhooks.SetDelivery,
// Webhooks.Ensure and Delete, and ConversationSettings.SetTools.
//
// If specs or options are invalid, Apply sends nothing. It returns an error that
// joins an InvalidError for every fault, and no report. If the run is cut short,
// Apply returns the report and an error that wraps the context's error, ErrStopped,
// or the error of the journal. When ctx ends, no further head is started, and the
// started ones are finished within SettleTimeout. Failures of heads are only in the
// report.
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
	failures int   // temporary failures in a row
	stopped  error // why no further head is started
}

func start(ctx context.Context, operation string, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	switch {
	case ctx == nil:
		return nil, invalid(operation, "context", "is nil", "use context.Background()", useBackground)
	case c == nil || c.Heads == nil:
		return nil, invalid(operation, "client", "was not made by New", "use heads.New or heads.NewFromEnv", useNew)
	}
	apply := operation == "fleet.Apply"
	if !apply {
		o.Planned = nil
	}
	if err := validate(operation, specs, o); err != nil {
		return nil, err
	}
	if err := o.Journal.serve(operation, c.BaseURL(), apply); err != nil {
		return nil, err
	}
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.StopAfter = cmp.Or(o.StopAfter, defaultStopAfter)
	// One half is for the requests of a head, the other for what a conversion
	// settles after they have ended.
	grace := cmp.Or(o.Convert.SettleTimeout, defaultSettleTimeout) / 2
	o.Convert.SettleTimeout = max(grace, 1)
	work, cancel := timing.Outlive(ctx, grace)
	defer cancel()
	r := &run{callerLeft: ctx.Err, client: c, o: o, apply: apply, results: make([]Result, len(specs))}
	report := &Report{Started: time.Now()}
	var group errgroup.Group
	group.SetLimit(o.Concurrency)
	for i := range specs {
		group.Go(func() error {
			h := &headRun{run: r, spec: &specs[i], result: &r.results[i]}
			if o.Planned != nil {
				h.planned = &o.Planned.Results[i]
			}
			h.one(work)
			return nil
		})
	}
	_ = group.Wait() // no head returns an error
	report.Ended, report.Results = time.Now(), r.results
	return report, r.cutShort()
}

// one works on one head, unless the run was stopped. ctx ends later than the
// caller's context, so the work on a started head is finished.
func (h *headRun) one(ctx context.Context) {
	result := h.result
	result.HeadID, result.Label, result.Outcome = h.spec.ID, h.spec.Label, OutcomeSkipped
	if h.isStopped() {
		return
	}
	started := time.Now()
	if err := h.do(ctx); err != nil {
		result.Outcome, result.Err, result.Reason = OutcomeFailed, err, reasonOf(err)
	}
	if h.apply { // two plans of one state are equal
		result.Started, result.Duration = started, time.Since(started)
	}
	h.ended(*result)
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped != nil || r.callerLeft() != nil
}

// ended counts a finished head and calls OnResult.
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

// cutShort returns why the work on some heads was not finished, or nil.
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
