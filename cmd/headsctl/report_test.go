package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPipeThatNobodyReadsIsNoFaultOfTheService(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(2))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	defer writer.Close()
	cmd := c.command(t.Context(), append([]string{"convert", "--yes"}, c.ids...)...)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = writer, &stderr
	assert.Equal(t, 1, exitCode(t, cmd.Run()))
	assert.Contains(t, stderr.String(), "broken pipe; nobody reads the output any more")
	assert.NotContains(t, stderr.String(), "HEADS_BASE_URL")
	assert.Contains(t, c.ok("get", c.ids[1]), "MODE            streaming", "the work is done")
}

func TestErrorsAreJSONWhereJSONIsAsked(t *testing.T) {
	t.Parallel()
	c := newTerminal(t).at("http://127.0.0.1:1", "token")
	for name, args := range map[string][]string{
		"-o json": {"get", "x", "-o", "json"}, "-ojson": {"get", "x", "-ojson"}, "--output=json": {"get", "x", "--output=json"},
		"--json": {"plan", "-f", "nowhere", "--json"}, "unknown flag": {"convert", "--json", "--nope"}, "unknown command": {"gte", "-o=json"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.fails(2, "", args...)
			var line struct{ Type, Error string }
			require.NoError(t, json.Unmarshal([]byte(r.stderr), &line), r.stderr)
			assert.Equal(t, "error", line.Type)
			assert.NotEmpty(t, line.Error)
		})
	}
}

func TestAServiceThatRefusesOrIsNotThereEndsWith1(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(1))
	r := c.at(c.url, "wrong").fails(1, "set HEADS_TOKEN or --token-file", "get", c.ids[0])
	assert.Contains(t, r.stderr, "401")
	r = c.fails(1, "check the id", "get", someID)
	assert.Contains(t, r.stderr, "404")
	c.at("http://127.0.0.1:1", "x").fails(1, "check that HEADS_BASE_URL is right", "get", someID)
	assert.Equal(t, 1, c.run("convert", someID, "--yes").code)
	assert.Equal(t, 1, c.run("plan", "-f", c.write("h.yaml", "heads: [{id: "+someID+"}]")).code)
	assert.Equal(t, 1, c.run("export", someID, c.ids[0]).code)
	assert.Equal(t, 1, c.run("delivery", "on", someID, c.ids[0]).code)
	assert.Equal(t, 1, c.run("doctor", someID).code)
	assert.Equal(t, 1, c.run("call", "DELETE", "/head-events/77").code)
}
