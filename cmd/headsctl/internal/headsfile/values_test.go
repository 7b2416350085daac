package headsfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
)

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// parse reads a file whose faults are those of Heads.
func parse(t *testing.T, text, dir string) *File {
	t.Helper()
	file, err := Parse([]byte(text), dir)
	require.NoError(t, err)
	return file
}

// specsIn returns the specs of an environment in which there is no fault.
func specsIn(t *testing.T, environment, text, dir string) []fleet.Spec {
	t.Helper()
	specs, err := parse(t, text, dir).Specs(environment)
	require.NoError(t, err, text)
	return specs
}

const someHead = "heads:\n  - {id: {staging: " + stagingID + "}, label: Lobby"

// oneWith returns a file with an environment that has a value.
func oneWith(value, rest string) string {
	return "environments:\n  staging: {base_url: \"https://api.example.com\", token: {env: HEADS_T}, values: {tools: " + value + "}}\n" + rest
}

const listOfTools = `[{"name": "find", "description": "Finds in ${env}, not $${env}.", "url": "${tools}/find", "parameters": []}]`

func TestToolsOfAFileAreFilledIn(t *testing.T) {
	dir := folderOf(t, map[string]string{"tools.json": strings.ReplaceAll(listOfTools, ",", ",\r\n  "), "none.json": "[]"})
	for name, text := range map[string]string{
		"entry": someHead + ", tools: {file: tools.json}}", "defaults": "defaults: {tools: {file: tools.json}}\n" + someHead + "}",
	} {
		tools := *specsIn(t, "staging", oneWith(`"https://a.example.com"`, text), dir)[0].Tools
		require.Len(t, tools, 1, name)
		assert.Equal(t, "https://a.example.com/find", tools[0].URL, name)
		assert.Contains(t, tools[0].Description, "in staging,")
		assert.Contains(t, tools[0].Description, "${env}.")
	}
	assert.Equal(t, &[]heads.Tool{}, specsIn(t, "", "heads: [{id: "+stagingID+", tools: {file: none.json}}]", dir)[0].Tools, "as [] in heads.yaml")
}

func TestFaultsOfAFileOfToolsHaveBothPlaces(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"empty.json": "\n", "object.json": "{}", "text.json": "[\n x]", "bad.json": "[", "unknown.json": "[\n  {\"name\": \"${toosl}\", \"url\": \"${x}\"}]",
		"again.json": "{file: empty.json}",
	})
	for path, says := range map[string][]string{
		"empty.json": {"4:48: empty.json:1:1: there are no tools; write a list of them, or [] for none"}, "object.json": {"4:48: object.json:1:1: "},
		"again.json": {"4:48: again.json:1:1: "}, "text.json": {"4:48: text.json:2:2: "}, "bad.json": {"4:48: bad.json:"},
		"unknown.json": {"4:48: unknown.json:2:12: ${toosl} is no value of the environments (did you mean tools?)", "4:48: unknown.json:2:31: ${x} is no value"},
		"absent.json":  {"4:48: the file absent.json can't be read"}, "../x.json": {"4:48: "},
	} {
		_, err := parse(t, oneWith("x", "heads:\n  - {id: {staging: null}, label: Lobby, tools: {file: "+path+"}}"), dir).Heads("staging")
		for _, text := range says {
			assert.ErrorContains(t, err, text, path)
		}
	}
}

func TestASecretValueIsReadOnlyWhereItIsUsed(t *testing.T) {
	dir := folderOf(t, map[string]string{"secret": "https://a.example.com/${env}\r\n\n"})
	text := `environments:
  staging: {base_url: "https://api.example.com", values: {tools: {env: HEADS_TEST_NOT_SET}, other: {file: none}}}
  production: {base_url: "https://api.example.com", values: {tools: {file: secret}, other: {env: HEADS_TEST_NOT_SET}}}
  test: {base_url: "https://api.example.com", values: {tools: {env: HEADS_TEST_SET}, other: ""}}
heads:
  - {id: {staging: null, production: null, test: null}, set: {language: "${tools}", greetings: "${tools}"}}
`
	t.Setenv("HEADS_TEST_SET", "${tools}/${env}")
	file := parse(t, text, dir)
	var secrets []string
	file.Secret = func(text string) { secrets = append(secrets, text) }
	for _, environment := range []string{"production", "test"} {
		heads, err := file.Heads(environment)
		require.NoError(t, err)
		require.Len(t, heads, 1)
	}
	assert.Equal(t, []string{"https://a.example.com/${env}\r\n", "${tools}/${env}"}, secrets, "one newline is removed, nothing is filled in again")
	_, err := file.Heads("staging")
	require.EqualError(t, err, "6:73: ${tools} is given in line 2, column 66 of the environments: the variable HEADS_TEST_NOT_SET is not set; set it", "one error")
}

// The journal keeps them, and it isn't masked.
func TestSecretValuesAreNoIDsLabelsOrNames(t *testing.T) {
	const says = "${tools} is secret, but ids, labels and names are kept in files; write the text here, or a plain one under values"
	t.Setenv("HEADS_TEST_SET", "a-secret-value")
	for text, place := range map[string]string{
		"heads:\n  - {id: {staging: \"${tools}\"}, label: Lobby}":                         "4:20: ",
		"heads:\n  - {id: {staging: " + stagingID + "}, label: \"Lobby ${tools}\"}":       "4:66: ",
		"heads:\n  - {id: {staging: " + stagingID + "}, set: {name: \"Lobby ${tools}\"}}": "4:71: ",
		"defaults: {set: {name: \"${tools}\"}}\n" + someHead + "}":                        "3:24: ",
	} {
		_, err := parse(t, oneWith("{env: HEADS_TEST_SET}", text), ".").Heads("staging")
		require.ErrorContains(t, err, place+says, text)
		assert.NotContains(t, err.Error(), "a-secret")
	}
	specsIn(t, "staging", oneWith("{env: HEADS_TEST_SET}", someHead+", set: {greetings: \"${tools}\"}}"), ".")
}

func TestSecretValuesThatCannotBeUsedAreRefused(t *testing.T) {
	dir := folderOf(t, map[string]string{"empty": "\n", "short": "abcdefg", "large": strings.Repeat("x", 64<<10+1), "full": strings.Repeat("x", 64<<10)})
	uses := someHead + ", set: {greetings: \"${tools}\"}}"
	specsIn(t, "staging", oneWith("{file: full}", uses), dir)
	for value, says := range map[string]string{
		"{file: empty}": "the file empty is empty; write the value into it", "{file: short}": "the value in the file short has fewer than 8 bytes",
		"{file: large}": "the file large has more than 65536 bytes", "{file: ../x}": "../x", "{file: .}": "is not a regular file",
		"{file: 1}": "1 is a number in YAML", `{file: ""}`: "is no path; give that of a file", "{file: full, env: X}": `unknown key "env"`,
		"{}": "write {env: NAME}", "{env: a-b}": "a variable has a name of letters",
	} {
		_, err := parse(t, oneWith(value, uses), dir).Heads("staging")
		require.ErrorContains(t, err, says, value)
		assert.NotContains(t, err.Error(), "abcdefg")
	}
}
