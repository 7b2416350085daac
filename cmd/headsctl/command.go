package main

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
	"github.com/headsapi/heads-go/internal/nearest"
)

// group makes a command that only has subcommands. Called without one, it prints its help.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return usage("%s has no command %q%s; %s -h lists the commands", cmd.CommandPath(), show.Line(args[0]), similar.Hint(args[0], names), cmd.CommandPath())
	}
	cmd.Use = strings.Fields(cmd.Use)[0] + " COMMAND"
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show what a command does",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return root.Args(root, args)
			}
			return cmd.Help()
		},
	}
}

// giveOnce makes the flags of a command and of those below it refuse a second use, unless they
// collect the values of all.
func giveOnce(cmd *cobra.Command) {
	wrap := func(f *pflag.Flag) {
		if _, collects := f.Value.(pflag.SliceValue); !collects {
			f.Value = onceValue{f.Value, f}
		}
	}
	cmd.PersistentFlags().VisitAll(wrap)
	cmd.Flags().VisitAll(wrap)
	for _, c := range cmd.Commands() {
		giveOnce(c)
	}
}

// onceValue is the value of a flag that can be given once.
type onceValue struct {
	pflag.Value
	flag *pflag.Flag
}

var errTwice = errors.New("given twice")

func (v onceValue) Set(text string) error {
	if v.flag.Changed {
		return errTwice
	}
	return v.Value.Set(text)
}

var parseError = regexp.MustCompile(`strconv\.\w+: parsing ".*": `)

var flagName = regexp.MustCompile(`^unknown flag: --(\S*)|^unknown shorthand flag: '(.)'`)

// flagError turns an error of the flags into one line with the nearest name. It never shows
// the value of an unknown flag, which may be a token.
func flagError(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.Is(err, errTwice) && errors.As(err, &wrong) {
		return usage("--%s is given twice; give it once", wrong.GetFlag().Name)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	found := flagName.FindStringSubmatch(text)
	switch {
	case found == nil:
		return usage("%s; %s -h lists the flags", show.Line(parseError.ReplaceAllString(text, "")), cmd.CommandPath())
	case found[1] == "token":
		return usage("there is no flag --token, since it would stand in the process list; use --token-file or HEADS_TOKEN")
	case found[2] != "":
		return usage("unknown flag -%s; %s -h lists the flags", show.Line(found[2]), cmd.CommandPath())
	}
	name, _, _ := strings.Cut(found[1], "=")
	var known []string
	add := func(f *pflag.Flag) { known = append(known, f.Name) }
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	hint := ""
	if near := nearest.Name(name, known); near != "" {
		hint = " (did you mean --" + near + "?)"
	}
	return usage("unknown flag --%s%s; %s -h lists the flags", show.Line(name), hint, cmd.CommandPath())
}

// want returns a check for the number of arguments, named as in the usage line.
func want(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return usage("%s wants %s, not %s", cmd.CommandPath(), names, show.Count(len(args), "argument"))
	}
}

// oneOf returns a usage error unless text is one of known.
func oneOf(what, text string, known []string) error {
	if slices.Contains(known, text) {
		return nil
	}
	return usage("%s %q is unknown%s; use one of %s", what, show.Line(text), similar.Hint(text, known), strings.Join(known, ", "))
}

// checkBefore adds a check of flags that runs before the command.
func checkBefore(cmd *cobra.Command, check func() error) {
	earlier := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if earlier != nil {
			if err := earlier(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}
