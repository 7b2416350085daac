package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/assert"
)

func TestDocumentsDoNotSteerTheTerminalAndReachAPipeAsTheyAre(t *testing.T) {
	const steering = "\x7f\u009b2J\u0085\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u00a0"
	head := `{"id":"` + someID + `","name":"Ada` + steering + `","headVisualId":"x"}`
	page := "<p>\x1b]0;owned\x07\x1b[2J\t" + steering + "\x9b1m</p>"
	service := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/head/"+someID {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, head)
		} else {
			_, _ = io.WriteString(w, page)
		}
	})
	c := newTerminal(t).at(service.URL, "token")
	for _, row := range [][]string{ // sent, a part of what is shown, then the arguments
		{head, `"Ada\u007f\u009b2J\u0085\u061c\u200e\u200f\u202a\u202e\u2066\u2069` + "\u00a0", "get", someID, "--raw"},
		{head, `"Ada\u007f\u009b2J`, "get", someID, "--raw", "--show-secrets"}, {head, `"Ada\u007f\u009b2J`, "call", "GET", "/head/" + someID},
		{page, "<p>�]0;owned��[2J ��2J", "call", "GET", "/page"},
	} {
		assert.Equal(t, row[0]+"\n", c.ok(row[2:]...))
		s := c.show(300, row[2:]...)
		assert.Equal(t, 0, s.end(), row)
		text := strings.ReplaceAll(s.String(), "\r\n", "\n") // of the terminal's own
		assert.Contains(t, text, row[1])
		assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }), "%q", text)
	}
}

func TestTablesAreCutToTheTerminal(t *testing.T) {
	c := demo(t)
	c.ok("set", c.ids[0], "name="+strings.Repeat("多い ", 30))
	c.write("tool.yaml", toolFile, "about.txt", strings.Repeat("Tells where an order is. ", 10))
	c.ok("tools", "put", c.ids[0], "-f", "tool.yaml")
	c.ok("delivery", "on", c.ids[23]) // a note on stderr is no table
	for _, args := range [][]string{
		{"get", c.ids[0]}, {"webhooks", "list", c.ids[23]}, {"tools", "list", c.ids[0]}, {"tools", "check", c.ids[0]}, {"doctor", "-f", "ids.csv"},
	} {
		s := c.show(40, args...)
		s.end()
		for _, line := range lines(plain(s)) {
			assert.LessOrEqual(t, runewidth.StringWidth(line), 40, "%v: %q", args, line)
		}
	}
	assert.Contains(t, c.ok("tools", "list", c.ids[0]), strings.TrimSpace(strings.Repeat("Tells where an order is. ", 10)), "not cut without a terminal")
}

func TestColourIsForTerminalsWithoutNoColor(t *testing.T) {
	c := demo(t)
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	s := c.show(100, "plan", "-f", "heads.yaml")
	assert.Equal(t, 0, s.end())
	assert.Regexp(t, colour, s.String())
	s = c.with("NO_COLOR=1").show(100, "plan", "-f", "heads.yaml")
	assert.Equal(t, 0, s.end())
	assert.NotRegexp(t, colour, s.String())
	assert.Contains(t, plain(s), "pending "+c.ids[0], "the word says it too")
	assert.NotRegexp(t, colour, c.ok("plan", "-f", "heads.yaml"))
}

func TestConvertOnATerminalShowsABar(t *testing.T) {
	c := emulator(t, legacyHeads(50), "-latency", "10ms")
	s := c.show(100, append([]string{"convert", "--yes"}, c.ids...)...).wait("left").wait("50 changed, 0 unchanged, 0 blocked, 0 failed, 0 skipped")
	assert.Equal(t, 0, s.end())
	assert.Regexp(t, `applying \d+/50 .*\d+ failed, \d+\.\d/s, .* left`, plain(s))
	for i, id := range c.ids {
		assert.Equal(t, 1, strings.Count(plain(s), fmt.Sprintf("changed %s Head %d https://stream", id, i+1)))
	}
}

func TestStdoutHoldsDataAlone(t *testing.T) {
	c := demo(t)
	// stdin and stderr are a terminal, stdout is not.
	s := c.showCommand(100, exec.Command("sh", "-c", headsctl+" convert -f ids.csv > out"))
	assert.Equal(t, 1, s.wait("[y/N]").press("y\r").end())
	for _, line := range lines(c.read("out")) {
		assert.Regexp(t, `^(changed|unchanged|blocked) [0-9a-f-]{36} |^15 changed, 5 unchanged, 5 blocked, 0 failed, 0 skipped \(a blocked head gets nothing of its entry\)$`, line)
	}
	assert.Len(t, lines(c.read("out")), 26)
}
