package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// offering serves tools, without descriptions of their parameters, and returns the
// server's URL and the calls of the tools with their arguments.
func offering(t *testing.T, schemas map[string]string) (url string, called *map[string]string) {
	t.Helper()
	called = &map[string]string{}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for name, schema := range schemas {
		tool := &mcp.Tool{Name: name, Description: "A tool", InputSchema: json.RawMessage(schema)}
		server.AddTool(tool, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			(*called)[name] = string(r.Params.Arguments)
			return &mcp.CallToolResult{}, nil
		})
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return srv.URL, called
}

func TestEachToolThatCanBeAddedIsCalled(t *testing.T) {
	url, called := offering(t, map[string]string{
		"add":     `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"boolean"},"c":{"type":"object"},"d":{"type":["string","integer"]}},"required":["a","b","c"]}`,
		"refused": `{"type":"object","anyOf":[{"required":["a"]}]}`,
	})
	t.Setenv("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
	require.NoError(t, run(t.Context(), url))
	require.Contains(t, *called, "add")
	assert.JSONEq(t, `{"a":1.5,"b":true,"c":{},"d":"text"}`, (*called)["add"])
	assert.NotContains(t, *called, "refused")
}

func TestCallsOfTheSuiteAreMade(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{"type":"string"}}}`
	url, called := offering(t, map[string]string{"one": schema, "two": schema})
	t.Setenv("MCP_CONFORMANCE_CONTEXT", `{"name":"s","toolCalls":[{"name":"two","arguments":{"a":" x "}}]}`)
	require.NoError(t, run(t.Context(), url))
	assert.Equal(t, map[string]string{"two": `{"a":" x "}`}, *called)
}

func TestSchemaIsEchoed(t *testing.T) {
	schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","allOf":[{"anyOf":[{"required":["a"]}]}],"additionalProperties":false}`
	url, called := offering(t, map[string]string{"other": schema, "json_schema_echo": `{"type":"object","properties":{"schema":{"type":"object"}},"required":["schema"]}`})
	t.Setenv("MCP_CONFORMANCE_SCENARIO", preservation)
	require.NoError(t, run(t.Context(), url))
	require.Len(t, *called, 1)
	assert.JSONEq(t, `{"schema":`+schema+`}`, (*called)["json_schema_echo"])
}
