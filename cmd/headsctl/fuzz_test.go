package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext/yamltest"
	"github.com/headsapi/heads-go/headstest"
)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$`)

// A text and a number are written in every style of YAML. The text is tried as a whole file,
// too.
func FuzzPlanPrintsWhatWasWritten(f *testing.F) {
	for _, text := range append(slices.Clone(yamltest.Difficult), "007", "0123456", "1.10", "0x1F", "2026-08-31", "Where is the lift?", "heads: [{id: *a}]", "{file: /etc/hostname}", "heads:\n  - id: 1\n") {
		for style := range byte(5) {
			f.Add(text, style, "12345678901234567890")
		}
	}
	for _, number := range []string{"0", "-0.10", "1e3", "9007199254740993", "0.10000000000000000001", "1E-7"} {
		f.Add("x", byte(0), number)
	}
	server := headstest.NewServer(headstest.WithSeed(1), headstest.WithJournalSize(1))
	f.Cleanup(server.Close)
	id := server.AddHead(headstest.Head{Fields: map[string]any{"greetings": "", "pluginOperationalModeConfig": nil}})
	f.Setenv("HEADS_BASE_URL", server.URL)
	f.Setenv("HEADS_TOKEN", server.Token)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string, style byte, number string) {
		if len(text) > 1<<12 || strings.Contains(text, "//") {
			return // URLs are masked
		}
		if code, _, stderr := planInProcess(t, dir, text); code == exitUsage {
			require.NotEmpty(t, stderr, "%q", text)
		}
		written, ok := inStyle(text, style)
		if !ok || !jsonNumber.MatchString(number) {
			return
		}
		file := fmt.Sprintf("heads:\n  - id: %s\n    set:\n      pluginOperationalModeConfig: {n: %s}\n      greetings: %s\n", id, number, written)
		code, stdout, stderr := planInProcess(t, dir, file)
		if code == exitUsage && (style%5 == 0 || strings.Contains(stderr, "placeholder")) {
			return // a plain text may be anything
		}
		require.Equal(t, exitDone, code, "%s%s", file, stderr)
		shown := map[string]string{}
		for _, change := range parse[struct{ Changes []struct{ Field, To string } }](t, lines(stdout)[0]).Changes {
			shown[change.Field] = change.To
		}
		require.Equal(t, clipped(`{"n":`+number+`}`), shown["pluginOperationalModeConfig"], file)
		require.Equal(t, clipped(text), shown["greetings"], file)
	})
}

// plainWords are begun by no indicator and ended by no comment.
var plainWords = regexp.MustCompile(`^[A-Za-z0-9][^#]*$`)

func inStyle(text string, style byte) (written string, ok bool) {
	// JSON leaves these as they are, and YAML refuses or folds them.
	bare := utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == 0xfffe || r == 0xffff
	})
	printable := bare && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' })
	oneLine := printable && !strings.Contains(text, "\n")
	switch style % 5 {
	case 0: // plain
		return text, oneLine && plainWords.MatchString(text) && text == strings.TrimSpace(text)
	case 1:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'", oneLine
	case 2:
		return string(rawjson.String(text)), bare
	case 3:
		return "|+1\n       " + strings.ReplaceAll(text, "\n", "\n       "), printable
	default:
		return yamltext.Scalar(text), utf8.ValidString(text)
	}
}

func planInProcess(t *testing.T, dir, text string) (code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(dir, "heads.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, log := need(os.Create(filepath.Join(dir, "stdout")))(t), need(os.Create(filepath.Join(dir, "stderr")))(t)
	code = newApp(os.Stdin, out, log, []string{"plan", "-f", file, "--json", "--journal", "none"}).run(t.Context())
	require.NoError(t, out.Close())
	require.NoError(t, log.Close())
	return code, contents(t, out.Name()), contents(t, log.Name())
}

// clipped is how a change shows a text.
func clipped(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > 120 {
		return strings.TrimSpace(string(runes[:119])) + "…"
	}
	return text
}
