package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// canaries are secrets that no output may show.
const (
	accessKey   = "canary0access0key000000000000000"
	dialogKey   = "canary-dialog-key"
	orgKey      = "canary-organisation-key"
	providerKey = "canary-provider-key"
	pathToken   = "canary-path-token-0000"
	queryToken  = "canary-query-token"
	toolKey     = "canary-tool-key"
)

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

// assertNone asserts that a text holds no secret.
func assertNone(t testing.TB, text string, secrets []string, about ...any) {
	t.Helper()
	for _, secret := range secrets {
		assert.NotContains(t, text, secret, about...)
	}
}

// journals returns the contents of the journals.
func (c *terminal) journals() (all []string) {
	c.t.Helper()
	paths, err := filepath.Glob(filepath.Join(c.state, "headsctl", "*"))
	require.NoError(c.t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(c.t, err)
		all = append(all, string(text))
	}
	return all
}

// changesEverything is a heads.yaml with a secret wherever one can be.
const changesEverything = "heads:\n  - id: " + someID + "\n    set: {voiceflowApiKey: " + dialogKey + "2, fileUrl: 'https://x.example.com/?" + queryToken + "', name: Bob}\n" +
	"    webhooks: [{url: 'https://b.example.com/" + pathToken + "2?k=" + queryToken + "', events: [end_conversation]}]\n" +
	"    tools: [{name: other, description: y, url: 'https://b.example.com/" + pathToken + "3/other', parameters: []}]\n"

func TestNoOutputShowsASecret(t *testing.T) {
	c := secretive(t)
	hooks := parse[[]object](t, c.ok("webhooks", "list", someID, "-o", "json", "--show-secrets"))
	open := c.ok("get", someID, "--raw", "--show-secrets") + fmt.Sprint(hooks)
	secrets := []string{accessKey, dialogKey, orgKey, providerKey, pathToken, queryToken, toolKey}
	for _, secret := range secrets {
		require.Contains(t, open, secret, "the canary is there")
	}
	secrets = append(secrets, hooks[0]["sharedKey"].(string), c.token, "canary-shared-key")
	c = c.with("HEADS_SHARED_KEY=canary-shared-key")
	c.write("key", "canary-shared-key")
	c.write("body.json", "{}")
	c.write("ids.csv", someID+"\n")
	c.write("tool.yaml", "{name: order, description: x, url: 'https://a.example.com/"+pathToken+"/order', parameters: []}")
	c.write("wanted.yaml", changesEverything)
	c.write("greetings.yaml", "heads:\n  - id: "+someID+"\n    set: {greetings: 'Bye, "+dialogKey+", https://x.example.com/?k="+queryToken+"', promptConfig: {system_prompt: 'With "+accessKey+"'}}\n")
	c.write("page.html", "https://chat.example.test/MyOrg-1/li-28379?api_key="+accessKey)
	c.write("bad.yaml", "heads:\n  - id: "+someID+"\n    set: {voiceflowApiKey: [\""+dialogKey+"\"]}\n")
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
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = stderr.Read(make([]byte, 1)) // a request has been made
	require.NoError(t, err)
	for _, name := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
		require.NoError(t, err)
		assert.NotEmpty(t, text)
		assert.NotContains(t, string(text), c.token, name)
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
	c.write("secret.txt", token)
	c.write("heads.yaml", "heads: [{id: "+id+", label: {file: secret.txt}, streaming: true, set: {alias: {file: secret.txt}, greetings: '"+strings.Repeat("x", 90)+"'}}]\n")
	c.write("bad.yaml", "heads: [{id: {file: secret.txt}, label: {file: secret.txt}}]\n")
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
