package fleet

import (
	"fmt"
	"time"

	heads "github.com/headsapi/heads-go"
)

const (
	defaultConcurrency = 4
	defaultStopAfter   = 10

	// As in heads.ConvertOptions.
	defaultConfirmTimeout = 25 * time.Second
	defaultSettleTimeout  = 10 * time.Second
)

// Options configure Plan and Apply. The zero value works on four heads at a time, without a
// journal.
type Options struct {
	Concurrency int                  // heads at a time; 0 means 4
	Journal     *Journal             // nil: nothing is recorded
	Convert     heads.ConvertOptions // of both directions; Voice and OnStep are ignored
	StopAfter   int                  // how many temporary failures in a row skip the remaining heads; 0 means 10, -1 never
	OnResult    func(Result)         // called for each head when its work ends

	// Planned is the report of Plan for the same specs, which someone has agreed to. Apply compares
	// each head with it before its first change. If Apply would change other values, or other
	// registrations, than the plan, it leaves the head alone: its result is pending, with the
	// changes that would be made now. Plan ignores it.
	Planned *Report

	// OnStep is called for every step of a conversion. Calls of OnResult and OnStep never overlap.
	OnStep func(headID string, step heads.ConversionStep)
}

// faults returns the faults of the options, and of a plan that is not for specs, each an
// InvalidError.
func (o Options) faults(operation string, specs []Spec) (faults []error) {
	const remedy = "use 0 for the default"
	if o.Concurrency < 0 {
		faults = append(faults, invalid(operation, "Concurrency", fmt.Sprintf("%d is negative", o.Concurrency), remedy))
	}
	if o.StopAfter < -1 {
		faults = append(faults, invalid(operation, "StopAfter", fmt.Sprintf("%d is below -1", o.StopAfter), "use -1 to never stop, 0 for the default"))
	}
	if o.Convert.ConfirmTimeout < 0 {
		faults = append(faults, invalid(operation, "Convert.ConfirmTimeout", fmt.Sprintf("%v is negative", o.Convert.ConfirmTimeout), remedy))
	}
	if o.Convert.SettleTimeout < 0 {
		faults = append(faults, invalid(operation, "Convert.SettleTimeout", fmt.Sprintf("%v is negative", o.Convert.SettleTimeout), remedy))
	}
	if o.Planned != nil && !o.Planned.isOf(specs) {
		faults = append(faults, invalid(operation, "Planned", "is the plan of other specs", "plan these"))
	}
	return faults
}
