package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longPrompt is a prompt whose end no plan shows.
func longPrompt(end string) string {
	return strings.Repeat("You are the voice of a museum. ", 20) + end
}

// Another process changes a head while somebody looks at the plan. The part that it
// changes is not among the characters that the plan shows.
func TestAHeadThatChangedAfterThePlanIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(2))
	for round := range 100 {
		c.ok("set", c.ids[0], "promptConfig.system_prompt="+longPrompt("Old."))
		wanted := fmt.Sprintf("Round %d", round)
		c.write("heads.yaml", fmt.Sprintf("heads:\n  - {id: %s, set: {promptConfig: {system_prompt: New.}}}\n  - {id: %s, set: {greetings: %s}}\n", c.ids[0], c.ids[1], wanted))
		s := c.show(200, "apply", "-f", "heads.yaml", "--journal", "none")
		s.wait("[y/N]")
		before := strings.Count(plain(s), "~ promptConfig.system_prompt: ")
		c.ok("set", c.ids[0], "promptConfig.system_prompt="+longPrompt("Somebody has just written this."))
		s.press("y\r")
		require.Equal(t, 1, s.end(), "%s", s)
		require.Contains(t, plain(s), "\npending "+c.ids[0]+" Head 1 temporary: the head is no longer as it was planned for, and was not changed")
		require.Equal(t, before+1, strings.Count(plain(s), "~ promptConfig.system_prompt: "), "its new plan")
		require.Contains(t, plain(s), "\nchanged "+c.ids[1], "the other head")
		require.Contains(t, plain(s), "\n1 changed, 0 unchanged, 0 blocked, 0 failed, 0 skipped, 1 pending\n")
		first := parse[object](t, c.ok("get", c.ids[0], "-o", "json"))
		require.Equal(t, longPrompt("Somebody has just written this."), first["promptConfig"].(object)["system_prompt"])
		require.Equal(t, wanted, parse[object](t, c.ok("get", c.ids[1], "-o", "json"))["greetings"])
	}
	c.write("heads.yaml", "heads: [{id: "+c.ids[0]+", set: {promptConfig: {system_prompt: New.}}}]")
	assert.Contains(t, c.ok("apply", "-f", "heads.yaml", "--yes"), "1 changed", "--yes compares nothing")
}

func TestAHeadThatNobodySawInThePlanIsNotConverted(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(2))
	c.ok("convert", c.ids[1], "--yes", "--journal", "none")
	s := c.show(200, append([]string{"convert", "--journal", "none"}, c.ids...)...)
	s.wait("Apply 1 changes to 1 heads? [y/N]")
	c.ok("convert", c.ids[1], "--undo", "--yes", "--journal", "none")
	s.press("y\r")
	assert.Equal(t, 1, s.end())
	assert.Contains(t, plain(s), "\nchanged "+c.ids[0])
	assert.Contains(t, plain(s), "\npending "+c.ids[1])
	assert.Contains(t, c.ok("get", c.ids[1]), "MODE            legacy")
}

func TestMCPConfirmsWhatThePlanDoesNotShow(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(1))
	m := c.mcp("--allow-writes")
	hook := func(token string) string { return "https://a.example.com/" + token + strings.Repeat("0", 16) }
	list := func() []object {
		return parse[[]object](t, c.ok("webhooks", "list", c.ids[0], "-o", "json", "--show-secrets"))
	}
	for range 100 {
		c.ok("set", c.ids[0], "promptConfig.system_prompt="+longPrompt("Old."))
		prompt := object{"spec": "heads: [{id: " + c.ids[0] + ", set: {promptConfig: {system_prompt: New.}}}]"}
		dry := m.ok("heads_apply", prompt)
		c.ok("set", c.ids[0], "promptConfig.system_prompt="+longPrompt("Not."))
		prompt["confirm"] = dry["confirm"]
		fresh := parse[object](t, m.fails("heads_apply", prompt))
		require.Contains(t, fresh["error"], "nothing was done")
		require.NotEqual(t, dry["confirm"], fresh["confirm"])
	}
	c.ok("webhooks", "ensure", c.ids[0], "--url", hook("first"), "--event", "end_conversation")
	spec := object{"spec": "heads: [{id: " + c.ids[0] + ", webhooks: [], prune_webhooks: true}]"}
	dry := m.ok("heads_apply", spec)
	c.ok("webhooks", "delete", fmt.Sprint(list()[0]["id"]))
	c.ok("webhooks", "ensure", c.ids[0], "--url", hook("other"), "--event", "end_conversation")
	spec["confirm"] = dry["confirm"]
	fresh := parse[object](t, m.fails("heads_apply", spec))
	assert.Equal(t, dry["changes"], fresh["changes"], "both look the same, since tokens are masked")
	require.Len(t, list(), 1)
	assert.Equal(t, hook("other"), list()[0]["webhookUrl"], "it is there")

	again := c.mcp("--allow-writes")
	assert.NotEqual(t, fresh["confirm"], again.ok("heads_apply", object{"spec": spec["spec"]})["confirm"], "another process has another key")
	spec["confirm"] = fresh["confirm"]
	assert.EqualValues(t, 1, m.ok("heads_apply", spec)["counts"].(object)["changed"])
	assert.Empty(t, list())
}

// Between the check of a confirmation and the first change the head is read once
// more.
func TestMCPComparesEachHeadBeforeItsFirstChange(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(1))
	target, err := url.Parse(c.url)
	require.NoError(t, err)
	var reads atomic.Int64
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && reads.Add(1) == 3 { // the dry run, the check, and then
			assert.Equal(t, 0, c.run("set", c.ids[0], "greetings=Bonjour").code)
		}
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	m := c.at(proxy.URL, c.token).mcp("--allow-writes")
	spec := object{"spec": "heads: [{id: " + c.ids[0] + ", set: {greetings: Hi}}]"}
	spec["confirm"] = m.ok("heads_apply", spec)["confirm"]
	reply := parse[object](t, m.fails("heads_apply", spec))
	assert.EqualValues(t, 1, reply["counts"].(object)["pending"])
	assert.Contains(t, fmt.Sprint(reply["items"]), "no longer as it was planned for")
	assert.Contains(t, fmt.Sprint(reply["items"]), "from:Bonjour")
	assert.Equal(t, "Bonjour", parse[object](t, c.ok("get", c.ids[0], "-o", "json"))["greetings"])
}

func TestPlansComeInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(40), "-latency", "3ms")
	target, err := url.Parse(c.url)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	last := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, c.ids[0]) { // the first head ends when the fifth has begun
			<-last
		} else if strings.HasSuffix(r.URL.Path, c.ids[4]) {
			defer func() { last <- struct{}{} }()
		}
		forward.ServeHTTP(w, r)
	}))
	defer slow.Close()
	c = c.at(slow.URL, c.token)
	file := "heads:\n"
	for _, id := range c.ids {
		file += "  - {id: " + id + ", set: {greetings: Hi, phrases: [a, b], customWords: {b: c, a: d}}}\n"
	}
	c.write("heads.yaml", file)
	for _, args := range [][]string{{"plan", "-f", "heads.yaml", "-j", "3"}, {"plan", "-f", "heads.yaml", "--json", "-j", "3", "--report", "r.csv"}} {
		first := c.ok(args...)
		report := ""
		if len(args) > 5 {
			report = c.read("r.csv")
		}
		assert.Equal(t, first, c.ok(args...), "two plans of one state")
		if report != "" {
			assert.Equal(t, report, c.read("r.csv"))
		}
		at := 0
		for _, id := range c.ids {
			next := strings.Index(first, id)
			assert.GreaterOrEqual(t, next, at)
			at = next
		}
	}
	out := lines(c.ok("apply", "-f", "heads.yaml", "--yes", "-j", "3"))
	for i, id := range c.ids {
		assert.Contains(t, out[i], "changed "+id)
	}
}
