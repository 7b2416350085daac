package yamltext

import (
	"errors"
	"fmt"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
)

// A text can have more faults than anyone reads.
const (
	MaxFaults = 100
	MaxHints  = 20 // faults that say which name was meant
)

// Join joins the faults of a text that Limit returns.
func Join(faults []error) error { return errors.Join(Limit(faults)...) }

// Faults returns the errors that were joined, and none for nil.
func Faults(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // only what is joined itself
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Limit returns the faults of a text that are told: each once, at most MaxFaults, and those
// after MaxHints without a hint.
func Limit(faults []error) []error {
	faults = once(faults)
	rest := len(faults) - MaxFaults
	if rest > 0 {
		faults = append(faults[:MaxFaults:MaxFaults], fmt.Errorf("there are %d more faults; mend these first", rest))
	}
	told := make([]error, len(faults))
	for i, fault := range faults {
		if i >= MaxHints {
			fault = withoutHint(fault)
		}
		told[i] = fault
	}
	return told
}

func once(faults []error) (kept []error) {
	seen := map[string]bool{}
	for _, fault := range faults {
		if text := fault.Error(); !seen[text] {
			seen[text] = true
			kept = append(kept, fault)
		}
	}
	return kept
}

func withoutHint(fault error) error {
	text := similar.Without(fault.Error())
	if text == fault.Error() {
		return fault
	}
	if placed, ok := fault.(*Error); ok { //nolint:errorlint // what wraps one adds the file
		return &Error{placed.Line, placed.Column, similar.Without(placed.Text)}
	}
	return errors.New(text)
}
