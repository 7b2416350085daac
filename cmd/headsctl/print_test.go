package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDocumentsDoNotSteerTheTerminalAndReachAPipeAsTheyAre(t *testing.T) {
	const steering = "\x7f\u009b2J\u0085\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u00a0"
	head := `{"id":"` + someID + `","name":"Ada` + steering + `","headVisualId":"x"}`
	page := "<p>\x1b]0;owned\x07\x1b[2J\t" + steering + "\x9b1m</p>"
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/head/"+someID {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(head))
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	defer service.Close()
	c := newTerminal(t).at(service.URL, "token")
	for name, row := range map[string]struct {
		args  []string
		sent  string
		shown string
	}{
		"get":       {[]string{"get", someID, "--raw"}, head, `"Ada\u007f\u009b2J\u0085\u061c\u200e\u200f\u202a\u202e\u2066\u2069` + "\u00a0"},
		"get whole": {[]string{"get", someID, "--raw", "--show-secrets"}, head, `"Ada\u007f\u009b2J`},
		"call":      {[]string{"call", "GET", "/head/" + someID}, head, `"Ada\u007f\u009b2J`},
		"page":      {[]string{"call", "GET", "/page"}, page, "<p>�]0;owned��[2J ��2J"},
	} {
		assert.Equal(t, row.sent+"\n", c.ok(row.args...), name)
		s := c.show(300, row.args...)
		assert.Equal(t, 0, s.end(), name)
		text := strings.ReplaceAll(s.String(), "\r\n", "\n") // of the terminal's own
		assert.Contains(t, text, row.shown, name)
		assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) }), "%s: %q", name, text)
	}
}

func TestTablesAreCutToTheTerminal(t *testing.T) {
	c := demo(t)
	c.ok("set", c.ids[0], "name="+strings.Repeat("多い ", 30))
	c.write("tool.yaml", toolFile)
	c.write("about.txt", strings.Repeat("Tells where an order is. ", 10))
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
	wide := c.ok("tools", "list", c.ids[0])
	assert.Contains(t, wide, strings.TrimSpace(strings.Repeat("Tells where an order is. ", 10)), "not cut without a terminal")
}

func TestColourIsForTerminalsWithoutNoColor(t *testing.T) {
	c := demo(t)
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	s := c.show(100, "plan", "-f", "heads.yaml")
	s.end()
	assert.Regexp(t, colour, s.String())
	s = c.with("NO_COLOR=1").show(100, "plan", "-f", "heads.yaml")
	s.end()
	assert.NotRegexp(t, colour, s.String())
	assert.Contains(t, plain(s), "pending "+c.ids[0], "the word says it too")
	assert.NotRegexp(t, colour, c.ok("plan", "-f", "heads.yaml"))
}

func TestConvertOnATerminalShowsABar(t *testing.T) {
	c := emulator(t, legacyHeads(50), "-latency", "10ms")
	s := c.show(100, append([]string{"convert", "--yes"}, c.ids...)...)
	s.wait("left")
	s.wait("50 changed, 0 unchanged, 0 blocked, 0 failed, 0 skipped")
	assert.Equal(t, 0, s.end())
	assert.Regexp(t, `applying \d+/50 .*\d+ failed, \d+\.\d/s, .* left`, plain(s))
	for i, id := range c.ids {
		assert.Equal(t, 1, strings.Count(plain(s), fmt.Sprintf("changed %s Head %d https://stream", id, i+1)))
	}
}

func TestStdoutHoldsDataAlone(t *testing.T) {
	c := demo(t)
	// stdin and stderr are a terminal, stdout is not.
	out := filepath.Join(c.dir, "out")
	s := c.showCommand(100, exec.Command("sh", "-c", headsctl+" convert -f ids.csv > "+out))
	s.wait("[y/N]")
	s.press("y\r")
	assert.Equal(t, 1, s.end())
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	for _, line := range lines(string(text)) {
		assert.Regexp(t, `^(changed|unchanged|blocked) [0-9a-f-]{36} |^15 changed, 5 unchanged, 5 blocked, 0 failed, 0 skipped \(a blocked head gets nothing of its entry\)$`, line)
	}
	assert.Len(t, lines(string(text)), 26)
}
