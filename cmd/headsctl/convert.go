package main

import (
	"strings"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/fleet"
)

func (a *app) convertCommand() *cobra.Command {
	var f manyFlags
	var from targetFlags
	var voice string
	var dryRun, undo bool
	var given consent
	cmd := &cobra.Command{
		Use: "convert ID...|-f IDS", Short: "Convert heads to streaming mode, or back",
		Long: `Convert moves heads to streaming mode: it sets the voice, switches the head, and
prints the new access URL. The old access URL then stops working; headsctl
addresses finds the pages that hold it. It asks before it writes.

Run again, it changes nothing; after a failure, it goes on with what is left.`,
		Example: `  headsctl convert -f ids.csv --dry-run
  headsctl convert -f ids.csv --voice azure/en-US-plain --report report.json --report report.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !dryRun {
				if err := a.needsConsent(cmd, given, from.file, from.env); err != nil {
					return err
				}
			}
			targets, err := a.targets(cmd, from, args)
			if err != nil {
				return err
			}
			specs, err := conversions(targets, voice, undo)
			if err != nil {
				return err
			}
			if dryRun {
				return a.planAll(cmd, &f, specs)
			}
			return a.applyAll(cmd, &f, specs, given, from.file)
		},
	}
	from.add(cmd)
	f.add(cmd, true)
	cmd.Flags().BoolVar(&f.allowBlocked, "allow-blocked", false, "don't end with 1 because of heads that can't stream; they are listed")
	cmd.Flags().StringVar(&voice, "voice", "", "give the heads this voice, `PROVIDER/ID`")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	cmd.Flags().BoolVar(&undo, "undo", false, "convert back to legacy mode")
	given.add(cmd)
	return cmd
}

// conversions returns the specs that convert the heads.
func conversions(targets []target, voice string, undo bool) ([]fleet.Spec, error) {
	var wanted *heads.Voice
	if voice != "" {
		provider, id, _ := strings.Cut(voice, "/")
		if provider == "" || id == "" {
			return nil, usage("%q is not a voice; give PROVIDER/ID, such as azure/en-US-plain", show.Line(voice))
		}
		wanted = &heads.Voice{Provider: provider, ID: id}
	}
	streaming := !undo
	var specs []fleet.Spec
	for _, t := range targets {
		specs = append(specs, fleet.Spec{ID: t.id, Label: t.label, Streaming: &streaming, Voice: wanted})
	}
	return specs, nil
}
