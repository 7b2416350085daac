package main

import (
	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/fleet"
)

func (a *app) applyCommand() *cobra.Command {
	var f manyFlags
	var from specFlags
	var given consent
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Bring heads to the state that a file describes", Args: want(0, 0, "no arguments"),
		Long: "Apply changes the heads of a file to what the file says. It asks before it writes,\n" +
			"and leaves a head alone that is no longer as it was planned for.\n" +
			"Run again, it changes nothing; after a failure, it goes on with what is left.\n" + specHelp,
		Example: "  headsctl apply -f heads.yaml --report report.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.needsConsent(given, from.file, from.env); err != nil {
				return err
			}
			specs, err := a.specs(cmd, from)
			if err != nil {
				return err
			}
			return a.applyAll(cmd, &f, specs, given, from.file)
		},
	}
	from.add(cmd)
	f.add(cmd, true)
	given.add(cmd)
	return cmd
}

func (a *app) applyAll(cmd *cobra.Command, f *manyFlags, specs []fleet.Spec, given consent, file string) error {
	if err := a.checkConsent(given, file); err != nil {
		return err
	}
	w, err := a.newWork(cmd, f, specs, false)
	if err != nil {
		return err
	}
	defer w.close()
	return w.write(given)
}
