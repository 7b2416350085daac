package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/fleet"
)

// manyFlags are those of plan, apply and convert.
type manyFlags struct {
	pace
	journal   string
	reports   []string
	stopAfter int
	json      bool
	exitCode  bool // of plan

	allowBlocked bool // of convert
}

func (f *manyFlags) add(cmd *cobra.Command, keeps bool) {
	f.pace.add(cmd)
	about := "keep the access URLs of converted heads in `FILE`, for the next run; none keeps nothing"
	if keeps {
		about += "\n(default: a file for each base URL in $XDG_STATE_HOME/headsctl)"
	}
	cmd.Flags().StringVar(&f.journal, "journal", "", about)
	cmd.Flags().StringArrayVar(&f.reports, "report", nil, "write a report to `FILE`.json, .csv or .html; may be given again")
	cmd.Flags().IntVar(&f.stopAfter, "stop-after", 10, "skip the rest after `N` temporary failures in a row; -1 never")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON, an object on each line")
	checkBefore(cmd, func() error {
		if f.stopAfter == 0 || f.stopAfter < -1 {
			return usage("--stop-after must be 1 or more, or -1 for never")
		}
		return checkReports(f.reports, reportTypes)
	})
}

// checkReports refuses names of reports that can't be written.
func checkReports(paths, types []string) error {
	for _, path := range paths {
		if !slices.Contains(types, filepath.Ext(path)) {
			last := len(types) - 1
			return usage("--report %s: the name must end in %s or %s", show.Line(path), strings.Join(types[:last], ", "), types[last])
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return usage("--report %s is a folder; give the name of a file", show.Line(path))
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return usage("--report %s: there is no folder %s; make it first", show.Line(path), show.Line(filepath.Dir(path)))
		}
	}
	return nil
}

var reportTypes = []string{".json", ".csv", ".html"}

// work is a run over many heads.
type work struct {
	a       *app
	cmd     *cobra.Command
	flags   *manyFlags
	client  *heads.Client
	journal *fleet.Journal
	path    string // of the journal
	specs   []fleet.Spec
	planned *fleet.Report // what somebody has agreed to; nil to apply whatever is wanted
}

// newWork makes the client and opens the journal.
func (a *app) newWork(cmd *cobra.Command, f *manyFlags, specs []fleet.Spec, reads bool) (*work, error) {
	c, err := a.client(f.options()...)
	if err != nil {
		return nil, err
	}
	if !reads || len(f.reports) > 0 {
		outliveReaders()
	}
	w := &work{a: a, cmd: cmd, flags: f, client: c, specs: specs}
	return w, w.openJournal(reads)
}

// outliveReaders lets the program go on when the reader of its output has ended. Otherwise
// SIGPIPE could end it within a conversion or before a report is written.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }

// openJournal opens the journal if the run has one.
func (w *work) openJournal(reads bool) error {
	path, err := journalPath(w.flags.journal, w.a.baseURL(), reads)
	if path == "" || err != nil {
		return err
	}
	w.path = path
	w.journal, err = fleet.OpenJournal(path)
	switch {
	case errors.Is(err, heads.ErrInvalid):
		return faulty(err) // it says what to do
	case err != nil:
		hint := "give another file with --journal"
		if errors.Is(err, fleet.ErrJournalInUse) {
			hint = "wait for the other run to end, or give another file with --journal"
		}
		return usage("the journal %s can't be used: %w; %s", path, err, hint)
	}
	if n := w.journal.Dropped(); n > 0 {
		w.a.note("the last line of the journal %s was cut off and has been removed (%d bytes)", path, n)
	}
	return nil
}

// journalPath returns the path of the journal, or "" for none. given is the value of
// --journal.
func journalPath(given, baseURL string, reads bool) (string, error) {
	switch {
	case given == "none", given == "" && reads:
		return "", nil
	case given != "":
		return given, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage("there is no home folder for the journal; give --journal FILE, or --journal none")
		}
		state = filepath.Join(home, ".local", "state")
	}
	folder := filepath.Join(state, "headsctl")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", usage("the folder of the journal can't be made: %w; give --journal FILE, or --journal none", err)
	}
	return filepath.Join(folder, journalName(baseURL)), nil
}

var unusual = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// journalName is the name of the journal for a base URL.
func journalName(baseURL string) string {
	u, err := url.Parse(strings.TrimRight(baseURL, "/"))
	if err != nil {
		u = &url.URL{Path: baseURL}
	}
	text := strings.ToLower(u.Host) + u.Path
	sum := sha256.Sum256([]byte(u.Scheme + "://" + text))
	return fmt.Sprintf("%s-%x.jsonl", strings.Trim(unusual.ReplaceAllString(text, "_"), "_"), sum[:4])
}

// close closes the journal, whose records are on disk already.
func (w *work) close() {
	if w.journal != nil {
		_ = w.journal.Close()
	}
}

func (w *work) options() fleet.Options {
	return fleet.Options{Concurrency: w.flags.jobs, Journal: w.journal, StopAfter: w.flags.stopAfter, Planned: w.planned}
}

type runFunc func(context.Context, *heads.Client, []fleet.Spec, fleet.Options) (*fleet.Report, error)

// run plans or applies, and shows the progress.
func (w *work) run(run runFunc, verb string, each func(fleet.Result)) (*fleet.Report, error) {
	bar := console.NewProgress(w.a.stdout, w.a.stderr, verb, len(w.specs))
	defer bar.Stop()
	stop := context.AfterFunc(w.cmd.Context(), func() {
		w.a.note("interrupted: heads that have begun are finished; press Ctrl-C again to end at once")
	})
	defer stop()
	o := w.options()
	inOrder := newOrdered(w.specs, each)
	o.OnResult = func(r fleet.Result) {
		bar.Done(r.Outcome == fleet.OutcomeFailed)
		inOrder.ended(r)
	}
	report, err := run(w.cmd.Context(), w.client, w.specs, o)
	if report == nil {
		return nil, err
	}
	report.Environment = w.a.environmentName()
	for _, r := range report.Results {
		inOrder.ended(r) // those that were skipped
	}
	return report, err
}

// ordered passes on results in the order of the specs, whichever head ends first.
type ordered struct {
	ids     []string
	results map[string]fleet.Result
	each    func(fleet.Result)
}

func newOrdered(specs []fleet.Spec, each func(fleet.Result)) *ordered {
	o := &ordered{results: map[string]fleet.Result{}, each: each}
	for _, s := range specs {
		o.ids = append(o.ids, s.ID)
	}
	return o
}

// ended passes on the result of a head as soon as all heads before it have ended.
func (o *ordered) ended(r fleet.Result) {
	o.results[r.HeadID] = r
	for len(o.ids) > 0 {
		next, ok := o.results[o.ids[0]]
		if !ok {
			return
		}
		o.each(next)
		o.ids = o.ids[1:]
	}
}

// finish prints the totals, writes the reports and returns the error that ends
// the program.
func (w *work) finish(report *fleet.Report, err error, planned bool) error {
	if report == nil {
		return w.a.faultyUnlessSent(err)
	}
	w.a.printTotals(report, w.flags.json, planned)
	w.tellUnrecorded(report)
	failures := w.writeReports(report)
	switch {
	case err == nil:
	case w.a.interrupted.Load() && errors.Is(err, context.Canceled):
		w.a.note("to go on, run: %s", w.resume())
		return &exitError{exitInterrupted, errors.Join(failures...)}
	case errors.Is(err, fleet.ErrStopped):
		failures = append(failures, fmt.Errorf("%w; when the service is well again, run: %s", err, w.resume()))
	default:
		failures = append(failures, err)
	}
	if !planned && !errors.Is(err, fleet.ErrStopped) && report.Count(fleet.OutcomeFailed)+report.Count(fleet.OutcomeSkipped) > 0 {
		w.a.note("to go on, run: %s", w.resume())
	}
	if err := errors.Join(failures...); err != nil {
		return &exitError{exitFailed, err}
	}
	return exit(codeOf(report, planned, w.flags))
}

// codeOf returns the exit code of a complete run. With --exit-code, a plan with pending changes
// returns exitFound, even if other heads are blocked.
func codeOf(report *fleet.Report, planned bool, f *manyFlags) int {
	unread := report.Count(fleet.OutcomeFailed) + report.Count(fleet.OutcomeSkipped)
	pending, blocked := report.Count(fleet.OutcomePending), report.Count(fleet.OutcomeBlocked)
	switch {
	case unread > 0:
		return exitFailed
	case planned && f.exitCode && pending > 0:
		return exitFound
	case blocked > 0 && !f.allowBlocked, !planned && pending > 0: // no longer as they were planned for
		return exitFailed
	}
	return exitDone
}

// tellUnrecorded reports heads whose switch should be in the journal and is not.
func (w *work) tellUnrecorded(report *fleet.Report) {
	if n := len(report.Unrecorded()); n > 0 {
		w.a.note("the journal %s does not know %s: created or converted without it, or the journal was cut; the report has no old access URL of any",
			show.Line(w.path), show.Count(n, "streaming head"))
	}
}

func (w *work) writeReports(report *fleet.Report) (failures []error) {
	for _, path := range w.flags.reports {
		if err := w.a.writeReport(path, report); err != nil {
			failures = append(failures, fmt.Errorf("the report can't be written: %w", err))
		}
	}
	return failures
}

func (a *app) writeReport(path string, report *fleet.Report) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	write := report.WriteHTML
	switch filepath.Ext(path) {
	case ".json":
		write = report.WriteJSON
	case ".csv":
		write = report.WriteCSV
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	_, err = file.Write(a.tokenMask.Hide(text.Bytes()))
	return err
}

// resume returns the command that continues the run.
func (w *work) resume() string {
	words := []string{"headsctl"}
	for _, arg := range w.a.args {
		words = append(words, show.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

// write plans, asks and applies. Without a terminal on stdin, --yes or --confirm is needed.
func (w *work) write(given consent) error {
	if w.a.mustAsk(given) {
		plan, err := w.run(fleet.Plan, "planning", func(fleet.Result) {})
		if err != nil || plan.Count(fleet.OutcomePending) == 0 {
			for _, r := range resultsOf(plan) {
				w.a.printResult(r, w.flags.json, false)
			}
			return w.finish(plan, err, false)
		}
		if confirmed, err := w.confirm(plan); err != nil || !confirmed {
			return w.decline(plan, err)
		}
		w.planned = plan
	}
	report, err := w.run(fleet.Apply, "applying", func(r fleet.Result) {
		w.a.printResult(r, w.flags.json, r.Outcome == fleet.OutcomePending)
	})
	return w.finish(report, err, false)
}

// confirm shows what would be done, and asks whether to do it.
func (w *work) confirm(plan *fleet.Report) (bool, error) {
	changes := 0
	for _, r := range plan.Results {
		if r.Outcome == fleet.OutcomeUnchanged {
			continue
		}
		changes += len(r.Changes)
		w.a.note("%s", w.a.stdout.Cut(inWordsOf(w.a.environment, resultLine(r, string(r.Outcome)))))
		for _, line := range changeLines(r.Changes) {
			w.a.note("%s", w.a.stdout.Cut(line))
		}
	}
	work := fmt.Sprintf("%d changes to %d heads", changes, plan.Count(fleet.OutcomePending))
	if e := w.a.environment; e != nil && e.Protect {
		return w.a.ask(w.cmd.Context(), "Type "+e.Name+" to apply "+work+": ", e.Name)
	}
	return w.a.ask(w.cmd.Context(), "Apply "+work+"? [y/N] ", "y", "yes")
}

// decline ends a run that was not confirmed.
func (w *work) decline(plan *fleet.Report, err error) error {
	if failures := append(w.writeReports(plan), err); errors.Join(failures...) != nil {
		return errors.Join(failures...)
	}
	return exit(exitFailed)
}

func resultsOf(report *fleet.Report) []fleet.Result {
	if report == nil {
		return nil
	}
	return report.Results
}
