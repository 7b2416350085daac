package main

import (
	"bytes"
	"encoding/json"
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

// FuzzPlanPrintsWhatWasWritten writes a text and a number into a heads.yaml, in every
// style of YAML, and reads what plan prints of them. The text is tried as a whole
// file, too.
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
		if len(text) > 1<<12 || strings.Contains(text, "://") {
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
		var result struct{ Changes []struct{ Field, To string } }
		line, _, _ := strings.Cut(stdout, "\n")
		require.NoError(t, json.Unmarshal([]byte(line), &result), stdout)
		shown := map[string]string{}
		for _, change := range result.Changes {
			shown[change.Field] = change.To
		}
		require.Equal(t, clipped(`{"n":`+number+`}`), shown["pluginOperationalModeConfig"], file)
		require.Equal(t, clipped(text), shown["greetings"], file)
	})
}

// plainWords are what a plain text is tried with: no indicator begins it, and no
// comment ends it.
var plainWords = regexp.MustCompile(`^[A-Za-z0-9][^#]*$`)

// inStyle writes a text as a value of YAML.
func inStyle(text string, style byte) (written string, ok bool) {
	printable := utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xfffe
	})
	oneLine := printable && !strings.Contains(text, "\n")
	switch style % 5 {
	case 0: // plain
		return text, oneLine && plainWords.MatchString(text) && text == strings.TrimSpace(text)
	case 1:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'", oneLine
	case 2:
		return string(rawjson.String(text)), utf8.ValidString(text)
	case 3:
		return "|+1\n       " + strings.ReplaceAll(text, "\n", "\n       "), printable
	default:
		return yamltext.Scalar(text), utf8.ValidString(text)
	}
}

// planInProcess runs headsctl plan on the text of a file.
func planInProcess(t *testing.T, dir, text string) (code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(dir, "heads.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var outputs [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		var err error
		outputs[i], err = os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
	}
	a := newApp(os.Stdin, outputs[0], outputs[1], []string{"plan", "-f", file, "--json", "--journal", "none"})
	code = a.run(t.Context())
	var texts [2]string
	for i, output := range outputs {
		require.NoError(t, output.Close())
		content, err := os.ReadFile(output.Name())
		require.NoError(t, err)
		texts[i] = string(bytes.TrimSpace(content))
	}
	return code, texts[0], texts[1]
}

// clipped is how a change shows a text.
func clipped(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > 120 {
		return strings.TrimSpace(string(runes[:119])) + "…"
	}
	return text
}
