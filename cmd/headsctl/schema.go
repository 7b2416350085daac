package main

import (
	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/cmd/headsctl/schemas"
)

func (a *app) schemaCommand() *cobra.Command {
	files := []string{"heads", "test"}
	return &cobra.Command{
		Use: "schema heads|test", Short: "Print the JSON Schema of heads.yaml or of scenarios", Args: want(1, 1, "heads or test"),
		Long: `Schema prints the JSON Schema by which this program reads heads.yaml, or *.test.yaml. An
editor with it completes keys, and shows faults while you write. Save it beside the file,
whose first line then names it for the YAML language server:

  # yaml-language-server: $schema=heads.schema.json`,
		Example: `  headsctl schema heads > heads.schema.json
  headsctl schema test > test.schema.json`,
		ValidArgs: files,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("the file", args[0], files); err != nil {
				return err
			}
			text := schemas.Heads
			if args[0] == "test" {
				text = schemas.Test
			}
			_, _ = a.stdout.Write(text)
			return nil
		},
	}
}

// printHeadsFile prints a JSON document as a heads.yaml.
func (a *app) printHeadsFile(doc []byte) {
	_, _ = a.stdout.Write(append([]byte("# yaml-language-server: $schema=heads.schema.json\n"), yamltext.Write(doc)...))
}
