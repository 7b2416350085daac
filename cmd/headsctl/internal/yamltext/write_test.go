package yamltext_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/rawjson"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext/yamltest"
)

func TestYAMLIsReadAsTheSameDocument(t *testing.T) {
	letters := []rune("ab1 :-#\n\t'\"{}[],&*!|>%@`?~0.eE+xyon\\<=é\u00a0\u2028\r\x00\x1b😀\u0085\u009b\u202e/")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3_000 {
		text := ""
		if i < len(yamltest.Difficult) {
			text = yamltest.Difficult[i]
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
		written := yamltext.Write(doc)
		got, err := yamltext.Parse(written)
		require.NoError(t, err, "%q\n%s", text, written)
		again, err := got.AppendJSON(nil)
		require.NoError(t, err)
		require.JSONEq(t, string(doc), string(again), "%q\n%s", text, written)
		var decoded any
		require.NoError(t, yaml.Unmarshal(written, &decoded), "%q\n%s", text, written)
		again, err = json.Marshal(decoded)
		require.NoError(t, err)
		require.JSONEq(t, string(doc), string(again), "the library decodes it so too: %q\n%s", text, written)
	}
}
