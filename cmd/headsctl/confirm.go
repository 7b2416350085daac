package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/fleet"
)

// needsYes refuses to write without a person who could be asked.
func (a *app) needsYes(yes bool, file string) error {
	if yes || file != "-" && isTerminal(a.stdin) {
		return nil
	}
	return usage("there is no terminal to ask on; look at it with headsctl plan or --dry-run, then add --yes")
}

// confirm shows what would be done, and asks whether to do it.
func (w *work) confirm(plan *fleet.Report) (bool, error) {
	changes := 0
	for _, r := range plan.Results {
		if r.Outcome == fleet.OutcomeUnchanged {
			continue
		}
		changes += len(r.Changes)
		w.a.note("%s", w.a.cut(resultLine(r, string(r.Outcome))))
		for _, line := range changeLines(r.Changes) {
			w.a.note("%s", w.a.cut(line))
		}
	}
	question := fmt.Sprintf("Apply %d changes to %d heads? [y/N] ", changes, plan.Count(fleet.OutcomePending))
	return w.a.ask(w.cmd.Context(), question)
}

// ask writes a question to stderr. Only y and yes are a yes.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	_, _ = io.WriteString(a.stderr, question)
	answer := make(chan string, 1)
	go func() { answer <- readLine(a.stdin) }()
	select {
	case text := <-answer:
		return slices.Contains([]string{"y", "yes"}, strings.TrimSpace(text)), nil
	case <-ctx.Done():
		a.note("")
		return false, ctx.Err()
	}
}

// readLine reads up to a line break, and no byte more.
func readLine(r io.Reader) string {
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := r.Read(one)
		if n == 1 && one[0] != '\n' {
			line = append(line, one[0])
		}
		if err != nil || n == 1 && one[0] == '\n' {
			return string(line)
		}
	}
}
