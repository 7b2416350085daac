package headsmcp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What of the suite's schemas and valid instances gets through at least.
const (
	leastMapped = 275
	leastEqual  = 511
)

// suiteGroup is a schema of the JSON Schema Test Suite with its instances.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []suiteCase
}

type suiteCase struct {
	Description string
	Data        json.RawMessage
	Valid       bool
}

// toTheRoot matches a reference to the root of a schema; what is in an enum is none.
var toTheRoot = regexp.MustCompile(`("enum":\[\{)?"\$ref":"#[/"]`)

// inputSchemaOf returns the input schema of a tool whose one, required parameter x
// has the schema of a group.
func inputSchemaOf(t *testing.T, g suiteGroup) string {
	t.Helper()
	var node any
	require.NoError(t, json.Unmarshal(g.Schema, &node))
	top := map[string]any{"type": "object", "required": []any{"x"}}
	if m, ok := node.(map[string]any); ok && m["$schema"] != nil {
		top["$schema"] = m["$schema"]
		delete(m, "$schema")
	}
	moved := toTheRoot.ReplaceAllStringFunc(text(node), func(ref string) string {
		if strings.Contains(ref, "enum") {
			return ref
		}
		return strings.Replace(ref, "#", "#/properties/x", 1)
	})
	top["properties"] = map[string]any{"x": json.RawMessage(moved)}
	return text(top)
}

// The suite's schemas as the tools of an MCP server: a valid instance reaches the
// server as it is, an invalid one does not. Package jsonschema carries draft 2020-12 of it.
func TestJSONSchemaTestSuite(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/google/jsonschema-go/jsonschema").Output()
	require.NoError(t, err)
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "draft2020-12", "*.json"))
	require.NoError(t, err)
	schemas, mapped, passed, equal, failed := 0, 0, 0, 0, 0
	for _, name := range names {
		doc, err := os.ReadFile(name)
		require.NoError(t, err)
		var groups []suiteGroup
		require.NoError(t, json.Unmarshal(doc, &groups), name)
		for _, g := range groups {
			isMapped, equals, fails := g.run(t, filepath.Base(name)+": "+g.Description)
			schemas++
			equal += equals
			failed += fails
			if isMapped {
				mapped++
				passed += len(g.Tests) - fails
			}
		}
	}
	t.Logf("schemas: %d of %d mapped; valid instances: %d arrive as they are", mapped, schemas, equal)
	t.Logf("total: %d passed, %d failed", passed, failed) // for scripts/suites.sh
	assert.GreaterOrEqual(t, mapped, leastMapped)
	assert.GreaterOrEqual(t, equal, leastEqual)
}

// run returns whether the schema can be mapped, how many valid instances arrive as they are, and
// how many instances fail.
func (g suiteGroup) run(t *testing.T, name string) (mapped bool, equal, failed int) {
	var s rawServer
	arguments := s.received()
	s.pages = []string{toolsOf(inputSchemaOf(t, g))}
	h := newHandler(t)
	if _, err := AddTools(t.Context(), h, s.connect(t), Describe(func(*mcp.Tool, string) string { return "A value" })); err != nil {
		for line := range strings.Lines(err.Error()) {
			require.True(t, strings.HasPrefix(line, `heads: headsmcp.AddTools: tool "tool" input schema `), line)
		}
		t.Logf("refused %s: %v", name, err)
		return false, 0, 0
	}
	var reference jsonschema.Schema
	require.NoError(t, json.Unmarshal(g.Schema, &reference), name)
	validator, err := reference.Resolve(nil)
	require.NoError(t, err, name)
	for _, c := range g.Tests {
		*arguments = nil
		message := call(t, h, "tool", `{"x":`+string(c.Data)+`}`)
		var given any
		var sent struct{ X any }
		require.NoError(t, json.Unmarshal(c.Data, &given))
		problem, same := "", false
		if len(*arguments) > 0 {
			require.NoError(t, json.Unmarshal([]byte((*arguments)[0]), &sent))
			message, same = "arrives as "+(*arguments)[0], reflect.DeepEqual(given, sent.X)
		}
		switch {
		case c.Valid && !same && !mayStay(g, c):
			problem = "is valid, but: " + message
		case !c.Valid && same:
			problem = "is not valid, but arrives"
		case len(*arguments) > 0 && !same:
			if err := validator.Validate(sent.X); err != nil {
				problem = message + ", which is not valid: " + err.Error()
			}
		}
		if problem != "" {
			failed++
			t.Errorf("%s: %s: %s with the schema %s %s", name, c.Description, c.Data, g.Schema, problem)
		}
		if same && c.Valid {
			equal++
		}
	}
	return true, equal, failed
}

// mayStay reports whether a valid instance need not reach the server as it is: null
// and a blank text are as good as absent, and an object is no list.
func mayStay(g suiteGroup, c suiteCase) bool {
	if kindOf(c.Data) == "null" || isBlank(c.Data) {
		return true
	}
	var m map[string]any
	_ = json.Unmarshal(g.Schema, &m) // true and false are schemas, too
	return kindOf(c.Data) == "object" && m["items"] != nil && m["type"] == nil
}
