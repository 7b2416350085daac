package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/similar"
)

const intro = `Headsctl looks after heads: it reads and changes them, converts many of them to
streaming mode, and finds what keeps a head from working.

Settings come from variables, or with --env from a heads.yaml:
  HEADS_BASE_URL     base URL of the service
  HEADS_TOKEN        access token, unless --token-file is given
  HEADS_CHAT_URL     base of access URLs of heads in legacy mode
  HEADS_STREAM_URL   base of access URLs of heads in streaming mode
  HEADS_SHARED_KEY   shared key of a webhook, for the commands events, listen and replay
  HEADS_PATH_TOKEN   what replay puts in the place of [redacted] in the paths of a recording

Exit codes:
  0    done, or nothing to do
  1    something failed or is blocked, the service refused or is not there, or the answer was no
  2    wrong usage, missing settings, a faulty file or id; nothing was sent
  3    plan, diff or addresses scan found something, with --exit-code
  130  interrupted`

// newRootCommand returns the program's commands.
func newRootCommand(a *app) *cobra.Command {
	root := group(&cobra.Command{
		Use: "headsctl", Short: "Look after heads from a terminal", Long: intro,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVar(&a.tokenFile, "token-file", "", "read the access token from `FILE` instead of HEADS_TOKEN")
	root.PersistentFlags().BoolVar(&a.debug, "debug", false, "write a line for every request to stderr")
	root.AddCommand(
		a.getCommand(), a.setCommand(), a.exportCommand(), a.planCommand(), a.applyCommand(), a.diffCommand(), a.convertCommand(), a.doctorCommand(),
		a.webhooksCommand(), a.deliveryCommand(), a.toolsCommand(), a.addressesCommand(), a.eventsCommand(),
		a.listenCommand(), a.replayCommand(), a.callCommand(),
		a.testCommand(), a.mcpCommand(), a.demoCommand(), a.versionCommand(), a.completionCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	return root
}

// group makes a command that only holds others: without one of them it prints
// its help.
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

var parseError = regexp.MustCompile(`strconv\.\w+: parsing ".*": `)

var flagName = regexp.MustCompile(`^unknown flag: --(\S*)|^unknown shorthand flag: '(.)'`)

// flagError makes an error of the flags one line with the nearest name. It never
// shows the value of an unknown flag, which may be a token.
func flagError(cmd *cobra.Command, err error) error {
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
	if near := similar.Name(name, known); near != "" {
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

// say writes a line to stdout.
func (a *app) say(format string, args ...any) { a.stdout.Say(format, args...) }

// note writes a line to stderr.
func (a *app) note(format string, args ...any) { a.stderr.Say(format, args...) }
