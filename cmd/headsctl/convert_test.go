package main

import (
	"encoding/csv"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConvertPrintsALineAHeadAndTheTotals(t *testing.T) {
	c := demo(t)
	r := c.ends(1, "convert", "-f", "ids.csv", "--yes", "--report", "r.json", "--report", "r.csv", "--report", "r.html") // some are blocked
	assert.Regexp(t, "^the journal .* does not know 5 streaming heads: .*\n$", r.stderr)
	assert.Regexp(t, `^(.*\n){25}15 changed, 5 unchanged, 5 blocked, 0 failed, 0 skipped \(a blocked head gets nothing of its entry\)\n$`, r.stdout)
	assert.Regexp(t, `(?m)^changed `+c.ids[0]+` Lobby https://stream\.example\.test/MyOrg-\d+/li-\d+$`, r.stdout)
	assert.Regexp(t, `(?m)^unchanged `+c.ids[12]+` Welcome Screen$`, r.stdout)
	assert.Regexp(t, `(?m)^blocked `+c.ids[17]+` Mascot visual: visual .* must be created$`, r.stdout)
	assert.Regexp(t, `(?m)^blocked `+c.ids[20]+` Audio Guide provider: provider "polly"`, r.stdout)
	report := parse[struct{ Moves, Results []object }](t, c.read("r.json"))
	assert.Len(t, report.Moves, 15)
	assert.Len(t, report.Results, 25)
	assert.Len(t, need(csv.NewReader(strings.NewReader(c.read("r.csv"))).ReadAll())(t), 26)
	assert.Equal(t, 25, strings.Count(c.read("r.html"), "<tr data-outcome="))
	again := c.run("convert", "-f", "ids.csv", "--yes", "--report", "again.json")
	assert.Contains(t, again.stdout, "\n0 changed, 20 unchanged, 5 blocked, 0 failed, 0 skipped (a blocked head gets nothing of its entry)\n")
	assert.Len(t, parse[struct{ Moves []object }](t, c.read("again.json")).Moves, 15, "the journal remembers the old ones")
	require.Len(t, c.journals(), 1, "one for the base URL")
	assert.Regexp(t, `/headsctl/\S+ -rw------- `, strings.Join(tree(t, c.state), "\n"))
}

func TestConvertGivesAVoiceAndGoesBack(t *testing.T) {
	c := demo(t)
	c.ok("convert", c.ids[20], "--voice", "elevenlabs/a/b_eleven_turbo_v2_5", "--yes", "--journal", "none")
	assert.Subset(t, c.head(c.ids[20]),
		object{"ttsProvider": "elevenlabs", "ttsVoice": "a/b_eleven_turbo_v2_5", "videoStreaming": true})
	assert.Contains(t, c.ok("convert", c.ids[20], "--undo", "--yes", "--journal", "j"), "changed "+c.ids[20]+" Audio Guide https://chat.example.test/")
	assert.NoDirExists(t, filepath.Join(c.state, "headsctl"))
	assert.FileExists(t, filepath.Join(c.dir, "j"))
	assert.Contains(t, c.ok("convert", c.ids[20], "--undo", "--yes"), "0 changed, 1 unchanged")
}

func TestConvertSaysAfterFailuresHowToGoOn(t *testing.T) {
	c := demo(t)
	assert.Contains(t, c.ok("convert", "-f", "ids.csv", "--yes", "--allow-blocked", "--rate", "1000"), "blocked", "listed all the same")
	c.ends(1, "convert", "-f", "ids.csv", "--yes") // without the flag
	assert.Contains(t, c.ends(1, "convert", someID, "--yes").stderr, "to go on, run: headsctl convert "+someID+" --yes")
}
