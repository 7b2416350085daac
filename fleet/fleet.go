package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/timing"
	"golang.org/x/sync/errgroup"
)

// Plan reads the heads and reports what Apply would change. It changes nothing.
//
// For each head, it sends GET /head/{id}; before a switch of the mode, GET
// /head_visual/{headVisualId}; and if the spec has webhooks, GET /head-events.
//
// The report depends on the heads and the specs only: its results have no times.
//
// It returns the same errors as Apply.
func Plan(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return start(ctx, "fleet.Plan", c, specs, o)
}

// Apply changes every head to the state in its spec, in this order: fields and voice, mode,
// delivery, webhooks, tools. If a head is converted, its voice is part of the conversion: it is set
// before a switch to streaming, and rolled back with it, and after a switch to legacy mode. Apply
// sends only values that differ, so a second run only reads.
//
// For each head, it sends the requests of Plan, and then, as needed, those of Heads.Update and
// Heads.Get, Heads.ConvertToStreaming or ConvertToLegacy, Webhooks.SetDelivery, Webhooks.Ensure and
// Delete, and ConversationSettings.SetTools.
//
// If specs or options are invalid, Apply sends nothing. It returns an error that joins an
// InvalidError for every fault, and no report. If the run is cut short, Apply returns the report
// and an error that wraps the context's error, ErrStopped, or the error of the journal. When ctx
// ends, no further head is started, and started heads are finished within SettleTimeout. Failures
// of single heads are in the report only.
func Apply(ctx context.Context, c *heads.Client, specs []Spec, o Options) (*Report, error) {
	return start(ctx, "fleet.Apply", c, specs, o)
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
	if err := errors.Join(append(o.faults(operation, specs), validate(operation, specs)...)...); err != nil {
		return nil, err
	}
	if err := o.Journal.bind(operation, c.BaseURL(), apply); err != nil {
		return nil, err
	}
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.StopAfter = cmp.Or(o.StopAfter, defaultStopAfter)
	// The first half of SettleTimeout is for the requests of a started head, the second for the
	// work of a conversion after its context has ended.
	grace := cmp.Or(o.Convert.SettleTimeout, defaultSettleTimeout) / 2
	o.Convert.SettleTimeout = max(grace, 1)
	longer, cancel := timing.Outlive(ctx, grace)
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
			h.work(longer)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	report.Ended, report.Results = time.Now(), r.results
	return report, r.cutShort()
}
