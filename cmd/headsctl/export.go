package main

import (
	"context"

	"github.com/spf13/cobra"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/fleet"
)

func (a *app) exportCommand() *cobra.Command {
	var from targetFlags
	var p pace
	cmd := &cobra.Command{
		Use: "export ID...|-f IDS", Short: "Write heads as a file that apply would find unchanged",
		Long: `Export writes heads as a heads.yaml to stdout. Nothing in it is masked, since apply
needs it: it holds URLs and texts whole, and the keys in them. If there are any, and
if the file can't hold something, stderr says so. With --env, it is a file for that
environment: its settings, without values, and the ids under its name.`,
		Example: `  headsctl export -f ids.csv > heads.yaml
  headsctl export -f heads.yaml --env staging Lobby > lobby.yaml`,
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
	exported := []*fleet.Spec{}
	for i, s := range specs {
		if s == nil {
			continue
		}
		if targets[i].label != "" {
			s.Label = targets[i].label
		}
		for _, omitted := range s.Omitted {
			a.note("left out of head %s: %s", s.ID, show.Line(omitted))
		}
		exported = append(exported, s)
	}
	doc, err := rawjson.Encode(map[string]any{"heads": exported})
	if err != nil {
		return err
	}
	if string(redact.Body(doc)) != string(doc) {
		a.note("the file holds keys or tokens as they are, since apply needs them: keep it as you keep a password")
	}
	if a.environment != nil {
		doc = inFileOf(a.environment, doc)
	}
	if len(exported) > 0 || failed == nil {
		_, _ = a.stdout.Write(yamltext.Write(doc))
	}
	return failed
}

// inFileOf turns a heads.yaml without environments into one with the given environment, in which
// ${name} stands for a secret value.
func inFileOf(e *headsfile.Environment, doc []byte) []byte {
	var entries [][]byte
	for entry := range rawjson.Elements(rawjson.MapTexts(rawjson.Get(doc, "heads"), e.References())) {
		var members [][]byte
		for m := range rawjson.Members(entry) {
			if m.Key == "id" {
				m.Value = rawjson.Object(rawjson.AppendMember(nil, e.Name, m.Value))
			}
			members = append(members, rawjson.AppendMember(nil, m.Key, m.Value))
		}
		entries = append(entries, rawjson.Object(members...))
	}
	settings := rawjson.AppendMember(nil, e.Name, e.JSON())
	return rawjson.Object(
		rawjson.AppendMember(nil, "environments", rawjson.Object(settings)),
		rawjson.AppendMember(nil, "heads", rawjson.Array(entries...)),
	)
}
