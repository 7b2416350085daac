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

// Limit returns the faults of a text that are told: at most MaxFaults, those after MaxHints without
// a hint.
func Limit(faults []error) []error {
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
