package main

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

func TestWrongUsageEndsWith2AndOneLine(t *testing.T) {
	c := newTerminal(t).at("http://127.0.0.1:1", "token") // nothing is sent
	c.write("ids.txt", "id\n"+someID+"\n", "bad.yaml", "heads:\n  - id: "+someID+"\n    stremaing: true\n", "good.yaml", "heads:\n  - id: "+someID+"\n",
		"moves.json", `{"moves":[]}`, "empty", " \n", "latin1.txt", "Caf\xe9", "report.json", `{"moves":[{"old":"x","new":"y"}]}`)
	for _, row := range [][]string{ // a part of the error, then the arguments
		{"did you mean get?", "gte"}, {"did you mean list?", "webhooks", "lst"}, {"did you mean --raw?", "get", someID, "--rwa"},
		{"unknown flag -x", "get", someID, "-x"}, {"use --token-file", "get", someID, "--token=abc"},
		{"did you mean greetings?", "set", someID, "greeting=x"}, {"did you mean json?", "get", someID, "-o", "jsno"},
		{"did you mean start_conversation?", "webhooks", "ensure", someID, "--url", "https://a.example.com", "--event", "start_conversations"},
		{"did you mean zsh?", "completion", "zhs"}, {"bad.yaml:3:5: unknown key \"stremaing\" (did you mean streaming?)", "plan", "-f", "bad.yaml"},
		{"headsctl convert", "set", someID, "videoStreaming:=true"}, {"unknown or read-only", "set", someID, "publicId=x"},
		{"set twice", "set", someID, "name=a", "name=b"}, {"not JSON", "set", someID, "phrases:=[a"}, {"FIELD=VALUE", "set", someID, "name"},
		{"not UTF-8", "set", someID, "name=Caf\xe9"}, {"not UTF-8", "set", someID, "name=@latin1.txt"},
		{"nowhere can't be read", "set", someID, "name=@nowhere"}, {"semanticThreshold", "set", someID, "semanticThreshold=much"},
		{"ttsProvider", "set", someID, "ttsProvider=", "ttsVoice=x"}, {"UUID", "get", "li-28379"},
		{`" ` + someID + `" is not the id`, "get", " " + someID}, {"wants the id of a head", "get"},
		{"wants the id of a head", "get", someID, someID}, {"or -f", "doctor"}, {"not both", "doctor", someID, "-f", "ids.txt"},
		{"nowhere.csv can't be read", "convert", "-f", "nowhere.csv", "--yes"}, {"nowhere.yaml can't be read", "plan", "-f", "nowhere.yaml"},
		{"wants -f", "apply", "--yes"}, {"--yes", "convert", someID}, {"--yes", "apply", "-f", "-"},
		{"no head of this id", "plan", "-f", "good.yaml", "--only", "1" + someID[1:]},
		{"PROVIDER/ID", "convert", someID, "--voice", "azure", "--yes"}, {"-j must be 1", "doctor", someID, "-j", "0"},
		{"--rate must be", "doctor", someID, "--rate", "0"}, {"--rate", "doctor", someID, "--rate", "x"},
		{"--stop-after", "convert", someID, "--stop-after", "0", "--yes"}, {".html", "convert", someID, "--report", "r.txt", "--yes"},
		{"no folder", "convert", someID, "--report", "no/r.csv", "--yes"}, {"--journal", "convert", someID, "--journal", ".", "--yes"},
		{"error: journal ids.txt is not a journal of this version", "convert", someID, "--journal", "ids.txt", "--yes"},
		{"nowhere can't be read", "--token-file", "nowhere", "get", someID}, {"is empty", "--token-file", "empty", "get", someID},
		{"id of a webhook", "webhooks", "delete", "0"}, {"--url", "webhooks", "ensure", someID, "--event", "end_conversation"},
		{"https", "webhooks", "ensure", someID, "--url", "http://a.example.com", "--event", "end_conversation"},
		{"did you mean on?", "delivery", "onn", someID}, {"-f", "tools", "put", someID}, {"--raw", "get", someID, "--raw", "-o", "yaml"},
		{"dot segment", "call", "GET", "/head/../x"}, {"BREW", "call", "BREW", "/head"}, {"not JSON", "call", "PUT", "/head/update", "--data", "{a}"},
		{"NAME=VALUE", "call", "GET", "/head-events", "--query", "headId"},
		{"HEADS_SHARED_KEY", "events", "verify", "--body", "ids.txt", "--signature", "x"}, {"--signature", "events", "verify", "--body", "ids.txt"},
		{"URL of a receiver", "events", "send", "nowhere", "--type", "end_conversation", "--head", someID}, {"--moves", "addresses", "scan", "."},
		{"not a report", "addresses", "scan", "--moves", "ids.txt", "."}, {"moves[0]", "addresses", "scan", "--moves", "report.json", "."},
		{"nowhere can't be read", "addresses", "rewrite", "--moves", "moves.json", "nowhere"}, {"holds other files", "demo", "--dir", "."},
		{"no arguments", "version", "x"}, {`the file "haeds" is unknown (did you mean heads?)`, "schema", "haeds"},
	} {
		assert.Empty(t, c.fails(2, row[0], row[1:]...).stdout)
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
		"env": {"plan", "-f", "h.yaml", "--env", "a", "--env", "b"}, "file": {"plan", "-f", "a", "--file", "b"}, "yes": {"apply", "--yes", "--yes=false"},
		"jobs": {"doctor", "-j", "1", "-j2"}, "rate": {"export", "--rate", "1", "--rate", "2"},
		"token-file": {"get", "--token-file", "secret-1", "--token-file", "secret-2"}, "output": {"get", "-o", "json", "-o", "yaml"},
	} {
		r := c.fails(2, "--"+flag+" is given twice; give it once", args...)
		assert.NotContains(t, r.stderr, "secret-")
	}
	for _, cmd := range commandsBelow(rootCommand()) {
		check := func(f *pflag.Flag) {
			if _, collects := f.Value.(pflag.SliceValue); !collects {
				assert.IsType(t, onceValue{}, f.Value, "%s --%s", cmd.CommandPath(), f.Name)
			}
		}
		cmd.NonInheritedFlags().VisitAll(check)
		cmd.InheritedFlags().VisitAll(check)
	}
}
