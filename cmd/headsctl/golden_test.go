package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What scripts rely on is recorded in testdata/golden. A changed file is a break.
var updateGolden = flag.Bool("update-golden", false, "write the files of testdata/golden instead of comparing with them")

// compareGolden is Compare of internal/goldens in the root, which other modules must not
// import.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", filepath.FromSlash(name))
	if *updateGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	assert.Equal(t, contents(t, path), got, "%s: users rely on what is recorded; -update-golden writes it", path)
}

func rootCommand() *cobra.Command { return newRootCommand(newApp(os.Stdin, os.Stdout, os.Stderr, nil)) }

// commandsBelow returns every command that does something, in their order.
func commandsBelow(cmd *cobra.Command) (all []*cobra.Command) {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	for _, c := range cmd.Commands() {
		all = append(all, commandsBelow(c)...)
	}
	return all
}

func dashed(c *cobra.Command) string {
	return strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "headsctl "), " ", "-")
}

// assertOnly asserts that a folder of testdata/golden has a file for each name alone.
func assertOnly(t *testing.T, folder string, names []string) {
	for _, file := range need(os.ReadDir(filepath.Join("testdata", "golden", folder)))(t) {
		assert.Contains(t, names, strings.TrimSuffix(file.Name(), ".txt"), "%s/%s is no longer made", folder, file.Name())
	}
}

// The arguments and flags, without the texts that explain them.
func TestGoldenHelp(t *testing.T) {
	var names []string
	for _, c := range commandsBelow(rootCommand()) {
		lines := []string{c.UseLine()}
		c.InitDefaultHelpFlag()
		show := func(f *pflag.Flag) {
			line := fmt.Sprintf("--%s %s, default %q", f.Name, f.Value.Type(), f.DefValue)
			if f.Shorthand != "" {
				line = "-" + f.Shorthand + " " + line
			}
			lines = append(lines, line)
		}
		c.NonInheritedFlags().VisitAll(show)
		c.InheritedFlags().VisitAll(show)
		compareGolden(t, "help/"+dashed(c)+".txt", strings.Join(lines, "\n")+"\n")
		names = append(names, dashed(c))
	}
	assertOnly(t, "help", names)
}

// The keys of what is printed as JSON, with their types.
func TestGoldenJSON(t *testing.T) {
	c := demoIn(t, "demo")
	receiver := serving(t, http.NotFound)
	c.write("tool.yaml", "name: hours\ndescription: Tells the hours.\nurl: https://example.com/hours\nparameters:\n  - {name: day, type: string, description: Day.}\n",
		"two.test.yaml", "backend: {url: \""+receiver.URL+"\"}\nheads: [{label: Lobby}]\nscenarios:\n"+
			"  - {name: passes, steps: [{http: GET /, expect: {status: 404}}]}\n  - {name: fails, steps: [{http: GET /, within: 100ms}]}\n")
	c.ok("tools", "put", c.ids[0], "-f", "tool.yaml")
	c.ok("webhooks", "ensure", c.ids[0], "--url", receiver.URL, "--event", "end_conversation")
	l := c.listen("--forward", receiver.URL, "--record", "recording.jsonl", "--json")
	listen := []string{l.first}
	for path, body := range map[string]string{
		"/events":      `{"event_type":"start_conversation","head_id":"` + c.ids[0] + `","session_id":"s","timestamp":"2026-08-31 06:56:30"}`,
		"/tools/hours": `{"day":"Monday","session_metadata":{"session_id":"s","head_id":"` + c.ids[0] + `"}}`, "/other": "",
	} {
		l.post(http.StatusNotFound, path, body)
		listen = append(listen, l.line(path))
	}
	var recorded []string
	record := func(name, text string) {
		compareGolden(t, "json/"+name+".txt", shapeOf(t, text))
		recorded = append(recorded, name)
	}
	record("listen", strings.Join(listen, "\n"))
	for _, call := range [][]string{ // a name, and the arguments
		{"get", "get", c.ids[0], "-o", "json"}, {"doctor", "doctor", "-f", "demo/ids.csv", "-o", "json"},
		{"webhooks-list", "webhooks", "list", c.ids[0], "-o", "json"}, {"tools-list", "tools", "list", c.ids[0], "-o", "json"},
		{"tools-check", "tools", "check", c.ids[0], "-o", "json"},
		{"diff", "diff", "-f", "demo/environments.yaml", "--env", "staging", "--env", "production", "--json"},
		{"replay", "replay", "recording.jsonl", "--to", receiver.URL, "--json"}, {"test", "test", "two.test.yaml", "--json"},
		{"plan", "plan", "-f", "demo/heads.yaml", "--json"}, {"apply", "apply", "-f", "demo/heads.yaml", "--yes", "--json"},
		{"convert", "convert", "-f", "demo/ids.csv", "--yes", "--json", "--report", "report.json"},
		{"addresses-scan", "addresses", "scan", "--moves", "report.json", "demo/site", "-o", "json"},
	} {
		r := c.run(call[1:]...)
		require.NotEqual(t, exitUsage, r.code, "%v\n%s", call, r.stderr)
		record(call[0], r.stdout)
	}
	record("demo", serve(t, headsctl, "demo", "--dir", filepath.Join(c.dir, "another"), "-o", "json"))
	record("error", c.run("get", "li-28379", "-o", "json").stderr)

	for _, c := range commandsBelow(rootCommand()) {
		if c.Flags().Lookup("json") != nil || c.Flags().Lookup("output") != nil {
			assert.Contains(t, recorded, dashed(c), "a command prints JSON")
		}
	}
	assertOnly(t, "json", recorded)
}

// shapeOf returns the paths of the JSON values in a text, with the types that were seen.
// Elements of lists are one path.
func shapeOf(t *testing.T, text string) string {
	t.Helper()
	shape := map[string][]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, part := range v {
				walk(path+"."+key, part)
			}
		case []any:
			for _, part := range v {
				walk(path+"[]", part)
			}
		}
		shape[path] = append(shape[path], map[string]string{
			"<nil>": "null", "map[string]interface {}": "object", "[]interface {}": "list", "string": "text", "float64": "number", "bool": "true or false",
		}[fmt.Sprintf("%T", value)])
	}
	for in := json.NewDecoder(strings.NewReader(text)); in.More(); {
		var value any
		require.NoError(t, in.Decode(&value), text)
		walk("", value)
	}
	require.NotEmpty(t, shape, "nothing was printed")
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(shape)) {
		slices.Sort(shape[path])
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimPrefix(path, "."), strings.Join(slices.Compact(shape[path]), ", "))
	}
	return b.String()
}

func TestGoldenExits(t *testing.T) {
	c := demoIn(t, "demo")
	nobody := newTerminal(t).at("http://127.0.0.1:1", "token")
	c.ok("convert", c.ids[0], "--yes", "--report", "report.json")
	var b strings.Builder
	for _, row := range []struct {
		what string
		c    *terminal
		args []string
	}{
		{"done", c, []string{"get", c.ids[0]}}, {"help", c, []string{"get", "-h"}}, {"nothing to do", c, []string{"convert", c.ids[0], "--yes"}},
		{"some heads are blocked", c, []string{"convert", "-f", "demo/ids.csv", "--dry-run"}},
		{"a fault was found", c, []string{"doctor", "-f", "demo/ids.csv"}}, {"the service is not there", nobody, []string{"get", someID}},
		{"the service refuses", c.with("HEADS_TOKEN=wrong"), []string{"get", c.ids[0]}}, {"wrong usage", c, []string{"get", "--rwa"}},
		{"no settings", newTerminal(t), []string{"get", someID}}, {"an id that is none", c, []string{"get", "li-28379"}},
		{"a faulty file", c, []string{"plan", "-f", "nowhere.yaml"}},
		{"plan --exit-code finds changes", c, []string{"plan", "-f", "demo/heads.yaml", "--exit-code"}},
		{"addresses scan --exit-code finds addresses", c, []string{"addresses", "scan", "--moves", "report.json", "demo/site", "--exit-code"}},
	} {
		fmt.Fprintf(&b, "%s: %d\n", row.what, row.c.run(row.args...).code)
	}
	fmt.Fprintf(&b, "interrupted: %d\n", exitInterrupted)
	compareGolden(t, "exits.txt", b.String())
}
