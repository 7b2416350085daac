package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAPipeThatNobodyReadsIsNoFaultOfTheService(t *testing.T) {
	c := emulator(t, legacyHeads(2))
	cmd := c.command(t.Context(), append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)...)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = nobodyReads(t), &stderr
	assert.Equal(t, 1, exitCode(t, cmd.Run()))
	assert.Regexp(t, "(?m)^error: .*write .*: broken pipe; nobody reads the output any more", stderr.String())
	assert.NotContains(t, stderr.String(), "HEADS_BASE_URL")
	assert.Len(t, parse[struct{ Moves []object }](t, c.read("r.json")).Moves, 2, "the report is written whatever happens")
	assert.Contains(t, c.ok("get", c.ids[1]), "MODE            streaming", "the work is done")
}

func TestErrorsAreJSONWhereJSONIsAsked(t *testing.T) {
	c := newTerminal(t).at("http://127.0.0.1:1", "token")
	for _, args := range [][]string{
		{"get", "x", "-o", "json"}, {"get", "x", "-ojson"}, {"get", "x", "--output=json"}, {"plan", "-f", "nowhere", "--json"}, {"convert", "--json", "--nope"}, {"gte", "-o=json"},
	} {
		line := parse[object](t, c.fails(2, "", args...).stderr)
		assert.Equal(t, "error", line["type"], args)
		assert.NotEmpty(t, line["error"], args)
	}
}

func TestAServiceThatRefusesOrIsNotThereEndsWith1(t *testing.T) {
	c := emulator(t, legacyHeads(1))
	assert.Contains(t, c.at(c.url, "wrong").fails(1, "set HEADS_TOKEN or --token-file", "get", c.ids[0]).stderr, "401")
	assert.Contains(t, c.fails(1, "check the id", "get", someID).stderr, "404")
	c.at("http://127.0.0.1:1", "x").fails(1, "check that HEADS_BASE_URL is right", "get", someID)
	c.write("h.yaml", "heads: [{id: "+someID+"}]")
	for _, args := range [][]string{
		{"convert", someID, "--yes"}, {"plan", "-f", "h.yaml"}, {"export", someID, c.ids[0]}, {"delivery", "on", someID, c.ids[0]}, {"doctor", someID}, {"call", "DELETE", "/head-events/77"},
	} {
		c.ends(1, args...)
	}
}
