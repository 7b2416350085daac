package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/forward"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/replay"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// pathTokenVariable is the variable whose value replaces [redacted] in the paths of a
// recording.
const pathTokenVariable = "HEADS_PATH_TOKEN"

// replayFlags are those of replay.
type replayFlags struct {
	to, speed, keyFile string
	only               []string
	resign, unverified bool
	yes, json, asTest  bool
}

// speeds maps the values of --speed to the factor by which waits are shorter than recorded; 0
// means no waits.
var speeds = map[string]float64{"max": 0, "10x": 10, "1x": 1}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use: "replay FILE --to URL", Short: "Send a recording again, or make a scenario of it", Args: want(1, 1, "a recording"),
		Long: `Replay sends the events and tool calls of a recording of headsctl listen to URL, with
the recorded path behind it: the same bytes with the same signatures, in order, one at
a time. What is [redacted] in a path is filled from HEADS_PATH_TOKEN. It ends with 1 if
one of them is refused: an event by a status that is not 200 to 299, a tool call by a
reply without {"message": "…"}.

--only sends what one of the words names: the type of an event, a tool, the id of a head
or a session, or undelivered for the events that no back end has accepted. A URL that is
not on this machine wants --yes, since what the back end does happens again.

A receiver that remembers events takes those of a recording for redeliveries, and one
that checks their age refuses old ones. --resign puts the present time into their
timestamp, changes no other byte, and signs them with --key-file or HEADS_SHARED_KEY. That
defeats both checks, and what the events do happens again. An event that was not verified
when it was recorded is not signed without --resign-unverified: anyone may have sent it.

--as-test sends nothing. It prints a scenario for headsctl test in which a user does what
was recorded; what was said is not recorded. A back end that answers as recorded passes.`,
		Example: "  headsctl replay tuesday.jsonl --to http://127.0.0.1:8080 --only order_status",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("--speed", f.speed, []string{"max", "10x", "1x"}); err != nil {
				return err
			}
			return a.replay(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "send to the back end at `URL`")
	flags.StringArrayVar(&f.only, "only", nil, "send only what `WORD` names; can be repeated")
	flags.StringVar(&f.speed, "speed", "max", "wait between the requests as recorded: `SPEED` 1x, 10x, or max for not at all")
	flags.BoolVar(&f.resign, "resign", false, "give events the present time and sign them anew")
	flags.BoolVar(&f.unverified, "resign-unverified", false, "let --resign sign events that were recorded unverified")
	keyFlag(cmd, &f.keyFile)
	flags.BoolVar(&f.yes, "yes", false, "send to a back end that is not on this machine")
	flags.BoolVar(&f.json, "json", false, "write JSON lines")
	flags.BoolVar(&f.asTest, "as-test", false, "print a scenario for headsctl test, and send nothing")
	return cmd
}

func (a *app) replay(ctx context.Context, file string, f replayFlags) error {
	if f.to == "" {
		return usage("replay wants --to, the URL of the back end")
	}
	if f.unverified && !f.resign {
		return usage("--resign-unverified wants --resign")
	}
	target, err := newTarget("--to", f.to)
	if err != nil {
		return err
	}
	r, closeFile, err := a.readRecording(file)
	if err != nil {
		return err
	}
	defer closeFile()
	chosen := replay.Choose(r.Entries, f.only)
	if len(chosen) == 0 {
		return nothingChosen(file, f.only)
	}
	if f.asTest {
		return a.printScenario(file, target, r, chosen)
	}
	run, old, err := a.newRun(file, target, r, chosen, f)
	if err != nil {
		return err
	}
	if old > 0 && !f.resign {
		a.note("%s over 24 h old: a receiver that checks their age refuses them; --resign gives them the present time", are(old, "event"))
	}
	return a.runReplay(ctx, run, chosen, f.json)
}

// are returns a number of things with its verb, such as "1 event is".
func are(n int, thing string) string {
	if n == 1 {
		return show.Count(n, thing) + " is"
	}
	return show.Count(n, thing) + " are"
}

// readRecording reads a recording, and names the lines that are left out.
func (a *app) readRecording(file string) (r *recording.Recording, closeFile func(), err error) {
	source, closeFile, err := a.openSource(file)
	if err != nil {
		return nil, nil, err
	}
	r, err = recording.Read(source)
	var fault *recording.LineError
	switch {
	case errors.As(err, &fault):
		err = usage("%s:%d: the line %w", nameOf(file), fault.Line, fault)
	case err != nil:
		err = unreadable("the recording", file, err)
	}
	if err != nil {
		closeFile()
		return nil, nil, err
	}
	for i, fault := range r.Faults {
		if i == maxNamed {
			a.note("%s:%d: %s more", nameOf(file), fault.Line, show.Count(len(r.Faults)-i, "fault"))
			break
		}
		a.note("%s:%d: the line %s; it is left out", nameOf(file), fault.Line, show.Line(fault.Problem))
	}
	if r.CutLine > 0 {
		a.note("%s:%d: the last line was not written to its end and is ignored", nameOf(file), r.CutLine)
	}
	return r, closeFile, nil
}

// maxNamed is how many faults of a recording are named.
const maxNamed = 20

// openSource opens a file. What is no regular file is read into memory.
func (a *app) openSource(path string) (source recording.Source, closeFile func(), err error) {
	if info, err := os.Stat(path); path != "-" && err == nil && info.Mode().IsRegular() {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, unreadable("the recording", path, err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	text, err := a.readInput("the recording", path)
	return bytes.NewReader(text), func() {}, err
}

func nothingChosen(file string, only []string) error {
	if len(only) == 0 {
		return usage("%s holds no event and no tool call", nameOf(file))
	}
	return usage("%s has nothing of --only %s; give an event type, a tool, the id of a head or a session, or undelivered",
		nameOf(file), show.Line(strings.Join(only, " --only ")))
}

// newRun returns an error for entries that can't be sent, before anything is sent. It counts
// the events that are over 24 h old.
func (a *app) newRun(file string, target *forward.Target, r *recording.Recording, chosen []*recording.Entry, f replayFlags) (run *replay.Run, old int, err error) {
	if !target.IsLoopback() && !f.yes {
		return nil, 0, usage("--to %s is not on this machine, and what the recording causes happens there again; add --yes if that is what you want", target)
	}
	run = &replay.Run{Target: target, Speed: speeds[f.speed], Token: os.Getenv(pathTokenVariable), Load: r.Load}
	if f.resign {
		key, err := a.sharedKey(f.keyFile)
		if err != nil {
			return nil, 0, err
		}
		run.Signer = replay.NewSigner(key)
	}
	var faults []error
	refuse := func(e *recording.Entry, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s:%d: "+format, append([]any{nameOf(file), e.Line}, args...)...))
	}
	for _, e := range chosen {
		e, err := r.Load(e)
		if err != nil {
			return nil, 0, unreadable("the recording", file, err)
		}
		if recording.HasRedacted(e.Path) && run.Token == "" {
			refuse(e, "the path %s is redacted; set %s", show.Line(e.Path), pathTokenVariable)
		}
		if e.Type == recording.KindEvent && run.Signer != nil {
			if e.Signature != recording.SignatureRight && !f.unverified {
				refuse(e, "the event was not verified when it was recorded, so anyone may have sent it; leave it out with --only, or add --resign-unverified")
			}
			if err := run.Signer.Check(e); err != nil {
				refuse(e, "%w; leave it out with --only", err)
			}
		}
		if replay.IsOlder(e, 24*time.Hour, time.Now()) {
			old++
		}
	}
	if len(faults) > maxNamed {
		faults = append(faults[:maxNamed], fmt.Errorf("%s more", show.Count(len(faults)-maxNamed, "fault")))
	}
	return run, old, faulty(errors.Join(faults...))
}

func (a *app) runReplay(ctx context.Context, run *replay.Run, chosen []*recording.Entry, asJSON bool) error {
	counts := map[string]int{replay.OutcomeAccepted: 0, replay.OutcomeRefused: 0}
	run.Report = func(r replay.Result) {
		counts[r.Outcome]++
		a.printReplayed(r, asJSON)
	}
	failed := run.Send(ctx, chosen)
	if asJSON {
		a.printJSON(struct {
			Type   string         `json:"type"`
			Counts map[string]int `json:"counts"`
		}{"summary", counts})
	} else {
		a.say("%d accepted, %d refused", counts[replay.OutcomeAccepted], counts[replay.OutcomeRefused])
	}
	if failed == nil && counts[replay.OutcomeRefused] > 0 {
		return exit(exitFailed)
	}
	return failed
}

var replayColours = map[string]string{replay.OutcomeAccepted: console.Green, replay.OutcomeRefused: console.Red}

func (a *app) printReplayed(r replay.Result, asJSON bool) {
	if asJSON {
		a.printJSON(struct {
			Type string `json:"type"`
			replay.Result
		}{"result", r})
		return
	}
	answer := fmt.Sprint(r.Status)
	if r.Status == 0 {
		answer = show.Line(r.Problem)
	}
	var notes []string
	if r.RecordedStatus != 0 {
		notes = append(notes, fmt.Sprintf("recorded %d", r.RecordedStatus))
	}
	if r.Status >= 200 && r.Status <= 299 && r.Problem != "" {
		notes = append(notes, show.Line(r.Problem))
	}
	line := strings.Join([]string{a.stdout.Paint(replayColours[r.Outcome], r.Outcome), r.Kind, word(r.Name), word(r.HeadID), word(r.SessionID), "→", answer}, " ")
	if len(notes) > 0 {
		line += " (" + strings.Join(notes, "; ") + ")"
	}
	a.say("%s", line)
}

// printScenario prints the recording as a scenario for headsctl test.
func (a *app) printScenario(file string, target *forward.Target, r *recording.Recording, chosen []*recording.Entry) error {
	for i, e := range chosen {
		var err error
		if chosen[i], err = r.Load(e); err != nil {
			return unreadable("the recording", file, err)
		}
	}
	scenario, left := replay.AsTest(chosen, target.URL(), "as recorded in "+nameOf(file))
	if len(scenario.Scenarios[0].Steps) == 0 {
		return usage("%s has nothing that a user of a head can do", nameOf(file))
	}
	if len(left) > 0 {
		a.note("%s not in the scenario: events of types that no user causes, and calls of tools whose names are redacted", are(len(left), "request"))
	}
	if slices.ContainsFunc(chosen, func(e *recording.Entry) bool { return recording.HasRedacted(e.Path) }) {
		a.note("set %s to what is redacted in the paths, for headsctl test", replay.PathToken)
	}
	doc, err := json.Marshal(scenario)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(yamltext.Write(doc))
	return err
}
