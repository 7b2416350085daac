package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
)

const (
	accessKey   = "canary0access0key000000000000000"
	dialogKey   = "canary-dialog-key"
	orgKey      = "canary-organisation-key"
	providerKey = "canary-provider-key"
	pathToken   = "canary-path-token-0000"
	queryToken  = "canary-query-token"
	toolKey     = "canary-tool-key"
)

// canaries are secrets that no output may show.
var canaries = []string{accessKey, dialogKey, orgKey, providerKey, pathToken, queryToken, toolKey}

// secretive is an emulator whose heads hold a secret wherever they can.
func secretive(t testing.TB) *terminal {
	return emulator(t, object{
		"visuals": []object{{"id": "11111111-0000-4000-8000-000000000000", "mode": "default"}},
		"heads": []object{{
			"id": someID, "headVisualId": "11111111-0000-4000-8000-000000000000", "name": "Ada", "operationMode": "oc",
			"publicUrl":                   "https://chat.example.test/MyOrg-1/li-28379?api_key=" + accessKey,
			"voiceflowApiKey":             dialogKey,
			"organisation":                object{"id": "o", "apiKey": orgKey},
			"pluginOperationalModeConfig": object{"api_token": providerKey},
			"fileUrl":                     "https://files.example.test/a?signature=" + queryToken,
			"greetings":                   "Hello at https://chat.example.test/MyOrg-1/li-28379?api_key=" + accessKey + ", or ask " + orgKey,
			"promptConfig":                object{"system_prompt": "Show <iframe src='//chat.example.test/MyOrg-1/li-28379?api_key=" + accessKey + "'> and send " + providerKey},
			"conversationSettings":        object{"llm": object{"api_key": providerKey}, "tools": []object{}},
		}},
		"tools": []object{{
			"headId": someID, "name": "order", "description": "Tells where an order is.", "x_secret": toolKey,
			"url": "https://a.example.com/" + pathToken + "/order?k=" + queryToken, "parameters": []object{},
		}},
		"registrations": []object{{"headId": someID, "webhookUrl": "https://a.example.com/" + pathToken + "?k=" + queryToken, "endConversation": true}},
	})
}

func assertNone(t testing.TB, text string, secrets []string, about ...any) {
	t.Helper()
	for _, secret := range secrets {
		assert.NotContains(t, text, secret, about...)
	}
}

func (c *terminal) journals() (all []string) {
	c.t.Helper()
	for _, path := range need(filepath.Glob(filepath.Join(c.state, "headsctl", "*")))(c.t) {
		all = append(all, contents(c.t, path))
	}
	return all
}

// changesEverything is a heads.yaml with a secret wherever one can be.
const changesEverything = "heads:\n  - id: " + someID + "\n    set: {voiceflowApiKey: " + dialogKey + "2, fileUrl: 'https://x.example.com/?" + queryToken + "', name: Bob}\n" +
	"    webhooks: [{url: 'https://b.example.com/" + pathToken + "2?k=" + queryToken + "', events: [end_conversation]}]\n" +
	"    tools: [{name: other, description: y, url: 'https://b.example.com/" + pathToken + "3/other', parameters: []}]\n"

func TestNoOutputShowsASecret(t *testing.T) {
	c := secretive(t)
	hooks := c.hooks(someID)
	open := c.ok("get", someID, "--raw", "--show-secrets") + fmt.Sprint(hooks)
	for _, secret := range canaries {
		require.Contains(t, open, secret, "the canary is there")
	}
	secrets := append(slices.Clone(canaries), hooks[0]["sharedKey"].(string), c.token, "canary-shared-key")
	c = c.with("HEADS_SHARED_KEY=canary-shared-key")
	c.write("key", "canary-shared-key", "body.json", "{}", "ids.csv", someID+"\n", "wanted.yaml", changesEverything,
		"tool.yaml", "{name: order, description: x, url: 'https://a.example.com/"+pathToken+"/order', parameters: []}",
		"greetings.yaml", "heads:\n  - id: "+someID+"\n    set: {greetings: 'Bye, "+dialogKey+", https://x.example.com/?k="+queryToken+"', promptConfig: {system_prompt: 'With "+accessKey+"'}}\n",
		"page.html", "https://chat.example.test/MyOrg-1/li-28379?api_key="+accessKey, "bad.yaml", "heads:\n  - id: "+someID+"\n    set: {voiceflowApiKey: [\""+dialogKey+"\"]}\n")
	for _, args := range [][]string{
		{"get", someID}, {"get", someID, "-o", "json"}, {"get", someID, "-o", "yaml"}, {"get", someID, "--raw"},
		{"set", someID, "voiceflowApiKey=" + dialogKey + "1", "--dry-run"}, {"set", someID, "publicUrl=https://a.example.com/a/b?api_key=" + accessKey},
		{"set", someID, "publicUrl=https://chat.example.test/MyOrg-1/li-28379?api_key=" + accessKey},
		{"plan", "-f", "wanted.yaml", "--report", "plan.json", "--report", "plan.csv", "--report", "plan.html"}, {"plan", "-f", "wanted.yaml", "--json"},
		{"plan", "-f", "bad.yaml"}, {"plan", "-f", "greetings.yaml", "--report", "texts.html"}, {"plan", "-f", "greetings.yaml", "--json"},
		{"set", someID, "greetings=Now " + accessKey, "--dry-run"},
		{"convert", "-f", "ids.csv", "--dry-run"}, {"convert", "-f", "ids.csv", "--yes", "--report", "report.json", "--report", "report.csv", "--report", "report.html"},
		{"addresses", "scan", "--moves", "report.json", "page.html"}, {"addresses", "scan", "--moves", "report.json", "-o", "json", "page.html"},
		{"addresses", "rewrite", "--moves", "report.json", "--no-backup", "page.html"},
		{"doctor", someID}, {"doctor", someID, "-o", "json"}, {"doctor", someID, "-o", "yaml"},
		{"tools", "list", someID}, {"tools", "list", someID, "-o", "json"}, {"tools", "check", someID}, {"tools", "put", someID, "-f", "tool.yaml"},
		{"webhooks", "list", someID}, {"webhooks", "list", someID, "-o", "yaml"},
		{"webhooks", "ensure", someID, "--url", "https://a.example.com/" + pathToken + "?k=" + queryToken, "--event", "start_conversation"},
		{"apply", "-f", "wanted.yaml", "--yes", "--json", "--report", "apply.json", "--report", "apply.html"},
		{"delivery", "on", someID}, {"tools", "remove", someID, "other"}, {"webhooks", "delete", "77"},
		{"call", "GET", "/head/" + someID}, {"call", "GET", "/head-events", "--query", "headId=" + someID}, {"call", "GET", "/nowhere", "--query", "k=" + queryToken},
		{"events", "verify", "--body", "body.json", "--signature", "x"}, {"events", "verify", "--body", "body.json", "--signature", "x", "--key-file", "key"},
		{"events", "send", "http://127.0.0.1:1/?k=" + queryToken, "--type", "end_conversation", "--head", someID},
		{"events", "send", "gopher://x/?k=" + queryToken, "--type", "end_conversation", "--head", someID},
		{"version"}, {"get", "x", "--token=" + c.token},
	} {
		r := c.run(append(args, "--debug")...)
		assertNone(t, strings.ReplaceAll(r.stdout+r.stderr, strings.Join(args, " "), ""), secrets, "%v", args)
	}
	for _, name := range []string{"plan.json", "plan.csv", "plan.html", "report.json", "report.csv", "report.html", "apply.json", "apply.html", "texts.html"} {
		assertNone(t, c.read(name), secrets, name)
	}
	require.Len(t, c.journals(), 1)
	assertNone(t, c.journals()[0], secrets)
}

// A service, or a proxy before it, may answer with what it was sent.
func TestAnAnswerThatRepeatsTheTokenIsMasked(t *testing.T) {
	echo := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, "<p>%s https://a.example.com/?key=%s</p>", r.Header.Get("Authorization"), queryToken)
	})
	c := newTerminal(t).at(echo.URL, "canary-token")
	for _, args := range [][]string{{"call", "GET", "/x"}, {"get", someID}, {"convert", someID, "--yes"}, {"doctor", someID}} {
		r := c.ends(1, args...)
		assertNone(t, r.stdout+r.stderr, []string{"canary-token", queryToken}, "%v", args)
	}
	file := c.write("token", "canary-other-token")
	assert.NotContains(t, c.run("call", "GET", "/x", "--token-file", file).stdout, "canary-other-token")
}

func TestTheProcessListShowsNoSecret(t *testing.T) {
	c := emulator(t, legacyHeads(3), "-latency", "100ms")
	file := c.write("token", c.token)
	cmd := c.at(c.url, "").command(t.Context(), append([]string{"convert", "--yes", "--token-file", file, "--debug"}, c.ids...)...)
	stderr := need(cmd.StderrPipe())(t)
	require.NoError(t, cmd.Start())
	need(stderr.Read(make([]byte, 1)))(t) // a request has been made
	for _, name := range []string{"cmdline", "environ"} {
		text := contents(t, fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		assert.NotEmpty(t, text)
		assert.NotContains(t, text, c.token, name)
	}
	require.NoError(t, stderr.Close())
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestTextsFromOutsideDoNotSteerTheTerminal(t *testing.T) {
	c := emulator(t, object{"heads": []object{{"id": someID, "name": "Ada\x1b]0;owned\x07\x1b[2J\r\nchanged \u202eevil\u009b2J", "operationMode": "oc"}}})
	for _, args := range [][]string{
		{"get", someID}, {"doctor", someID}, {"convert", someID, "--dry-run"}, {"set", someID, "name=x\x1b[2J", "--dry-run"},
		{"get", someID, "-o", "json"}, {"get", someID, "-o", "yaml"}, {"doctor", someID, "-o", "json"}, {"convert", someID, "--dry-run", "--json"}, {"export", someID},
	} {
		assertNone(t, c.ok(args...), []string{"\x1b", "\x07", "\r", "\u202e", "\u009b", "\nchanged"}, "%v", args)
	}
}

func TestTheTokenIsMaskedByValueWhereverItIsPrinted(t *testing.T) {
	const token = "canary<token>0123456789"
	c := emulator(t, legacyHeads(1), "-token", token)
	id := c.ids[0]
	c.ok("set", id, "name=Ada "+token, "greetings="+strings.Repeat("x", 90)+token)
	c.ok("convert", id, "--yes")
	c.ok("convert", id, "--yes", "--undo")
	c.write("secret.txt", token, "bad.yaml", "heads: [{id: {file: secret.txt}, label: {file: secret.txt}}]\n",
		"heads.yaml", "heads: [{id: "+id+", label: {file: secret.txt}, streaming: true, set: {alias: {file: secret.txt}, greetings: '"+strings.Repeat("x", 90)+"'}}]\n")
	file := c.write("token", token)
	bare := c.at(c.url, "")
	for _, args := range [][]string{
		{"plan", "-f", "heads.yaml", "--report", "r.json", "--report", "r.csv", "--report", "r.html"}, {"plan", "-f", "heads.yaml", "--json"}, {"plan", "-f", "bad.yaml"}, {"plan", "-f", "bad.yaml", "--json"},
		{"apply", "-f", "heads.yaml", "--yes", "--json"}, {"get", id}, {"get", id, "-o", "json"}, {"get", id, "-o", "yaml"}, {"get", id, "--raw", "--show-secrets"},
		{"export", id}, {"doctor", id}, {"call", "GET", "/head/" + id}, {"set", id, "name=" + token, "--dry-run"}, {"get", "x" + token}, {"convert", id, "--voice", token},
	} {
		for _, r := range []result{c.run(args...), bare.run(append(args, "--token-file", file)...)} {
			assertNone(t, r.stdout+r.stderr, []string{"canary", "0123456789"}, "%v", args)
		}
	}
	for _, report := range []string{"r.json", "r.csv", "r.html"} {
		assert.NotContains(t, c.read(report), "canary", report)
	}
	assert.Contains(t, c.ok("get", id), "Ada [redacted]")
	for columns := uint16(20); columns < 60; columns += 3 {
		s := c.show(columns, "get", id)
		s.end()
		assert.NotContains(t, plain(s), "cana")
	}
	m := c.mcp()
	text, _ := m.call("heads_get", object{"id": id})
	assert.NotContains(t, text, "canary")
	assert.Contains(t, text, "Ada [redacted]")
}

const (
	toolsBase  = "https://tools.museum.example/voice/Zm9ydHktdHdvLWJ5dGVz"
	fileSecret = "words of a file & \"quoted\""
)

// secretValues is a world whose file has values that are secrets.
func secretValues(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.terminal = w.with("HEADS_TOOLS_URL=" + toolsBase)
	w.write("secret.txt", fileSecret+"\n", "tools.json", `[{"name": "find", "description": "Finds with ${word}.", "url": "${tools}/find", "parameters": []}]`, "heads.yaml", `environments:
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
	quoted := need(json.Marshal(fileSecret))(t)
	secrets := []string{toolsBase, strings.TrimPrefix(toolsBase, "https://tools.museum.example"), fileSecret, strings.Trim(string(quoted), `"`), strings.Trim(string(rawjson.String(fileSecret)), `"`)}
	w.write("bad.yaml", strings.Replace(w.read("heads.yaml"), "[end_conversation]", `["${word}"]`, 1),
		"refused.yaml", strings.Replace(w.read("heads.yaml"), "${app}/events", "http://x.example.com/${word}", 1))
	assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", "staging"), "https://staging.example.com/events", "a plain value is no secret")
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
	assert.Contains(t, w.staging.ok("get", w.staging.ids[0], "--raw", "--show-secrets"), toolsBase+"/find", "it was sent")
	assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", "staging"), "0 pending, 1 unchanged")
}

func TestAVariableOfAValueIsReadForItsEnvironmentAlone(t *testing.T) {
	w := secretValues(t)
	w.ok("plan", "-f", "heads.yaml", "--env", "other")
	w.silent(func() {
		w.fails(2, "heads.yaml:5:19: tools.json:1:64: ${tools} is given in line 3, column 91 of the environments: the variable HEADS_NOT_SET is not set; set it", "plan", "-f", "heads.yaml", "--env", "production")
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
	m.end()
	assert.NotContains(t, reply+refused+m.stderr.String(), "Zm9ydHktdHdvLWJ5dGVz", "the path token of the tools")
}
