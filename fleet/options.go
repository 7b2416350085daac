package fleet

import (
	"fmt"
	"time"

	heads "github.com/headsapi/heads-go"
)

const (
	defaultConcurrency = 4
	defaultStopAfter   = 10

	// The defaults of heads.ConvertOptions.
	defaultConfirmTimeout = 25 * time.Second
	defaultSettleTimeout  = 10 * time.Second
)

// Options configure Plan and Apply. With the zero value, four heads are processed at a time,
// without a journal.
type Options struct {
	Concurrency int                  // heads at a time; 0 means 4
	Journal     *Journal             // nil for none
	Convert     heads.ConvertOptions // for both directions; Voice and OnStep are ignored

	// StopAfter is the number of temporary failures in a row after which the remaining heads are
	// skipped; 0 means 10, -1 never.
	StopAfter int

	OnResult func(Result) // called for each head when it is finished

	// Planned is an approved report of Plan for the same specs. Before the first change of a head,
	// Apply compares the changes with the plan. If they differ in a value or a registration, Apply
	// does not change the head: its result is pending, with the changes that would be made now.
	// Plan ignores Planned.
	Planned *Report

	// OnStep is called for every step of a conversion. Calls of OnResult and OnStep never overlap.
	OnStep func(headID string, step heads.ConversionStep)
}

// faults returns the faults of the options, each an InvalidError. A plan that is not for specs is
// one.
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
