package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestManyHeadsAsJSON(t *testing.T) {
	c := demo(t)
	out := lines(c.ends(1, "convert", "-f", "ids.csv", "--yes", "--json", "--report", "r.json").stdout)
	require.Len(t, out, 26)
	keys := map[string]object{}
	for _, result := range parse[struct{ Results []object }](t, c.read("r.json")).Results {
		keys[result["head_id"].(string)] = result
	}
	for _, line := range out[:25] {
		result := parse[object](t, line)
		assert.Equal(t, "result", result["type"])
		delete(result, "type")
		assert.Equal(t, keys[result["head_id"].(string)], result, "as in the report")
	}
	assert.JSONEq(t, `{"type":"summary","counts":{"changed":15,"unchanged":5,"blocked":5,"failed":0,"skipped":0},"note":"a blocked head gets nothing of its entry"}`, out[25])
	assert.Contains(t, lines(c.ok("plan", "-f", "heads.yaml", "--json"))[3], `{"type":"summary","counts":{`)
}
