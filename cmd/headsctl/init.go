package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

func (a *app) initCommand() *cobra.Command {
	var tools bool
	cmd := &cobra.Command{
		Use: "init ENVIRONMENT=IDS...", Short: "Write the first heads.yaml, from files of ids", Args: want(1, -1, "ENVIRONMENT=IDS, such as staging=staging.csv"),
		Long: `Init writes a heads.yaml to stdout and sends nothing. IDS is a file with an id and a
label on each line, as -f reads it. The heads of the environments are joined by their
labels; an environment that lacks a head has null for its id. The token of an environment
is in the variable HEADS_<ENVIRONMENT>_TOKEN, its base URL in HEADS_<ENVIRONMENT>_BASE_URL.
The last of several environments is protected: its changes are confirmed with its name.`,
		Example: "  headsctl init staging=staging.csv production=production.csv > heads.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.firstFile(args, tools)
			if err != nil {
				return err
			}
			a.printHeadsFile(file)
			return nil
		},
	}
	cmd.Flags().BoolVar(&tools, "tools", false, "give all heads the tools in tools.json, with their URLs below HEADS_TOOLS_URL")
	return cmd
}

// firstFile returns a heads.yaml as JSON. It reports all faults together.
func (a *app) firstFile(args []string, tools bool) ([]byte, error) {
	var faults []error
	var names, labels []string
	ids := map[string]map[string]string{} // by label, then by environment
	places := map[string]string{}         // of an id
	for _, arg := range args {
		name, path, _ := strings.Cut(arg, "=")
		switch {
		case !headsfile.IsEnvironmentName(name) || path == "":
			faults = append(faults, fmt.Errorf("%q is not ENVIRONMENT=IDS; write a name of lower-case letters, digits, _ and -, and a file, such as staging=staging.csv", show.Line(arg)))
			continue
		case slices.Contains(names, name):
			faults = append(faults, fmt.Errorf("the environment %s is given twice; put its ids into one file", name))
			continue
		}
		names = append(names, name)
		text, err := a.readInput("the file of ids", path)
		if err != nil {
			return nil, err
		}
		targets, err := parseIDs(nameOf(path), text)
		if err != nil {
			faults = append(faults, parts(err)...)
			continue
		}
		for _, t := range targets {
			id := strings.ToLower(t.id)
			switch {
			case t.label == "":
				faults = append(faults, fmt.Errorf("%s: the head %s has no label; write it after a comma", nameOf(path), t.id))
				continue
			case ids[t.label][name] != "":
				faults = append(faults, fmt.Errorf("%s: the label %q is given twice; each head of an environment wants one of its own", nameOf(path), show.Line(t.label)))
				continue
			case places[id] != "":
				faults = append(faults, fmt.Errorf("%s: the head %s is in %s too; a head belongs to one environment", nameOf(path), t.id, places[id]))
				continue
			}
			places[id] = nameOf(path)
			if ids[t.label] == nil {
				ids[t.label] = map[string]string{}
				labels = append(labels, t.label)
			}
			ids[t.label][name] = t.id
		}
	}
	if len(faults) > 0 {
		return nil, faulty(errors.Join(faults...))
	}
	return firstDocument(names, labels, ids, tools), nil
}

func firstDocument(names, labels []string, ids map[string]map[string]string, tools bool) []byte {
	member := func(key string, value []byte) []byte { return rawjson.AppendMember(nil, key, value) }
	variable := func(name string) []byte { return rawjson.Object(member("env", rawjson.String(name))) }
	var environments, heads [][]byte
	for i, name := range names {
		prefix := "HEADS_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		settings := [][]byte{member("base_url", variable(prefix+"_BASE_URL")), member("token", variable(prefix+"_TOKEN"))}
		if tools {
			settings = append(settings, member("values", rawjson.Object(member("tools", variable("HEADS_TOOLS_URL")))))
		}
		if i > 0 && i == len(names)-1 {
			settings = append(settings, member("protect", []byte("true")))
		}
		environments = append(environments, member(name, rawjson.Object(settings...)))
	}
	for _, label := range labels {
		var of [][]byte
		for _, name := range names {
			id := []byte("null")
			if ids[label][name] != "" {
				id = rawjson.String(ids[label][name])
			}
			of = append(of, member(name, id))
		}
		heads = append(heads, rawjson.Object(member("id", rawjson.Object(of...)), member("label", rawjson.String(label))))
	}
	file := [][]byte{member("environments", rawjson.Object(environments...))}
	if tools {
		file = append(file, member("defaults", rawjson.Object(member("tools", rawjson.Object(member("file", rawjson.String("tools.json")))))))
	}
	return rawjson.Object(append(file, member("heads", rawjson.Array(heads...)))...)
}
