package main

import (
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
)

// specFlags are how plan and apply are told what is wanted.
type specFlags struct{ file, only string }

func (f *specFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "read what is wanted from `FILE`, a heads.yaml; - is stdin")
	cmd.Flags().StringVar(&f.only, "only", "", "leave all heads alone but the one with this `ID`")
}

// specs reads the file.
func (a *app) specs(cmd *cobra.Command, f specFlags) ([]fleet.Spec, error) {
	if f.file == "" {
		return nil, usage("%s wants -f with a heads.yaml; headsctl export writes one", cmd.CommandPath())
	}
	specs, err := a.readSpecs(f.file)
	if err != nil || f.only == "" {
		return specs, err
	}
	for _, s := range specs {
		if strings.EqualFold(s.ID, f.only) {
			return []fleet.Spec{s}, nil
		}
	}
	return nil, usage("--only %s: %s has no head of this id", oneLine(f.only), f.file)
}

const specHelp = `
The file is a list of heads, each with what is wanted of it. What is absent
stays as it is:

  defaults:            # under each head; all but id and label
    voice: {provider: azure, id: en-US-plain}
  heads:
    - id: 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01
      label: Lobby
      set:
        greetings: Welcome!
        promptConfig: {system_prompt: {file: prompts/lobby.txt}}
      streaming: true
      delivery: true
      webhooks:
        - {url: "https://example.com/events", events: [start_conversation, end_conversation]}
      prune_webhooks: false
      tools: []

{file: PATH} stands for any text; the path is relative to the file.`

func (a *app) planCommand() *cobra.Command {
	var f manyFlags
	var from specFlags
	var exitCode bool
	cmd := &cobra.Command{
		Use: "plan -f FILE", Short: "Show what apply would change", Args: want(0, 0, "no arguments"),
		Long:    "Plan reads the heads of a file and prints what apply would change. It changes nothing.\n" + specHelp,
		Example: "  headsctl plan -f heads.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			specs, err := a.specs(cmd, from)
			if err != nil {
				return err
			}
			pending, err := a.planAll(cmd, &f, specs)
			if err == nil && exitCode && pending > 0 {
				return exit(exitFound)
			}
			return err
		},
	}
	from.add(cmd)
	f.add(cmd, false)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 3 if apply would change something")
	return cmd
}

// planAll plans, prints, and returns how many heads would change.
func (a *app) planAll(cmd *cobra.Command, f *manyFlags, specs []fleet.Spec) (pending int, err error) {
	w, err := a.newWork(cmd, f, specs, true)
	if err != nil {
		return 0, err
	}
	defer w.close()
	report, err := w.run(fleet.Plan, "planning", func(r fleet.Result) { a.printResult(r, f.json, true) })
	if report != nil {
		pending = report.Count(fleet.OutcomePending)
	}
	return pending, w.finish(report, err, true)
}

func (a *app) applyCommand() *cobra.Command {
	var f manyFlags
	var from specFlags
	var yes bool
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Bring heads to the state that a file describes", Args: want(0, 0, "no arguments"),
		Long: "Apply changes the heads of a file to what the file says. It asks before it writes.\n" +
			"Run again, it changes nothing; after a failure, it goes on with what is left.\n" + specHelp,
		Example: "  headsctl apply -f heads.yaml --report report.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.needsYes(yes, from.file); err != nil {
				return err
			}
			specs, err := a.specs(cmd, from)
			if err != nil {
				return err
			}
			return a.applyAll(cmd, &f, specs, yes)
		},
	}
	from.add(cmd)
	f.add(cmd, true)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) applyAll(cmd *cobra.Command, f *manyFlags, specs []fleet.Spec, yes bool) error {
	w, err := a.newWork(cmd, f, specs, false)
	if err != nil {
		return err
	}
	defer w.close()
	return w.write(yes)
}

func (a *app) convertCommand() *cobra.Command {
	var f manyFlags
	var from targetFlags
	var voice string
	var dryRun, undo, yes bool
	cmd := &cobra.Command{
		Use: "convert ID...", Short: "Convert heads to streaming mode, or back",
		Long: `Convert moves heads to streaming mode: it sets the voice, switches the head, and
prints the new access URL. The old access URL then stops working; headsctl
addresses finds the pages that hold it. It asks before it writes.

Run again, it changes nothing; after a failure, it goes on with what is left.`,
		Example: `  headsctl convert -f ids.csv --dry-run
  headsctl convert -f ids.csv --voice azure/en-US-plain --report report.json --report report.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := a.targets(cmd, from, args)
			if err != nil {
				return err
			}
			specs, err := conversions(targets, voice, undo)
			if err != nil {
				return err
			}
			if dryRun {
				_, err := a.planAll(cmd, &f, specs)
				return err
			}
			if err := a.needsYes(yes, from.file); err != nil {
				return err
			}
			return a.applyAll(cmd, &f, specs, yes)
		},
	}
	from.add(cmd)
	f.add(cmd, true)
	cmd.Flags().StringVar(&voice, "voice", "", "give the heads this voice, `PROVIDER/ID`")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	cmd.Flags().BoolVar(&undo, "undo", false, "convert back to legacy mode")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// conversions returns what is wanted of the heads.
func conversions(targets []target, voice string, undo bool) ([]fleet.Spec, error) {
	var wanted *heads.Voice
	if voice != "" {
		provider, id, _ := strings.Cut(voice, "/")
		if provider == "" || id == "" {
			return nil, usage("--voice %q is not a voice; give PROVIDER/ID, such as azure/en-US-plain", oneLine(voice))
		}
		wanted = &heads.Voice{Provider: provider, ID: id}
	}
	streaming := !undo
	var specs []fleet.Spec
	for _, t := range targets {
		specs = append(specs, fleet.Spec{ID: t.id, Label: t.label, Streaming: &streaming, Voice: wanted})
	}
	return specs, nil
}
