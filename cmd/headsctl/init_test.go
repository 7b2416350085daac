package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
)

const stagingIDs = "id,label\n0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01,Lobby\n0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b02,\"Café, east\"\n"

func TestInitJoinsHeadsByTheirLabels(t *testing.T) {
	c := newTerminal(t)
	c.write("staging.csv", stagingIDs, "production.csv", "1b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b03,Garden\n1b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01,Lobby\n")
	text := c.ok("init", "staging=staging.csv", "production=production.csv")
	file := need(headsfile.Parse([]byte(text), "."))(t)
	assert.Equal(t, []string{"staging", "production"}, file.Names())
	for name, want := range map[string][]string{"staging": {"Lobby", "Café, east"}, "production": {"Lobby", "Garden"}} {
		assert.Equal(t, name == "production", need(file.Environment(name))(t).Protect, "the last alone")
		specs := need(file.Specs(name))(t)
		require.Len(t, specs, 2)
		assert.Equal(t, want, []string{specs[0].Label, specs[1].Label})
	}
	assert.Contains(t, text, "env: HEADS_PRODUCTION_TOKEN")
	assert.Contains(t, text, "production: null")
	assert.NotContains(t, c.ok("init", "staging=staging.csv"), "protect", "one environment alone")
}

func TestPlanReadsWhatInitWrites(t *testing.T) {
	c := demo(t)
	c.write("heads.yaml", c.ok("init", "staging=ids.csv"))
	there := c.with("HEADS_STAGING_BASE_URL="+c.url, "HEADS_STAGING_TOKEN="+c.token)
	assert.Contains(t, there.ok("plan", "-f", "heads.yaml", "--env", "staging"), "0 pending")
	c.write("tools.json", "[]", "heads.yaml", c.ok("init", "--tools", "staging=ids.csv"))
	assert.Contains(t, c.read("heads.yaml"), "file: tools.json")
	there = there.with("HEADS_TOOLS_URL=https://tools.example.com/voice")
	assert.Contains(t, there.ok("plan", "-f", "heads.yaml", "--env", "staging"), " 0 blocked, 0 failed")
	c.write("tools.json", `[{"name": "find", "description": "Finds.", "url": "${tools}/find", "parameters": []}]`)
	assert.NotEqual(t, 2, there.run("plan", "-f", "heads.yaml", "--env", "staging").code, "the file is read")
}

func TestInitRefusesWhatItCannotJoin(t *testing.T) {
	c := newTerminal(t)
	c.write("a.csv", stagingIDs, "nolabel.csv", someID+"\n", "one.csv", someID+",Lobby\n", "bad.csv", "li-1,Lobby\n",
		"twice.csv", someID+",Lobby\n0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b02,Lobby\n")
	for says, args := range map[string][]string{
		"has no label; write it after a comma": {"staging=nolabel.csv"}, `the label "Lobby" is given twice`: {"staging=twice.csv"},
		"is in one.csv too": {"staging=one.csv", "production=one.csv"}, "the environment staging is given twice": {"staging=a.csv", "staging=a.csv"},
		`"Staging=a.csv" is not ENVIRONMENT=IDS`: {"Staging=a.csv"}, `"staging" is not ENVIRONMENT=IDS`: {"staging"},
		"is not the id of a head": {"staging=bad.csv"}, "wants ENVIRONMENT=IDS": {}, "none.csv can't be read": {"staging=none.csv"},
	} {
		assert.Empty(t, c.fails(2, says, append([]string{"init"}, args...)...).stdout, says)
	}
}
