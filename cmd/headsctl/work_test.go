package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/fleet"
)

func TestRunsAreCutShortAfterFailures(t *testing.T) {
	c := emulator(t, legacyHeads(6), "-rate-limit", "0.001")
	r := c.ends(1, "convert", "--yes", "-j", "1", "--stop-after", "1", "--report", "r.json", c.ids[0], c.ids[1], c.ids[2])
	assert.Contains(t, r.stdout, "2 skipped\n")
	assert.Contains(t, r.stdout, "\nskipped ")
	assert.Contains(t, r.stderr, "when the service is well again, run: headsctl convert --yes -j 1")
	assert.Len(t, parse[struct{ Results []object }](t, c.read("r.json")).Results, 3, "written whatever happens")
}

func TestOneRunAtATimeHasAJournal(t *testing.T) {
	c := emulator(t, legacyHeads(1))
	path := filepath.Join(c.dir, "j")
	journal := need(fleet.OpenJournal(path))(t)
	convert := []string{"convert", c.ids[0], "--yes", "--journal", path}
	c.fails(2, "wait for the other run to end", convert...)
	require.NoError(t, journal.Close())
	// A process that another test has forked keeps the lock until it runs its program.
	require.Eventually(t, func() bool {
		again, err := fleet.OpenJournal(path)
		return err == nil && again.Close() == nil
	}, 30*time.Second, time.Millisecond)
	c.ok(convert...)
	c.write("j", c.read("j")+`{"head_id":`)
	assert.Contains(t, c.ends(0, convert...).stderr, "the last line of the journal "+path+" was cut off and has been removed (11 bytes)")
}

func TestATruncatedJournalIsTold(t *testing.T) {
	c := emulator(t, legacyHeads(2))
	convert := append([]string{"convert", "--yes", "--journal", "journal.jsonl"}, c.ids...)
	require.Equal(t, "", c.run(convert...).stderr)
	whole := c.read("journal.jsonl")
	header, _, _ := strings.Cut(whole, "\n")
	assert.Contains(t, header, `"base_url":"`+c.url+`"`)
	assert.Empty(t, c.run(convert...).stderr, "all is known")
	for name, content := range map[string]string{"header": header + "\n", "nothing": ""} {
		c.write("journal.jsonl", content)
		r := c.ends(0, convert...)
		assert.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
		assert.Contains(t, r.stderr, "the journal journal.jsonl does not know 2 streaming heads: ", name)
	}
}

func TestTheJournalOfAnotherServiceIsRefused(t *testing.T) {
	one, other := emulator(t, legacyHeads(1)), emulator(t, legacyHeads(1))
	one.ok("convert", "--yes", "--journal", "journal.jsonl", one.ids[0])
	for _, flag := range []string{"--yes", "--dry-run"} {
		assert.Empty(t, other.fails(2, one.url+", not to "+other.url, "convert", "--debug", "--journal", filepath.Join(one.dir, "journal.jsonl"), other.ids[0], flag).stdout)
	}
}

// longPrompt is a prompt whose end no plan shows.
func longPrompt(end string) string {
	return strings.Repeat("You are the voice of a museum. ", 20) + end
}

// Another process changes a head while somebody looks at the plan. The part that it
// changes is not among the characters that the plan shows.
func TestAHeadThatChangedAfterThePlanIsLeftAlone(t *testing.T) {
	c := emulator(t, legacyHeads(2))
	for round := range 10 {
		c.ok("set", c.ids[0], "promptConfig.system_prompt="+longPrompt("Old."))
		c.write("heads.yaml", fmt.Sprintf("heads:\n  - {id: %s, set: {promptConfig: {system_prompt: New.}}}\n  - {id: %s, set: {greetings: Round %d}}\n", c.ids[0], c.ids[1], round))
		s := c.show(200, "apply", "-f", "heads.yaml", "--journal", "none").wait("[y/N]")
		before := strings.Count(plain(s), "~ promptConfig.system_prompt: ")
		c.ok("set", c.ids[0], "promptConfig.system_prompt="+longPrompt("Somebody has just written this."))
		require.Equal(t, 1, s.press("y\r").end(), "%s", s)
		require.Contains(t, plain(s), "\npending "+c.ids[0]+" Head 1 temporary: the head is no longer as it was planned for, and was not changed")
		require.Equal(t, before+1, strings.Count(plain(s), "~ promptConfig.system_prompt: "), "its new plan")
		require.Contains(t, plain(s), "\nchanged "+c.ids[1], "the other head")
		require.Contains(t, plain(s), "\n1 changed, 0 unchanged, 0 blocked, 0 failed, 0 skipped, 1 pending\n")
		require.Equal(t, longPrompt("Somebody has just written this."), c.head(c.ids[0])["promptConfig"].(object)["system_prompt"])
	}
	c.write("heads.yaml", "heads: [{id: "+c.ids[0]+", set: {promptConfig: {system_prompt: New.}}}]")
	assert.Contains(t, c.ok("apply", "-f", "heads.yaml", "--yes"), "1 changed", "--yes compares nothing")
}

func TestAHeadThatNobodySawInThePlanIsNotConverted(t *testing.T) {
	c := emulator(t, legacyHeads(2))
	c.ok("convert", c.ids[1], "--yes", "--journal", "none")
	s := c.show(200, append([]string{"convert", "--journal", "none"}, c.ids...)...).wait("Apply 1 changes to 1 heads? [y/N]")
	c.ok("convert", c.ids[1], "--undo", "--yes", "--journal", "none")
	assert.Equal(t, 1, s.press("y\r").end())
	assert.Contains(t, plain(s), "\nchanged "+c.ids[0])
	assert.Contains(t, plain(s), "\npending "+c.ids[1])
	assert.Contains(t, c.ok("get", c.ids[1]), "MODE            legacy")
}

func TestPlansComeInTheOrderOfTheFile(t *testing.T) {
	c := emulator(t, legacyHeads(40), "-latency", "3ms")
	last, first, fifth := make(chan struct{}), c.ids[0], c.ids[4]
	c = c.behind(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if strings.HasSuffix(r.URL.Path, first) { // it ends when the fifth has begun
			<-last
		} else if strings.HasSuffix(r.URL.Path, fifth) {
			defer func() { last <- struct{}{} }()
		}
		service.ServeHTTP(w, r)
	})
	file := "heads:\n"
	for _, id := range c.ids {
		file += "  - {id: " + id + ", set: {greetings: Hi, phrases: [a, b], customWords: {b: c, a: d}}}\n"
	}
	c.write("heads.yaml", file)
	for _, args := range [][]string{{"plan", "-f", "heads.yaml", "-j", "3", "--report", "r.csv"}, {"plan", "-f", "heads.yaml", "--json", "-j", "3", "--report", "r.csv"}} {
		plan, report := c.ok(args...), c.read("r.csv")
		assert.Equal(t, plan, c.ok(args...), "two plans of one state")
		assert.Equal(t, report, c.read("r.csv"))
		assert.Regexp(t, "(?s)"+strings.Join(c.ids, ".*"), plan)
	}
	out := lines(c.ok("apply", "-f", "heads.yaml", "--yes", "-j", "3"))
	for i, id := range c.ids {
		assert.Contains(t, out[i], "changed "+id)
	}
}
