package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/fleet"
)

// environmentFlag adds --env to a command.
func environmentFlag(cmd *cobra.Command, env *string) {
	cmd.Flags().StringVar(env, "env", "", "work in the environment `NAME` of the heads.yaml, with its settings alone")
}

// readHeadsFile reads a heads.yaml. Unless env is "", the app uses the settings of that
// environment from then on.
func (a *app) readHeadsFile(path, env string) (*headsfile.File, error) {
	file, err := a.parseHeadsFile(path)
	if err != nil {
		return nil, err
	}
	a.environment, err = environmentOf(file, path, env)
	return file, err
}

func environmentOf(file *headsfile.File, path, env string) (*headsfile.Environment, error) {
	e, err := file.Environment(env)
	if err != nil {
		return nil, usage("%s %w", nameOf(path), err)
	}
	return e, nil
}

// parseHeadsFile reads a heads.yaml and selects no environment.
func (a *app) parseHeadsFile(path string) (*headsfile.File, error) {
	text, err := a.readYAML("the file of heads", path)
	if err != nil {
		return nil, err
	}
	a.reading.Store(true)
	defer a.reading.Store(false)
	file, err := headsfile.Parse(text, filepath.Dir(path))
	if err != nil {
		return nil, inFile(path, err)
	}
	a.headsFile = path
	file.Secret = a.hideSecret
	for _, e := range file.Environments {
		if token, err := e.Token.Value(); err == nil {
			a.hideToken(token)
		}
	}
	return file, nil
}

// selectHeads returns the heads of an environment that were named by id or label.
func (a *app) selectHeads(file *headsfile.File, env string, named ...string) ([]headsfile.Head, error) {
	all, err := file.Heads(env)
	if err != nil {
		return nil, inFile(a.headsFile, err)
	}
	found, err := headsfile.Select(all, env, named)
	return found, faulty(err)
}

func specsOf(all []headsfile.Head, err error) ([]fleet.Spec, error) {
	var specs []fleet.Spec
	for _, h := range all {
		specs = append(specs, *h.Spec)
	}
	return specs, err
}

// checkEnvironmentOf refuses a report of an environment other than that of --env.
func checkEnvironmentOf(report, of, env string) error {
	switch {
	case of == env:
		return nil
	case env == "":
		return usage("%s is a report of the environment %s; add --env %s if you mean that one", report, show.Line(of), show.Line(of))
	case of == "":
		return usage("%s is a report of no environment; leave out --env, or give a report of %s", report, show.Line(env))
	}
	return usage("%s is a report of the environment %s, not of %s; give a report of %s", report, show.Line(of), show.Line(env), show.Line(env))
}
