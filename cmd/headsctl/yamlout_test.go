package main

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

var difficult = []string{
	"", "yes", "null", "~", "1e3", "0x1f", "- a", "a: b", "a #b", "line1\nline2\n", "line\n\n", " lead\nx", "x\n trail ", "true",
	"2020-01-01", "\n", "a\n\n\nb", "|", "? a", "'q'", "a\r\nb", "\tx", "x\t", "0o7", "1_000", ".inf", "<<", "=", "!!str a", "&a", "*a",
	"...", "---", "a\n---\nb", "a:", "{a}", "line1\n  indented\nline3\n", "Ask:\n- one\n- two # x\n", "12345678-1234-1234-1234-123456789012",
	"0b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01", "5e123456-1234-1234-1234-123456789012", "https://a.example.com/x?y=z#f", "https://a.example.com:", "é\n😀",
}

func TestYAMLIsReadAsTheSameDocument(t *testing.T) {
	letters := []rune("ab1 :-#\n\t'\"{}[],&*!|>%@`?~0.eE+xyon\\<=é\u00a0\u2028\r\x00\x1b😀\u0085\u009b\u202e/")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3_000 {
		text := ""
		if i < len(difficult) {
			text = difficult[i]
		} else {
			for range random.IntN(9) {
				text += string(letters[random.IntN(len(letters))])
			}
		}
		want := map[string]any{
			"k": text, "o": map[string]any{"n": text}, "e": map[string]any{}, "b": true, "f": 1.5, "small": 1e-7, "large": -1e21, "none": nil,
			"l": []any{text, map[string]any{"n": text, "m": []any{text, []any{}}}, []any{text, "x"}}, "z": "end",
		}
		if text != "" {
			want["o"].(map[string]any)[text] = "value" // a name is a text too
		}
		doc, err := rawjson.Encode(want)
		require.NoError(t, err)
		written := toYAML(doc)
		got, err := yamltext.Parse(written)
		require.NoError(t, err, "%q\n%s", text, written)
		again, err := got.AppendJSON(nil)
		require.NoError(t, err)
		if !assert.JSONEq(t, string(doc), string(again), "%q\n%s", text, written) {
			return
		}
		var decoded any
		require.NoError(t, yaml.Unmarshal(written, &decoded), "%q\n%s", text, written)
		again, err = json.Marshal(decoded)
		require.NoError(t, err)
		if !assert.JSONEq(t, string(doc), string(again), "the library decodes it so too: %q\n%s", text, written) {
			return
		}
	}
}
