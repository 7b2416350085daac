package headsmcp

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// schemaRow is a JSON Schema feature and what becomes of it. The property is x, and required.
type schemaRow struct {
	name, property        string
	rest                  string // beside properties, with a comma before it
	wireType, description string
}

var schemaRows = []schemaRow{
	{"T or null by type", `{"type":["string","null"],"description":"City"}`, ``, "string", "City. Optional."},
	{"T or null by oneOf", `{"oneOf":[{"type":"null"},{"type":"integer","minimum":2}],"description":"City"}`, ``, "integer", "City. At least 2. Optional."},
	{"T or null by anyOf", `{"anyOf":[{"type":"array","items":{"type":"string"},"description":"Tags"},{"type":"null"}]}`, ``, "array", "Tags. Items: string. Optional."},
	{"enum of one type", `{"enum":["a","b"]}`, ``, "string", `One of: "a", "b".`},
	{"enum of whole numbers", `{"enum":[1,2]}`, ``, "integer", `One of: 1, 2.`},
	{"enum of numbers", `{"enum":[1,2.5]}`, ``, "number", `One of: 1, 2.5.`},
	{"const", `{"const":true}`, ``, "boolean", `Always true.`},
	{"properties without type", `{"properties":{"a":{"type":"string"}}}`, ``, "object", "Fields: a (string, optional)."},
	{"items without type", `{"items":{"type":"integer"}}`, ``, "array", "Items: integer."},
	{"several scalars", `{"type":["string","integer"],"description":"Order","minimum":1}`, ``, "string", "Order. A string or integer. At least 1."},
	{"several scalars by anyOf", `{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`, ``, "string", "An integer or boolean."},
	{"several scalars by oneOf", `{"oneOf":[{"type":"string"},{"type":"number"},{"type":"null"}]}`, ``, "string", "A string or number. Optional."},
	{"several scalars by enum", `{"enum":["auto",1]}`, ``, "string", `A string or integer. One of: "auto", 1.`},
	{"integer is a number", `{"type":["integer","number"],"title":"N"}`, ``, "number", "N."},
	{"several with array", `{"type":["string","array"],"description":"To"}`, ``, "object", "To. Any JSON value."},
	{"several with object", `{"anyOf":[{"type":"string"},{"type":"object"}]}`, ``, "object", "Any JSON value."},
	{"true", `true`, ``, "object", "Any JSON value."},
	{"empty schema", `{}`, ``, "object", "Any JSON value."},
	{"anyOf with an empty schema", `{"anyOf":[{"type":"string"},{}]}`, ``, "object", "Any JSON value."},
	{"$ref to $defs", `{"$ref":"#/$defs/city"}`, `,"$defs":{"city":{"type":"string","description":"City"}}`, "string", "City."},
	{"$ref to definitions", `{"$ref":"#/definitions/a~1b%20c"}`, `,"definitions":{"a/b c":{"type":"string","title":"City"}}`, "string", "City."},
	{"$ref into a list", `{"$ref":"#/$defs/row/prefixItems/1"}`, `,"$defs":{"row":{"prefixItems":[{"type":"integer"},{"type":"string","title":"City"}]}}`, "string", "City."},
	{"what is beside a $ref goes first", `{"$ref":"#/$defs/city","description":"Town"}`, `,"$defs":{"city":{"type":"string","description":"City","minLength":2}}`,
		"string", "Town. At least 2 characters."},
	{"recursion", `{"$ref":"#/$defs/node"}`, `,"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"next":{"$ref":"#/$defs/node"},"all":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}`,
		"object", "Fields: all (list of object, optional), name (string, optional), next (object, optional)."},
	{"recursion to the top", `{"type":"array","items":{"$ref":"#"}}`, ``, "array", "Items: object."},
	{"recursion through anyOf", `{"$ref":"#/$defs/node"}`, `,"$defs":{"node":{"anyOf":[{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}},{"type":"null"}]}}`,
		"object", "Fields: next (object, optional). Optional."},
	{"recursion to the parameter", `{"$ref":"#/$defs/node"}`, `,"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/properties/x"}}}}`,
		"object", "Fields: next (object, optional)."},
	{"items behind others", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"},"description":"Row"}`, ``, "array", "Row."},
	{"a parameter that is the top", `{"$ref":"#","description":"Self"}`, ``, "object", "Self."},
	{"allOf", `{"allOf":[{"type":"string","description":"First"},{"description":"Second","minLength":3,"maxLength":5},{"maxLength":9}]}`, ``,
		"string", "First. At least 3 characters. At most 5 characters."},
	{"allOf of objects", `{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`, `,"$defs":{"a":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}`,
		"object", "Fields: a (string), b (integer)."},
	{"facts of a number", `{"default":5,"multipleOf":5,"exclusiveMaximum":9.5,"maximum":9,"exclusiveMinimum":0.5,"minimum":1,"const":5,"enum":[5,6],"type":"number"}`, ``,
		"number", "One of: 5, 6. Always 5. At least 1. More than 0.5. At most 9. Less than 9.5. A multiple of 5. Default: 5."},
	{"facts of a text", `{"maxLength":9,"minLength":2,"pattern":"^a+$","format":"date","type":"string","default":"<a>"}`, ``,
		"string", `Format: date. Pattern: ^a+$. At least 2 characters. At most 9 characters. Default: "<a>".`},
	{"facts of a list", `{"type":"array","items":{"type":"integer"},"uniqueItems":true,"minItems":1,"maxItems":3,"default":[1, 2]}`, ``,
		"array", "At least 1 items. At most 3 items. No item twice. Items: integer. Default: [1,2]."},
	{"items twice", `{"type":"array","description":"Tags","uniqueItems":false}`, ``, "array", "Tags."},
	{"fields of an object", `{"type":"object","properties":{"zip":{"type":"string"},"street":{"type":"string"},"never":false},"required":["street"]}`, ``,
		"object", "Fields: street (string), zip (string, optional)."},
	{"nested", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},"o":{"type":"object","properties":{"a":{"type":"string"}}},"u":{"type":["string","integer"]},"x":{}}}`, ``,
		"object", "Fields: l (list of list of integer, optional), o (object of a (string, optional), optional), u (string or integer, optional), x (any JSON value, optional)."},
	{"four levels", `{"type":"array","items":` + strings.Repeat(`{"type":"array","items":`, 5) + `{"type":"integer"}` + strings.Repeat(`}`, 6), ``,
		"array", "Items: list of list of list of list of list."},
}

func TestTableOfSchemas(t *testing.T) {
	rows := schemaRows
	for _, kind := range []string{"string", "number", "integer", "boolean", "array", "object"} {
		rows = append(rows, schemaRow{kind, `{"type":"` + kind + `","description":"City"}`, ``, kind, "City."})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			h := offered(t, toolsOf(`{"type":"object","properties":{"x":`+row.property+`},"required":["x"]`+row.rest+`}`))
			assert.Equal(t, []heads.ToolParameter{{Name: "x", Type: row.wireType, Description: row.description}}, h.Tools()[0].Parameters)
		})
	}
}

func TestDescriptionsOfWideSchemasEnd(t *testing.T) {
	var definitions []string
	for level := range 5 {
		var properties []string
		for i := range 30 {
			properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/l%d"}`, i, level+1))
		}
		definitions = append(definitions, fmt.Sprintf(`"l%d":{"type":"object","properties":{%s}}`, level, strings.Join(properties, ",")))
	}
	h := offered(t, toolsOf(`{"properties":{"x":{"$ref":"#/$defs/l0"}},"$defs":{"l5":{"type":"string"},`+strings.Join(definitions, ",")+`}}`))
	assert.LessOrEqual(t, utf8.RuneCountInString(h.Tools()[0].Parameters[0].Description), 1000)
}

// A model reads the descriptions at every turn, and a server may be a stranger's.
func TestDescriptionsHaveThousandCharacters(t *testing.T) {
	long := strings.Repeat("ö", 2000)
	values := make([]string, 60)
	for i := range values {
		values[i] = fmt.Sprintf(`"value %02d"`, i)
	}
	all := strings.Join(values, ",")
	fifty := strings.ReplaceAll(strings.Join(values[:50], ","), ",", ", ")
	for _, row := range []struct{ name, property, starts, ends string }{
		{"text", `{"description":"` + long + `","type":"string"}`, "öö", "ö. Optional."},
		{"text with its own stop", `{"description":"` + long[:2*989] + `?","type":"string"}`, long[:2*989], "ö? Optional."},
		{"values that fit", `{"description":"City","enum":[` + all + `]}`, "City. One of: ", fifty + " and 10 more. Optional."},
		{"values beside a text that can be cut", `{"description":"` + long + `","enum":[` + strings.Join(values[:50], ",") + `]}`, long[:2*350], "ö. One of: " + fifty + ". Optional."},
		{"values beside a pattern", `{"description":"` + long + `","type":"string","pattern":"` + long[:2*500] + `","enum":[` + all + `]}`, long[:2*290], " and 47 more. Pattern: " + long[:2*500] + ". Optional."},
		{"one value", `{"description":"City","enum":["` + long + `"]}`, `City. One of: "öö`, "ö…. Optional."},
		{"pattern", `{"description":"City","type":"string","pattern":"` + long + `"}`, "City. Pattern: öö", "ö…. Optional."},
		{"default", `{"description":"City","type":"string","minLength":2,"default":"` + long + `"}`, `City. At least 2 characters. Default: "öö`, "ö…. Optional."},
		{"fields", `{"description":"City","type":"object","properties":{"` + long + `":{"type":"string"}}}`, "City. Fields: öö", "ö…. Optional."},
		{"no text", `{"type":"string","default":"` + long + `"}`, `Default: "öö`, "ö…. Optional."},
		{"every fact", `{"description":"` + long + `","type":"string","enum":["` + long + `"],"const":"` + long + `","format":"` + long + `","pattern":"` + long + `","minLength":2,"maxLength":9,"default":"` + long + `"}`,
			long[:2*290], `ö…. At least 2 characters. At most 9 characters. Default: "` + long[:2*116] + "…. Optional."},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := offered(t, toolsOf(`{"properties":{"x":`+row.property+`}}`))
			description := h.Tools()[0].Parameters[0].Description
			assert.LessOrEqual(t, utf8.RuneCountInString(description), 1000)
			assert.True(t, strings.HasPrefix(description, row.starts), description)
			assert.True(t, strings.HasSuffix(description, row.ends), description)
			if strings.Contains(row.property, long) {
				assert.Greater(t, utf8.RuneCountInString(description), 980, "no more is cut than must be")
			}
		})
	}
}

func TestTextsAreOneLineOfThousandCharacters(t *testing.T) {
	for _, row := range []struct{ text, want, parameter string }{
		{`City\n\tor   town `, "City or town.", "City or town."},
		{`City.`, "City.", "City."},
		{`Which city?`, "Which city?", "Which city?"},
		{strings.Repeat("ä", 20<<10), strings.Repeat("ä", 1000) + ".", strings.Repeat("ä", 999) + "."},
	} {
		h := offered(t, `[{"name":"tool","description":"`+row.text+`","inputSchema":{"properties":{"x":{"type":"string","title":"Not this","description":"`+row.text+`"}},"required":["x"]}}]`)
		assert.Equal(t, row.want, h.Tools()[0].Description, "a tool's description is its text alone")
		assert.Equal(t, row.parameter, h.Tools()[0].Parameters[0].Description)
	}
}

func TestTextsOfTheServerAreWithoutControlCharacters(t *testing.T) {
	const hostile = `a\u0000b\u001b[31mc\u0085d\u2028e`
	h := offered(t, `[{"name":"tool","description":"`+hostile+`","inputSchema":{"properties":{"x":{"description":"`+hostile+`",
		"type":["object","null"],"format":"`+hostile+`","pattern":"`+hostile+`]","default":{"a":"`+hostile+`"},"properties":{"`+hostile+`":{"type":"string"}}}}}}]`)
	assert.Equal(t, "a b [31mc d e.", h.Tools()[0].Description)
	description := h.Tools()[0].Parameters[0].Description
	assert.Contains(t, description, "Format: a b [31mc d e. Pattern: a b [31mc d e].")
	assert.NotRegexp(t, `[\x00-\x1f\x7f-\x{9f}\x{2028}]`, description)
}

func TestTitleStandsInForADescription(t *testing.T) {
	h := offered(t, `[{"name":"a","title":"Weather","inputSchema":{}},{"name":"b","description":" ","annotations":{"title":"Rain"},"inputSchema":{}},
		{"name":"c","description":"Snow","title":"Not this","annotations":{"title":"Not this"},"inputSchema":{}},{"name":"d","title":"Hail","annotations":{"title":"Not this"},"inputSchema":{}}]`)
	var texts []string
	for _, tool := range h.Tools() {
		texts = append(texts, tool.Description)
	}
	assert.Equal(t, []string{"Weather.", "Rain.", "Snow.", "Hail."}, texts)
}

func TestRequiredParametersComeFirst(t *testing.T) {
	h := offered(t, toolsOf(`{"type":"object","properties":{"a":{"type":"string"},"z":{"type":"string","title":"Z"},"m":{"type":"string","title":"M"},"f":{},"b":{"type":"string"},"e":{},"d":{},"c":{},"g":{}},"required":["z","m"]}`))
	var names []string
	for _, p := range h.Tools()[0].Parameters {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"z", "m", "a", "b", "c", "d", "e", "f", "g"}, names)
}

func TestToolWithoutProperties(t *testing.T) {
	for _, inputSchema := range []string{`null`, `{}`, `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"type":"object","properties":{"x":false}}`,
		`{"type":"object","additionalProperties":{"type":"string"}}`, `{"$ref":"#/$defs/none","$defs":{"none":{"type":"object"}}}`} {
		h, arguments := recording(t, inputSchema)
		assert.Empty(t, h.Tools()[0].Parameters, inputSchema)
		assert.Equal(t, "done", call(t, h, "tool", `{"undeclared":1,"session_metadata":{"session_id":"s"}}`))
		assert.Equal(t, []string{"{}"}, *arguments)
	}
}

func TestThreeHundredParameters(t *testing.T) {
	var properties, body []string
	for i := range 300 {
		properties = append(properties, fmt.Sprintf(`"p%03d":{"type":"integer"}`, i))
		body = append(body, fmt.Sprintf(`"p%03d":"%d"`, i, i))
	}
	h, arguments := recording(t, `{"type":"object","properties":{`+strings.Join(properties, ",")+`}}`)
	require.Len(t, h.Tools()[0].Parameters, 300)
	assert.Equal(t, "done", call(t, h, "tool", "{"+strings.Join(body, ",")+"}"))
	assert.Contains(t, (*arguments)[0], `"p299":299`)
}

func TestSchemasThatNoParametersExpressAreRefused(t *testing.T) {
	deep := `"d0":{"type":"string"}`
	for i := range 20 {
		deep += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	for _, row := range []struct{ name, schema, want string }{
		{"oneOf", `{"type":"object","oneOf":[]}`, "has oneOf at the top"},
		{"anyOf", `{"type":"object","anyOf":[{"required":["a"]}]}`, "has anyOf at the top"},
		{"allOf", `{"type":"object","allOf":[{}]}`, "has allOf at the top"},
		{"if", `{"type":"object","if":{}}`, "has if at the top"},
		{"not", `{"type":"object","not":{}}`, "has not at the top"},
		{"oneOf behind a $ref", `{"$ref":"#/$defs/a","$defs":{"a":{"oneOf":[]}}}`, "has oneOf at the top"},
		{"type", `{"type":"string"}`, "another type than object at the top"},
		{"types", `{"type":["object","null"]}`, "another type than object at the top"},
		{"no object", `[1]`, "is no JSON object"},
		{"false", `{"$ref":"#/$defs/a","$defs":{"a":false}}`, "is false"},
		{"$ref out", `{"properties":{"x":{"$ref":"https://example.com/schema.json"}}}`, `has the $ref "https://example.com/schema.json", which leads to no schema in it`},
		{"$ref to a file", `{"properties":{"x":{"$ref":"other.json#/a"}}}`, "leads to no schema"},
		{"$ref to nowhere", `{"properties":{"x":{"items":{"$ref":"#/$defs/a"}}}}`, "leads to no schema"},
		{"$ref to no schema", `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":"text"}}`, "leads to no schema"},
		{"$ref to an anchor", `{"properties":{"x":{"$ref":"#a"}},"$defs":{"a":{"$anchor":"a"}}}`, "leads to no schema"},
		{"$ref to itself", `{"properties":{"x":{"$ref":"#/properties/x"}}}`, "leads back to itself"},
		{"$ref in a loop", `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "leads back to itself"},
		{"$refs that multiply", `{"properties":{"x":{"$ref":"#/$defs/d20"}},"$defs":{` + deep + `}}`, "multiply to more than 10000"},
		{"$dynamicRef", `{"properties":{"x":{"$dynamicRef":"#a"}}}`, "has a $dynamicRef"},
		{"$id inside", `{"properties":{"x":{"$id":"https://example.com/x"}}}`, "has an $id inside"},
		{"required without a property", `{"properties":{},"required":["x"]}`, `requires "x", which is no property`},
		{"required and false", `{"properties":{"x":false},"required":["x"]}`, `requires "x", which is no property`},
		{"pattern of another language", `{"properties":{"x":{"type":"string","pattern":"(?=a)"}}}`, "can't be used"},
		{"keyword of another type", `{"properties":{"x":{"type":"string","minLength":"5"}}}`, "can't be used"},
		{"words of the server in an error", `{"properties":{"x":{"type":"string","pattern":"a(\u001b\n"}}}`, "error parsing regexp: missing closing ): `a(  `"},
		{"unknown draft", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"x":{"type":"string"}}}`, "can't be used"},
		{"unknown type", `{"properties":{"x":{"type":"text"}}}`, `type "text" is unknown`},
		{"name with a space", `{"properties":{"a b":{"type":"string"}}}`, `parameter "a b"`},
		{"session metadata", `{"properties":{"session_metadata":{"type":"string"}}}`, "carries the session"},
		{"no description", `{"properties":{"x":{"type":"string"}},"required":["x"]}`, `parameter "x" description`},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHandler(t)
			names, err := tryAdd(t, h, []string{toolsOf(`{"type":"object"}`, row.schema)})
			var fault *heads.InvalidError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, "headsmcp.AddTools", fault.Operation)
			assert.True(t, strings.HasPrefix(fault.Field, `tool "toolx"`), fault.Field)
			assert.ErrorContains(t, err, row.want)
			assert.Empty(t, names)
			assert.Empty(t, h.Tools(), "all tools are added or none")
		})
	}
}
