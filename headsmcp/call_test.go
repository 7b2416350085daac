package headsmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

const failed = "The tool failed; tell the user that this does not work right now and go on without it"

// serving returns a handler with the one tool of the input schema.
func serving(t testing.TB, s *rawServer, inputSchema string, opts ...heads.ToolHandlerOption) *heads.ToolHandler {
	t.Helper()
	s.pages = []string{toolsOf(inputSchema)}
	h := newHandler(t, opts...)
	addTools(t.Context(), t, h, s.connect(t), Describe(func(*mcp.Tool, string) string { return "A value" }))
	return h
}

// recording returns a handler with the one tool of the input schema, and the arguments of calls.
func recording(t testing.TB, inputSchema string) (*heads.ToolHandler, *[]string) {
	t.Helper()
	var s rawServer
	arguments := s.received()
	return serving(t, &s, inputSchema), arguments
}

func TestArgumentsReachTheServerAsTheSchemaWants(t *testing.T) {
	const node = `,"$defs":{"node":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/node"}}}}`
	for _, row := range []struct{ name, property, rest, given, want string }{
		{"integer", `{"type":"integer"}`, ``, `"5"`, `5`},
		{"long number", `{"type":"number"}`, ``, `0.10000000000000000000001`, `0.10000000000000000000001`},
		{"one value for a list", `{"type":"array","items":{"type":"string"}}`, ``, `7`, `["7"]`},
		{"items", `{"type":"array","items":{"type":"integer"}}`, ``, `["1",2.0,3]`, `[1,2,3]`},
		{"items of items", `{"type":"array","items":{"type":"array","items":{"type":"boolean"}}}`, ``, `["yes",["no"]]`, `[[true],[false]]`},
		{"fields", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string"}}},"required":["a"]}`, ``, `{"a":"1","b":2,"c":"kept"}`, `{"a":1,"b":["2"],"c":"kept"}`},
		{"absent fields", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":["string","null"]},"d":{"type":"boolean"},"e":{},"f":true}}`, ``, `{"a":"\u0020","b":"","c":null,"d":null,"e":null,"f":""}`, `{"b":"","c":null,"e":null,"f":""}`},
		{"recursion", `{"$ref":"#/$defs/node"}`, node, `{"n":"1","next":{"n":2.0,"next":{"n":3}}}`, `{"n":1,"next":{"n":2,"next":{"n":3}}}`},
		{"recursion through anyOf", `{"$ref":"#/$defs/node"}`, `,"$defs":{"node":{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/node"}}},{"type":"null"}]}}`, `{"n":"1","next":{"n":2.0,"next":null}}`, `{"n":1,"next":{"n":2,"next":null}}`},
		{"items behind others", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, ``, `["5","6"]`, `["5",6]`},
		{"$ref to what all arguments share", `{"$ref":"#/additionalProperties"}`, `,"additionalProperties":{"type":"integer"}`, `"5"`, `5`},
		{"bytes that are no UTF-8", `{"type":"object","properties":{"a":{"type":"string"}}}`, ``, "{\"a\":\"\xff\",\"b\":[\"\xff\"]}", `{"a":"` + "\uFFFD" + `","b":["` + "\uFFFD" + `"]}`},
		{"format, which is not checked here", `{"type":"string","format":"date"}`, ``, `"no date"`, `"no date"`},
		{"null", `{"type":["integer","null"]}`, ``, `null`, `null`},
		{"T or null", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, ``, `"5"`, `5`},

		{"scalars as given, number", `{"type":["string","integer"]}`, ``, `7`, `7`},
		{"scalars as given, text", `{"type":["string","integer"]}`, ``, `"7"`, `"7"`},
		{"scalars in turn", `{"type":["integer","boolean"]}`, ``, `"yes"`, `true`},
		{"scalars in turn, first", `{"type":["integer","boolean"]}`, ``, `"1"`, `1`},
		{"scalars, where the text is not valid", `{"anyOf":[{"type":"string","pattern":"^a"},{"type":"integer","minimum":3}]}`, ``, `"7"`, `7`},
		{"scalars inside", `{"type":"array","items":{"type":["string","integer"]}}`, ``, `[7,"7",true]`, `[7,"7","true"]`},
		{"integer or text inside", `{"type":"array","items":{"type":["integer","boolean"]}}`, ``, `["7","yes"]`, `[7,true]`},

		{"any value, text", `{"type":["string","array"]}`, ``, `"7"`, `"7"`},
		{"any value, list", `{"type":["string","array"]}`, ``, `["7"]`, `["7"]`},
		{"any value", `true`, ``, `{"a":[null,"x"]}`, `{"a":[null,"x"]}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, arguments := recording(t, `{"type":"object","properties":{"x":`+row.property+`},"required":["x"]`+row.rest+`}`)
			assert.Equal(t, "done", call(t, h, "tool", `{"x":`+row.given+`,"session_metadata":{"session_id":"s"}}`))
			require.Len(t, *arguments, 1)
			assert.Equal(t, `{"x":`+row.want+`}`, (*arguments)[0])
		})
	}
}

func TestDeclaredArgumentsAloneAreSent(t *testing.T) {
	h, arguments := recording(t, `{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"},"c":{"type":["string","null"]},"d":{"type":"string","default":"the server's"},"e":false,"f":{"type":["string","null"]}},"required":["c","a"],"additionalProperties":false}`)
	assert.Equal(t, "done", call(t, h, "tool", `{"b":1,"a":"x","unknown":1,"e":2,"d":null,"session_metadata":{"session_id":"s"}}`))
	assert.Equal(t, []string{`{"c":null,"a":"x","b":1}`}, *arguments, "required and nullable: null")
}

func TestArgumentsThatTheSchemaRefusesReachNoServer(t *testing.T) {
	h, arguments := recording(t, `{"type":"object","properties":{"city":{"enum":["Oslo","Rome"]},"days":{"type":"integer","maximum":9},"to":{"$ref":"#/$defs/address"}},"required":["city"],
		"dependentRequired":{"to":["days"]},"$defs":{"address":{"type":"object","properties":{"zip":{"type":"string","minLength":5}},"required":["zip"]}}}`)
	for _, row := range []struct{ body, want string }{
		{`{}`, "city is missing; ask the user for it"},
		{`{"city":null}`, "city is missing; ask the user for it"},
		{`{"city":"Paris"}`, "city is not as described; correct it or ask the user for it"},
		{`{"city":"Paris","days":10}`, "city is not as described; correct it or ask the user for it. days is not as described; correct it or ask the user for it"},
		{`{"city":"Oslo","days":"many"}`, `days must be a whole number, but "many" was given; correct it or ask the user for it`},
		{`{"city":"Oslo","to":{"zip":"123"},"days":1}`, "to is not as described; correct it or ask the user for it"},
		{`{"city":"Oslo","to":{"zip":null},"days":1}`, "to is not as described; correct it or ask the user for it"},
		{`{"city":"Oslo","to":{"zip":"12345"}}`, "The set of arguments is not as described; correct it or ask the user for it"},
	} {
		assert.Equal(t, row.want, call(t, h, "tool", row.body), row.body)
	}
	assert.Empty(t, *arguments)
	assert.Equal(t, "done", call(t, h, "tool", `{"city":"Oslo","days":"1","to":{"zip":12345}}`))
	assert.Equal(t, []string{`{"city":"Oslo","days":1,"to":{"zip":"12345"}}`}, *arguments)

	h, arguments = recording(t, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{"type":"integer"},"y":{"enum":["a"]}},"required":["x","y"]}}}`)
	assert.Equal(t, "y is not as described; correct it or ask the user for it", call(t, h, "tool", `{"x":1,"y":"b"}`))
	assert.Equal(t, "done", call(t, h, "tool", `{"x":"1","y":"a"}`))
	assert.Equal(t, []string{`{"x":1,"y":"a"}`}, *arguments)
}

func TestRulesOfAllArgumentsAreCheckedTogether(t *testing.T) {
	for name, rule := range map[string]string{
		"minProperties":     `"minProperties":2`,
		"dependentRequired": `"dependentRequired":{"x":["y"]}`,
		"dependentSchemas":  `"dependentSchemas":{"x":{"required":["y"]}}`,
		"dependencies":      `"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"x":["y"]}`,
		"enum":              `"enum":[{"x":1,"y":2},{"x":1,"y":3}]`,
		"const":             `"const":{"x":1,"y":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			h, arguments := recording(t, `{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},`+rule+`}`)
			assert.Equal(t, "The set of arguments is not as described; correct it or ask the user for it", call(t, h, "tool", `{"x":1}`))
			assert.Equal(t, "done", call(t, h, "tool", `{"x":1,"y":"2"}`))
			assert.Equal(t, []string{`{"x":1,"y":2}`}, *arguments)
		})
	}
}

// Anyone who talks to a head can make it call a tool.
func TestNoArgumentsKeepTheHandlerBusy(t *testing.T) {
	nested := func(before, after string, levels int) string {
		return strings.Repeat(before, levels) + "1" + strings.Repeat(after, levels)
	}
	const refused = "x is not as described; correct it or ask the user for it"
	long := strings.Repeat("a", 60<<10)
	chain := ""
	for i := range 500 {
		chain += fmt.Sprintf(`"p%d":{"pattern":"(a|aa)*","$ref":"#/properties/x/$defs/p%d"},`, i, i+1)
	}
	groups := strings.Repeat("(", 450) + "a" + strings.Repeat("*)", 450)
	for _, row := range []struct{ name, property, given, want string }{
		{"list in list", `{"type":"array","items":{"$ref":"#/properties/x"}}`, nested("[", "]", 9000), refused},
		{"object in object", `{"type":"object","properties":{"n":{"$ref":"#/properties/x"}}}`, nested(`{"n":`, "}", 9000), refused},
		{"branches of branches", `{"anyOf":[{"type":"object","properties":{"n":{"$ref":"#/properties/x"}},"required":["a"]},{"type":"object","properties":{"n":{"$ref":"#/properties/x"}},"required":["b"]}]}`,
			nested(`{"n":`, "}", 60), refused},
		{"branches of additional properties", `{"anyOf":[{"type":"object","additionalProperties":{"$ref":"#/properties/x"},"required":["a"]},{"type":"object","additionalProperties":{"$ref":"#/properties/x"},"required":["b"]}]}`,
			nested(`{"n":`, "}", 60), refused},
		{"pattern of many groups", `{"type":"string","pattern":"` + groups + `"}`, `"` + long + `"`, refused},
		{"many patterns", `{"type":"string","allOf":[` + strings.Repeat(`{"pattern":"(a|aa)*"},`, 499) + `{}]}`, `"` + long + `"`, refused},
		{"patterns behind each other", `{"$ref":"#/properties/x/$defs/p0","$defs":{` + chain + `"p500":{"type":"string"}}}`, `"` + long + `"`, refused},
		{"patterns of fields", `{"type":"object","patternProperties":{"` + groups + `":{}}}`, `{"` + long + `":1}`, refused},
		{"patterns of names", `{"type":"object","propertyNames":{"pattern":"` + groups + `"}}`, `{"` + long + `":1}`, refused},
		{"patterns of a few characters", `{"type":"string","pattern":"` + groups + `"}`, `"aaaa"`, "done"},
		{"one pattern", `{"type":"string","pattern":"^[a-z]*$"}`, `"` + long + `"`, "done"},
		{"levels that no schema describes", `{"type":"object"}`, nested(`{"n":`, "}", 9000), "done"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, _ := recording(t, `{"type":"object","properties":{"x":`+row.property+`}}`)
			assert.Equal(t, row.want, call(t, h, "tool", `{"x":`+row.given+`}`))
		})
	}
}

// Arguments that are few enough one by one may be too many together.
func TestArgumentsThatAreTooManyTogetherAreRefused(t *testing.T) {
	const pattern = `{"type":"string","pattern":"(a|aa){0,100}"}` // 704 instructions
	h, arguments := recording(t, `{"type":"object","properties":{"x":`+pattern+`,"y":`+pattern+`}}`)
	long := strings.Repeat("a", 10<<10)
	assert.Equal(t, "The set of arguments is not as described; correct it or ask the user for it", call(t, h, "tool", `{"x":"`+long+`","y":"`+long+`"}`))
	assert.Empty(t, *arguments)
	assert.Equal(t, "done", call(t, h, "tool", `{"x":"`+long+`"}`))
}

// A call whose time is over begins no further check.
func TestChecksOfArgumentsEndWithTheirContext(t *testing.T) {
	s := rawServer{pages: []string{toolsOf(`{"properties":{"x":{"type":"string"}}}`)}}
	session := s.connect(t)
	offered, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	b, err := config{}.newBridge(offered.Tools[0])
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, given := range []string{`{"x":"a"}`, `{}`} {
		_, err = b.arguments(ctx, json.RawMessage(given))
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestFieldsThatAreNotGivenCostNothing(t *testing.T) {
	properties := map[string]any{}
	for i := range 300 {
		properties[fmt.Sprint(i)] = map[string]any{"type": "integer"}
	}
	d := document{"properties": properties}
	s := d.flatten(map[string]any(d))
	assert.Less(t, testing.AllocsPerRun(10, func() { d.read(s, json.RawMessage("{}")) }), 100.0)
}

func TestReplies(t *testing.T) {
	for _, row := range []struct{ name, result, want string }{
		{"text", `{"content":[{"type":"text","text":"Sunny"}]}`, "Sunny"},
		{"texts", `{"content":[{"type":"text","text":"Sunny"},{"type":"text","text":"22 degrees"}]}`, "Sunny 22 degrees"},
		{"others at their place", `{"content":[{"type":"text","text":"A map:"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"text","text":"end"}]}`, "A map: [image] [audio] [resource] end"},
		{"embedded text", `{"content":[{"type":"resource","resource":{"uri":"file:///x","text":"inside"}}]}`, "inside"},
		{"embedded bytes", `{"content":[{"type":"resource","resource":{"uri":"file:///x","blob":"AA=="}}]}`, "[resource]"},
		{"structured", `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"structuredContent":{"b": [1, 2], "a":"<x>"}}`, `{"a":"<x>","b":[1,2]} [image]`},
		{"structured beside texts", `{"content":[{"type":"text","text":"Sunny"}],"structuredContent":{"a":1}}`, "Sunny"},
		{"structured beside a blank", `{"content":[{"type":"text","text":" "}],"structuredContent":[1]}`, "[1]"},
		{"images alone", `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"image","data":"AA==","mimeType":"image/png"}]}`, "[image] [image]"},
		{"hostile text", `{"content":[{"type":"text","text":"a\u0000b\u001b[31mc\u2028d` + "\xff" + `"}]}`, "a b [31mc d\uFFFD"},
		{"nothing", `{"content":[]}`, "Done"},
		{"blank", `{"content":[{"type":"text","text":" "}]}`, "Done"},
		{"error", `{"isError":true,"content":[{"type":"text","text":"No such city; ask for another"}]}`, "No such city; ask for another"},
		{"error without a text", `{"isError":true,"content":[]}`, failed},
		{"5 MB", `{"content":[{"type":"text","text":"` + strings.Repeat("x", 5<<20) + `"}]}`, strings.Repeat("x", 3999) + "…"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log strings.Builder
			var infos []heads.ToolCallInfo
			s := rawServer{answer: func(json.RawMessage) string { return `"result":` + row.result }}
			h := serving(t, &s, `{}`, logTo(&log), heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{End: func(_ context.Context, i heads.ToolCallInfo) { infos = append(infos, i) }}))
			assert.Equal(t, row.want, call(t, h, "tool", `{}`))
			want := heads.ToolAnswered
			switch row.name {
			case "error":
				want = heads.ToolTold
			case "error without a text":
				want = heads.ToolFailed
				assert.Contains(t, log.String(), "an error without a text")
			}
			assert.Equal(t, want, infos[0].Outcome)
		})
	}
}

func TestFailuresTellTheModelNothing(t *testing.T) {
	const secret = "canary"
	for _, row := range []struct {
		name   string
		answer func(*rawServer) string
		log    string
	}{
		{"protocol error", func(*rawServer) string { return `"error":{"code":-32602,"message":"` + secret + `"}` }, "protocol error -32602"},
		{"no result", func(*rawServer) string { return `"result":{"content":"` + secret + `"}` }, "can't be read"},
		{"dies in the call", func(s *rawServer) string {
			s.close()
			return ""
		}, "headsmcp: call a tool"},
		{"closed in the call", func(s *rawServer) string {
			s.close()
			go s.session.Close()
			return ""
		}, "headsmcp: call a tool"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log strings.Builder
			var s rawServer
			h := serving(t, &s, `{}`, logTo(&log))
			s.answer = func(json.RawMessage) string { return row.answer(&s) }
			assert.Equal(t, failed, call(t, h, "tool", `{}`))
			assert.Contains(t, log.String(), row.log)
			assert.Contains(t, log.String(), "tool=tool")
			assert.NotContains(t, log.String(), secret)
		})
	}
}

func TestFailureTellsItsKindAlone(t *testing.T) {
	for _, kind := range []error{context.DeadlineExceeded, context.Canceled, mcp.ErrConnectionClosed} {
		err := failure("call a tool", fmt.Errorf("canary: %w", kind))
		require.ErrorIs(t, err, kind)
		assert.NotContains(t, err.Error(), "canary")
	}
	needsInput := new(mcp.CallToolResult)
	require.NoError(t, json.Unmarshal([]byte(`{"resultType":"input_required","content":[{"type":"text","text":"canary"}]}`), needsInput))
	_, err := reply(needsInput)
	require.EqualError(t, err, "headsmcp: call a tool: the server asks for input, which no visitor can give it")
}

func TestCallThatEndsIsCancelledOnce(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"the caller leaves": time.Hour, "the server hangs": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			cancelled := make(chan struct{}, 9)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			s := rawServer{answer: func(json.RawMessage) string {
				calls.Add(1)
				if timeout == time.Hour {
					leave()
				}
				return ""
			}}
			s.handled = func(method string, _ json.RawMessage) {
				if method == "notifications/cancelled" {
					cancelled <- struct{}{}
				}
			}
			h := serving(t, &s, `{}`, heads.WithToolTimeout(timeout))
			assert.Equal(t, failed, callContext(ctx, t, h, "tool", `{}`))
			<-cancelled
			assert.EqualValues(t, 1, calls.Load(), "no call is repeated")
			require.NoError(t, h.Shutdown(t.Context()), "the function has returned")
		})
	}
}

func TestClosedSessionIsAFailure(t *testing.T) {
	var log strings.Builder
	var s rawServer
	h := serving(t, &s, `{}`, logTo(&log))
	s.close()
	_ = s.session.Close()
	for range 3 {
		assert.Equal(t, failed, call(t, h, "tool", `{}`))
	}
	assert.Equal(t, 3, strings.Count(log.String(), "connection closed"), "for ever, without Reconnect")
	_, err := AddTools(t.Context(), newHandler(t), s.session)
	require.ErrorIs(t, err, mcp.ErrConnectionClosed)
}
