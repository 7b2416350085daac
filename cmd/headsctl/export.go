package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/fleet"
)

func (a *app) exportCommand() *cobra.Command {
	var from targetFlags
	var p pace
	cmd := &cobra.Command{
		Use: "export ID...|-f IDS", Short: "Write heads as a file that apply would find unchanged",
		Long: `Export writes heads as a heads.yaml to stdout. Nothing in it is masked, since apply
needs it: it holds URLs and texts whole, and the keys in them. If there are any, and
if the file can't hold something, stderr says so.`,
		Example: "  headsctl export -f ids.csv > heads.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, c, err := a.targetsAndClient(cmd, from, p, args)
			if err != nil {
				return err
			}
			return a.export(cmd.Context(), c, targets, p.jobs)
		},
	}
	from.add(cmd)
	p.add(cmd)
	return cmd
}

func (a *app) export(ctx context.Context, c *heads.Client, targets []target, jobs int) error {
	specs, failed := forEach(a, ctx, "reading", targets, jobs, func(t target) (*fleet.Spec, error) { return fleet.SpecOf(ctx, c, t.id) })
	file := struct {
		Heads []*fleet.Spec `json:"heads"`
	}{Heads: []*fleet.Spec{}}
	for i, s := range specs {
		if s == nil {
			continue
		}
		if targets[i].label != "" {
			s.Label = targets[i].label
		}
		for _, omitted := range s.Omitted {
			a.note("left out of head %s: %s", s.ID, oneLine(omitted))
		}
		file.Heads = append(file.Heads, s)
	}
	doc, err := rawjson.Encode(file)
	if err != nil {
		return err
	}
	if string(maskBody(doc)) != string(doc) {
		a.note("the file holds keys or tokens as they are, since apply needs them: keep it as you keep a password")
	}
	if len(file.Heads) > 0 || failed == nil {
		_, _ = a.stdout.Write(toYAML(doc))
	}
	return failed
}

// forEach calls f for every head, several at a time, and returns the results in
// the order of the heads. Failures are printed as they come; the error is that
// of the exit code.
func forEach[T any](a *app, ctx context.Context, verb string, targets []target, jobs int, f func(target) (T, error)) ([]T, error) {
	results, errs := make([]T, len(targets)), make([]error, len(targets))
	bar := a.newProgress(verb, len(targets))
	places := make(chan struct{}, jobs)
	var all sync.WaitGroup
	for i, t := range targets {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			errs[i] = ctx.Err()
			continue
		}
		all.Go(func() {
			defer func() { <-places }()
			results[i], errs[i] = f(t)
			bar.done(errs[i] != nil)
		})
	}
	all.Wait()
	bar.stop()
	if err := ctx.Err(); err != nil {
		return results, fmt.Errorf("not all heads were read: %w", err)
	}
	return results, a.failures(errs)
}

// failures prints the errors and returns that of the exit code.
func (a *app) failures(errs []error) error {
	failed := false
	for _, err := range errs {
		if err == nil {
			continue
		}
		failed = true
		for _, line := range a.errorLines(err) {
			a.printError(line)
		}
	}
	if failed {
		return exit(exitFailed)
	}
	return nil
}
