package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (c *terminal) diff(args ...string) result {
	c.t.Helper()
	return c.run(append([]string{"diff", "-f", "heads.yaml", "--env", "staging", "--env", "production"}, args...)...)
}

func TestDiffShowsDriftAndNoURLThatValuesExplain(t *testing.T) {
	w := newWorld(t, 4)
	w.file()
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes")
	w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production")
	s, p := w.staging, w.production
	for name, c := range map[string]*terminal{"staging": s, "production": p} { // what the file does not have, and values explain
		app := map[string]string{"staging": "https://staging.example.com", "production": "https://app.example.com"}[name]
		c.ok("webhooks", "ensure", c.ids[0], "--url", app+"/other/events?key=s3cret-"+name[:1], "--event", "end_conversation")
		c.ok("delivery", "off", c.ids[0])
		c.ok("webhooks", "ensure", c.ids[1], "--url", "https://"+name+".hooks.example.com/x", "--event", "end_conversation")
		c.ok("set", c.ids[1], "fileUrl="+app+"/f.pdf", `pluginOperationalModeConfig:={"b":{"at":"see `+app+`/x or `+app+`"},"a":1.50}`, "operationMode=oc")
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
	before := p.head(p.ids[3])
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
	assert.Equal(t, before, p.head(p.ids[3]), "diff only reads")
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
	w := newWorld(t, 1)
	s, p := w.staging, w.production
	for _, c := range []*terminal{s, p} {
		c.ok("webhooks", "ensure", c.ids[0], "--url", "https://extra.example.com/x", "--event", "end_conversation")
		c.ok("delivery", "off", c.ids[0])
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
		w.write("heads.yaml", w.environments()+"heads: [{id: {staging: "+s.ids[0]+", production: "+p.ids[0]+"}, label: Lobby, "+entry+"}]\n")
		if want == "" {
			want = "1 same, 0 differs, 0 missing, 0 failed\n"
		} else {
			want = "differs Lobby\n" + want + "0 same, 1 differs, 0 missing, 0 failed\n"
		}
		assert.Equal(t, want, w.diff().stdout, entry)
	}
}

func TestDiffTellsOfMissingAndUnreadHeads(t *testing.T) {
	w := newWorld(t, 2)
	w.write("heads.yaml", w.environments()+"heads:\n  - {id: {staging: "+w.staging.ids[0]+", production: null}, label: Lobby}\n"+
		"  - {id: {staging: "+w.staging.ids[1]+", production: "+someID+"}, label: Annex}\n")
	r := w.diff("--exit-code")
	assert.Equal(t, "missing Lobby\nfailed Annex\n0 same, 0 differs, 1 missing, 1 failed\n", r.stdout)
	assert.Equal(t, 1, r.code)
	assert.Regexp(t, "Annex in production: .*404.*check the id and the base_url of production", r.stderr)
	out := lines(w.diff("--json").stdout)
	assert.JSONEq(t, `{"type":"result","label":"Lobby","outcome":"missing","heads":{"staging":"`+w.staging.ids[0]+`","production":null},"differences":[]}`, out[0])
	assert.Contains(t, w.with("HEADS_STAGING_TOKEN=wrong-token-of-staging").diff().stderr, "set HEADS_STAGING_TOKEN")
	w.write("plain.yaml", "heads: [{id: "+someID+"}]")
	w.silent(func() {
		for text, args := range map[string][]string{
			"wants -f":                       {"--env", "staging", "--env", "production"},
			"--env at least twice":           {"-f", "heads.yaml", "--env", "staging"},
			"different environments":         {"-f", "heads.yaml", "--env", "staging", "--env", "staging"},
			"did you mean production?":       {"-f", "heads.yaml", "--env", "staging", "--env", "prodution"},
			"plain.yaml has no environments": {"-f", "plain.yaml", "--env", "a", "--env", "b"},
			"each environment has its own":   {"-f", "heads.yaml", "--env", "staging", "--env", "production", "--token-file", "x"},
		} {
			w.fails(2, text, append([]string{"diff"}, args...)...)
		}
		w.with("HEADS_PROD_TOKEN=").fails(2, "the variable HEADS_PROD_TOKEN is not set", "diff", "-f", "heads.yaml", "--env", "staging", "--env", "production")
	})
}
