package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTokenIsMaskedByValueWhereverItIsPrinted(t *testing.T) {
	t.Parallel()
	const token = "canary<token>0123456789"
	c := emulator(t, legacyHeads(1), "-token", token)
	id := c.ids[0]
	c.ok("set", id, "name=Ada "+token, "greetings="+strings.Repeat("x", 90)+token)
	c.ok("convert", id, "--yes")
	c.ok("convert", id, "--yes", "--undo")
	c.write("secret.txt", token)
	c.write("heads.yaml", "heads: [{id: "+id+", label: {file: secret.txt}, streaming: true, set: {alias: {file: secret.txt}, greetings: '"+strings.Repeat("x", 90)+"'}}]\n")
	c.write("bad.yaml", "heads: [{id: {file: secret.txt}, label: {file: secret.txt}}]\n")
	file := c.write("token", token)
	bare := c.at(c.url, "")
	for _, args := range [][]string{
		{"plan", "-f", "heads.yaml", "--report", "r.json", "--report", "r.csv", "--report", "r.html"}, {"plan", "-f", "heads.yaml", "--json"}, {"plan", "-f", "bad.yaml"}, {"plan", "-f", "bad.yaml", "--json"},
		{"apply", "-f", "heads.yaml", "--yes", "--json"}, {"get", id}, {"get", id, "-o", "json"}, {"get", id, "-o", "yaml"}, {"get", id, "--raw", "--show-secrets"},
		{"export", id}, {"doctor", id}, {"call", "GET", "/head/" + id}, {"set", id, "name=" + token, "--dry-run"}, {"get", "x" + token}, {"convert", id, "--voice", token},
	} {
		for _, r := range []result{c.run(args...), bare.run(append(args, "--token-file", file)...)} {
			shown := r.stdout + r.stderr
			assert.NotContains(t, shown, "canary", "%v\n%s", args, shown)
			assert.NotContains(t, shown, "0123456789", "%v\n%s", args, shown)
		}
	}
	for _, report := range []string{"r.json", "r.csv", "r.html"} {
		assert.NotContains(t, c.read(report), "canary", report)
	}
	assert.Contains(t, c.ok("get", id), "Ada [redacted]")
	for columns := uint16(20); columns < 60; columns += 3 {
		s := c.show(columns, "get", id)
		s.end()
		assert.NotContains(t, plain(s), "cana")
	}
	m := c.mcp()
	text, _ := m.call("heads_get", object{"id": id})
	assert.NotContains(t, text, "canary")
	assert.Contains(t, text, "Ada [redacted]")
}

func TestWhatIsLeftOfAShortenedTokenIsMasked(t *testing.T) {
	m := newTokenMask("0123456789abcdef")
	for text, want := range map[string]string{
		"a 0123456789abcdef b":       "a [redacted] b",
		"a 01234567…":                "a [redacted]…",
		"…89abcdef b":                "…[redacted] b",
		"0123…cdef":                  "[redacted]…[redacted]",
		"012…def":                    "012…def",
		"a … b":                      "a … b",
		"0123456789abcdef012345678…": "[redacted][redacted]…",
	} {
		assert.Equal(t, want, string(m.hide([]byte(text))))
	}
	short := newTokenMask("word")
	require.Equal(t, "a word", string(short.hide([]byte("a word"))), "a message keeps its words")
}
