// Fleet converts many heads to streaming mode. After it was killed, the next run continues.
//
// Without settings, it uses an emulator with 60 heads. It kills itself in the middle to show that
// nothing is lost:
//
//	go run ./examples/fleet
//
// With HEADS_BASE_URL and HEADS_TOKEN, it converts the heads of a file, a JSON list of fleet.Spec,
// on that service. Use -plan first.
//
//	go run ./examples/fleet -specs heads.json -plan
//	go run ./examples/fleet -specs heads.json -journal heads.journal -report heads.html
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are the values of the flags.
type settings struct {
	specs, journal, report string
	plan                   bool
	dieAfter               int
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var s settings
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.StringVar(&s.specs, "specs", "", "file with the wanted heads, a JSON list; without it, a demo on an emulator")
	flags.StringVar(&s.journal, "journal", "heads.journal", "file that outlives the process; the same one resumes")
	flags.StringVar(&s.report, "report", "heads.html", "file for the report")
	flags.BoolVar(&s.plan, "plan", false, "report what would be changed, and change nothing")
	flags.IntVar(&s.dieAfter, "die-after", 0, "kill this process after so many heads, to try what happens then")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.specs == "" {
		return demo(ctx, out)
	}
	client, err := heads.NewFromEnv(heads.WithRateLimit(200, 20))
	if err != nil {
		return err
	}
	return convert(ctx, out, client, s)
}

func convert(ctx context.Context, out io.Writer, client *heads.Client, s settings) error {
	specs, err := readSpecs(s.specs)
	if err != nil {
		return err
	}
	journal, err := fleet.OpenJournal(s.journal)
	if err != nil {
		return err
	}
	defer journal.Close()
	if n := journal.Dropped(); n > 0 {
		fmt.Fprintf(out, "The last line of %s was cut and is removed (%d bytes).\n", s.journal, n)
	}
	work := fleet.Apply
	if s.plan {
		work = fleet.Plan
	}
	progress := &progress{out: out, total: len(specs), dieAfter: s.dieAfter}
	report, err := work(ctx, client, specs, fleet.Options{Concurrency: 8, Journal: journal, OnResult: progress.result})
	if report == nil {
		return err
	}
	fmt.Fprintf(out, "%d changed, %d pending, %d unchanged, %d blocked, %d failed, %d skipped; %d have a new access URL.\n",
		report.Count(fleet.OutcomeChanged), report.Count(fleet.OutcomePending), report.Count(fleet.OutcomeUnchanged),
		report.Count(fleet.OutcomeBlocked), report.Count(fleet.OutcomeFailed), report.Count(fleet.OutcomeSkipped), len(report.Moves()))
	return errors.Join(err, writeReport(s.report, report))
}

func readSpecs(path string) (specs []fleet.Spec, err error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(document, &specs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return specs, nil
}

func writeReport(path string, report *fleet.Report) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteHTML(file), file.Close())
}

// progress prints a line for every head that needs attention, and one for every twenty heads.
type progress struct {
	out                   io.Writer
	done, total, dieAfter int
}

func (p *progress) result(r fleet.Result) {
	p.done++
	if r.Outcome == fleet.OutcomeBlocked || r.Outcome == fleet.OutcomeFailed {
		fmt.Fprintf(p.out, "  %s %s (%s): %v\n", r.Outcome, r.Label, r.Reason, r.Err)
	}
	if p.done%20 == 0 || p.done == p.total {
		fmt.Fprintf(p.out, "%d of %d heads\n", p.done, p.total)
	}
	if p.done == p.dieAfter {
		fmt.Fprintln(p.out, "Killed in the middle. The same command resumes.")
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // wait for the signal
	}
}
