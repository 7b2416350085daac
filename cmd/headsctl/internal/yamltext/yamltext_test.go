package yamltext

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func repeat(n int, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(text(i))
	}
	return b.String()
}

func laughs() string {
	return "a0: &a0 [x]\n" + repeat(9, func(i int) string {
		return fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9))
	})
}

// bombs are texts that would take time or memory out of proportion.
var bombs = map[string]struct{ text, want string }{
	"aliases of aliases":       {laughs(), "5:14: aliases stand for more than 1000 values in all; write fewer of them"},
	"one large anchor":         {"a: &a [" + strings.Repeat("x,", 1_000) + "]\nb: [" + strings.Repeat("*a,", 999) + "]\n", "2:302: there are more than 100000 values; split the text"},
	"1001 aliases":             {"a: &a x\nb: [" + strings.Repeat("*a,", 1_001) + "]\n", "2:3005: aliases stand for more than 1000 values"},
	"merged objects":           {"a: &a {" + strings.Repeat("k", 9) + ": 1}\nb: [" + strings.Repeat("{<<: *a},", 1_001) + "]\n", "aliases stand for more than 1000 values"},
	"an alias of itself":       {"a: &a [*a]\n", "1:8: the alias *a is a part of what it stands for"},
	"open lists":               {strings.Repeat("[", 100_000), "1:65: values are nested more than 64 levels deep"},
	"open objects":             {strings.Repeat("{a: ", 100_000), "values are nested more than 64 levels deep"},
	"lists in lists":           {strings.Repeat("- ", 100_000) + "a\n", "1:129: values are nested more than 64 levels deep"},
	"complex keys":             {strings.Repeat("? ", 100_000) + "a\n", "values are nested more than 64 levels deep"},
	"indented keys":            {indented(100), "65:66: values are nested more than 64 levels deep"},
	"nested through an alias":  {"a: &a " + nested(40) + "\nb: " + strings.Repeat("[", 30) + "*a" + strings.Repeat("]", 30) + "\n", "values are nested more than 64 levels deep"},
	"a long list":              {strings.Repeat("- a\n", 1_000_000), "100000:1: there are more than 100000 values; split the text"},
	"a long list of nothing":   {strings.Repeat("-\n", 2_000_000), "there are more than 100000 values"},
	"a long flow list":         {"[" + strings.Repeat("a,", 2_000_000) + "]", "there are more than 100000 values"},
	"many keys":                {repeat(100_000, func(i int) string { return fmt.Sprintf("k%d: v\n", i) }), "there are more than 100000 values"},
	"a list after a long text": {"a: '" + strings.Repeat("x", 3<<20) + "'\nb: [" + strings.Repeat("a,", 200_000) + "]", "there are more than 100000 values"},
	"a list after comments":    {strings.Repeat("# it's\n", 1<<18) + strings.Repeat("- a\n", 100_001), "there are more than 100000 values"},
	"more than 4 MiB":          {strings.Repeat(" ", MaxBytes+1), "1:1: the text has more than 4194304 bytes; split it"},
	"directives":               {strings.Repeat("%TAG !e! tag:example.com,2026:\n", 100_000) + "--- a\n", "1:1: this is a directive, which is not read here; remove the line"},
	"a directive in the end":   {"a: 1\n...\n%YAML 1.1\n---\nb: 2\n", "3:1: this is a directive"},
	"aliases in a long list":   {"a: &a x\nb:\n" + strings.Repeat("- y\n", 98_900) + "c: [" + strings.Repeat("*a,", 1_001) + "]\n", "98903:3005: aliases stand for more than 1000 values"},
	"JSON":                     {strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "values are nested more than 64 levels deep"},
}

func indented(n int) string {
	return repeat(n, func(i int) string { return strings.Repeat(" ", i) + "a:\n" })
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestBombsAreRefusedBeforeTheyAreDecoded(t *testing.T) {
	for name, row := range bombs {
		t.Run(name, func(t *testing.T) {
			text := []byte(row.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(text)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, row.want)
			require.ErrorAs(t, err, new(*Error))
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(48<<20), "bytes, beside the text and the program")
		})
	}
}

func TestTextsAtTheLimitsAreRead(t *testing.T) {
	for name, text := range map[string]string{
		"64 levels": nested(64), "64 levels, JSON": strings.Repeat(`{"a":`, 63) + "[]" + strings.Repeat("}", 63), "64 block levels": indented(64),
		"1000 aliases": "a: &a x\nb: [" + strings.Repeat("*a,", 1_000) + "]\n", "100000 values": strings.Repeat("- a\n", MaxNodes-1),
		"8 MiB":    "a: '" + strings.Repeat("x", MaxBytes-5) + "'",
		"brackets": "a: |\n" + strings.Repeat("  [[[[ - {: *a\n", 100_000) + "b: \"" + strings.Repeat("[- ,", 100_000) + "\"\nc: x " + strings.Repeat("[ { - , ", 100_000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(text))
			assert.NoError(t, err)
		})
	}
}

// counted returns the nodes that the parser makes, beside that of the document.
func counted(n *yaml.Node) (nodes int) {
	for _, c := range n.Content {
		nodes += 1 + counted(c)
	}
	return nodes
}

// The parser builds at most the nodes that the meter has counted, and Parse never panics.
func FuzzMeasure(f *testing.F) {
	for _, row := range bombs {
		if len(row.text) < 1<<10 {
			f.Add(row.text)
		}
	}
	for _, text := range []string{
		"heads:\n  - id: a\n    set: {greetings: \"a \\\" b\", alias: 'it''s'}\n    label: |\n      x\n\n      - y\n    voice: >-2\n        a\n",
		"a: x\n  \" y\nb: [1, 2, 3]\n", "a: b: c\n", "? a\n: b\n? c\n", "{a, b: , ? c}", "[a: b, {c: d}]", "- - a\n  - b\n- c: d\n  e:\n  - f\n", "a:\n- b\n- c\nd: e\n",
		"--- a\n...\n%YAML 1.2\n---\nb: c\n", "&a b: *a\n", "!!str a: !x b\n", "é: - \n", "\"a\\\nb\": c\n", "a: b # c, d\n# e: f\n", "a:  # c\n  |\n   b: c\n d: e\n",
		"a: |1\n  b\n c\nd: e\n", "- |\n a\n- b\n", "|\n a\n", ">\n\n  a\n b\n", "a\u2028- b\u0085- c\r- d\r\n- e", "{\"a\":1,\"b\":[true,null,{}]}", "-\n-\n- -\n", "[,]", "a: 'x\n---\nb: c\n",
		"a: [b\n- c, d]\n", "\t- a\n", "a:\tb\n-\tc\n", "? - a\n  - b\n: - c\n", "[? a, ?b]", "[a?b, c]", "{:a, ::}", "a: !<x,y> [b]\n", "*a : b\n", "a: &x\n  b: c\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return
		}
		m := newMeter([]byte(text))
		if m.measure() != nil {
			return // refused, whatever it holds
		}
		given, _ := m.withStandIn()
		var document yaml.Node
		if err := yaml.NewDecoder(bytes.NewReader(given)).Decode(&document); err != nil {
			return
		}
		require.GreaterOrEqual(t, m.nodes, counted(&document), "%q", text)
		var placed *Error
		if v, err := Parse([]byte(text)); errors.As(err, &placed) {
			require.Positive(t, min(placed.Line, placed.Column), "%q: %v has no place", text, err)
		} else if err == nil {
			_, _ = v.AppendJSON(nil)
		}
	})
}

func TestQuestionsInListsAreRead(t *testing.T) {
	v, err := Parse([]byte("[Where is the lift?, a?b, {c?: d ?}, 'e?', \ue000?]"))
	require.NoError(t, err)
	document, err := v.AppendJSON(nil)
	require.NoError(t, err)
	assert.JSONEq(t, `["Where is the lift?","a?b",{"c?":"d ?"},"e?","\ue000?"]`, string(document))
	assert.Equal(t, 22, v.Items[1].Column)
}

func TestAKeyAloneInBracesIsRefused(t *testing.T) {
	for text, place := range map[string]string{
		"{a: b, c}": "1:8", "a: {c, d: e}": "1:5", "[{a: [b, c], d}]": "1:14", "{a: b,\n \"c, d\" # e: f\n}": "2:2", "{a:b}": "1:2", "{a: {b: c}, ? d}": "1:13",
		"{a: b, c: , d: null, e: # f\n, ? g : h, \"i\":j, }": "", "[a, b]": "", "{}": "",
	} {
		if _, err := Parse([]byte(text)); place == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, place+": this key has no value; ", text)
		}
	}
}

func TestAForbiddenCharacterIsRefusedWithItsPlace(t *testing.T) {
	for _, r := range []rune{0, 7, 0x1f, 0x7f, 0x80, 0x9f, 0xfeff, 0xfffe, 0xffff} {
		_, err := Parse([]byte("a: b\nä: \"x" + string(r) + "\""))
		assert.EqualError(t, err, fmt.Sprintf(`2:6: YAML has no place for the character %U; leave it out, or write "\u%04x" in double quotes`, r, r))
		v, err := Parse(fmt.Appendf(nil, `a: "\u%04x"`, r))
		require.NoError(t, err)
		assert.Equal(t, string(r), v.Get("a").Text)
	}
}
