package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is a staging and a production with the same heads, and somebody at a terminal
// with the tokens of both.
type world struct {
	*terminal

	staging, production *terminal
	requests            *atomic.Int64 // of both
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	w := &world{terminal: newTerminal(t), requests: &atomic.Int64{}}
	seed := func(digit string) object {
		s := legacyHeads(n)
		for _, h := range s["heads"].([]object) {
			h["id"] = digit + h["id"].(string)[1:]
		}
		return s
	}
	w.staging, w.production = w.counted(emulator(t, seed("a"))), w.counted(emulator(t, seed("b")))
	w.env = append(w.env, "STAGING_TOKEN="+w.staging.token, "PROD_TOKEN="+w.production.token, "PROD_URL="+w.production.url,
		"HEADS_BASE_URL=http://127.0.0.1:1", "HEADS_TOKEN=of-nobody-here") // no environment names them
	return w
}

// counted puts a proxy that counts requests before an emulator.
func (w *world) counted(c *terminal) *terminal {
	w.t.Helper()
	target, err := url.Parse(c.url)
	require.NoError(w.t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.requests.Add(1)
		forward.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(proxy.Close)
	ids := c.ids
	c = c.at(proxy.URL, c.token)
	c.ids = ids
	return c
}

// environments is the part of a file that describes both.
func (w *world) environments() string {
	return `environments:
  staging: {base_url: "` + w.staging.url + `", token: {env: STAGING_TOKEN}, chat_url: "https://chat.example.test", stream_url: "https://stream.staging.example.com", values: {app: "https://staging.example.com", greeting: Hi}}
  production:
    base_url: {env: PROD_URL}
    token: {env: PROD_TOKEN}
    chat_url: https://chat.example.test
    stream_url: https://stream.example.com
    values: {app: "https://app.example.com", greeting: Welcome}
    protect: true
`
}

// file writes a heads.yaml for both.
func (w *world) file() string {
	text := w.environments() + "defaults:\n  set: {greetings: \"${greeting} from ${env}, it costs $${5}\"}\nheads:\n"
	for i := range w.staging.ids {
		text += fmt.Sprintf(`  - id: {staging: %s, production: %s}
    label: Head %d
    set: {promptConfig: {system_prompt: {file: "prompts/${env}.txt"}}}
    webhooks: [{url: "${app}/heads/events", events: [start_conversation]}]
`, w.staging.ids[i], w.production.ids[i], i+1)
	}
	w.write("prompts/staging.txt", "You are a test of ${app}.\n")
	w.write("prompts/production.txt", "You are real.\n")
	w.write("heads.yaml", text)
	return text
}

// silent requires that nothing is sent meanwhile.
func (w *world) silent(f func()) {
	w.t.Helper()
	before := w.requests.Load()
	f()
	assert.Equal(w.t, before, w.requests.Load(), "nothing is sent")
}

func (w *world) head(c *terminal, i int) object {
	w.t.Helper()
	return parse[object](w.t, c.ok("get", c.ids[i], "-o", "json"))
}

func (w *world) hooks(c *terminal, i int) string {
	w.t.Helper()
	return c.ok("webhooks", "list", c.ids[i], "-o", "json", "--show-secrets")
}

func TestOneFileIsAppliedToStagingAndThenToProduction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.file()
	out := w.ok("plan", "-f", "heads.yaml", "--env", "staging")
	assert.Contains(t, out, "pending "+w.staging.ids[0]+" Head 1\n")
	assert.Contains(t, out, "+ webhook https://staging.example.com/heads/events: start_conversation")
	assert.NotContains(t, out, w.production.ids[0])
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes", "--report", "s.json", "--report", "s.html", "--report", "s.csv")
	assert.Equal(t, "Hi from staging, it costs ${5}", w.head(w.staging, 0)["greetings"])
	assert.Equal(t, "You are a test of ${app}.", w.head(w.staging, 0)["promptConfig"].(object)["system_prompt"], "not into the text of a file")
	assert.Contains(t, w.hooks(w.staging, 1), `"https://staging.example.com/heads/events"`)
	assert.NotContains(t, w.head(w.production, 0)["greetings"], "from", "production is as it was")
	assert.Equal(t, "staging", parse[object](t, w.read("s.json"))["environment"])
	assert.Contains(t, w.read("s.html"), "<h1>2 heads in staging</h1>")
	assert.True(t, strings.HasPrefix(w.read("s.csv"), "head_id,label,outcome,reason,old_address,new_address,changes,error,started,duration_ms\n"), "its columns are fixed")

	w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production", "--report", "p.json")
	assert.Equal(t, "Welcome from production, it costs ${5}", w.head(w.production, 1)["greetings"])
	assert.Contains(t, w.hooks(w.production, 1), `"https://app.example.com/heads/events"`)
	for _, env := range []string{"staging", "production"} {
		assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", env, "--exit-code"), "0 pending, 2 unchanged")
	}
	only := w.ok("plan", "-f", "heads.yaml", "--env", "production", "--only", "Head 2")
	assert.Contains(t, only, "unchanged "+w.production.ids[1])
	assert.Contains(t, only, "1 unchanged")
	assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", "production", "--only", strings.ToUpper(w.production.ids[1])), "1 unchanged")
}

func TestEveryMixUpOfEnvironmentsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.file()
	w.write("plain.yaml", "heads: [{id: "+w.staging.ids[0]+", set: {greetings: \"${x}\"}}]")
	w.write("ids.txt", w.staging.ids[0]+"\n")
	w.write("null.yaml", w.environments()+"heads:\n  - {id: {staging: "+w.staging.ids[0]+", production: null}, label: Lobby}\n  - {id: {staging: null, production: "+w.production.ids[1]+"}, label: Annex}\n")
	w.write("wrong-token", "of-nobody")
	report := func(env string) string {
		return `{"environment":` + string(mustJSON(t, env)) + `,"moves":[{"old":"https://a.example.com/O/h","new":"https://b.example.com/O/h"}]}`
	}
	w.write("staging.json", report("staging"))
	w.write("none.json", report(""))
	for name, row := range map[string]struct {
		args []string
		text string
	}{
		"no environment":                {[]string{"plan", "-f", "heads.yaml"}, "heads.yaml has environments; choose one with --env: staging, production"},
		"apply without one":             {[]string{"apply", "-f", "heads.yaml", "--yes"}, "heads.yaml has environments"},
		"misspelt":                      {[]string{"apply", "-f", "heads.yaml", "--env", "stagin", "--yes"}, `no environment "stagin" (did you mean staging?)`},
		"file without environments":     {[]string{"apply", "-f", "plain.yaml", "--env", "staging", "--yes"}, "plain.yaml has no environments; leave out --env staging"},
		"id of the other, plan":         {[]string{"plan", "-f", "heads.yaml", "--env", "production", "--only", w.staging.ids[0]}, w.staging.ids[0] + ` is the id of "Head 1" in staging; in production it is ` + w.production.ids[0]},
		"id of the other, doctor":       {[]string{"doctor", "-f", "heads.yaml", "--env", "staging", strings.ToUpper(w.production.ids[1])}, ` is the id of "Head 2" in production; in staging it is ` + w.staging.ids[1]},
		"id of the other, convert":      {[]string{"convert", "-f", "heads.yaml", "--env", "production", w.staging.ids[1], "--confirm", "production"}, `is the id of "Head 2" in staging; in production it is ` + w.production.ids[1]},
		"id of the other, export":       {[]string{"export", "-f", "heads.yaml", "--env", "production", w.staging.ids[1]}, "in production it is " + w.production.ids[1]},
		"id of one that is not there":   {[]string{"doctor", "-f", "null.yaml", "--env", "production", w.staging.ids[0]}, `is the id of "Lobby" in staging; it is not in production`},
		"label of one not there":        {[]string{"doctor", "-f", "null.yaml", "--env", "production", "Lobby"}, `"Lobby": it is not in production`},
		"only one that is not there":    {[]string{"apply", "-f", "null.yaml", "--env", "staging", "--only", "Annex", "--yes"}, `"Annex": it is not in staging`},
		"label misspelt":                {[]string{"export", "-f", "heads.yaml", "--env", "staging", "Haed 1"}, "(did you mean Head 1?)"},
		"unknown id":                    {[]string{"export", "-f", "heads.yaml", "--env", "staging", someID}, "no head of the file has the id or label"},
		"environment without a file":    {[]string{"doctor", "--env", "staging", w.staging.ids[0]}, "wants -f with the heads.yaml"},
		"environment and a list of ids": {[]string{"doctor", "-f", "ids.txt", "--env", "staging"}, "ids.txt"},
		"list of ids that has some":     {[]string{"doctor", "-f", "heads.yaml"}, "heads.yaml:1: "},
		"protected and --yes":           {[]string{"apply", "-f", "heads.yaml", "--env", "production", "--yes"}, "production is protected, and there is no terminal to ask on; look at it with headsctl plan or --dry-run, then add --confirm production"},
		"protected, convert":            {[]string{"convert", "-f", "heads.yaml", "--env", "production", "--yes"}, "add --confirm production"},
		"confirmed another":             {[]string{"apply", "-f", "heads.yaml", "--env", "production", "--confirm", "staging"}, "--confirm staging is not the environment of --env production"},
		"confirmed with yes":            {[]string{"apply", "-f", "heads.yaml", "--env", "production", "--yes", "--confirm", "prod"}, "--confirm prod is not the environment"},
		"not protected, no yes":         {[]string{"apply", "-f", "heads.yaml", "--env", "staging"}, "then add --yes"},
		"confirmed nothing":             {[]string{"apply", "-f", "plain.yaml", "--confirm", "production"}, "--confirm production is for --env production"},
		"report of another":             {[]string{"addresses", "rewrite", "--moves", "staging.json", "--env", "production", "."}, "staging.json is a report of the environment staging, not of production"},
		"report of one, no environment": {[]string{"addresses", "rewrite", "--moves", "staging.json", "."}, "add --env staging if you mean that one"},
		"report of none":                {[]string{"addresses", "scan", "--moves", "none.json", "--env", "staging", "."}, "none.json is a report of no environment"},
	} {
		w.silent(func() {
			r := w.run(row.args...)
			assert.Equal(t, 2, r.code, "%s\n%s%s", name, r.stdout, r.stderr)
			assert.Contains(t, r.stderr, row.text, name)
			assert.Empty(t, r.stdout, name)
		})
	}
	w.silent(func() {
		r := w.with("PROD_TOKEN=", "PROD_URL=").run("plan", "-f", "heads.yaml", "--env", "production")
		assert.Equal(t, 2, r.code)
		assert.Contains(t, r.stderr, "heads.yaml:4:15: the variable PROD_URL is not set")
		assert.Contains(t, r.stderr, "heads.yaml:5:12: the variable PROD_TOKEN is not set")
		w.with("PROD_URL=http://example.com").fails(2, "heads.yaml:4:15: the URL in PROD_URL ", "plan", "-f", "heads.yaml", "--env", "production")
	})
	w.with("PROD_TOKEN=").ok("plan", "-f", "heads.yaml", "--env", "staging")
	w.fails(1, "get a new access token and set STAGING_TOKEN or --token-file", "--token-file", "wrong-token", "export", "-f", "heads.yaml", "--env", "staging", "Head 1")
	w.write("token", w.production.token)
	w.with("PROD_TOKEN=").ok("--token-file", "token", "plan", "-f", "heads.yaml", "--env", "production")
	assert.Equal(t, "${x}", parse[object](t, changedBy(t, w.staging, w.read("plain.yaml")))["greetings"], "without environments a text is as it was written")
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// changedBy applies a file and returns the first head.
func changedBy(t *testing.T, c *terminal, file string) string {
	t.Helper()
	c.write("plain.yaml", file)
	c.ok("apply", "-f", "plain.yaml", "--yes")
	return c.ok("get", c.ids[0], "-o", "json")
}

func TestAProtectedEnvironmentWantsItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.file()
	for _, row := range []struct {
		answer string
		code   int
		args   []string
	}{
		{"y", 1, nil}, {"yes", 1, []string{"--yes"}}, {"", 1, nil}, {"Production", 1, nil}, {"staging", 1, nil}, {"production please", 1, nil},
		{"production", 0, []string{"--yes"}},
	} {
		s := w.show(200, append([]string{"apply", "-f", "heads.yaml", "--env", "production", "--journal", "none"}, row.args...)...)
		s.wait("Type production to apply 6 changes to 2 heads: ")
		before := w.hooks(w.production, 0)
		s.press(row.answer + "\r")
		assert.Equal(t, row.code, s.end(), "%q %s", row.answer, s)
		if row.code == 1 {
			assert.Equal(t, before, w.hooks(w.production, 0), "nothing changed after %q", row.answer)
		}
	}
	assert.Contains(t, w.hooks(w.production, 0), "https://app.example.com/heads/events")
	assert.Contains(t, w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production"), "0 changed, 2 unchanged")

	s := w.show(200, "convert", "-f", "heads.yaml", "--env", "production", "Head 2", "--journal", "none")
	s.wait("Type production to apply 1 changes to 1 heads: ")
	s.press("production\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	assert.Contains(t, plain(s), "changed "+w.production.ids[1]+" Head 2 ")
	s = w.show(200, "convert", "-f", "heads.yaml", "--env", "staging", "Head 1", "--journal", "none")
	s.wait("Apply 1 changes to 1 heads? [y/N]")
	s.press("y\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	w.ok("convert", "-f", "heads.yaml", "--env", "production", "--dry-run")
}

func TestWhatIsReadInAnEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.file()
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes")
	assert.Contains(t, w.run("doctor", "-f", "heads.yaml", "--env", "staging").stdout, w.staging.ids[1])
	one := w.run("doctor", "-f", "heads.yaml", "--env", "production", "Head 1", w.production.ids[0]).stdout
	assert.Contains(t, one, w.production.ids[0])
	assert.NotContains(t, one, w.production.ids[1])

	w.write("out/export.yaml", w.ok("export", "-f", "heads.yaml", "--env", "staging"))
	exported := w.read("out/export.yaml")
	assert.Contains(t, exported, "environments:\n  staging:\n    base_url: "+w.staging.url)
	assert.Contains(t, exported, "token:\n      env: STAGING_TOKEN")
	assert.Contains(t, exported, "greetings: \"Hi from staging, it costs $${5}\"")
	assert.NotContains(t, exported, "production")
	assert.NotContains(t, exported, w.staging.token)
	assert.Contains(t, w.ok("plan", "-f", "out/export.yaml", "--env", "staging", "--exit-code"), "0 pending, 2 unchanged")
	w.fails(2, "has environments", "plan", "-f", "out/export.yaml")
	production := w.ok("export", "-f", "heads.yaml", "--env", "production", "Head 2")
	assert.Contains(t, production, "base_url:\n      env: PROD_URL")
	assert.Contains(t, production, "protect: true")
	assert.NotContains(t, production, "Head 1")

	assert.Contains(t, w.ok("convert", "-f", "heads.yaml", "--env", "staging", "--dry-run", "Head 1"), " https://stream.staging.example.com/", "its stream_url")
	w.ok("convert", "-f", "heads.yaml", "--env", "staging", "--yes", "--report", "moves.json", "Head 1")
	moved := parse[struct{ Moves []struct{ Old, New string } }](t, w.read("moves.json")).Moves
	require.Len(t, moved, 1)
	w.write("page.html", moved[0].Old)
	w.ok("addresses", "rewrite", "--moves", "moves.json", "--env", "staging", "page.html")
	assert.Equal(t, moved[0].New, w.read("page.html"))
}

// The variables of the shell name another service, which no environment does.
func TestOnlyTheVariablesOfTheEntryCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	text := w.file()
	c := w.with("HEADS_STREAM_URL=https://of-the-shell.example.com", "HEADS_CHAT_URL=https://of-the-shell.example.com")
	c.write("heads.yaml", strings.Replace(strings.Replace(text, `, chat_url: "https://chat.example.test", stream_url: "https://stream.staging.example.com"`, "", 1), "${greeting}", "Hi", 1))
	out := c.ok("convert", "-f", "heads.yaml", "--env", "staging", "--dry-run")
	assert.Contains(t, out, "pending "+w.staging.ids[0])
	assert.NotContains(t, out, "of-the-shell")
	c.ok("convert", "-f", "heads.yaml", "--env", "staging", "--yes")
	c.ok("convert", "-f", "heads.yaml", "--env", "production", "--confirm", "production")
	journals, err := filepath.Glob(filepath.Join(w.state, "headsctl", "*"))
	require.NoError(t, err)
	assert.Len(t, journals, 2, "one for the base URL of each environment")
	assert.NotContains(t, strings.Join(journals, " "), "127.0.0.1_1-")
}

func TestTokensOfEnvironmentsAreNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	text := w.file()
	w.write("heads.yaml", strings.Replace(text, "token: {env: PROD_TOKEN}", "token: s3cret-of-production", 1))
	r := w.fails(2, "heads.yaml:5:12: a token does not belong in a file; put it into a variable, and write {env: NAME}", "plan", "-f", "heads.yaml", "--env", "staging")
	assert.NotContains(t, r.stderr, "s3cret")
	w.write("heads.yaml", strings.Replace(text, "${greeting} from", w.production.token+" and "+w.staging.token+" from", 1))
	r = w.run("plan", "-f", "heads.yaml", "--env", "staging")
	assert.Contains(t, r.stdout, "[redacted] and [redacted] from staging")
	assert.NotContains(t, r.stdout, w.production.token)
}

func TestMCPHasTheSettingsOfOneEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.at(w.staging.url, w.staging.token).mcp()
	assert.Contains(t, m.fails("heads_plan", object{"spec": strings.ReplaceAll(w.file(), "{file: \"prompts/${env}.txt\"}", "x")}), "spec has environments")
}

// appliedWorld has the file in both environments.
func appliedWorld(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t, n)
	w.file()
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes")
	w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production")
	return w
}

func (w *world) diff(args ...string) result {
	w.t.Helper()
	return w.run(append([]string{"diff", "-f", "heads.yaml", "--env", "staging", "--env", "production"}, args...)...)
}

func TestDiffShowsDriftAndNoURLThatValuesExplain(t *testing.T) {
	t.Parallel()
	w := appliedWorld(t, 4)
	s, p := w.staging, w.production
	for _, c := range []*terminal{s, p} { // what the file does not have, and values explain
		app := map[*terminal]string{s: "https://staging.example.com", p: "https://app.example.com"}[c]
		name := map[*terminal]string{s: "staging", p: "production"}[c]
		c.ok("webhooks", "ensure", c.ids[0], "--url", app+"/other/events?key=s3cret-"+name[:1], "--event", "end_conversation")
		c.ok("delivery", "off", c.ids[0])
		c.ok("webhooks", "ensure", c.ids[1], "--url", "https://"+name+".hooks.example.com/x", "--event", "end_conversation")
		c.ok("set", c.ids[1], "fileUrl="+app+"/f.pdf", `pluginOperationalModeConfig:={"b":{"at":"see `+app+`/x or `+app+`"},"a":1.50}`)
		c.ok("set", c.ids[1], "operationMode=oc")
		c.write("tool.yaml", "name: find\ndescription: Finds.\nurl: "+app+"/tools/find\nparameters: []\n")
		c.ok("tools", "put", c.ids[1], "-f", "tool.yaml")
	}
	r := w.diff("--exit-code")
	assert.Equal(t, "differs Head 1\n"+
		"  webhook ${app}/other/events?key=[redacted]: staging \"end_conversation\", production \"\"\n"+
		"  webhook ${app}/other/events?key=[redacted]: staging \"\", production \"end_conversation\"\n"+
		"3 same, 1 differs, 0 missing, 0 failed\n", r.stdout, "keys that differ are not shown")
	assert.Equal(t, 3, r.code)
	assert.Empty(t, r.stderr)
	assert.Equal(t, 0, w.diff().code)

	before := w.head(p, 3)
	s.ok("set", s.ids[1], "greetings=Somebody was here") // of the file
	p.ok("set", p.ids[1], "alias=bob", "phrases:=[\"a\"]", "voiceflowApiKey=s3cret-key")
	p.write("tool.yaml", "name: find\ndescription: Finds.\nurl: https://staging.example.com/tools/find\nparameters: []\n")
	p.ok("tools", "put", p.ids[1], "-f", "tool.yaml")
	p.ok("set", p.ids[2], "promptConfig.system_prompt="+strings.Repeat("You are real. ", 20)) // of the file
	s.ok("webhooks", "ensure", s.ids[2], "--url", "https://staging.example.com/heads/events", "--event", "end_conversation", "--event", "start_conversation")
	s.ok("delivery", "off", s.ids[2])
	r = w.diff("--exit-code", "-j", "1")
	assert.Equal(t, 3, r.code)
	_, rest, _ := strings.Cut(r.stdout, "differs Head 2\n")
	assert.Equal(t, `  alias: staging "ada", production "bob"
  greetings: staging "Somebody was here", production "Welcome from production, it costs ${5}", the file "Hi from staging, it costs ${5}" for staging, the file "Welcome from production, it costs ${5}" for production
  voiceflowApiKey: staging "", production "[redacted]"
  phrases: staging "", production "[\"a\"]"
  tool find: staging "{\"url\":\"${app}/tools/find\"}", production "{\"url\":\"https://staging.example.com/tools/find\"}"
differs Head 3
  promptConfig.system_prompt: staging "You are a test of ${app}.", production "`+strings.Repeat("You are real. ", 8)+`You are…", the file "You are a test of ${app}." for staging, the file "You are real." for production
  webhook ${app}/heads/events: staging "end_conversation, start_conversation", production "start_conversation", the file "start_conversation"
1 same, 3 differs, 0 missing, 0 failed
`, rest)
	assert.NotContains(t, r.stdout, "s3cret")
	assert.Equal(t, before, w.head(p, 3), "diff only reads")

	out := lines(w.diff("--json").stdout)
	require.Len(t, out, 5)
	assert.JSONEq(t, `{"type":"result","label":"Head 3","outcome":"differs","heads":{"staging":"`+s.ids[2]+`","production":"`+p.ids[2]+`"},"differences":[
		{"field":"promptConfig.system_prompt","values":{"staging":"You are a test of ${app}.","production":"`+strings.Repeat("You are real. ", 8)+`You are…"},"wanted":{"staging":"You are a test of ${app}.","production":"You are real."}},
		{"field":"webhook ${app}/heads/events","values":{"staging":"end_conversation, start_conversation","production":"start_conversation"},"wanted":{"staging":"start_conversation","production":"start_conversation"}}]}`, out[2])
	assert.JSONEq(t, `{"type":"result","label":"Head 4","outcome":"same","heads":{"staging":"`+s.ids[3]+`","production":"`+p.ids[3]+`"},"differences":[]}`, out[3])
	assert.JSONEq(t, `{"type":"summary","counts":{"same":1,"differs":3,"missing":0,"failed":0}}`, out[4])
}

// What a file wants is compared in each environment by itself.
func TestDiffComparesWithTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	s, p := w.staging, w.production
	for _, c := range []*terminal{s, p} {
		c.ok("webhooks", "ensure", c.ids[0], "--url", "https://extra.example.com/x", "--event", "end_conversation")
		c.ok("delivery", "off", c.ids[0])
	}
	write := func(entry string) {
		w.write("heads.yaml", w.environments()+"heads: [{id: {staging: "+s.ids[0]+", production: "+p.ids[0]+"}, label: Lobby, "+entry+"}]\n")
	}
	for entry, want := range map[string]string{
		"streaming: true, delivery: false":   "  streaming: staging \"false\", production \"false\", the file \"true\"\n",
		"delivery: true":                     "  delivery: staging \"false\", production \"false\", the file \"true\"\n",
		"voice: {provider: polly, id: x}":    "  voice: staging \"azure/en-US-plain\", production \"azure/en-US-plain\", the file \"polly/x\"\n",
		"webhooks: [], prune_webhooks: true": "  webhook https://extra.example.com/x: staging \"end_conversation\", production \"end_conversation\", the file \"\"\n",
		`tools: [{name: find, description: F., url: "${app}/find", parameters: []}]`:    "  tool find: staging \"\", production \"\", the file \"{\\\"description\\\":\\\"F.\\\",\\\"name\\\":\\\"find\\\",\\\"parameters\\\":[],\\\"url\\\":\\\"${app}/find\\\"}\"\n",
		"set: {semanticThreshold: 0.5}":                                                 "  semanticThreshold: staging \"0.75\", production \"0.75\", the file \"0.5\"\n",
		"set: {semanticThreshold: 0.750, fileUrl: null, customWords: {}}, webhooks: []": "",
	} {
		write(entry)
		r := w.diff()
		if want == "" {
			assert.Equal(t, "1 same, 0 differs, 0 missing, 0 failed\n", r.stdout, entry)
			continue
		}
		assert.Equal(t, "differs Lobby\n"+want+"0 same, 1 differs, 0 missing, 0 failed\n", r.stdout, entry)
	}
}

func TestDiffTellsOfMissingAndUnreadHeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.write("heads.yaml", w.environments()+"heads:\n  - {id: {staging: "+w.staging.ids[0]+", production: null}, label: Lobby}\n"+
		"  - {id: {staging: "+w.staging.ids[1]+", production: "+someID+"}, label: Annex}\n")
	r := w.diff("--exit-code")
	assert.Equal(t, "missing Lobby\nfailed Annex\n0 same, 0 differs, 1 missing, 1 failed\n", r.stdout)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "Annex in production: ")
	assert.Contains(t, r.stderr, "404")
	assert.Contains(t, r.stderr, "check the id and the base_url of production")
	out := lines(w.diff("--json").stdout)
	assert.JSONEq(t, `{"type":"result","label":"Lobby","outcome":"missing","heads":{"staging":"`+w.staging.ids[0]+`","production":null},"differences":[]}`, out[0])
	assert.Contains(t, w.with("STAGING_TOKEN=wrong-token-of-staging").diffErrors(), "set STAGING_TOKEN")

	w.write("plain.yaml", "heads: [{id: "+someID+"}]")
	for name, row := range map[string]struct {
		args []string
		text string
	}{
		"no file":         {[]string{"--env", "staging", "--env", "production"}, "wants -f"},
		"one environment": {[]string{"-f", "heads.yaml", "--env", "staging"}, "--env at least twice"},
		"the same twice":  {[]string{"-f", "heads.yaml", "--env", "staging", "--env", "staging"}, "different environments"},
		"unknown":         {[]string{"-f", "heads.yaml", "--env", "staging", "--env", "prodution"}, "did you mean production?"},
		"a file without":  {[]string{"-f", "plain.yaml", "--env", "a", "--env", "b"}, "plain.yaml has no environments"},
		"one token":       {[]string{"-f", "heads.yaml", "--env", "staging", "--env", "production", "--token-file", "x"}, "each environment has its own"},
	} {
		w.silent(func() { w.fails(2, row.text, append([]string{"diff"}, row.args...)...) })
		_ = name
	}
	w.silent(func() {
		w.with("PROD_TOKEN=").fails(2, "the variable PROD_TOKEN is not set", "diff", "-f", "heads.yaml", "--env", "staging", "--env", "production")
	})
}

// diffErrors is what diff writes to stderr.
func (c *terminal) diffErrors() string {
	return c.run("diff", "-f", "heads.yaml", "--env", "staging", "--env", "production").stderr
}
