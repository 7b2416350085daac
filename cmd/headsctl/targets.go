package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// checkID refuses what is not the id of a head.
func checkID(id string) error {
	if headsfile.ID.MatchString(id) {
		return nil
	}
	return usage("%q is not the id of a head; give the UUID in the head's id field", id)
}

// clientFor is client for a command on one head, whose id it checks.
func (a *app) clientFor(id string) (*heads.Client, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return a.client()
}

// getHead reads one head.
func (a *app) getHead(cmd *cobra.Command, id string) (*heads.Head, error) {
	c, err := a.clientFor(id)
	if err != nil {
		return nil, err
	}
	return c.Heads.Get(cmd.Context(), id)
}

// target is a head that a command works on.
type target struct{ id, label string }

// targetFlags select the heads of a command.
type targetFlags struct{ file, env string }

func (f *targetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "read the ids from `IDS`, a file with an id on each line, or with --env a heads.yaml; - is stdin")
	environmentFlag(cmd, &f.env)
}

// targets returns the heads of the command line or of the file, each once.
func (a *app) targets(cmd *cobra.Command, f targetFlags, args []string) ([]target, error) {
	switch {
	case f.env != "":
		return a.targetsIn(cmd, f, args)
	case f.file == "" && len(args) == 0:
		return nil, usage("%s wants the ids of heads, or -f with a file of them", cmd.CommandPath())
	case f.file != "" && len(args) > 0:
		return nil, usage("%s takes ids or -f, not both", cmd.CommandPath())
	case f.file == "":
		return targetsOf(args)
	}
	text, err := a.readInput("the file of ids", f.file)
	if err != nil {
		return nil, err
	}
	return parseIDs(nameOf(f.file), text)
}

// targetsIn returns the heads of an environment: those that were named, or all.
func (a *app) targetsIn(cmd *cobra.Command, f targetFlags, named []string) ([]target, error) {
	if f.file == "" {
		return nil, usage("%s --env %s wants -f with the heads.yaml that has the environment", cmd.CommandPath(), show.Line(f.env))
	}
	file, err := a.readHeadsFile(f.file, f.env)
	if err != nil {
		return nil, err
	}
	specs, err := file.Specs(f.env)
	if err != nil {
		return nil, inFile(f.file, err)
	}
	if len(named) > 0 {
		if specs, err = specsOf(a.selectHeads(file, f.env, named...)); err != nil {
			return nil, err
		}
	}
	var list targetList
	for _, s := range specs {
		list.add(target{s.ID, s.Label})
	}
	return list.targets, nil
}

func targetsOf(ids []string) ([]target, error) {
	var list targetList
	var faults []error
	for _, id := range ids {
		if err := checkID(id); err != nil {
			faults = append(faults, errors.Unwrap(err))
			continue
		}
		list.add(target{id: id})
	}
	return list.targets, faulty(errors.Join(faults...))
}

var header = regexp.MustCompile(`(?i)^"?(id|head_id|headId|head)`)

// parseIDs reads one id on each line. After a comma follows its label, which may be quoted as
// in CSV. Blank lines, comments, repeated ids and a first line with column names are ignored.
// All other lines are reported together.
func parseIDs(file string, text []byte) ([]target, error) {
	var list targetList
	var faults []error
	number, first := 0, true
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		number++
		entry := strings.TrimSpace(string(line))
		if entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		isHeader := first && header.MatchString(entry)
		if first = false; isHeader {
			continue
		}
		id, label, err := cutLabel(entry)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: the quotes are not those of CSV; write the label as \"Lobby, east\" and a quote in it twice", file, number))
			continue
		}
		if !headsfile.ID.MatchString(id) {
			faults = append(faults, fmt.Errorf("%s:%d: %q is not the id of a head; give the UUID in the head's id field", file, number, show.Line(id)))
			continue
		}
		list.add(target{id, label})
	}
	if len(faults) == 0 && len(list.targets) == 0 {
		faults = append(faults, fmt.Errorf("%s holds no ids; write one id on each line", file))
	}
	return list.targets, faulty(errors.Join(faults...))
}

// cutLabel splits a line. If the id or the label is quoted, the line is CSV, and more columns
// are ignored.
func cutLabel(line string) (id, label string, err error) {
	id, label, _ = strings.Cut(line, ",")
	id, label = strings.TrimSpace(id), strings.TrimSpace(label)
	if !strings.HasPrefix(id, `"`) && !strings.HasPrefix(label, `"`) {
		return id, label, nil
	}
	reader := csv.NewReader(strings.NewReader(line))
	reader.TrimLeadingSpace = true
	columns, err := reader.Read()
	if err != nil {
		return "", "", err
	}
	columns = append(columns, "")
	return strings.TrimSpace(columns[0]), strings.TrimSpace(columns[1]), nil
}

// targetList holds each head once. Ids are case-insensitive.
type targetList struct {
	targets []target
	seen    map[string]bool
}

func (l *targetList) add(t target) {
	key := strings.ToLower(t.id)
	if l.seen[key] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[key] = true
	l.targets = append(l.targets, t)
}
