package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/scenario"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

// testFlags are those of test.
type testFlags struct {
	jobs, repeat int
	only         []string
	seed         uint64
	reports      []string
	hosts        []string
	json, dryRun bool
}

// scenariosPerCore is how many scenarios run at a time for each core. They mostly wait.
const scenariosPerCore = 4

var testReportTypes = []string{".xml", ".json", ".html"}

func (a *app) testCommand() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use: "test FILE|DIR...", Short: "Run scenarios of a back end, in any language", Args: want(1, -1, "files of scenarios, or folders"),
		Long: `Test runs the scenarios of files, and of all *.test.yaml and *.test.yml below folders.
A scenario says what users and the service do, and what your back end must make of
it. The back end is started, killed and started again as a process, and an emulator
in the place of the service sends it events and tool calls by HTTP over loopback.
Nothing is sent to the real service, and no HEADS_* variable of the shell reaches
the back end.

It prints a line for each scenario, and below a failed one what was expected, what
came, and what led to it. It ends with 1 if a scenario failed.`,
		Example: "  headsctl test shop.test.yaml --report report.xml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("seed") {
				f.seed = uint64(rand.Uint32())
			}
			return a.test(cmd.Context(), f, args)
		},
	}
	cmd.Flags().IntVarP(&f.jobs, "jobs", "j", scenariosPerCore*runtime.NumCPU(), "run `N` scenarios at a time")
	cmd.Flags().Lookup("jobs").DefValue = "4 for each core"
	cmd.Flags().StringArrayVar(&f.only, "only", nil, "run the scenarios that have `TEXT` in FILE:LINE NAME; may be given again")
	cmd.Flags().IntVar(&f.repeat, "repeat", 1, "run each scenario `N` times")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "make ids, tokens, keys and chances from `N` (default: random)")
	cmd.Flags().StringArrayVar(&f.reports, "report", nil, "write a report to `FILE`.xml (JUnit), .json or .html; may be given again")
	cmd.Flags().StringArrayVar(&f.hosts, "allow-host", nil, "call webhooks and tools of `HOST` too; HOST=http://127.0.0.1:8080 calls them there; * is all hosts; may be given again")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON, an object on each line")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "check the files and print FILE:LINE NAME of the scenarios")
	checkBefore(cmd, func() error {
		switch {
		case f.jobs < 1:
			return usage("-j must be 1 or more")
		case f.repeat < 1:
			return usage("--repeat must be 1 or more")
		}
		return checkReports(f.reports, testReportTypes)
	})
	return cmd
}

// scenarioReader reads the heads of scenario files as those of a heads.yaml.
func (a *app) scenarioReader(hosts map[string]string) scenario.Reader {
	return scenario.Reader{Heads: headsfile.Entries, HeadsFile: a.specsForTest, Plain: plainError, CallbackHosts: hosts}
}

// callbackHosts reads HOST and HOST=URL of --allow-host. WithCallbackHosts panics if they
// are malformed.
func callbackHosts(given []string) (hosts map[string]string, err error) {
	hosts = map[string]string{}
	defer func() {
		if problem := recover(); problem != nil {
			err = usage("--allow-host: %s", strings.TrimPrefix(fmt.Sprint(problem), "headstest: "))
		}
	}()
	for _, text := range given {
		host, target, moved := strings.Cut(text, "=")
		switch _, twice := hosts[host]; {
		case twice:
			return nil, usage("--allow-host: the host %q is given twice; give it once", host)
		case moved && target == "":
			return nil, usage("--allow-host: want a URL behind %q, such as http://127.0.0.1:8080", text)
		}
		hosts[host] = target
	}
	headstest.WithCallbackHosts(hosts)
	return hosts, nil
}

// specsForTest reads the heads.yaml that a scenario file names, for one of its environments or
// "". Only the ids and values of an environment are used.
func (a *app) specsForTest(path, environment string) ([]fleet.Spec, error) {
	if err := a.checkHeadsFile(path); err != nil {
		return nil, err
	}
	file, err := a.parseHeadsFile(path)
	if err != nil {
		return nil, err
	}
	switch names := file.Names(); {
	case environment == "" && len(names) > 0:
		return nil, usage("%s has environments; add env, one of %s", nameOf(path), strings.Join(names, ", "))
	case environment != "" && len(names) == 0:
		return nil, usage("%s has no environments; leave env out", nameOf(path))
	}
	specs, err := file.Specs(environment)
	if err != nil {
		return nil, inFile(path, err)
	}
	return specs, nil
}

// checkHeadsFile refuses what is no heads.yaml. The path may be a stranger's, so the error
// shows nothing of the file.
func (a *app) checkHeadsFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return unreadable("the file of heads", path, err)
	}
	if !info.Mode().IsRegular() {
		return usage("%s is not a regular file; give the path of a heads.yaml", nameOf(path))
	}
	text, err := a.readYAML("the file of heads", path)
	if err != nil {
		return err
	}
	root, err := yamltext.Parse(text)
	var at *yamltext.Error
	switch {
	case errors.As(err, &at):
		return usage("%s:%d:%d: this is not YAML as in a heads.yaml; headsctl plan -f %s says more", nameOf(path), at.Line, at.Column, show.ShellWord(path))
	case err != nil:
		return usage("%s is not YAML as in a heads.yaml; headsctl plan -f %s says more", nameOf(path), show.ShellWord(path))
	case root.Kind != yamltext.Object || root.Get("heads") == nil:
		return usage("%s is no heads.yaml: it has no list with the key heads; check the path", nameOf(path))
	}
	return nil
}

// test loads the scenarios and runs them.
func (a *app) test(ctx context.Context, f testFlags, paths []string) error {
	hosts, err := callbackHosts(f.hosts)
	if err != nil {
		return err
	}
	all, err := scenario.Load(a.scenarioReader(hosts), paths)
	if err != nil {
		return faulty(err)
	}
	var chosen []*scenario.Scenario
	matches := func(s *scenario.Scenario, only string) bool { return strings.Contains(s.Title(), only) }
	for _, s := range all {
		if len(f.only) == 0 || slices.ContainsFunc(f.only, func(only string) bool { return matches(s, only) }) {
			chosen = append(chosen, s)
		}
	}
	for _, only := range f.only {
		if !slices.ContainsFunc(chosen, func(s *scenario.Scenario) bool { return matches(s, only) }) {
			return usage("--only %s: no scenario has this in FILE:LINE NAME; --dry-run prints them", show.Line(only))
		}
	}
	if f.dryRun {
		for _, s := range chosen {
			a.say("%s", show.Line(s.Title()))
		}
		return nil
	}
	outliveReaders()
	processes := &scenario.Processes{}
	killAll := processes.KillAll
	a.atExit.Store(&killAll)
	defer processes.KillAll()
	summary, err := scenario.Run(ctx, chosen, scenario.Options{
		Jobs: f.jobs, Repeat: f.repeat, Seed: f.seed, Processes: processes, Again: f.again,
		OnResult: func(r scenario.Result) { a.printTested(r, f.json) },
	})
	if err != nil {
		return err
	}
	a.printScenarioTotals(summary, f.json)
	return a.finishTest(ctx, f, summary)
}

// finishTest writes the reports and returns how the program ends.
func (a *app) finishTest(ctx context.Context, f testFlags, summary *scenario.Summary) error {
	var failures []error
	for _, path := range f.reports {
		if err := a.writeTestReport(path, summary); err != nil {
			failures = append(failures, fmt.Errorf("the report can't be written: %w", err))
		}
	}
	if err := ctx.Err(); err != nil {
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if summary.Count(scenario.Failed) > 0 {
		return exit(exitFailed)
	}
	return nil
}

// again is the command that runs a scenario again with the same ids and chances.
func (f *testFlags) again(s *scenario.Scenario) string {
	return fmt.Sprintf("headsctl test %s --only %s --seed %d", show.ShellWord(s.File), show.ShellWord(fmt.Sprintf("%s:%d ", s.File, s.Line)), f.seed)
}

var scenarioColours = map[scenario.Outcome]string{scenario.Passed: console.Green, scenario.Failed: console.Red, scenario.Skipped: console.Yellow}

// printTested prints the line of a scenario, and for a failed one the reason below it.
func (a *app) printTested(r scenario.Result, asJSON bool) {
	if asJSON {
		a.printTyped("result", r)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", a.stdout.Paint(scenarioColours[r.Outcome], string(r.Outcome)), show.Line(r.Title()), r.Time())
	if r.Failure != nil {
		for _, line := range r.Lines() {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			b.WriteString("\n  " + indent + show.Line(line))
		}
	}
	a.say("%s", b.String())
}

func (a *app) printScenarioTotals(s *scenario.Summary, asJSON bool) {
	if !asJSON {
		a.say("%s", s.Text())
		return
	}
	a.printTyped("summary", struct {
		Counts     map[scenario.Outcome]int `json:"counts"`
		Seed       uint64                   `json:"seed"`
		DurationMS int64                    `json:"duration_ms"`
	}{s.Counts(), s.Seed, s.Duration.Milliseconds()})
}

func (a *app) writeTestReport(path string, s *scenario.Summary) error {
	write := s.WriteHTML
	switch filepath.Ext(path) {
	case ".json":
		write = s.WriteJSON
	case ".xml":
		write = s.WriteJUnit
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return os.WriteFile(path, a.tokenMask.Hide(text.Bytes()), 0o666)
}
