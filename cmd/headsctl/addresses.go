package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/addresses"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

func (a *app) addressesCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "addresses", Short: "Find or rewrite old access URLs in files",
		Long: `Addresses looks for the access URLs of converted heads in text files. It takes the
old and the new ones from a report of apply or convert (--report report.json).`,
	})
	cmd.AddCommand(a.addressesScanCommand(), a.addressesRewriteCommand())
	return cmd
}

func (a *app) addressesScanCommand() *cobra.Command {
	var report, env, format string
	var exitCode bool
	cmd := &cobra.Command{
		Use: "scan --moves FILE PATH...", Short: "Find old access URLs in files", Args: want(1, -1, "files or folders"),
		Long: `Scan prints a line for each old access URL in the text files below the paths,
without its key. It skips .git, node_modules, symbolic links, the backups of rewrite,
and binaries, which it tells by their first 8 KiB.`,
		Example: "  headsctl addresses scan --moves report.json site",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.newRewriter(report, env, args)
			if err != nil {
				return err
			}
			found := []addresses.Occurrence{}
			failed := a.walk(cmd.Context(), r, args, func(file string) error {
				occurrences, err := r.Search(cmd.Context(), file, io.Discard)
				found = append(found, occurrences...)
				if format == "table" {
					a.printOccurrences(occurrences)
				}
				return err
			})
			if format != "table" {
				if err := a.print(format, found, nil); err != nil {
					return err
				}
			}
			if failed == nil && exitCode && len(found) > 0 {
				return exit(exitFound)
			}
			return failed
		},
	}
	movesFlag(cmd, &report, &env)
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "end with 3 if there are old access URLs")
	return cmd
}

func (a *app) addressesRewriteCommand() *cobra.Command {
	var report, env string
	var noBackup bool
	cmd := &cobra.Command{
		Use: "rewrite --moves FILE PATH...", Short: "Put new access URLs in the place of old ones", Args: want(1, -1, "files or folders"),
		Long: `Rewrite puts the new access URL in the place of each old one, in the same form and
with the same key, and prints the same lines as scan and then the totals. It keeps
each file as it was in FILE.bak, or FILE.bak.2 and so on if there is one. Texts in
UTF-16 stay in UTF-16; one that can't be rewritten without a loss is named on stderr
and skipped. A run that was killed leaves each file old or new; run it again.`,
		Example: "  headsctl addresses rewrite --moves report.json site",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.newRewriter(report, env, args)
			if err != nil {
				return err
			}
			r.Writes = true
			var files, addresses int
			err = a.walk(cmd.Context(), r, args, func(file string) error {
				occurrences, err := r.Rewrite(cmd.Context(), file, !noBackup)
				if err != nil || len(occurrences) == 0 {
					return err
				}
				files++
				addresses += len(occurrences)
				a.printOccurrences(occurrences)
				return nil
			})
			a.say("%s, %s", show.Count(files, "file"), show.Counted(addresses, "address", "addresses"))
			return err
		},
	}
	movesFlag(cmd, &report, &env)
	cmd.Flags().BoolVar(&noBackup, "no-backup", false, "keep no backup")
	return cmd
}

func movesFlag(cmd *cobra.Command, report, env *string) {
	cmd.Flags().StringVar(report, "moves", "", "take old and new access URLs from `FILE`, a report in JSON; - is stdin")
	cmd.Flags().StringVar(env, "env", "", "the report is of the environment `NAME`")
}

func (a *app) printOccurrences(all []addresses.Occurrence) {
	for _, o := range all {
		a.say("%s:%d: %s → %s", show.Line(o.File), o.Line, o.Old, o.New)
	}
}

// newRewriter reads the moves.
func (a *app) newRewriter(report, env string, paths []string) (*addresses.Rewriter, error) {
	if report == "" {
		return nil, usage("--moves is missing; give the report of headsctl convert --report report.json")
	}
	text, err := a.readInput("the report", report)
	if err != nil {
		return nil, err
	}
	var file struct {
		Environment string `json:"environment"`
		Moves       *[]struct {
			Old string `json:"old"`
			New string `json:"new"`
		} `json:"moves"`
	}
	if err := json.Unmarshal(text, &file); err != nil || file.Moves == nil {
		return nil, usage("%s is not a report in JSON with a list of moves; headsctl convert --report report.json writes one", report)
	}
	if err := checkEnvironmentOf(nameOf(report), file.Environment, env); err != nil {
		return nil, err
	}
	r := addresses.New()
	var faults []error
	for i, m := range *file.Moves {
		if err := r.Add(m.Old, m.New); err != nil {
			faults = append(faults, fmt.Errorf("%s: moves[%d]: %w", report, i, err))
		}
	}
	faults = append(faults, checkPaths(paths)...)
	return r, faulty(errors.Join(faults...))
}

// walk visits the files below the paths. Errors of files are printed, and end in exit code 1.
func (a *app) walk(ctx context.Context, r *addresses.Rewriter, paths []string, visit func(file string) error) error {
	failed := false
	err := r.Walk(ctx, paths, visit, func(err error) {
		failed = true
		a.printError(show.Line(err.Error()))
	})
	if err == nil && failed {
		return exit(exitFailed)
	}
	return err
}

// checkPaths refuses paths that are not there.
func checkPaths(paths []string) (faults []error) {
	for _, path := range paths {
		if _, err := filepath.EvalSymlinks(path); err != nil {
			faults = append(faults, errors.Unwrap(unreadable("the path", path, err)))
		}
	}
	return faults
}
