package main

import (
	"errors"
	"fmt"
	"io"

	heads "github.com/headsapi/heads-go"
)

func printPlan(out io.Writer, plan *heads.ConversionPlan) {
	fmt.Fprintf(out, "\nPlan for head %s:\n", plan.HeadID)
	for _, step := range plan.Steps {
		mark := "to do"
		if step.Skipped {
			mark = "to skip"
		}
		printLine(out, mark, step.Name, step.Detail)
	}
	if plan.Ready() {
		return
	}
	fmt.Fprintln(out, "\nWhat blocks the switch:")
	for _, blocker := range plan.Blockers {
		fmt.Fprintf(out, "  - %v\n", blocker)
	}
}

func printSteps(out io.Writer, steps []heads.ConversionStep) {
	for _, step := range steps {
		printStep(out, step)
	}
}

func printStep(out io.Writer, step heads.ConversionStep) {
	mark := "done"
	switch {
	case step.Waiting:
		mark = "waiting"
	case step.Skipped:
		mark = "skipped"
	}
	printLine(out, mark, step.Name, step.Detail)
}

// printFailure shows the step that failed and the state of the voice.
func printFailure(out io.Writer, err error) {
	var failure *heads.ConversionError
	if !errors.As(err, &failure) {
		return
	}
	printLine(out, "failed", failure.Step, failure.Err)
	switch {
	case failure.RolledBack:
		printLine(out, "rolled back", heads.StepVoice, "the head has its old voice again")
	case failure.RollbackErr != nil:
		printLine(out, "not rolled back", heads.StepVoice, failure.RollbackErr)
	}
}

func printLine(out io.Writer, mark string, name heads.StepName, detail any) {
	fmt.Fprintf(out, "  %-17s %-8s %v\n", "["+mark+"]", name, detail)
}

func printAddresses(out io.Writer, c *heads.Conversion, showKey bool) {
	shown := heads.AccessURL.String
	if showKey {
		shown = heads.AccessURL.Reveal
	}
	if c.After == (heads.AccessURL{}) {
		fmt.Fprintln(out, "\nThe head is in its new mode, but its new access URL is not known.")
		if c.Before != (heads.AccessURL{}) {
			fmt.Fprintf(out, "The old one no longer works: %s\n", shown(c.Before))
		}
		return
	}
	if c.After == c.Before {
		fmt.Fprintf(out, "\nNothing had to be changed. The access URL is\n  %s\n", shown(c.After))
		return
	}
	fmt.Fprintf(out, "\nThe access URL has changed:\n  old: %s\n  new: %s\n", shown(c.Before), shown(c.After))
	if !showKey {
		fmt.Fprintln(out, "  (-show-key shows the keys)")
	}
	fmt.Fprintln(out, "\nThe old access URL no longer works. Embedded integrations must use the new one:")
	for _, place := range []string{
		"pages that embed the head, in an iframe or by a script",
		fmt.Sprintf("Content-Security-Policy headers and allow-lists with %s: they need %s", c.Before.Base, c.After.Base),
		"apps, kiosks and screens that open the head",
		"links and QR codes, on paper too",
		"settings, caches and monitoring that contain the access URL",
	} {
		fmt.Fprintf(out, "  - %s\n", place)
	}
}
