package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

func (a *app) doctorCommand() *cobra.Command {
	var from targetFlags
	var p pace
	var format string
	cmd := &cobra.Command{
		Use: "doctor ID...|-f IDS", Short: "Find what keeps heads from working",
		Long: `Doctor reads heads and tells what is wrong with them and what to do. It changes
nothing. Findings that are the same for several heads are printed once, with the
heads. It ends with 1 if a finding is an error.`,
		Example: "  headsctl doctor -f ids.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, c, err := a.targetsAndClient(cmd, from, p, args)
			if err != nil {
				return err
			}
			return a.doctor(cmd.Context(), c, targets, p.jobs, format)
		},
	}
	from.add(cmd)
	p.add(cmd)
	outputFlag(cmd, &format)
	return cmd
}

func (a *app) doctor(ctx context.Context, c *heads.Client, targets []target, jobs int, format string) error {
	results, failed := forEach(a, ctx, "examining", targets, jobs, func(t target) (*heads.Examination, error) { return examine(ctx, c, t.id) })
	read := []*heads.Examination{}
	grave := false
	for _, e := range results {
		if e == nil {
			continue
		}
		read = append(read, e)
		for _, f := range e.Findings {
			grave = grave || f.Severity == heads.SeverityError
		}
	}
	if err := a.print(format, read, func() { a.printExaminations(read) }); err != nil {
		return err
	}
	if failed == nil && grave {
		return exit(exitFailed)
	}
	return failed
}

// printExaminations writes a line for each head, then each finding once, and the totals.
func (a *app) printExaminations(all []*heads.Examination) {
	var every []heads.Finding
	var order []heads.Finding
	found := map[heads.Finding][]*heads.Examination{}
	for _, e := range all {
		a.say("%s", a.stdout.Cut(nameOfExamined(e)+" ("+e.Mode+"): "+findingCount(e.Findings)))
		every = append(every, e.Findings...)
		for _, f := range e.Findings {
			f.Remedy = strings.ReplaceAll(f.Remedy, e.HeadID, "ID")
			if found[f] == nil {
				order = append(order, f)
			}
			found[f] = append(found[f], e)
		}
	}
	for _, f := range order {
		a.printFinding(f, found[f], len(all) > 1)
	}
	total := "no findings" // a line with "nothing found" is one of a head
	if len(every) > 0 {
		total = findingCount(every)
	}
	a.wrap("", show.Count(len(all), "head")+" examined: "+total)
}

// printFinding writes a finding and the heads that have it.
func (a *app) printFinding(f heads.Finding, of []*heads.Examination, named bool) {
	line := a.stdout.Cut(fmt.Sprintf("  %-7s %s %s", f.Severity, f.Code, show.Line(f.Subject)))
	word := string(f.Severity)
	a.say("%s", strings.Replace(line, word, a.stdout.Paint(severityColours[f.Severity], word), 1))
	if len(of) == 1 {
		f.Remedy = placeID.ReplaceAllString(f.Remedy, "${1}"+of[0].HeadID)
	}
	a.wrap("      ", show.Line(f.Problem))
	a.wrap("      → ", show.Line(f.Remedy))
	if !named {
		return
	}
	var names []string
	for _, e := range of {
		names = append(names, nameOfExamined(e))
	}
	a.wrap("      "+show.Count(len(of), "head")+": ", strings.Join(names, ", "))
}

func nameOfExamined(e *heads.Examination) string {
	return show.Line(strings.Join([]string{e.HeadID, e.Name}, " "))
}

var severityColours = map[heads.Severity]string{heads.SeverityError: console.Red, heads.SeverityWarning: console.Yellow}

func findingCount(findings []heads.Finding) string {
	if len(findings) == 0 {
		return "nothing found"
	}
	var texts []string
	for _, severity := range []heads.Severity{heads.SeverityError, heads.SeverityWarning, heads.SeverityNote} {
		n := 0
		for _, f := range findings {
			if f.Severity == severity {
				n++
			}
		}
		if n > 0 {
			texts = append(texts, show.Count(n, string(severity)))
		}
	}
	return strings.Join(texts, ", ")
}

// wrap writes a text behind an indent. On a terminal it breaks lines between
// words.
func (a *app) wrap(indent, text string) {
	width := a.stdout.Width()
	if width == 0 {
		a.say("%s%s", indent, text)
		return
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && runewidth.StringWidth(indent+line+" "+word) > width {
			a.say("%s", a.stdout.Cut(indent+line))
			indent, line = strings.Repeat(" ", runewidth.StringWidth(indent)), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	a.say("%s", a.stdout.Cut(indent+line))
}
