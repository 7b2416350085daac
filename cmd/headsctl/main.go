// Headsctl looks after heads from a terminal: it reads and changes them one by
// one or from a file, converts many of them to streaming mode, finds the pages
// that still hold old access URLs, and examines what keeps a head from working.
//
//	go run -C cmd/headsctl . demo
//
// It takes the service's base URL from HEADS_BASE_URL and the access token from
// HEADS_TOKEN or a file (--token-file). docs/headsctl.md is a tour.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
	ctx := a.watchSignals(context.Background())
	os.Exit(a.run(ctx))
}

// run executes the command and returns the exit code. An error of writing to stdout is a
// failure, so that no caller takes partial output for complete output.
func (a *app) run(ctx context.Context) int {
	root := newRootCommand(a)
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	code := a.report(err)
	if failure := a.stdout.Failure(); failure != nil && !errors.Is(err, failure) {
		failed := a.report(failure)
		if code == exitDone || code == exitFound {
			code = failed
		}
	}
	return code
}

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

// newRootCommand returns the root command, with the table of all commands.
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
		a.initCommand(), a.getCommand(), a.setCommand(), a.exportCommand(), a.planCommand(), a.applyCommand(), a.diffCommand(), a.convertCommand(), a.doctorCommand(),
		a.webhooksCommand(), a.deliveryCommand(), a.toolsCommand(), a.addressesCommand(), a.eventsCommand(),
		a.listenCommand(), a.replayCommand(), a.callCommand(),
		a.testCommand(), a.mcpCommand(), a.demoCommand(), a.schemaCommand(), a.versionCommand(), a.completionCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	giveOnce(root)
	return root
}
