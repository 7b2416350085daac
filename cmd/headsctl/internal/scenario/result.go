package scenario

import (
	"encoding/json"
	"fmt"
	"time"
)

// Outcome is how a scenario has ended.
type Outcome string

// The outcomes, in the order of totals.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // not begun
)

var allOutcomes = []Outcome{Passed, Failed, Skipped}

// Result is the result of one run of a scenario.
type Result struct {
	File     string
	Line     int
	Name     string
	Outcome  Outcome
	Duration time.Duration
	*Failure // of a failed one
}

// Failure is what went wrong, and what led to it.
type Failure struct {
	Step       *Step // nil for a back end that was not ready for the first one
	Place      string
	Problem    string
	Expected   string // "" if there is nothing to compare
	Actual     string
	Deliveries []string // the last of them, and of tool calls
	Requests   []string // the last ones to the service
	Output     []string // the last lines of the back end
	Again      string   // the command that runs the scenario again
}

// Step is where a scenario has failed.
type Step struct {
	Number int    `json:"number"`
	Action string `json:"action"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Title is FILE:LINE NAME.
func (r *Result) Title() string { return fmt.Sprintf("%s:%d %s", r.File, r.Line, r.Name) }

// Time is the duration for people.
func (r *Result) Time() string { return roundTime(r.Duration).String() }

func roundTime(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	case d < time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// Lines are those below a failed scenario.
func (f *Failure) Lines() []string {
	head := f.Place + ": "
	if f.Step != nil {
		head += fmt.Sprintf("step %d, %s: ", f.Step.Number, f.Step.Action)
	}
	lines := []string{head + f.Problem}
	if f.Expected != "" {
		lines = append(lines, "expected: "+f.Expected, "actual:   "+f.Actual)
	}
	lines = appendList(lines, "deliveries and calls:", f.Deliveries)
	lines = appendList(lines, "requests to the service:", f.Requests)
	lines = appendList(lines, "output of the back end:", f.Output)
	return append(lines, "again: "+f.Again)
}

func appendList(lines []string, title string, items []string) []string {
	if len(items) == 0 {
		return lines
	}
	lines = append(lines, title)
	for _, item := range items {
		lines = append(lines, "  "+item)
	}
	return lines
}

// resultJSON is a result in JSON.
type resultJSON struct {
	Type       string   `json:"type,omitempty"`
	File       string   `json:"file"`
	Line       int      `json:"line"`
	Name       string   `json:"name"`
	Outcome    Outcome  `json:"outcome"`
	DurationMS int64    `json:"duration_ms"`
	Step       *Step    `json:"step,omitempty"`
	Problem    string   `json:"problem,omitempty"`
	Expected   string   `json:"expected,omitempty"`
	Actual     string   `json:"actual,omitempty"`
	Deliveries []string `json:"deliveries,omitzero"`
	Requests   []string `json:"requests,omitzero"`
	Output     []string `json:"output,omitzero"`
}

// MarshalJSON returns the result with snake_case keys.
func (r Result) MarshalJSON() ([]byte, error) { return json.Marshal(r.json()) }

func (r *Result) json() resultJSON {
	v := resultJSON{File: r.File, Line: r.Line, Name: r.Name, Outcome: r.Outcome, DurationMS: r.Duration.Milliseconds()}
	if f := r.Failure; f != nil {
		v.Step, v.Problem, v.Expected, v.Actual = f.Step, f.Problem, f.Expected, f.Actual
		v.Deliveries, v.Requests, v.Output = f.Deliveries, f.Requests, f.Output
	}
	return v
}

// Summary has the results of a run in the order in which they ended.
type Summary struct {
	Results  []Result
	Seed     uint64
	Duration time.Duration
}

// Count returns how many scenarios have an outcome.
func (s *Summary) Count(o Outcome) (n int) {
	for i := range s.Results {
		if s.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// Text is the last line of a run.
func (s *Summary) Text() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.Count(Passed), s.Count(Failed), s.Count(Skipped))
}

// Counts returns the number of scenarios by outcome.
func (s *Summary) Counts() map[Outcome]int {
	counts := map[Outcome]int{}
	for _, o := range allOutcomes {
		counts[o] = s.Count(o)
	}
	return counts
}
