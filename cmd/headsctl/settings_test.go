package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMissingSettingsEndWith2(t *testing.T) {
	c := newTerminal(t)
	r := c.ends(2, "get", someID)
	assert.Contains(t, r.stderr, "HEADS_BASE_URL is not set")
	assert.Contains(t, r.stderr, "HEADS_TOKEN is not set")
	assert.Equal(t, 2, strings.Count(r.stderr, "\n"), "one line each")
	c.with("HEADS_BASE_URL=http://a.example.com", "HEADS_TOKEN=x").fails(2, "base URL", "get", someID)
}

func TestTheTokenFileGoesBeforeTheEnvironment(t *testing.T) {
	c := emulator(t, legacyHeads(1))
	file := c.write("token", c.token+"\n")
	assert.Contains(t, c.at(c.url, "wrong").ok("--token-file", file, "get", c.ids[0]), "Head 1")
}
