package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDocumentsDoNotSteerTheTerminalAndReachAPipeAsTheyAre(t *testing.T) {
	t.Parallel()
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
