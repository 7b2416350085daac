package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// description is an OpenAPI document.
type description struct {
	t    testing.TB
	root map[string]any
}

func describe(t testing.TB, text []byte) description {
	var root map[string]any
	require.NoError(t, json.Unmarshal(text, &root))
	return description{t, root}
}

// at follows a path of keys, and references on the way.
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

// formats are the patterns of the formats that the description uses.
var formats = map[any]string{
	"uuid":      `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
	"date-time": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`,
	"uri":       `^https?://[^/]+`,
}

// check returns what is wrong with a value. A field that is not in the schema is
// wrong, and so is a text that does not have its format.
func (d description) check(schema, v any, where string) error {
	components := d.at(d.root, "components", "schemas")
	text, err := json.Marshal(strict(map[string]any{"$defs": components, "allOf": []any{schema}}))
	require.NoError(d.t, err)
	var s jsonschema.Schema
	require.NoError(d.t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")), &s), where)
	resolved, err := s.Resolve(nil)
	require.NoError(d.t, err, where)
	if err := resolved.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// strict returns a schema that allows no further fields.
func strict(schema any) any {
	switch s := schema.(type) {
	case []any:
		out := make([]any, len(s))
		for i, item := range s {
			out[i] = strict(item)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, item := range s {
			out[key] = strict(item)
		}
		if _, open := s["additionalProperties"]; !open && s["type"] == "object" {
			out["additionalProperties"] = false
		}
		if pattern, ok := formats[s["format"]]; ok {
			out["pattern"] = pattern
		}
		return out
	default:
		return schema
	}
}

// list returns a single value as a list of one.
func list(v any) []any {
	if l, ok := v.([]any); ok || v == nil {
		return l
	}
	return []any{v}
}

func TestSchemaCheckFindsWhatIsWrong(t *testing.T) {
	d := describe(t, []byte(`{"components":{"schemas":{"Word":{"type":"string"}}}}`))
	rows := []struct {
		name, schema, value string
		right               bool
	}{
		{"right", `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/components/schemas/Word"},"b":{"type":["integer","null"]}}}`, `{"a":"x","b":null}`, true},
		{"anything", `{"type":"object","additionalProperties":true}`, `{"a":1}`, true},
		{"too much", `{"type":"object","properties":{}}`, `{"a":1}`, false},
		{"too much in a part", `{"allOf":[{"type":"object","properties":{}}]}`, `{"a":1}`, false},
		{"type behind a reference", `{"type":"object","properties":{"a":{"$ref":"#/components/schemas/Word"}}}`, `{"a":1}`, false},
		{"format", `{"type":"string","format":"uuid"}`, `"b"`, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var schema, value any
			require.NoError(t, json.Unmarshal([]byte(row.schema), &schema))
			require.NoError(t, json.Unmarshal([]byte(row.value), &value))
			assert.Equal(t, row.right, d.check(schema, value, row.name) == nil)
		})
	}
}
