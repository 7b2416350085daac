package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// description is an OpenAPI document, with as much of JSON Schema as it uses.
type description struct {
	t    testing.TB
	root map[string]any
}

func describe(t testing.TB, text []byte) description {
	var root map[string]any
	require.NoError(t, json.Unmarshal(text, &root))
	return description{t, root}
}

// at follows a path of keys and, on its way, references.
func (d description) at(v any, keys ...string) any {
	for _, key := range keys {
		m, ok := d.resolve(v).(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return d.resolve(v)
}

func (d description) resolve(v any) any {
	for {
		m, _ := v.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			return v
		}
		path, local := strings.CutPrefix(ref, "#/")
		require.True(d.t, local, ref)
		v = any(d.root)
		for key := range strings.SplitSeq(path, "/") {
			m, _ := v.(map[string]any)
			require.Contains(d.t, m, key, "%s leads nowhere", ref)
			v = m[key]
		}
	}
}

func (d description) schema(name string) map[string]any {
	s, _ := d.at(d.root, "components", "schemas", name).(map[string]any)
	require.NotNil(d.t, s, name)
	return s
}

// knownKeywords are those that check understands or that say nothing of a
// value.
var knownKeywords = []string{"type", "properties", "required", "items", "additionalProperties", "allOf", "enum", "format", "minimum",
	"minProperties", "description", "readOnly", "default", "examples", "$ref"}

var formats = map[string]func(string) bool{
	"uuid":      regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString,
	"date-time": func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
	"uri":       regexp.MustCompile(`^https?://[^/]+`).MatchString,
	"int64":     func(string) bool { return true },
}

// check returns what is wrong with a value. A field that the schema doesn't
// name is wrong too.
func (d description) check(schema, v any, where string) (wrong []string) {
	if schema == true {
		return nil
	}
	s, ok := d.resolve(schema).(map[string]any)
	if !ok {
		return []string{where + ": there is no schema"}
	}
	for keyword := range s {
		if !slices.Contains(knownKeywords, keyword) {
			wrong = append(wrong, where+": the keyword "+keyword+" is not checked")
		}
	}
	for _, part := range list(s["allOf"]) {
		wrong = append(wrong, d.check(part, v, where)...)
	}
	if types := list(s["type"]); len(types) > 0 && !slices.ContainsFunc(types, func(t any) bool { return hasType(v, t) }) {
		return append(wrong, fmt.Sprintf("%s: %v is not of type %v", where, v, s["type"]))
	}
	if values := list(s["enum"]); len(values) > 0 && !slices.Contains(values, v) {
		wrong = append(wrong, fmt.Sprintf("%s: %v is not in the list", where, v))
	}
	switch v := v.(type) {
	case string:
		if format, ok := s["format"].(string); ok && !formats[format](v) {
			wrong = append(wrong, fmt.Sprintf("%s: %q is no %s", where, v, format))
		}
	case []any:
		for i, item := range v {
			wrong = append(wrong, d.check(s["items"], item, fmt.Sprintf("%s[%d]", where, i))...)
		}
	case map[string]any:
		if s["type"] == "object" {
			wrong = append(wrong, d.checkObject(s, v, where)...)
		}
	}
	return wrong
}

func (d description) checkObject(s, v map[string]any, where string) (wrong []string) {
	for _, name := range list(s["required"]) {
		if _, ok := v[name.(string)]; !ok {
			wrong = append(wrong, where+": "+name.(string)+" is missing")
		}
	}
	if least, ok := s["minProperties"].(float64); ok && len(v) < int(least) {
		wrong = append(wrong, where+": too few properties")
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		property, ok := properties[name]
		if !ok {
			property, ok = s["additionalProperties"]
		}
		if !ok {
			wrong = append(wrong, where+": "+name+" is not in the schema")
			continue
		}
		wrong = append(wrong, d.check(property, v[name], where+"."+name)...)
	}
	return wrong
}

// list takes a single value for a list of one.
func list(v any) []any {
	if l, ok := v.([]any); ok || v == nil {
		return l
	}
	return []any{v}
}

func hasType(v, name any) bool {
	n, isNumber := v.(float64)
	switch v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return isNumber && (name == "number" || name == "integer" && n == float64(int64(n)))
}

func TestSchemaCheckFindsWhatIsWrong(t *testing.T) {
	d := describe(t, []byte(`{"components":{"schemas":{"Word":{"type":"string"}}}}`))
	rows := []struct{ name, schema, value, says string }{
		{"right", `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/components/schemas/Word"},"b":{"type":["integer","null"]}}}`, `{"a":"x","b":null}`, ""},
		{"missing", `{"type":"object","required":["a"]}`, `{}`, "a is missing"},
		{"too much", `{"type":"object","properties":{}}`, `{"a":1}`, "a is not in the schema"},
		{"too little", `{"type":"object","minProperties":1}`, `{}`, "too few"},
		{"type", `{"type":"object","properties":{"a":{"$ref":"#/components/schemas/Word"}}}`, `{"a":1}`, ".a: 1 is not of type string"},
		{"null", `{"type":"string"}`, `null`, "not of type"},
		{"whole number", `{"type":"integer"}`, `1.5`, "not of type"},
		{"list item", `{"type":"array","items":{"type":"boolean"}}`, `[true,"x"]`, "[1]: x is not"},
		{"list without items", `{"type":"array"}`, `[1]`, "no schema"},
		{"value of a map", `{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":1}`, ".a: 1"},
		{"anything", `{"type":"object","additionalProperties":true}`, `{"a":1}`, ""},
		{"part", `{"allOf":[{"type":"object","required":["a"]}]}`, `{}`, "a is missing"},
		{"list of values", `{"type":"string","enum":["a"]}`, `"b"`, "not in the list"},
		{"format", `{"type":"string","format":"uuid"}`, `"b"`, "no uuid"},
		{"unknown keyword", `{"pattern":"x"}`, `"x"`, "pattern is not checked"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var schema, value any
			require.NoError(t, json.Unmarshal([]byte(row.schema), &schema))
			require.NoError(t, json.Unmarshal([]byte(row.value), &value))
			wrong := strings.Join(d.check(schema, value, ""), "\n")
			if row.says == "" {
				assert.Empty(t, wrong)
			}
			assert.Contains(t, wrong, row.says)
		})
	}
}
