package heads_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

// addToolFunc adds a tool of the spec that keeps the arguments of its last call.
func addToolFunc(t testing.TB, h *heads.ToolHandler, spec heads.ToolSpec) *string {
	t.Helper()
	var got string
	require.NoError(t, heads.AddToolFunc(h, spec, func(_ context.Context, arguments json.RawMessage) (string, error) {
		got = string(arguments)
		return "done", nil
	}))
	return &got
}

func parametersOf(types ...string) []heads.ToolParameter {
	var parameters []heads.ToolParameter
	for i, wireType := range types {
		parameters = append(parameters, heads.ToolParameter{Name: string(rune('a' + i)), Type: wireType, Description: "A value"})
	}
	return parameters
}

func TestAddToolFuncReadsByType(t *testing.T) {
	for _, row := range []struct{ wireType, given, want, problem string }{
		{wireType: "string", given: `"seven"`, want: `"seven"`},
		{wireType: "string", given: `7`, want: `"7"`},
		{wireType: "string", given: `true`, want: `"true"`},
		{wireType: "string", given: `""`, want: `""`},
		{wireType: "string", given: `"a\n\"b\u00e9"`, want: `"a\n\"b\u00e9"`},
		{wireType: "string", given: "\"a\xff\"", want: `"a` + "\uFFFD" + `"`},
		{wireType: "string", given: `{}`, problem: "must be text, but an object was given"},
		{wireType: "integer", given: `5`, want: `5`},
		{wireType: "integer", given: `"5"`, want: `5`},
		{wireType: "integer", given: `5.0`, want: `5`},
		{wireType: "integer", given: `-5e2`, want: `-500`},
		{wireType: "integer", given: `12345678901234567890123`, want: `12345678901234567890123`},
		{wireType: "integer", given: `5.5`, problem: "must be a whole number, but 5.5 was given"},
		{wireType: "number", given: `5.50`, want: `5.50`},
		{wireType: "number", given: `" +5.5 "`, want: `5.5`},
		{wireType: "number", given: `"1e30"`, want: `1e+30`},
		{wireType: "number", given: `"many"`, problem: `must be a number, but "many" was given`},
		{wireType: "number", given: `1e999`, problem: "must be a number closer to zero"},
		{wireType: "boolean", given: `"Yes"`, want: `true`},
		{wireType: "boolean", given: `0`, want: `false`},
		{wireType: "boolean", given: `"perhaps"`, problem: "must be true or false"},
		{wireType: "array", given: `[1, null]`, want: `[1, null]`},
		{wireType: "array", given: `"one"`, want: `["one"]`},
		{wireType: "array", given: `{"k":1}`, want: `[{"k":1}]`},
		{wireType: "object", given: `{"k": 1}`, want: `{"k": 1}`},
		{wireType: "object", given: `[1]`, want: `[1]`},
		{wireType: "object", given: `5`, want: `5`},
		{wireType: "string|integer", given: `7`, want: `7`},
		{wireType: "string|integer", given: `"7"`, want: `"7"`},
		{wireType: "integer|boolean", given: `true`, want: `true`},
		{wireType: "integer|boolean", given: `[1]`, problem: "must be text, but a list was given"},
	} {
		t.Run(row.wireType+" "+row.given, func(t *testing.T) {
			h := newToolHandler(t)
			got := addToolFunc(t, h, heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf(row.wireType), Required: []string{"a"}})
			reply := toolReply(t, postTool(h, "/tool", `{"a": `+row.given+` }`))
			value, err := heads.ReadArgument(row.wireType, json.RawMessage(row.given))
			if row.problem != "" {
				assert.Contains(t, reply, "a "+row.problem)
				assert.Empty(t, *got)
				assert.Error(t, err)
				return
			}
			assert.Equal(t, "done", reply)
			assert.Equal(t, `{"a":`+row.want+`}`, *got)
			if len(row.wireType) <= len("boolean") {
				assert.Equal(t, row.want, string(value))
			}
		})
	}
}

func TestAddToolFuncTakesNullAndBlanksForAbsent(t *testing.T) {
	for _, wireType := range []string{"string", "number", "integer", "boolean", "array", "object", "string|integer", "integer|boolean"} {
		for _, given := range []string{`{}`, `{"a":null}`, `{"a":" "}`} {
			t.Run(wireType+" "+given, func(t *testing.T) {
				h := newToolHandler(t)
				required := addToolFunc(t, h, heads.ToolSpec{Name: "required", Description: "A tool", Parameters: parametersOf(wireType), Required: []string{"a"}})
				optional := addToolFunc(t, h, heads.ToolSpec{Name: "optional", Description: "A tool", Parameters: parametersOf(wireType)})
				if text := wireType == "string" || wireType == "string|integer"; text && given == `{"a":" "}` {
					assert.Equal(t, "done", toolReply(t, postTool(h, "/required", given)))
					assert.Equal(t, `{"a":" "}`, *required)
					return
				}
				assert.Equal(t, "a is missing; ask the user for it", toolReply(t, postTool(h, "/required", given)))
				assert.Equal(t, "done", toolReply(t, postTool(h, "/optional", given)))
				assert.Equal(t, `{}`, *optional)
			})
		}
	}
}

func TestAddToolFuncPassesDeclaredArgumentsInTheirOrder(t *testing.T) {
	h := newToolHandler(t)
	got := addToolFunc(t, h, heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("string", "integer", "array")})
	for _, body := range []string{
		`{"c":1,"unknown":{"a":1},"b":"2","a":3,"session_metadata":{"session_id":"s"}}`,
		`{"arguments":{"c":1,"b":"2","a":3},"session_metadata":{"session_id":"s"}}`,
	} {
		*got = ""
		assert.Equal(t, "done", toolReply(t, postTool(h, "/tool", body)))
		assert.Equal(t, `{"a":"3","b":2,"c":[1]}`, *got)
	}
	addToolFunc(t, h, heads.ToolSpec{Name: "none", Description: "A tool"})
	assert.Equal(t, "done", toolReply(t, postTool(h, "/none", `{"a":1}`)))
}

func TestAddToolFuncReturnsEveryFaultAtOnce(t *testing.T) {
	var calls []heads.ToolCallInfo
	h := newToolHandler(t, observed(&calls))
	addToolFunc(t, h, heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("integer", "string", "string"), Required: []string{"c", "b"}})
	assert.Equal(t, `b and c are missing; ask the user for them. a must be a whole number, but "x" was given; correct it or ask the user for it`,
		toolReply(t, postTool(h, "/tool", `{"a":"x"}`)))
	assert.Equal(t, heads.ToolArguments, calls[0].Outcome)
}

func TestAddToolFuncRegistersTheSpec(t *testing.T) {
	h := newToolHandler(t, heads.WithPathToken(toolToken))
	spec := heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("integer", "integer|boolean"), Required: []string{"a"}}
	got := addToolFunc(t, h, spec)
	want := []heads.Tool{{Name: "tool", Description: "A tool", URL: "https://tools.example.com/heads/" + toolToken + "/tool", Parameters: parametersOf("integer", "string")}}
	assert.Equal(t, want, h.Tools())
	assert.Equal(t, "integer|boolean", spec.Parameters[1].Type, "the caller's spec is left as it is")

	spec.Parameters[0].Name, spec.Required[0] = "changed", "changed"
	assert.Equal(t, want, h.Tools(), "the spec is copied")
	toolReply(t, postTool(h, "/"+toolToken+"/tool", `{"a":1}`))
	assert.Equal(t, `{"a":1}`, *got)
}

func TestAddToolFuncRefuses(t *testing.T) {
	f := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	good := func() heads.ToolSpec {
		return heads.ToolSpec{Name: "tool", Description: "A tool", Parameters: parametersOf("string", "integer"), Required: []string{"a"}}
	}
	for name, row := range map[string]struct {
		change func(*heads.ToolSpec)
		want   string
	}{
		"name":               {func(s *heads.ToolSpec) { s.Name = "a tool" }, "use a letter or _"},
		"taken":              {func(s *heads.ToolSpec) { s.Name = "taken" }, "taken by a tool"},
		"description":        {func(s *heads.ToolSpec) { s.Description = " " }, "description"},
		"parameter name":     {func(s *heads.ToolSpec) { s.Parameters[1].Name = "b c" }, `parameter "b c" name`},
		"parameter twice":    {func(s *heads.ToolSpec) { s.Parameters[1].Name = "a" }, "defined twice"},
		"parameter text":     {func(s *heads.ToolSpec) { s.Parameters[1].Description = "" }, `parameter "b" description`},
		"type":               {func(s *heads.ToolSpec) { s.Parameters[1].Type = "int" }, `type "int" is unknown`},
		"types":              {func(s *heads.ToolSpec) { s.Parameters[1].Type = "string|array" }, `type "string|array" is unknown`},
		"session metadata":   {func(s *heads.ToolSpec) { s.Parameters[1].Name = "session_metadata" }, "carries the session"},
		"required unknown":   {func(s *heads.ToolSpec) { s.Required = []string{"a", "z"} }, `required "z" is not the name of a parameter`},
		"required twice":     {func(s *heads.ToolSpec) { s.Required = []string{"a", "a"} }, `required "a" is given twice`},
		"required and empty": {func(s *heads.ToolSpec) { s.Required = []string{""} }, `required "" is not the name of a parameter`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newToolHandler(t)
			require.NoError(t, heads.AddToolFunc(h, heads.ToolSpec{Name: "taken", Description: "A tool"}, f))
			spec := good()
			row.change(&spec)
			err := heads.AddToolFunc(h, spec, f)
			var fault *heads.InvalidError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, "AddToolFunc", fault.Operation)
			assert.ErrorContains(t, err, row.want)
			assert.Len(t, h.Tools(), 1, "nothing is added")
		})
	}
	require.ErrorIs(t, heads.AddToolFunc(nil, good(), f), heads.ErrInvalid)
	require.ErrorIs(t, heads.AddToolFunc(&heads.ToolHandler{}, good(), f), heads.ErrInvalid)
	err := heads.AddToolFunc(newToolHandler(t), heads.ToolSpec{Required: []string{"a"}}, nil)
	for _, part := range []string{"function", "required", "description", "name"} {
		assert.ErrorContains(t, err, part, "all faults come back joined")
	}
}

func TestReadArgumentRefusesWhatIsNoArgument(t *testing.T) {
	for wireType, raw := range map[string]string{"int": "1", "": "1", "string": "", "number": "1 2", "object": "{", "array": "nul"} {
		_, err := heads.ReadArgument(wireType, json.RawMessage(raw))
		require.ErrorIs(t, err, heads.ErrInvalid, strconv.Quote(wireType))
	}
	_, err := heads.ReadArgument("integer", json.RawMessage("null"))
	require.EqualError(t, err, "the value is missing; ask the user for it")
	_, err = heads.ReadArgument("integer", json.RawMessage(` "x" `))
	require.EqualError(t, err, `the value must be a whole number, but "x" was given; correct it or ask the user for it`)
}
