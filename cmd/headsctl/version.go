package main

import (
	"runtime"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: want(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			a.say("headsctl %s (%s, %s/%s)", heads.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print the completion script of a shell", Args: want(1, 1, "bash, zsh or fish"),
		Long: `Completion prints the completion script of a shell. Load it in a new shell:

  bash   source <(headsctl completion bash), which wants the package bash-completion
  zsh    source <(headsctl completion zsh), after compinit
  fish   headsctl completion fish | source`,
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("the shell", args[0], shells); err != nil {
				return err
			}
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			default:
				return root.GenFishCompletion(a.stdout, true)
			}
		},
	}
}
