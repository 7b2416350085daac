package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/compare"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

func (a *app) diffCommand() *cobra.Command {
	var p pace
	var file string
	var envs []string
	var exitCode, asJSON bool
	cmd := &cobra.Command{
		Use: "diff -f FILE --env NAME --env NAME...", Short: "Show how the heads of environments differ", Args: want(0, 0, "no arguments"),
		Long: `Diff reads the heads of a file in two or more of its environments, and prints where
they differ: a field that the file has, if it is not as the file wants it in one of
them, and any other field, if it is not the same in all. URLs are compared with the
names of the values that they hold. It changes nothing.`,
		Example: "  headsctl diff -f heads.yaml --env staging --env production",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.newDiff(file, envs, p)
			if err != nil {
				return err
			}
			return d.run(cmd.Context(), p.jobs, exitCode, asJSON)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the heads from `FILE`, a heads.yaml with environments; - is stdin")
	cmd.Flags().StringArrayVar(&envs, "env", nil, "compare the environment `NAME`; given twice or more")
	p.add(cmd)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 3 if a head differs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object on each line")
	return cmd
}

// diff compares the heads of environments.
type diff struct {
	a     *app
	sides []side
	heads []diffHead
}

// side is an environment.
type side struct {
	*headsfile.Environment

	client    *heads.Client
	explainer *compare.Explainer
}

// diffHead is an entry of the file, as each side sees it.
type diffHead []headsfile.Head

// newDiff reads the file and makes the clients. It sends nothing.
func (a *app) newDiff(path string, envs []string, p pace) (*diff, error) {
	switch {
	case path == "":
		return nil, usage("headsctl diff wants -f with a heads.yaml")
	case len(envs) < 2:
		return nil, usage("headsctl diff wants --env at least twice, with the names of environments")
	case len(slices.Compact(slices.Sorted(slices.Values(envs)))) < len(envs):
		return nil, usage("headsctl diff wants different environments; leave out the --env that is given twice")
	case a.tokenFile != "":
		return nil, usage("--token-file is one token, and each environment has its own; set the variables that %s names", nameOf(path))
	}
	file, err := a.parseHeadsFile(path)
	if err != nil {
		return nil, err
	}
	d := &diff{a: a}
	var faults []error
	for _, name := range envs {
		e, err := environmentOf(file, path, name)
		if err != nil {
			return nil, err
		}
		all, err := file.Heads(name)
		if err != nil {
			return nil, inFile(path, err)
		}
		c, err := a.clientIn(e, "", p.options()...)
		faults = append(faults, err)
		d.sides = append(d.sides, side{e, c, compare.NewExplainer(e)})
		d.add(all)
	}
	return d, faulty(errors.Join(faults...))
}

// add adds the heads of one more side.
func (d *diff) add(all []headsfile.Head) {
	if d.heads == nil {
		d.heads = make([]diffHead, len(all))
	}
	for i, h := range all {
		d.heads[i] = append(d.heads[i], h)
	}
}

// The outcomes of a head, in the order of the totals.
const (
	outcomeSame    = "same"
	outcomeDiffers = "differs"
	outcomeMissing = "missing"
	outcomeFailed  = "failed"
)

var diffOutcomes = []string{outcomeSame, outcomeDiffers, outcomeMissing, outcomeFailed}

// diffResult is what was found about a head.
type diffResult struct {
	Type        string               `json:"type"` // result
	Label       string               `json:"label"`
	Outcome     string               `json:"outcome"`
	Heads       map[string]*string   `json:"heads"` // ids by environment; null where the head is not there
	Differences []compare.Difference `json:"differences"`

	errors []string
}

func (d *diff) run(ctx context.Context, jobs int, exitCode, asJSON bool) error {
	results, err := forEach(d.a, ctx, "comparing", d.heads, jobs, func(h diffHead) (diffResult, error) { return d.compare(ctx, h), nil })
	if err != nil {
		return err
	}
	counts := map[string]int{}
	for _, outcome := range diffOutcomes {
		counts[outcome] = 0
	}
	for _, r := range results {
		counts[r.Outcome]++
		for _, line := range r.errors {
			d.a.printError(line)
		}
		d.print(r, asJSON)
	}
	d.printTotals(counts, asJSON)
	switch {
	case counts[outcomeFailed] > 0:
		return exit(exitFailed)
	case exitCode && counts[outcomeDiffers] > 0:
		return exit(exitFound)
	}
	return nil
}

// compare reads a head in each environment that has it, and compares them.
func (d *diff) compare(ctx context.Context, h diffHead) diffResult {
	r := diffResult{Type: "result", Label: h[0].Label, Outcome: outcomeSame, Heads: map[string]*string{}, Differences: []compare.Difference{}}
	var found []*compare.Facts
	var where []string
	for i, s := range d.sides {
		r.Heads[s.Name] = nil
		if h[i].Spec == nil {
			r.Outcome = outcomeMissing
			continue
		}
		id := h[i].Spec.ID
		r.Heads[s.Name] = &id
		head, facts, err := s.read(ctx, h[i])
		if err != nil {
			r.errors = append(r.errors, fmt.Sprintf("%s in %s: %s", show.Line(r.Label), s.Name, d.a.errorLineIn(s.Environment, err)))
			continue
		}
		if r.Label == "" {
			r.Label = head.Name
		}
		found, where = append(found, facts), append(where, s.Name)
	}
	if r.Label == "" {
		r.Label = "head without a label"
	}
	switch {
	case len(r.errors) > 0:
		r.Outcome = outcomeFailed
	case len(found) > 1:
		r.Differences = append(r.Differences, compare.Differences(where, found)...)
	}
	if len(r.Differences) > 0 {
		r.Outcome = outcomeDiffers
	}
	return r
}

// read reads a head and compares it with the file.
func (s *side) read(ctx context.Context, h headsfile.Head) (*heads.Head, *compare.Facts, error) {
	head, err := s.client.Heads.Get(ctx, h.Spec.ID)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := s.client.Webhooks.List(ctx, h.Spec.ID)
	if err != nil {
		return nil, nil, err
	}
	f, err := compare.FactsOf(s.explainer, head, hooks, h.Spec)
	return head, f, err
}

func (d *diff) print(r diffResult, asJSON bool) {
	if asJSON {
		line, _ := rawjson.Encode(r) // of texts alone
		d.a.say("%s", show.JSON(line))
		return
	}
	if r.Outcome == outcomeSame {
		return
	}
	d.a.say("%s %s", d.a.stdout.Paint(diffColours[r.Outcome], r.Outcome), show.Line(r.Label))
	for _, one := range r.Differences {
		d.a.say("  %s: %s", show.Line(one.Field), strings.Join(d.valueTexts(one), ", "))
	}
}

var diffColours = map[string]string{outcomeDiffers: console.Yellow, outcomeMissing: console.Yellow, outcomeFailed: console.Red}

// valueTexts returns the values of a field as they are printed.
func (d *diff) valueTexts(one compare.Difference) (texts []string) {
	wanted := map[string][]string{}
	var order []string
	for _, s := range d.sides {
		value, ok := one.Values[s.Name]
		if !ok {
			continue
		}
		texts = append(texts, s.Name+" "+quoted(value))
		if text, ok := one.Wanted[s.Name]; ok {
			if wanted[text] == nil {
				order = append(order, text)
			}
			wanted[text] = append(wanted[text], s.Name)
		}
	}
	for _, text := range order {
		line := "the file " + quoted(text)
		if len(order) > 1 {
			line += " for " + strings.Join(wanted[text], " and ")
		}
		texts = append(texts, line)
	}
	return texts
}

func quoted(text string) string { return string(rawjson.String(show.Line(text))) }

func (d *diff) printTotals(counts map[string]int, asJSON bool) {
	if asJSON {
		line, _ := json.Marshal(struct {
			Type   string         `json:"type"`
			Counts map[string]int `json:"counts"`
		}{"summary", counts})
		d.a.say("%s", line)
		return
	}
	var texts []string
	for _, outcome := range diffOutcomes {
		texts = append(texts, fmt.Sprintf("%d %s", counts[outcome], outcome))
	}
	d.a.say("%s", strings.Join(texts, ", "))
}
