package fleet

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
)

// Outcome is the outcome for one head.
type Outcome string

// The outcomes of Plan and Apply.
const (
	OutcomeUnchanged Outcome = "unchanged" // the head already had the state
	OutcomeChanged   Outcome = "changed"
	// OutcomePending means that Apply would change the head. In a report of Apply, the changes
	// differ from Options.Planned.
	OutcomePending Outcome = "pending"
	OutcomeBlocked Outcome = "blocked" // reading showed a blocker; nothing was changed
	OutcomeFailed  Outcome = "failed"
	OutcomeSkipped Outcome = "skipped" // not started
)

// outcomes has all outcomes, in the order of reports.
var outcomes = []Outcome{OutcomeChanged, OutcomePending, OutcomeUnchanged, OutcomeBlocked, OutcomeFailed, OutcomeSkipped}

// Result is the result for one head. Its JSON has no secrets.
type Result struct {
	HeadID  string
	Label   string // of the spec, or the name of the head
	Outcome Outcome
	Changes []Change // made, even if the head failed later; for Plan, those that would be made

	// Before and After are set if the mode was or would be changed. After is zero if the new access
	// URL or the outcome of the switch is not known.
	Before, After heads.AccessURL

	// Reason and Err are set for every blocked and failed head, and for a pending one of Apply.
	Reason   heads.Reason
	Err      error
	Started  time.Time // zero for Plan and for a skipped head
	Duration time.Duration

	earlier    *Move     // a switch of an earlier run, from the journal
	unrecorded bool      // the head is streaming, and the journal has no record of its switch
	digest     heads.Raw // identifies the changes to be made; empty if there are none
}

// Report has the results for all heads. It prints as the number of heads with each outcome.
type Report struct {
	Environment    string // name of the environment, set by the caller
	Started, Ended time.Time
	Results        []Result // in the order of the specs
}

// Move is a head whose access URL has changed. Its JSON has both URLs without their keys.
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

// Digest identifies the changes of a plan. It covers full values and the ids of registrations,
// unlike Changes, which are masked and shortened. Two plans have the same digest only if Apply
// would make the same changes to the same heads. Digest is an HMAC-SHA256: without the key, it
// reveals nothing.
func (r *Report) Digest(key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	for i := range r.Results {
		if result := &r.Results[i]; result.Outcome == OutcomePending {
			fmt.Fprintf(mac, "%d %q %x\n", i, result.HeadID, result.digest.Bytes())
		}
	}
	return mac.Sum(nil)
}

// Moves returns the heads whose access URL was changed by this run, or by an earlier run with the
// same journal, in the order of the specs. Old has the same key as New. Heads whose new access URL
// is not known are not included.
func (r *Report) Moves() []Move {
	moves := []Move{}
	for i := range r.Results {
		if move := r.Results[i].move(); move != nil {
			moves = append(moves, *move)
		}
	}
	return moves
}

// Unrecorded returns the ids of heads that were already streaming, as their specs want, and whose
// switch is not in the journal. They were created or converted without this journal, or the journal
// has lost records. Moves does not have their old access URLs. Without a journal, Unrecorded
// returns an empty list.
func (r *Report) Unrecorded() []string {
	ids := []string{}
	for i := range r.Results {
		if r.Results[i].unrecorded {
			ids = append(ids, r.Results[i].HeadID)
		}
	}
	return ids
}

func (r *Result) move() *Move {
	switch none := (heads.AccessURL{}); {
	case r.earlier != nil:
		return r.earlier
	case r.Outcome == OutcomePending, r.Before == none, r.After == none:
		return nil
	}
	return &Move{HeadID: r.HeadID, Label: r.Label, Old: r.Before, New: r.After}
}

// WriteJSON writes the JSON of MarshalJSON, indented.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// reportJSON is the JSON form of a report.
type reportJSON struct {
	Environment string          `json:"environment,omitempty"`
	Started     time.Time       `json:"started"`
	Ended       time.Time       `json:"ended"`
	Counts      map[Outcome]int `json:"counts"`
	Results     []Result        `json:"results"`
	Moves       []Move          `json:"moves"`
}

// MarshalJSON returns the report without secrets.
func (r Report) MarshalJSON() ([]byte, error) {
	return marshal(reportJSON{r.Environment, r.Started, r.Ended, r.counts(), append([]Result{}, r.Results...), r.Moves()})
}

func (r *Report) counts() map[Outcome]int {
	counts := map[Outcome]int{}
	for _, o := range outcomes {
		counts[o] = r.Count(o)
	}
	return counts
}

// resultJSON is the JSON form of a result.
type resultJSON struct {
	HeadID     string       `json:"head_id"`
	Label      string       `json:"label,omitempty"`
	Outcome    Outcome      `json:"outcome"`
	Changes    []Change     `json:"changes"`
	Before     string       `json:"before,omitempty"`
	After      string       `json:"after,omitempty"`
	Reason     heads.Reason `json:"reason,omitempty"`
	Error      string       `json:"error,omitempty"`
	Started    time.Time    `json:"started,omitzero"`
	DurationMS int64        `json:"duration_ms"`
}

// MarshalJSON returns the result without secrets.
func (r Result) MarshalJSON() ([]byte, error) {
	return marshal(resultJSON{
		HeadID: r.HeadID, Label: r.Label, Outcome: r.Outcome, Changes: append([]Change{}, r.Changes...),
		Before: address(r.Before), After: address(r.After), Reason: r.Reason, Error: r.errorText(),
		Started: r.Started, DurationMS: r.Duration.Milliseconds(),
	})
}

// MarshalJSON returns the move without the keys.
func (m Move) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		HeadID string `json:"head_id"`
		Label  string `json:"label,omitempty"`
		Old    string `json:"old"`
		New    string `json:"new"`
	}{m.HeadID, m.Label, address(m.Old), address(m.New)})
}

// marshal is json.Marshal without HTML escaping.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// address returns an access URL without its query.
func address(a heads.AccessURL) string {
	text, _, _ := strings.Cut(a.String(), "?")
	return text
}

func (r *Result) errorText() string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// WriteCSV writes one line with the names of the columns and one line for every head. A cell that a
// spreadsheet would read as a formula is prefixed with a '.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"head_id", "label", "outcome", "reason", "old_address", "new_address", "changes", "error", "started", "duration_ms"}}
	for i := range r.Results {
		rows = append(rows, r.Results[i].row())
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				row[i] = "'" + cell
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (r *Result) row() []string {
	before, after := r.addresses()
	started := ""
	if !r.Started.IsZero() {
		started = r.Started.Format(time.RFC3339)
	}
	changes := make([]string, len(r.Changes))
	for i, c := range r.Changes {
		changes[i] = c.String()
	}
	return []string{
		r.HeadID, r.Label, string(r.Outcome), string(r.Reason), before, after,
		strings.Join(changes, "\n"), r.errorText(), started, strconv.FormatInt(r.Duration.Milliseconds(), 10),
	}
}

// addresses returns the access URLs before and after the switch of this run, or of an earlier one.
func (r *Result) addresses() (before, after string) {
	if r.Before == (heads.AccessURL{}) && r.earlier != nil {
		return address(r.earlier.Old), address(r.earlier.New)
	}
	return address(r.Before), address(r.After)
}

// String returns the change as one line.
func (c Change) String() string {
	switch {
	case c.From == "":
		return fmt.Sprintf("%s: %s", c.Field, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: %s removed", c.Field, c.From)
	}
	return fmt.Sprintf("%s: %s → %s", c.Field, c.From, c.To)
}

// String returns how many heads have each outcome.
func (r Report) String() string {
	var counts []string
	for _, o := range outcomes {
		if n := r.Count(o); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return "fleet.Report{" + strings.Join(counts, ", ") + "}"
}

// isOf reports whether the results have the ids of specs, in the same order.
func (r *Report) isOf(specs []Spec) bool {
	return slices.EqualFunc(r.Results, specs, func(r Result, s Spec) bool { return r.HeadID == s.ID })
}
