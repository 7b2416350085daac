package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneFileIsAppliedToStagingAndThenToProduction(t *testing.T) {
	w := newWorld(t, 2)
	w.file()
	out := w.ok("plan", "-f", "heads.yaml", "--env", "staging")
	assert.Contains(t, out, "pending "+w.staging.ids[0]+" Head 1\n")
	assert.Contains(t, out, "+ webhook https://staging.example.com/heads/events: start_conversation")
	assert.NotContains(t, out, w.production.ids[0])
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes", "--report", "s.json", "--report", "s.html", "--report", "s.csv")
	assert.Equal(t, "Hi from staging, it costs ${5}", w.staging.head(w.staging.ids[0])["greetings"])
	assert.Equal(t, "You are a test of ${app}.", w.staging.head(w.staging.ids[0])["promptConfig"].(object)["system_prompt"], "not into the text of a file")
	assert.Equal(t, "https://staging.example.com/heads/events", w.staging.hooks(w.staging.ids[1])[0]["webhookUrl"])
	assert.NotContains(t, w.production.head(w.production.ids[0])["greetings"], "from", "production is as it was")
	assert.Equal(t, "staging", parse[object](t, w.read("s.json"))["environment"])
	assert.Contains(t, w.read("s.html"), "<h1>2 heads in staging</h1>")
	assert.True(t, strings.HasPrefix(w.read("s.csv"), "head_id,label,outcome,reason,old_address,new_address,changes,error,started,duration_ms\n"), "its columns are fixed")
	w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production", "--report", "p.json")
	assert.Equal(t, "Welcome from production, it costs ${5}", w.production.head(w.production.ids[1])["greetings"])
	assert.Equal(t, "https://app.example.com/heads/events", w.production.hooks(w.production.ids[1])[0]["webhookUrl"])
	for _, env := range []string{"staging", "production"} {
		assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", env, "--exit-code"), "0 pending, 2 unchanged")
	}
	assert.Regexp(t, "(?s)^unchanged "+w.production.ids[1]+" .* 1 unchanged", w.ok("plan", "-f", "heads.yaml", "--env", "production", "--only", "Head 2"))
	assert.Contains(t, w.ok("plan", "-f", "heads.yaml", "--env", "production", "--only", strings.ToUpper(w.production.ids[1])), "1 unchanged")
}

func TestEveryMixUpOfEnvironmentsIsRefused(t *testing.T) {
	w := newWorld(t, 2)
	w.file()
	const report = `{"environment":"","moves":[{"old":"https://a.example.com/O/h","new":"https://b.example.com/O/h"}]}`
	w.write("plain.yaml", "heads: [{id: "+w.staging.ids[0]+", set: {greetings: \"${x}\"}}]", "ids.txt", w.staging.ids[0]+"\n", "wrong-token", "of-nobody",
		"null.yaml", w.environments()+"heads:\n  - {id: {staging: "+w.staging.ids[0]+", production: null}, label: Lobby}\n  - {id: {staging: null, production: "+w.production.ids[1]+"}, label: Annex}\n",
		"none.json", report, "staging.json", strings.Replace(report, `""`, `"staging"`, 1), "token", w.production.token)
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
		"protected and --yes":           {[]string{"apply", "-f", "heads.yaml", "--env", "production", "--yes"}, "production is protected, and there is no terminal to ask on; look at it with headsctl plan, then add --confirm production"},
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
			r := w.ends(2, row.args...)
			assert.Contains(t, r.stderr, row.text, name)
			assert.Empty(t, r.stdout, name)
		})
	}
	w.silent(func() {
		r := w.with("HEADS_PROD_TOKEN=", "PROD_URL=").ends(2, "plan", "-f", "heads.yaml", "--env", "production")
		assert.Contains(t, r.stderr, "heads.yaml:4:15: the variable PROD_URL is not set")
		assert.Contains(t, r.stderr, "heads.yaml:5:12: the variable HEADS_PROD_TOKEN is not set")
		w.with("PROD_URL=http://example.com").fails(2, "heads.yaml:4:15: the URL in PROD_URL ", "plan", "-f", "heads.yaml", "--env", "production")
	})
	w.with("HEADS_PROD_TOKEN=").ok("plan", "-f", "heads.yaml", "--env", "staging")
	w.fails(1, "get a new access token and set HEADS_STAGING_TOKEN or --token-file", "--token-file", "wrong-token", "export", "-f", "heads.yaml", "--env", "staging", "Head 1")
	w.with("HEADS_PROD_TOKEN=").ok("--token-file", "token", "plan", "-f", "heads.yaml", "--env", "production")
	w.staging.write("plain.yaml", w.read("plain.yaml"))
	w.staging.ok("apply", "-f", "plain.yaml", "--yes")
	assert.Equal(t, "${x}", w.staging.head(w.staging.ids[0])["greetings"], "without environments a text is as it was written")
}

func TestWhatIsReadInAnEnvironment(t *testing.T) {
	w := newWorld(t, 2)
	w.file()
	w.ok("apply", "-f", "heads.yaml", "--env", "staging", "--yes")
	assert.Contains(t, w.run("doctor", "-f", "heads.yaml", "--env", "staging").stdout, w.staging.ids[1])
	one := w.run("doctor", "-f", "heads.yaml", "--env", "production", "Head 1", w.production.ids[0]).stdout
	assert.Contains(t, one, w.production.ids[0])
	assert.NotContains(t, one, w.production.ids[1])
	exported := w.ok("export", "-f", "heads.yaml", "--env", "staging")
	w.write("out/export.yaml", exported)
	assert.Contains(t, exported, "environments:\n  staging:\n    base_url: "+w.staging.url)
	assert.Contains(t, exported, "token:\n      env: HEADS_STAGING_TOKEN")
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
	w := newWorld(t, 1)
	text := w.file()
	c := w.with("HEADS_STREAM_URL=https://of-the-shell.example.com", "HEADS_CHAT_URL=https://of-the-shell.example.com")
	c.write("heads.yaml", strings.Replace(strings.Replace(text, `, chat_url: "https://chat.example.test", stream_url: "https://stream.staging.example.com"`, "", 1), "${greeting}", "Hi", 1))
	out := c.ok("convert", "-f", "heads.yaml", "--env", "staging", "--dry-run")
	assert.Contains(t, out, "pending "+w.staging.ids[0])
	assert.NotContains(t, out, "of-the-shell")
	c.ok("convert", "-f", "heads.yaml", "--env", "staging", "--yes")
	c.ok("convert", "-f", "heads.yaml", "--env", "production", "--confirm", "production")
	require.Len(t, w.journals(), 2, "one for the base URL of each environment")
	assert.NotContains(t, strings.Join(w.journals(), ""), `"http://127.0.0.1:1"`)
}

func TestTokensOfEnvironmentsAreNotShown(t *testing.T) {
	w := newWorld(t, 1)
	w.write("heads.yaml", strings.Replace(w.file(), "${greeting} from", w.production.token+" and "+w.staging.token+" from", 1))
	plan := w.ok("plan", "-f", "heads.yaml", "--env", "staging")
	assert.Contains(t, plan, "[redacted] and [redacted] from staging")
	assert.NotContains(t, plan, w.production.token)
}
