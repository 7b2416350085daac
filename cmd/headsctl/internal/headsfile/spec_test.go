package headsfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
)

const someID = "0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01"

func TestDefaultsAreUnderEachHead(t *testing.T) {
	specs := specsIn(t, "", `
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
`, ".")
	require.Len(t, specs, 2)
	yes, no := true, false
	assert.Equal(t, fleet.Spec{
		ID: "one", Set: map[string]any{"greetings": "Hello", "alias": "a", "customWords": json.RawMessage(`{"a":"b"}`)}, Voice: &heads.Voice{Provider: "azure", ID: "v"},
		Streaming: &yes, Webhooks: []fleet.WebhookSpec{{URL: "https://a.example.com", Events: []heads.EventType{"end_conversation"}}}, PruneWebhooks: true, Tools: &[]heads.Tool{},
	}, specs[0])
	two := specs[1]
	tools := two.Tools
	two.Tools = nil
	assert.Equal(t, fleet.Spec{
		ID: "two", Label: "Two", Set: map[string]any{"greetings": "Hi", "alias": "a", "customWords": json.RawMessage(`{"c":"d"}`)}, // merged by field
		Voice: &heads.Voice{Provider: "azure", ID: "w"}, Streaming: &no, Webhooks: []fleet.WebhookSpec{},
	}, two)
	require.Len(t, *tools, 1)
	text, err := (*tools)[0].MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"name":"t","description":"d","url":"https://a.example.com","x_more":[1]}`, string(text), "keys that the service may know are kept")
}

func TestAFileStandsForAnyText(t *testing.T) {
	dir := folderOf(t, map[string]string{"p/a.txt": "A\n\n", "crlf.txt": "C\r\n", "id": someID})
	s := specsIn(t, "", `
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
`, dir)[0]
	assert.Equal(t, []string{someID, "A\n", "C"}, []string{s.ID, s.Label, s.Voice.Provider}, "without one newline at its end")
	assert.Equal(t, map[string]any{
		"greetings": "C", "promptConfig": json.RawMessage(`{"system_prompt":"A\n"}`), "phrases": json.RawMessage(`["x","A\n"]`),
		"customWords": json.RawMessage(`{"file":"A","b":"C"}`), "pluginOperationalModeConfig": json.RawMessage(`{"file":"p/a.txt"}`),
	}, s.Set)
	assert.Equal(t, []fleet.WebhookSpec{{URL: "C", Events: []heads.EventType{"C"}}}, s.Webhooks)
	tool, err := (*s.Tools)[0].MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{"name":"C","description":"A\n","url":"C","parameters":[{"name":"n","type":"string","description":"A\n"}],"x_more":{"file":"p/a.txt"}}`, string(tool))
}

func TestJSONIsRead(t *testing.T) {
	specs := specsIn(t, "", "\ufeff{\"heads\":\r\n\t[{\"id\": \"a\\/b\\ud83d\\ude00\",\t\"set\": {\"semanticThreshold\": 1e-3, \"pluginOperationalModeConfig\": {\"x\": [1E5, \"1e3\", null, true]}}}]}\n", ".")
	assert.Equal(t, "a/b😀", specs[0].ID)
	assert.Equal(t, map[string]any{"semanticThreshold": json.RawMessage("1e-3"), "pluginOperationalModeConfig": json.RawMessage(`{"x":[1E5,"1e3",null,true]}`)}, specs[0].Set)
}

func TestFaultsOfYAMLHaveLineAndColumn(t *testing.T) {
	dir := folderOf(t, map[string]string{"latin1.txt": "Caf\xe9"})
	for _, row := range [][2]string{ // a text, and its fault
		{"heads:\n  - id: a\n    stremaing: true\n", `3:5: unknown key "stremaing" (did you mean streaming?)`},
		{"haeds: []\n", `1:1: unknown key "haeds" (did you mean heads?)`}, {"heads:\n  - id: {fil: a}\n", `2:10: unknown key "fil"`},
		{"heads:\n  - id: a\n    id: b\n", `3:5: the key "id" is given twice`},
		{"heads:\n  - id: a\n    streaming: maybe\n", `3:16: this is a text; want true or false`}, {"heads: [\n", "1:1: did not find expected node content"},
		{"heads:\n  - id: \"a\n", "2:3: found unexpected end of stream"}, {"heads:\n\t- id: a\n", "2:1: found character that cannot start any token"},
		{"heads: [{id: a, label: Caf\xe9}]\n", "not UTF-8"},
		{"heads:\n  - id: a\n    set: {name: {file: latin1.txt}}\n", "3:17: the file latin1.txt is not UTF-8"},
		{"heads:\n  - id: *a\n", "2:9: unknown anchor 'a' referenced"}, {"heads: [{id: a}]\n---\nheads: [{id: b}]\n", "more than one YAML document"},
		{"", "there are no heads"}, {"heads: []\n", "there are no heads"},
		{"heads:\n  - id: a\n    set: {name: {file: none.txt}}\n", "3:17: the file none.txt can't be read"},
		{"heads:\n  - id: a\n    label: {file: none.txt}\n", "the file none.txt can't be read"},
		{"heads:\n  - id: a\n    tools: [{name: {file: none.txt}}]\n", "3:20: the file none.txt can't be read"},
		{entry("voice: {provider: azure, id: 0123456}"), `3:34: 0123456 is a number in YAML; write "0123456" for the text`},
		{entry("set: {name: 0x1F}"), `3:17: 0x1F is a number in YAML; write "0x1F" for the text`},
		{entry("set: {alias: 1_000}"), `1_000 is a number in YAML; write "1_000" for the text`},
		{entry("set: {customWords: {007: bond}}"), `3:25: 007 is a number in YAML; write "007" for the text`},
		{entry("set: {greetings: False}"), `False is a boolean in YAML; write "False" for the text`},
		{entry("set: {greetings: 2026-08-31}"), `2026-08-31 is a date in YAML; write "2026-08-31" for the text`},
		{entry("set: {pluginOperationalModeConfig: {day: 2026-08-31}}"), `2026-08-31 is a date in YAML; write "2026-08-31" for the text`},
		{"defaults: {set: {name: 7}}\nheads: [{id: 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01}, {id: 0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b02}]\n", `1:24: 7 is a number in YAML; write "7" for the text`},
		{`{"heads": [{"id": 7}]}`, `1:19: 7 is a number in YAML; write "7" for the text`},
		{entry("set: {semanticThreshold: 0x1F}"), `0x1F is a number that JSON can't hold as it is written; write it in decimal, or "0x1F" for the text`},
		{entry("set: {pluginOperationalModeConfig: {a: .inf}}"), `.inf is a number that JSON can't hold`},
		{entry("set: {voiceflowApiKey: 0123456}"), "3:28: this is a number in YAML; write it in quotes for the text"},
		{entry("set: {name: !!int 7}"), "the tag !!int is not supported; leave it out"},
	} {
		file, err := Parse([]byte(row[0]), dir)
		if err == nil {
			_, err = file.Specs("")
		}
		require.ErrorContains(t, err, row[1], row[0])
		assert.NotContains(t, err.Error(), "\n", row[0])
	}
}

func entry(rest string) string { return "heads:\n  - id: " + someID + "\n    " + rest + "\n" }

func TestValuesArriveAsTheyWereWritten(t *testing.T) {
	specs := specsIn(t, "", entry(`label: "007"
    set:
      name: '1.10'
      alias: !!str 0x1F
      greetings: Yes
      suggestions: [No, on, "2026-08-31"]
      voiceflowApiKey: null
      fileUrl: ~
      semanticThreshold: 0.10
      customWords: {zebra: "007", "1": a, Ada: b}
      pluginOperationalModeConfig: {z: 12345678901234567890, a: 1.10, m: [9007199254740993, true, null, yes]}`), ".")
	assert.Equal(t, "007", specs[0].Label)
	assert.Equal(t, map[string]any{
		"name": "1.10", "alias": "0x1F", "greetings": "Yes", "suggestions": json.RawMessage(`["No","on","2026-08-31"]`), "voiceflowApiKey": nil, "fileUrl": nil,
		"semanticThreshold": json.RawMessage("0.10"), "customWords": json.RawMessage(`{"zebra":"007","1":"a","Ada":"b"}`),
		"pluginOperationalModeConfig": json.RawMessage(`{"z":12345678901234567890,"a":1.10,"m":[9007199254740993,true,null,"yes"]}`),
	}, specs[0].Set, "digits and the order of keys are kept")
}

func TestMergeKeysAndAliasesAreRead(t *testing.T) {
	specs := specsIn(t, "", "defaults:\n  set: &s {name: A, alias: B}\nheads:\n  - {id: a, set: {<<: *s, alias: C}}\n  - {id: b, set: *s}\n", ".")
	assert.Equal(t, map[string]any{"name": "A", "alias": "C"}, specs[0].Set)
	assert.Equal(t, map[string]any{"name": "A", "alias": "B"}, specs[1].Set)
}

func TestFilesAreReadBelowTheFolderAlone(t *testing.T) {
	outside := folderOf(t, map[string]string{"secret": "xxx"})
	dir := folderOf(t, map[string]string{"a": "xxx", "most": strings.Repeat("x", 1<<20), "large": strings.Repeat("x", 1<<20+1), "sub/b": ""})
	for link, target := range map[string]string{
		"inside": "sub/../a", "absolute": filepath.Join(dir, "a"), "out": filepath.Join(outside, "secret"), "folder-out": outside, "loop": "loop", "sub/up": "../a",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	for path, want := range map[string]string{
		"a": "", "./sub/../a": "", "most": "", "inside": "", "absolute": "", "sub/up": "", filepath.Join(dir, "a"): "",
		"large": "the file large has more than 1048576 bytes",
		"../" + filepath.Base(outside) + "/secret": "is not below the folder of the file that names it",
		filepath.Join(outside, "secret"):           "is not below the folder of the file that names it",
		"out":                                      "the file out is not below the folder of the file that names it", "folder-out/secret": "is not below the folder of the file that names it",
		"/proc/self/environ": "is not below the folder of the file that names it", "/dev/zero": "is not below the folder of the file that names it",
		"sub": "sub is not a regular file", ".": ". is not a regular file", "": "is not a regular file", "loop": "the file loop can't be read",
	} {
		text, err := readText(dir, path, maxFileText)
		if want == "" {
			require.NoError(t, err, path)
			assert.NotEmpty(t, text, path)
			continue
		}
		require.ErrorContains(t, err, want, path)
		assert.Empty(t, text, path)
	}
}
