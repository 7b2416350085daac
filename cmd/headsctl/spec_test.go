package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
)

func TestDefaultsAreUnderEachHead(t *testing.T) {
	t.Parallel()
	specs, err := parseSpecs([]byte(`
defaults:
  set: {greetings: Hello, alias: a, customWords: {a: b}}
  voice: {provider: azure, id: v}
  streaming: true
  webhooks: [{url: https://a.example.com, events: [end_conversation]}]
  prune_webhooks: true
  tools: []
heads:
  - id: one
  - id: two
    label: Two
    set: {greetings: Hi, customWords: {c: d}}
    voice: {provider: azure, id: w}
    streaming: false
    webhooks: []
    prune_webhooks: false
    tools: [{name: t, description: d, url: https://a.example.com, x_more: [1]}]
`), ".")
	require.NoError(t, err)
	require.Len(t, specs, 2)
	yes, no := true, false
	assert.Equal(t, fleet.Spec{
		ID: "one", Set: map[string]any{"greetings": "Hello", "alias": "a", "customWords": map[string]any{"a": "b"}}, Voice: &heads.Voice{Provider: "azure", ID: "v"},
		Streaming: &yes, Webhooks: []fleet.WebhookSpec{{URL: "https://a.example.com", Events: []heads.EventType{"end_conversation"}}}, PruneWebhooks: true, Tools: &[]heads.Tool{},
	}, specs[0])
	two := specs[1]
	assert.Equal(t, "Two", two.Label)
	assert.Equal(t, map[string]any{"greetings": "Hi", "alias": "a", "customWords": map[string]any{"c": "d"}}, two.Set, "merged by field")
	assert.Equal(t, "w", two.Voice.ID)
	assert.Equal(t, &no, two.Streaming)
	assert.Equal(t, []fleet.WebhookSpec{}, two.Webhooks)
	assert.False(t, two.PruneWebhooks)
	require.Len(t, *two.Tools, 1)
	text, err := (*two.Tools)[0].MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"name":"t","description":"d","url":"https://a.example.com","x_more":[1]}`, string(text), "keys that the service may know are kept")
}

func TestAFileStandsForAnyText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "p"), 0o755))
	for name, text := range map[string]string{"p/a.txt": "A\n\n", "crlf.txt": "C\r\n", "id": someID} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	specs, err := parseSpecs([]byte(`
heads:
  - id: {file: id}
    label: {file: p/a.txt}
    set:
      greetings: {file: crlf.txt}
      promptConfig: {system_prompt: {file: p/a.txt}}
      phrases: [x, {file: p/a.txt}]
      customWords: {file: A, b: {file: crlf.txt}}
      pluginOperationalModeConfig: {file: p/a.txt}
    voice: {provider: {file: crlf.txt}, id: v}
    webhooks: [{url: {file: crlf.txt}, events: [{file: crlf.txt}]}]
    tools:
      - name: {file: crlf.txt}
        description: {file: p/a.txt}
        url: {file: crlf.txt}
        parameters: [{name: n, type: string, description: {file: p/a.txt}}]
        x_more: {file: p/a.txt}
`), dir)
	require.NoError(t, err)
	s := specs[0]
	assert.Equal(t, []string{someID, "A\n", "C"}, []string{s.ID, s.Label, s.Voice.Provider}, "without one newline at its end")
	assert.Equal(t, map[string]any{
		"greetings": "C", "promptConfig": map[string]any{"system_prompt": "A\n"}, "phrases": []any{"x", "A\n"},
		"customWords": map[string]any{"file": "A", "b": "C"}, "pluginOperationalModeConfig": map[string]any{"file": "p/a.txt"},
	}, s.Set)
	assert.Equal(t, []fleet.WebhookSpec{{URL: "C", Events: []heads.EventType{"C"}}}, s.Webhooks)
	tool, err := (*s.Tools)[0].MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"name":"C","description":"A\n","url":"C","parameters":[{"name":"n","type":"string","description":"A\n"}],"x_more":{"file":"p/a.txt"}}`, string(tool))
}

func TestJSONIsRead(t *testing.T) {
	t.Parallel()
	specs, err := parseSpecs([]byte("\ufeff{\"heads\":\r\n\t[{\"id\": \"a\\/b\\ud83d\\ude00\",\t\"set\": {\"semanticThreshold\": 1e-3, \"x\": [1E5, \"1e3\", null, true]}}]}\n"), ".")
	require.NoError(t, err)
	assert.Equal(t, "a/b😀", specs[0].ID)
	assert.Equal(t, map[string]any{"semanticThreshold": 1e-3, "x": []any{1e5, "1e3", nil, true}}, specs[0].Set)
}

func TestFaultsOfYAMLHaveLineAndColumn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"unknown key":         {"heads:\n  - id: a\n    stremaing: true\n", `3:5: unknown key "stremaing" (did you mean streaming?)`},
		"unknown top":         {"haeds: []\n", `1:1: unknown key "haeds" (did you mean heads?)`},
		"unknown inner":       {"heads:\n  - id: a\n    webhooks:\n      - {url: u, event: [e]}\n", `4:18: unknown key "event" (did you mean events?)`},
		"id under defaults":   {"defaults: {label: a}\nheads: []\n", `1:12: unknown key "label"`},
		"unknown of file":     {"heads:\n  - id: {fil: a}\n", `2:10: unknown key "fil"`},
		"unknown in JSON":     {"{\"heads\": [\n\t{\"id\": \"a\", \"labl\": 1}]}", `2:14: unknown key "labl" (did you mean label?)`},
		"key twice":           {"heads:\n  - id: a\n    id: b\n", `3:5: mapping key "id" already defined`},
		"wrong type":          {"heads:\n  - id: a\n    streaming: maybe\n", `3:16: this is a string; want a bool`},
		"not a list":          {"heads: a\n", "1:8: string was used where sequence is expected"},
		"no YAML":             {"heads: [\n", "1:8: "},
		"no end of a text":    {"heads:\n  - id: \"a\n", "2:9: "},
		"tab":                 {"heads:\n\t- id: a\n", `2:1: found character '\t'`},
		"not UTF-8":           {"heads: [{id: a, label: Caf\xe9}]\n", "not UTF-8"},
		"file is not UTF-8":   {"heads:\n  - id: a\n    set: {name: {file: latin1.txt}}\n", "heads[0]: set.name: the file latin1.txt is not UTF-8"},
		"alias":               {"heads:\n  - id: *a\n", "2:10: "},
		"two documents":       {"heads: [{id: a}]\n---\nheads: [{id: b}]\n", "more than one YAML document"},
		"nothing":             {"", "there are no heads"},
		"no heads":            {"heads: []\n", "there are no heads"},
		"file that is absent": {"heads:\n  - id: a\n    set: {name: {file: none.txt}}\n", "heads[0]: set.name: the file none.txt can't be read"},
		"label file absent":   {"heads:\n  - id: a\n    label: {file: none.txt}\n", "the file none.txt can't be read"},
		"tool file absent":    {"heads:\n  - id: a\n    tools: [{name: {file: none.txt}}]\n", "heads[0]: tools[0]: the file none.txt can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "latin1.txt"), []byte("Caf\xe9"), 0o600))
			_, err := parseSpecs([]byte(row.text), dir)
			require.Error(t, err)
			assert.Contains(t, err.Error(), row.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}
