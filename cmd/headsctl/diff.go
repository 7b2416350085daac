package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
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
	explainer *explainer
}

// diffHead is an entry of the file, as each side sees it.
type diffHead []headsfile.Head

// newDiff reads the file and makes the clients. Nothing has been sent when it returns.
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
		d.sides = append(d.sides, side{e, c, newExplainer(e)})
		d.add(all)
	}
	return d, faulty(errors.Join(faults...))
}

// add adds the heads as one more side sees them.
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
	Type        string             `json:"type"` // result
	Label       string             `json:"label"`
	Outcome     string             `json:"outcome"`
	Heads       map[string]*string `json:"heads"` // ids by environment; null where the head is not there
	Differences []difference       `json:"differences"`

	errors []string
}

// difference is a field that differs.
type difference struct {
	Field  string            `json:"field"`
	Values map[string]string `json:"values"`           // by environment
	Wanted map[string]string `json:"wanted,omitempty"` // by environment; nil if the file does not have the field
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

// compare reads a head wherever it is.
func (d *diff) compare(ctx context.Context, h diffHead) diffResult {
	r := diffResult{Type: "result", Label: h[0].Label, Outcome: outcomeSame, Heads: map[string]*string{}, Differences: []difference{}}
	var found []*facts
	var where []side
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
			r.errors = append(r.errors, fmt.Sprintf("%s in %s: %s", oneLine(r.Label), s.Name, d.a.errorLineIn(s.Environment, err)))
			continue
		}
		if r.Label == "" {
			r.Label = head.Name
		}
		found, where = append(found, facts), append(where, s)
	}
	if r.Label == "" {
		r.Label = "head without a label"
	}
	switch {
	case len(r.errors) > 0:
		r.Outcome = outcomeFailed
	case len(found) > 1:
		r.Differences = append(r.Differences, differences(where, found)...)
	}
	if len(r.Differences) > 0 {
		r.Outcome = outcomeDiffers
	}
	return r
}

// read reads a head and compares it with the file.
func (s *side) read(ctx context.Context, h headsfile.Head) (*heads.Head, *facts, error) {
	head, err := s.client.Heads.Get(ctx, h.Spec.ID)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := s.client.Webhooks.List(ctx, h.Spec.ID)
	if err != nil {
		return nil, nil, err
	}
	f, err := factsOf(s.explainer, head, hooks, h.Spec)
	return head, f, err
}

// differences returns the fields that differ.
func differences(sides []side, all []*facts) (found []difference) {
	for _, field := range fieldsOf(all) {
		managed, differs := false, false
		for _, f := range all {
			_, wanted := f.want[field]
			managed, differs = managed || wanted, differs || f.drift[field]
		}
		if !managed {
			differs = slices.ContainsFunc(all, func(f *facts) bool { return f.is[field].exact != all[0].is[field].exact })
		}
		if differs {
			found = append(found, differenceIn(field, sides, all, managed))
		}
	}
	return found
}

// fieldsOf returns the fields that one of the environments knows.
func fieldsOf(all []*facts) (fields []string) {
	for _, f := range all {
		for _, field := range f.order {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	slices.SortStableFunc(fields, func(a, b string) int { return fieldGroup(a) - fieldGroup(b) })
	return fields
}

// fieldGroup sorts webhooks behind fields, and tools behind webhooks.
func fieldGroup(field string) int {
	return 1 + slices.IndexFunc([]string{"webhook ", "tool "}, func(prefix string) bool { return strings.HasPrefix(field, prefix) })
}

func differenceIn(field string, sides []side, all []*facts, managed bool) difference {
	texts := []string{}
	for _, f := range all {
		texts = append(texts, f.is[field].shown)
	}
	if managed {
		for _, f := range all {
			texts = append(texts, f.want[field].shown)
		}
	}
	if strings.HasPrefix(field, "tool ") {
		texts = withoutCommon(texts)
	}
	texts = clipAll(texts)
	d := difference{Field: nameIn(all, field), Values: map[string]string{}}
	for i, s := range sides {
		d.Values[s.Name] = texts[i]
		if managed {
			if d.Wanted == nil {
				d.Wanted = map[string]string{}
			}
			d.Wanted[s.Name] = texts[len(sides)+i]
		}
	}
	return d
}

// nameIn returns how a field is shown.
func nameIn(all []*facts, field string) string {
	for _, f := range all {
		if name, ok := f.names[field]; ok {
			return yamltext.OneLine(name, maxShown)
		}
	}
	return yamltext.OneLine(field, maxShown)
}

// withoutCommon leaves out the members that are the same in all objects.
func withoutCommon(texts []string) []string {
	var short []string
	for _, text := range texts {
		var members [][]byte
		for m := range rawjson.Members([]byte(text)) {
			same := !slices.ContainsFunc(texts, func(other string) bool {
				return other != "" && !bytes.Equal(member([]byte(other), m.Key), m.Value)
			})
			if !same {
				members = append(members, rawjson.AppendMember(nil, m.Key, m.Value))
			}
		}
		switch {
		case text == "" || len(members) == 0:
			short = append(short, text)
		default:
			short = append(short, string(enclose('{', members, '}')))
		}
	}
	return short
}

const maxShown = 120 // characters of a field or a value, as in a plan

// clipAll shortens texts, and keeps their first difference visible.
func clipAll(texts []string) []string {
	var all [][]rune
	longest := 0
	for _, text := range texts {
		all = append(all, []rune(oneLine(text)))
		longest = max(longest, len(all[len(all)-1]))
	}
	same := 0
	for same < len(all[0]) && !slices.ContainsFunc(all, func(text []rune) bool { return same >= len(text) || text[same] != all[0][same] }) {
		same++
	}
	from := 0
	if longest > maxShown {
		from = max(0, same-maxShown/3)
	}
	var short []string
	for _, text := range all {
		start := ""
		if from > 0 {
			start = cutMark
		}
		short = append(short, yamltext.OneLine(start+string(text[min(from, len(text)):]), maxShown))
	}
	return short
}

func (d *diff) print(r diffResult, asJSON bool) {
	if asJSON {
		line, _ := rawjson.Encode(r) // of texts alone
		d.a.say("%s", escapeSteering(line))
		return
	}
	if r.Outcome == outcomeSame {
		return
	}
	d.a.say("%s %s", d.a.paint(diffColours[r.Outcome], d.a.stdout, r.Outcome), oneLine(r.Label))
	for _, one := range r.Differences {
		d.a.say("  %s: %s", oneLine(one.Field), strings.Join(d.valueTexts(one), ", "))
	}
}

var diffColours = map[string]string{outcomeDiffers: yellow, outcomeMissing: yellow, outcomeFailed: red}

// valueTexts are the values of a field as a line has them.
func (d *diff) valueTexts(one difference) (texts []string) {
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

func quoted(text string) string { return string(rawjson.String(oneLine(text))) }

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
