package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/fleet"
)

// The outcomes in the order of the totals.
var (
	planned = []fleet.Outcome{fleet.OutcomePending, fleet.OutcomeUnchanged, fleet.OutcomeBlocked, fleet.OutcomeFailed, fleet.OutcomeSkipped}
	applied = []fleet.Outcome{fleet.OutcomeChanged, fleet.OutcomeUnchanged, fleet.OutcomeBlocked, fleet.OutcomeFailed, fleet.OutcomeSkipped}
)

var outcomeColours = map[fleet.Outcome]string{
	fleet.OutcomeChanged: console.Green, fleet.OutcomePending: console.Yellow, fleet.OutcomeBlocked: console.Red, fleet.OutcomeFailed: console.Red,
}

// printResult prints the line of one head, and for a plan a line for each change below it.
func (a *app) printResult(r fleet.Result, asJSON, withChanges bool) {
	if asJSON {
		a.printTyped("result", r)
		return
	}
	a.say("%s", inWordsOf(a.environment, resultLine(r, a.stdout.Paint(outcomeColours[r.Outcome], string(r.Outcome)))))
	if withChanges {
		a.printChanges(r.Changes)
	}
}

// resultLine returns the outcome, id, label, new access URL and reason of a result.
func resultLine(r fleet.Result, outcome string) string {
	words := []string{outcome, r.HeadID}
	if label := show.Line(r.Label); label != "" {
		words = append(words, label)
	}
	if address := withoutQuery(r.After.String()); address != "" {
		words = append(words, address)
	}
	if r.Err != nil {
		words = append(words, string(r.Reason)+": "+strings.Join(errorTexts(r.Err), "; "))
	} else if r.Reason != "" {
		words = append(words, string(r.Reason))
	}
	return strings.Join(words, " ")
}

func errorTexts(err error) []string {
	var texts []string
	for _, part := range parts(err) {
		texts = append(texts, plainError(part))
	}
	return texts
}

func (a *app) printChanges(changes []fleet.Change) {
	for _, line := range changeLines(changes) {
		a.say("%s", line)
	}
}

// changeLines returns the lines of a plan: + is added, - is removed, ~ is changed.
func changeLines(changes []fleet.Change) []string {
	var lines []string
	for _, c := range changes {
		switch from, to := show.Line(c.From), show.Line(c.To); {
		case from == "":
			lines = append(lines, fmt.Sprintf("  + %s: %s", show.Line(c.Field), to))
		case to == "":
			lines = append(lines, fmt.Sprintf("  - %s: %s", show.Line(c.Field), from))
		default:
			lines = append(lines, fmt.Sprintf("  ~ %s: %s → %s", show.Line(c.Field), from, to))
		}
	}
	return lines
}

// blockedNote is printed after the totals of a run with blocked heads.
const blockedNote = "a blocked head gets nothing of its entry"

// printTotals writes the last line: how many heads had which outcome.
func (a *app) printTotals(report *fleet.Report, asJSON, isPlan bool) {
	outcomes := applied
	switch {
	case isPlan:
		outcomes = planned
	case report.Count(fleet.OutcomePending) > 0: // no longer as they were planned for
		outcomes = append(slices.Clone(applied), fleet.OutcomePending)
	}
	counts := countsOf(report, outcomes)
	var texts []string
	for _, outcome := range outcomes {
		texts = append(texts, fmt.Sprintf("%d %s", counts[outcome], outcome))
	}
	note := ""
	if counts[fleet.OutcomeBlocked] > 0 {
		note = blockedNote
	}
	if asJSON {
		line, _ := json.Marshal(struct {
			Type   string                `json:"type"`
			Counts map[fleet.Outcome]int `json:"counts"`
			Note   string                `json:"note,omitempty"`
		}{"summary", counts, note})
		a.say("%s", line)
		return
	}
	if note != "" {
		note = " (" + note + ")"
	}
	a.say("%s%s", strings.Join(texts, ", "), note)
}

func countsOf(report *fleet.Report, outcomes []fleet.Outcome) map[fleet.Outcome]int {
	counts := map[fleet.Outcome]int{}
	for _, outcome := range outcomes {
		counts[outcome] = report.Count(outcome)
	}
	return counts
}

// withoutQuery returns an access URL without its key.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}
