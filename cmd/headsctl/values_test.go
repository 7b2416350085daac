package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
)

const (
	toolsBase  = "https://tools.museum.example/voice/Zm9ydHktdHdvLWJ5dGVz"
	fileSecret = "words of a file & \"quoted\""
)

// secretValues is a world whose file has values that are secrets.
func secretValues(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.terminal = w.with("HEADS_TOOLS_URL=" + toolsBase)
	w.write("secret.txt", fileSecret+"\n")
	w.write("tools.json", `[{"name": "find", "description": "Finds with ${word}.", "url": "${tools}/find", "parameters": []}]`)
	w.write("heads.yaml", `environments:
  staging: {base_url: "`+w.staging.url+`", token: {env: HEADS_STAGING_TOKEN}, values: {tools: {env: HEADS_TOOLS_URL}, word: {file: secret.txt}, app: "https://staging.example.com"}}
  production: {base_url: {env: PROD_URL}, token: {env: HEADS_PROD_TOKEN}, values: {tools: {env: HEADS_NOT_SET}, word: {file: secret.txt}, app: "https://app.example.com"}}
  other: {base_url: {env: PROD_URL}, token: {env: HEADS_PROD_TOKEN}, values: {tools: "https://other.example.com", word: {file: secret.txt}, app: "https://app.example.com"}}
defaults: {tools: {file: tools.json}}
heads:
  - id: {staging: `+w.staging.ids[0]+`, production: null, other: `+w.production.ids[0]+`}
    label: Lobby
    set: {operationMode: oc, greetings: "`+strings.Repeat("Hello, welcome. ", 9)+`${word} ${tools}", promptConfig: {system_prompt: "${tools}"}}
    webhooks: [{url: "${app}/events", events: [start_conversation]}, {url: "${tools}", events: [end_conversation]}]
`)
	return w
}

func TestNoOutputShowsASecretValue(t *testing.T) {
	w := secretValues(t)
	quoted, err := json.Marshal(fileSecret)
	require.NoError(t, err)
	secrets := []string{toolsBase, strings.TrimPrefix(toolsBase, "https://tools.museum.example"), fileSecret, strings.Trim(string(quoted), `"`), strings.Trim(string(rawjson.String(fileSecret)), `"`)}
	w.write("bad.yaml", strings.Replace(w.read("heads.yaml"), "[end_conversation]", `["${word}"]`, 1))
	w.write("refused.yaml", strings.Replace(w.read("heads.yaml"), "${app}/events", "http://x.example.com/${word}", 1))
	plan := w.ok("plan", "-f", "heads.yaml", "--env", "staging")
	assert.Contains(t, plan, "https://staging.example.com/events", "a plain value is no secret")
	for _, args := range [][]string{
		{"plan", "-f", "heads.yaml", "--report", "p.json", "--report", "p.csv", "--report", "p.html"}, {"plan", "-f", "heads.yaml", "--json"},
		{"plan", "-f", "bad.yaml"}, {"plan", "-f", "bad.yaml", "--json"}, {"plan", "-f", "refused.yaml"},
		{"diff", "-f", "heads.yaml", "--env", "other"}, {"diff", "-f", "heads.yaml", "--env", "other", "--json"},
		{"apply", "-f", "heads.yaml"}, {"apply", "-f", "heads.yaml", "--yes", "--report", "a.json", "--report", "a.csv", "--report", "a.html"},
		{"diff", "-f", "heads.yaml", "--env", "other"}, {"diff", "-f", "heads.yaml", "--env", "other", "--json"},
		{"doctor", "-f", "heads.yaml"}, {"doctor", "-f", "heads.yaml", "-o", "json"}, {"convert", "-f", "heads.yaml", "--yes", "--report", "c.json"},
	} {
		r := w.run(append(args, "--env", "staging", "--debug")...)
		assertNone(t, r.stdout+r.stderr, secrets, "%v", args)
	}
	for _, name := range []string{"p.json", "p.csv", "p.html", "a.json", "a.csv", "a.html", "c.json"} {
		assertNone(t, w.read(name), secrets, name)
	}
	require.NotEmpty(t, w.journals())
	assertNone(t, strings.Join(w.journals(), ""), secrets)
	shown := w.staging.ok("get", w.staging.ids[0], "--raw", "--show-secrets")
	assert.Contains(t, shown, toolsBase+"/find", "it was sent")
	assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", "staging"), "0 pending, 1 unchanged")
}

func TestAVariableOfAValueIsReadForItsEnvironmentAlone(t *testing.T) {
	w := secretValues(t)
	w.ok("plan", "-f", "heads.yaml", "--env", "other")
	w.silent(func() {
		r := w.fails(2, "heads.yaml:5:19: tools.json:1:64: ${tools} is given in line 3, column 91 of the environments: the variable HEADS_NOT_SET is not set; set it", "plan", "-f", "heads.yaml", "--env", "production")
		assert.Equal(t, 1, strings.Count(r.stderr, "HEADS_NOT_SET"), "one error")
	})
}

// The file that export writes names secret values as the file does that it was made with.
func TestExportAndMCPShowNoSecretValue(t *testing.T) {
	w := secretValues(t)
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes")
	for _, heads := range [][]string{nil, {"Lobby"}} {
		r := w.ends(0, append([]string{"export", "--debug", "-f", "heads.yaml", "--env", "staging"}, heads...)...)
		assert.Contains(t, r.stdout, `url: "${tools}/find"`)
		w.write("export.yaml", r.stdout)
		assert.Contains(t, w.ok("plan", "-f", "export.yaml", "--env", "staging"), "0 pending, 1 unchanged")
		assertNone(t, r.stdout+r.stderr, []string{toolsBase, fileSecret})
		assert.NotContains(t, r.stdout, "[redacted]")
	}
	m := w.at(w.staging.url, w.staging.token).mcp("--debug")
	reply := fmt.Sprint(m.ok("heads_get", object{"id": w.staging.ids[0]}))
	assert.Contains(t, reply, "find")
	refused := m.fails("heads_plan", object{"spec": w.read("heads.yaml")})
	require.NoError(t, m.session.Close())
	assert.NotContains(t, reply+refused+m.stderr.String(), "Zm9ydHktdHdvLWJ5dGVz", "the path token of the tools")
}
