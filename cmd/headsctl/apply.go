package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
)

// specFlags select the heads.yaml, and the heads in it, for plan and apply.
type specFlags struct {
	file, env string
	only      []string
	read      *headsfile.File
}

func (f *specFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "read what is wanted from `FILE`, a heads.yaml; - is stdin")
	cmd.Flags().StringArrayVar(&f.only, "only", nil, "leave all heads alone but the one with this `ID`, or with --env this label; may be given again")
	environmentFlag(cmd, &f.env)
}

// specs reads the file.
func (a *app) specs(cmd *cobra.Command, f *specFlags) ([]fleet.Spec, error) {
	if f.file == "" {
		return nil, usage("%s wants -f with a heads.yaml; headsctl export writes one", cmd.CommandPath())
	}
	file, err := a.readHeadsFile(f.file, f.env)
	if err != nil {
		return nil, err
	}
	f.read = file
	a.reading.Store(true)
	defer a.reading.Store(false)
	if f.env != "" && len(f.only) > 0 {
		specs, err := specsOf(a.selectHeads(file, f.env, f.only...))
		a.noteTypes(specs)
		return specs, err
	}
	specs, err := file.Specs(f.env)
	if err != nil {
		return nil, inFile(f.file, err)
	}
	if len(f.only) > 0 {
		if specs, err = only(specs, *f); err != nil {
			return nil, err
		}
	}
	a.noteTypes(specs)
	return specs, nil
}

// placed returns the faults of the specs that were read with those of the defaults once.
func (f *specFlags) placed(err error) error {
	if err == nil {
		return nil
	}
	faults := parts(err)
	if !errors.Is(err, heads.ErrInvalid) {
		return err
	}
	placed := f.read.InDefaults(faults, plainError)
	if slices.Equal(placed, faults) && len(faults) <= yamltext.MaxFaults {
		return err
	}
	return inFile(f.file, yamltext.Join(placed))
}

// only returns the specs with the ids of --only, in the order of the file.
func only(specs []fleet.Spec, f specFlags) ([]fleet.Spec, error) {
	var faults []error
	chosen := map[string]bool{}
	for _, id := range f.only {
		id = strings.ToLower(id)
		if !slices.ContainsFunc(specs, func(s fleet.Spec) bool { return strings.ToLower(s.ID) == id }) {
			faults = append(faults, fmt.Errorf("--only %s: %s has no head of this id", show.Line(id), f.file))
		}
		chosen[id] = true
	}
	specs = slices.DeleteFunc(slices.Clone(specs), func(s fleet.Spec) bool { return !chosen[strings.ToLower(s.ID)] })
	return specs, faulty(errors.Join(faults...))
}

// noteTypes notes the unknown types of parameters. The service may accept them.
func (a *app) noteTypes(specs []fleet.Spec) {
	for _, s := range specs {
		if s.Tools != nil {
			a.noteTypesOf(*s.Tools...)
		}
	}
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

{file: PATH} stands for any text; the path is relative to the folder of the file
and stays below it. A number, boolean or date is no text unless it is quoted.`

func (a *app) planCommand() *cobra.Command {
	var f manyFlags
	var from specFlags
	cmd := &cobra.Command{
		Use: "plan -f FILE", Short: "Show what apply would change", Args: want(0, 0, "no arguments"),
		Long:    "Plan reads the heads of a file and prints what apply would change. It changes nothing.\n" + specHelp,
		Example: "  headsctl plan -f heads.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			specs, err := a.specs(cmd, &from)
			if err != nil {
				return err
			}
			return from.placed(a.planAll(cmd, &f, specs))
		},
	}
	from.add(cmd)
	f.add(cmd, false)
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", false, "end with 3 if apply would change something, unless a head could not be read (1)")
	return cmd
}

// planAll plans and prints.
func (a *app) planAll(cmd *cobra.Command, f *manyFlags, specs []fleet.Spec) error {
	w, err := a.newWork(cmd, f, specs, true)
	if err != nil {
		return err
	}
	defer w.close()
	report, err := w.run(fleet.Plan, "planning", func(r fleet.Result) { a.printResult(r, f.json, true) })
	return w.finish(report, err, true)
}

func (a *app) applyCommand() *cobra.Command {
	var f manyFlags
	var from specFlags
	var given consent
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Bring heads to the state that a file describes", Args: want(0, 0, "no arguments"),
		Long: "Apply changes the heads of a file to what the file says. It asks before it writes,\n" +
			"and leaves a head alone that is no longer as it was planned for.\n" +
			"Run again, it changes nothing; after a failure, it goes on with what is left.\n" + specHelp,
		Example: "  headsctl apply -f heads.yaml --report report.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.needsConsent(cmd, given, from.file, from.env); err != nil {
				return err
			}
			specs, err := a.specs(cmd, &from)
			if err != nil {
				return err
			}
			return from.placed(a.applyAll(cmd, &f, specs, given, from.file))
		},
	}
	from.add(cmd)
	f.add(cmd, true)
	given.add(cmd)
	return cmd
}

func (a *app) applyAll(cmd *cobra.Command, f *manyFlags, specs []fleet.Spec, given consent, file string) error {
	if err := a.checkConsent(cmd, given, file); err != nil {
		return err
	}
	w, err := a.newWork(cmd, f, specs, false)
	if err != nil {
		return err
	}
	defer w.close()
	return w.write(given)
}
