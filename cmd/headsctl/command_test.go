package main

import (
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

func TestWrongUsageEndsWith2AndOneLine(t *testing.T) {
	c := newTerminal(t).at("http://127.0.0.1:1", "token") // nothing is sent
	c.write("ids.txt", "id\n"+someID+"\n")
	c.write("bad.yaml", "heads:\n  - id: "+someID+"\n    stremaing: true\n")
	c.write("good.yaml", "heads:\n  - id: "+someID+"\n")
	c.write("moves.json", `{"moves":[]}`)
	c.write("empty", " \n")
	c.write("latin1.txt", "Caf\xe9")
	c.write("report.json", `{"moves":[{"old":"x","new":"y"}]}`)
	for name, row := range map[string]struct {
		args []string
		text string
	}{
		"unknown command":        {[]string{"gte"}, "did you mean get?"},
		"unknown subcommand":     {[]string{"webhooks", "lst"}, "did you mean list?"},
		"unknown flag":           {[]string{"get", someID, "--rwa"}, "did you mean --raw?"},
		"unknown short flag":     {[]string{"get", someID, "-x"}, "unknown flag -x"},
		"token flag":             {[]string{"get", someID, "--token=abc"}, "use --token-file"},
		"unknown field":          {[]string{"set", someID, "greeting=x"}, "did you mean greetings?"},
		"unknown format":         {[]string{"get", someID, "-o", "jsno"}, "did you mean json?"},
		"unknown event":          {[]string{"webhooks", "ensure", someID, "--url", "https://a.example.com", "--event", "start_conversations"}, "did you mean start_conversation?"},
		"unknown shell":          {[]string{"completion", "zhs"}, "did you mean zsh?"},
		"unknown key":            {[]string{"plan", "-f", "bad.yaml"}, "bad.yaml:3:5: unknown key \"stremaing\" (did you mean streaming?)"},
		"field with a command":   {[]string{"set", someID, "videoStreaming:=true"}, "headsctl convert"},
		"read-only field":        {[]string{"set", someID, "publicId=x"}, "unknown or read-only"},
		"field twice":            {[]string{"set", someID, "name=a", "name=b"}, "set twice"},
		"value that is no JSON":  {[]string{"set", someID, "phrases:=[a"}, "not JSON"},
		"no assignment":          {[]string{"set", someID, "name"}, "FIELD=VALUE"},
		"value is not UTF-8":     {[]string{"set", someID, "name=Caf\xe9"}, "not UTF-8"},
		"value file not UTF-8":   {[]string{"set", someID, "name=@latin1.txt"}, "not UTF-8"},
		"value file missing":     {[]string{"set", someID, "name=@nowhere"}, "nowhere can't be read"},
		"wrong type":             {[]string{"set", someID, "semanticThreshold=much"}, "semanticThreshold"},
		"half a voice":           {[]string{"set", someID, "ttsProvider=", "ttsVoice=x"}, "ttsProvider"},
		"public id":              {[]string{"get", "li-28379"}, "UUID"},
		"blank before an id":     {[]string{"get", " " + someID}, `" ` + someID + `" is not the id`},
		"no id":                  {[]string{"get"}, "wants the id of a head"},
		"two ids":                {[]string{"get", someID, someID}, "wants the id of a head"},
		"no ids":                 {[]string{"doctor"}, "or -f"},
		"ids and a file":         {[]string{"doctor", someID, "-f", "ids.txt"}, "not both"},
		"file of ids missing":    {[]string{"convert", "-f", "nowhere.csv", "--yes"}, "nowhere.csv can't be read"},
		"file of heads missing":  {[]string{"plan", "-f", "nowhere.yaml"}, "nowhere.yaml can't be read"},
		"no file of heads":       {[]string{"apply", "--yes"}, "wants -f"},
		"no person to ask":       {[]string{"convert", someID}, "--yes"},
		"no person for stdin":    {[]string{"apply", "-f", "-"}, "--yes"},
		"only an unknown id":     {[]string{"plan", "-f", "good.yaml", "--only", "1" + someID[1:]}, "no head of this id"},
		"voice without provider": {[]string{"convert", someID, "--voice", "azure", "--yes"}, "PROVIDER/ID"},
		"no jobs":                {[]string{"doctor", someID, "-j", "0"}, "-j must be 1"},
		"no rate":                {[]string{"doctor", someID, "--rate", "0"}, "--rate must be"},
		"rate is no number":      {[]string{"doctor", someID, "--rate", "x"}, "--rate"},
		"stop after 0":           {[]string{"convert", someID, "--stop-after", "0", "--yes"}, "--stop-after"},
		"report type":            {[]string{"convert", someID, "--report", "r.txt", "--yes"}, ".html"},
		"report folder":          {[]string{"convert", someID, "--report", "no/r.csv", "--yes"}, "no folder"},
		"journal is a folder":    {[]string{"convert", someID, "--journal", ".", "--yes"}, "--journal"},
		"journal of another":     {[]string{"convert", someID, "--journal", "ids.txt", "--yes"}, "error: journal ids.txt is not a journal of this version"},
		"token file missing":     {[]string{"--token-file", "nowhere", "get", someID}, "nowhere can't be read"},
		"token file empty":       {[]string{"--token-file", "empty", "get", someID}, "is empty"},
		"webhook id":             {[]string{"webhooks", "delete", "0"}, "id of a webhook"},
		"webhook without URL":    {[]string{"webhooks", "ensure", someID, "--event", "end_conversation"}, "--url"},
		"webhook over http":      {[]string{"webhooks", "ensure", someID, "--url", "http://a.example.com", "--event", "end_conversation"}, "https"},
		"delivery maybe":         {[]string{"delivery", "onn", someID}, "did you mean on?"},
		"tool without file":      {[]string{"tools", "put", someID}, "-f"},
		"raw as yaml":            {[]string{"get", someID, "--raw", "-o", "yaml"}, "--raw"},
		"dot segment":            {[]string{"call", "GET", "/head/../x"}, "dot segment"},
		"method":                 {[]string{"call", "BREW", "/head"}, "BREW"},
		"data that is no JSON":   {[]string{"call", "PUT", "/head/update", "--data", "{a}"}, "not JSON"},
		"query without value":    {[]string{"call", "GET", "/head-events", "--query", "headId"}, "NAME=VALUE"},
		"no shared key":          {[]string{"events", "verify", "--body", "ids.txt", "--signature", "x"}, "HEADS_SHARED_KEY"},
		"no signature":           {[]string{"events", "verify", "--body", "ids.txt"}, "--signature"},
		"receiver":               {[]string{"events", "send", "nowhere", "--type", "end_conversation", "--head", someID}, "URL of a receiver"},
		"moves missing":          {[]string{"addresses", "scan", "."}, "--moves"},
		"moves of no report":     {[]string{"addresses", "scan", "--moves", "ids.txt", "."}, "not a report"},
		"moves of no addresses":  {[]string{"addresses", "scan", "--moves", "report.json", "."}, "moves[0]"},
		"path missing":           {[]string{"addresses", "rewrite", "--moves", "moves.json", "nowhere"}, "nowhere can't be read"},
		"demo in a full folder":  {[]string{"demo", "--dir", "."}, "holds other files"},
		"argument of version":    {[]string{"version", "x"}, "no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.fails(2, row.text, row.args...)
			assert.Empty(t, r.stdout)
		})
	}
}

func TestWithoutACommandHelpIsShown(t *testing.T) {
	c := newTerminal(t)
	assert.Contains(t, c.ok(), "HEADS_BASE_URL")
	assert.Contains(t, c.ok("webhooks"), "ensure")
	assert.Contains(t, c.ok("help", "plan"), "defaults:")
	assert.Contains(t, c.ok("set", "-h"), "FIELD:=JSON")
	c.fails(2, "did you mean get?", "help", "gte")
	assert.Regexp(t, `^headsctl \d+\.\d+\.\d+`, c.ok("version"))
	for _, shell := range []string{"bash", "zsh", "fish"} {
		assert.Contains(t, c.ok("completion", shell), "headsctl")
	}
	assert.Contains(t, c.ok("__complete", "set", someID, ""), "greetings=")
	assert.Contains(t, c.ok("__complete", "get", someID, "-o", ""), "yaml")
}

func TestNoFlagLetsItsLastUseWin(t *testing.T) {
	c := newTerminal(t)
	for flag, args := range map[string][]string{
		"env":        {"plan", "-f", "h.yaml", "--env", "a", "--env", "b"},
		"file":       {"plan", "-f", "a", "--file", "b"},
		"yes":        {"apply", "--yes", "--yes=false"},
		"jobs":       {"doctor", "-j", "1", "-j2"},
		"rate":       {"export", "--rate", "1", "--rate", "2"},
		"token-file": {"get", "--token-file", "secret-1", "--token-file", "secret-2"},
		"output":     {"get", "-o", "json", "-o", "yaml"},
	} {
		r := c.fails(2, "--"+flag+" is given twice; give it once", args...)
		assert.NotContains(t, r.stderr, "secret-")
	}
	// No command is left out: a walk over all of them.
	root := newRootCommand(newApp(os.Stdin, os.Stdout, os.Stderr, nil))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, collects := f.Value.(pflag.SliceValue); !collects {
				assert.IsType(t, onceValue{}, f.Value, "%s --%s", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}
