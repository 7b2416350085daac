package fleet

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Outcome is what became of one head.
type Outcome string

// The outcomes of Plan and Apply.
const (
	OutcomeUnchanged Outcome = "unchanged" // the head was as wanted
	OutcomeChanged   Outcome = "changed"
	OutcomePending   Outcome = "pending" // Plan only: Apply would change the head
	OutcomeBlocked   Outcome = "blocked" // reading the head showed that it can't be had; nothing was changed
	OutcomeFailed    Outcome = "failed"
	OutcomeSkipped   Outcome = "skipped" // not begun
)

// Change is one thing that was changed, or would be. It is for people: it holds
// no secrets, and long texts are cut.
type Change struct {
	Field string `json:"field"` // JSON name, voice, streaming, delivery, "webhook URL" or "tool NAME"
	From  string `json:"from"`  // "" for what was added
	To    string `json:"to"`    // "" for what was removed
}

// Result is what became of one head. JSON has it as a report does, without
// secrets.
type Result struct {
	HeadID  string
	Label   string // of the spec, or else the name of the head
	Outcome Outcome
	Changes []Change // what was changed, even if the head failed later; what would be changed, for Plan

	// Before and After are set when the mode changed, or would. After is zero
	// while the new access URL isn't known.
	Before, After heads.AccessURL

	Reason   heads.ConversionReason // of everything blocked or failed, whatever the step
	Err      error                  // of everything blocked or failed
	Started  time.Time              // zero for what was skipped
	Duration time.Duration

	earlier *heads.AccessURL // the access URL before a switch that the journal holds
}

// Report is what became of all heads.
type Report struct {
	Started, Ended time.Time
	Results        []Result // in the order of the specs
}

// Move is a head that is reached at another access URL than before. JSON has
// the URLs without their keys.
type Move struct {
	HeadID, Label string
	Old, New      heads.AccessURL
}

// Count returns how many heads have an outcome.
func (r *Report) Count(o Outcome) int {
	n := 0
	for i := range r.Results {
		if r.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// Moves returns the heads that this run moved to another access URL, or that an
// earlier run did whose switch is in the journal. A head whose new access URL
// isn't known is not among them.
func (r *Report) Moves() []Move { return nil }

// WriteJSON writes the report as indented JSON, the same document that
// encoding/json writes.
func (r *Report) WriteJSON(w io.Writer) error { return nil }

// WriteCSV writes one line a head, after a line with the names of the columns.
// A cell that a spreadsheet would take for a formula begins with a '.
func (r *Report) WriteCSV(w io.Writer) error { return nil }

// WriteHTML writes one page that loads nothing.
func (r *Report) WriteHTML(w io.Writer) error { return nil }

// MarshalJSON writes the report without secrets.
func (r Report) MarshalJSON() ([]byte, error) { return nil, nil }

// Format shows how many heads have each outcome.
func (r Report) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.text()) }

// LogValue shows how many heads have each outcome.
func (r Report) LogValue() slog.Value { return slog.StringValue(r.text()) }

func (r Report) text() string { return "" }
