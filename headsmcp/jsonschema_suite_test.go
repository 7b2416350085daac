package headsmcp

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
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

// suiteFiles returns draft 2020-12 of the JSON Schema Test Suite, which package
// jsonschema carries, by the name of the file.
func suiteFiles(t *testing.T) map[string][]suiteGroup {
	t.Helper()
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/google/jsonschema-go/jsonschema").Output()
	require.NoError(t, err)
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "draft2020-12", "*.json"))
	require.NoError(t, err)
	files := map[string][]suiteGroup{}
	for _, name := range names {
		doc, err := os.ReadFile(name)
		require.NoError(t, err)
		var groups []suiteGroup
		require.NoError(t, json.Unmarshal(doc, &groups), name)
		require.NotEmpty(t, groups, name)
		files[strings.TrimSuffix(filepath.Base(name), ".json")] = groups
	}
	return files
}

// moved returns a schema with its references to its root, for the place that
// pointer leads to.
func moved(node any, pointer string) any {
	m, ok := node.(map[string]any)
	if !ok {
		return node
	}
	all := make(map[string]any, len(m))
	for key, value := range m {
		switch text, isText := value.(string); {
		case key == "$ref" && isText && (text == "#" || strings.HasPrefix(text, "#/")):
			all[key] = "#" + pointer + text[1:]
		case slices.Contains(sameValue, key) || slices.Contains(partOfIt, key):
			all[key] = movedParts(key, value, pointer)
		default:
			all[key] = value
		}
	}
	return all
}

// movedParts returns the value of a keyword that holds schemas.
func movedParts(key string, value any, pointer string) any {
	switch parts := value.(type) {
	case []any:
		all := make([]any, 0, len(parts))
		for _, part := range parts {
			all = append(all, moved(part, pointer))
		}
		return all
	case map[string]any:
		if !slices.Contains(namesToMap, key) {
			return moved(parts, pointer)
		}
		all := make(map[string]any, len(parts))
		for name, part := range parts {
			all[name] = moved(part, pointer)
		}
		return all
	default:
		return value
	}
}

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
	top["properties"] = map[string]any{"x": moved(node, "/properties/x")}
	return text(top)
}

// suiteRun counts what became of the suite.
type suiteRun struct {
	schemas, mapped, equal int
	valid, invalid, failed int // instances
	refused                []string
}

// The suite's schemas as the tools of an MCP server: a valid instance reaches the
// server as it is, an invalid one does not.
func TestJSONSchemaTestSuite(t *testing.T) {
	files := suiteFiles(t)
	var run suiteRun
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, g := range files[name] {
			run.group(t, name+": "+g.Description, g)
		}
	}
	for _, refusal := range run.refused {
		t.Logf("refused %s", refusal)
	}
	t.Logf("schemas: %d of %d mapped", run.mapped, run.schemas)
	t.Logf("valid instances: %d passed, %d of them equal", run.valid, run.equal)
	t.Logf("invalid instances: %d passed", run.invalid)
	t.Logf("total: %d passed, %d failed", run.valid+run.invalid, run.failed)
	assert.GreaterOrEqual(t, run.mapped, leastMapped)
	assert.GreaterOrEqual(t, run.equal, leastEqual)
}

func (r *suiteRun) group(t *testing.T, name string, g suiteGroup) {
	r.schemas++
	var s rawServer
	arguments := s.received()
	s.pages = []string{toolsOf(inputSchemaOf(t, g))}
	h := newHandler(t)
	if _, err := AddTools(t.Context(), h, s.connect(t), Describe(func(*mcp.Tool, string) string { return "A value" })); err != nil {
		r.refused = append(r.refused, name+": "+strings.Join(reasonsOf(t, err), ", "))
		return
	}
	r.mapped++
	var reference jsonschema.Schema
	require.NoError(t, json.Unmarshal(g.Schema, &reference), name)
	validator, err := reference.Resolve(nil)
	require.NoError(t, err, name)
	for _, c := range g.Tests {
		*arguments = nil
		message := call(t, h, "tool", `{"x":`+string(c.Data)+`}`)
		problem := ""
		if len(*arguments) > 0 {
			problem = r.arrived(t, validator, g, c, (*arguments)[0])
		} else if c.Valid && !mayStay(g, c) {
			problem = "is valid, but is refused: " + message
		}
		switch {
		case problem != "":
			r.failed++
			t.Errorf("%s: %s: %s with the schema %s %s", name, c.Description, c.Data, g.Schema, problem)
		case c.Valid:
			r.valid++
		default:
			r.invalid++
		}
	}
}

// reasonsOf returns why AddTools refuses the input schema of the only tool.
func reasonsOf(t *testing.T, err error) (reasons []string) {
	t.Helper()
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			reasons = append(reasons, reasonsOf(t, e)...)
		}
		return reasons
	}
	var fault *heads.InvalidError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, `tool "tool" input schema`, fault.Field)
	reason, _, _ := strings.Cut(fault.Problem, "; ")
	return []string{reason}
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

// arrived returns what is wrong with the arguments that reached the server.
func (r *suiteRun) arrived(t *testing.T, validator *jsonschema.Resolved, g suiteGroup, c suiteCase, arguments string) string {
	var given any
	var sent struct{ X any }
	require.NoError(t, json.Unmarshal(c.Data, &given))
	require.NoError(t, json.Unmarshal([]byte(arguments), &sent))
	switch same := reflect.DeepEqual(given, sent.X); {
	case same && c.Valid:
		r.equal++
		return ""
	case c.Valid && !mayStay(g, c):
		return "arrives as " + arguments
	case !c.Valid && same:
		return "is not valid, but arrives"
	}
	if err := validator.Validate(sent.X); err != nil {
		return "arrives as " + arguments + ", which is not valid: " + err.Error()
	}
	return ""
}
