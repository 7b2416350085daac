// Conformance is the client that the MCP conformance suite tests. It adds the tools of
// the server at the URL in its last argument with headsmcp and calls each as a head
// does:
//
//	MCP_CONFORMANCE_SCENARIO=tools_call go run ./internal/conformance http://localhost:3000/mcp
//
// The suite says in the environment which scenario it plays, at which version of the
// protocol, and which calls it wants. A tool that headsmcp refuses is named on stderr
// and not called.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsmcp"
)

// preservation is the scenario that wants the schema of one tool as the argument of
// another.
const preservation = "json-schema-2020-12-preservation"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance URL")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// toolCall is a call of a tool.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func run(ctx context.Context, url string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "heads-go", Version: heads.Version}, &mcp.ClientOptions{ElicitationHandler: accept})
	options := &mcp.ClientSessionOptions{ProtocolVersion: os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")}
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, options)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	offered, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	handler, err := heads.NewToolHandler("https://tools.example.com")
	if err != nil {
		return err
	}
	tools, calls, err := wanted(offered.Tools)
	if err != nil {
		return err
	}
	if err := addTools(ctx, handler, session, tools); err != nil {
		return err
	}
	if calls == nil {
		calls = oneOfEach(handler)
	}
	for _, c := range calls {
		if err := call(ctx, handler, c); err != nil {
			return err
		}
	}
	return nil
}

// accept takes what a server proposes.
func accept(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
}

// wanted returns the names of the tools to add, and the calls that the suite asks for.
func wanted(offered []*mcp.Tool) (names []string, calls []toolCall, err error) {
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == preservation {
		return echoOfSchema(offered)
	}
	for _, t := range offered {
		names = append(names, t.Name)
	}
	var given struct {
		ToolCalls []toolCall `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		err = json.Unmarshal([]byte(text), &given)
	}
	return names, given.ToolCalls, err
}

// echoOfSchema gives the tool json_schema_echo the schema of the other one.
func echoOfSchema(offered []*mcp.Tool) ([]string, []toolCall, error) {
	const echo = "json_schema_echo"
	i := slices.IndexFunc(offered, func(t *mcp.Tool) bool { return t.Name != echo })
	if i < 0 || len(offered) != 2 {
		return nil, nil, errors.New("the scenario " + preservation + " has other tools than expected")
	}
	arguments, err := json.Marshal(map[string]any{"schema": offered[i].InputSchema})
	return []string{echo}, []toolCall{{echo, arguments}}, err
}

// addTools adds each tool on its own, since the suite offers some that must be refused.
func addTools(ctx context.Context, handler *heads.ToolHandler, session *mcp.ClientSession, names []string) error {
	for _, name := range names {
		_, err := headsmcp.AddTools(ctx, handler, session, headsmcp.Only(name), headsmcp.Describe(described))
		var fault *heads.InvalidError
		if errors.As(err, &fault) {
			fmt.Fprintln(os.Stderr, "refused:", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// described describes what the suite has no description of.
func described(t *mcp.Tool, parameter string) string {
	if parameter != "" {
		return "The value of " + parameter
	}
	return t.Description
}

// oneOfEach returns a call of each tool, with all arguments.
func oneOfEach(handler *heads.ToolHandler) (calls []toolCall) {
	values := map[string]any{"string": "text", "integer": 1, "number": 1.5, "boolean": true, "array": []any{}}
	for _, t := range handler.Tools() {
		arguments := map[string]any{}
		for _, p := range t.Parameters {
			if arguments[p.Name] = values[p.Type]; arguments[p.Name] == nil {
				arguments[p.Name] = map[string]any{}
			}
		}
		doc, _ := json.Marshal(arguments) // of the values above
		calls = append(calls, toolCall{t.Name, doc})
	}
	return calls
}

// call calls a tool as the service does. A tool that was refused is not there.
func call(ctx context.Context, handler *heads.ToolHandler, c toolCall) error {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/"+c.Name, strings.NewReader(string(c.Arguments)))
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		return fmt.Errorf("the call of %s was answered with status %d: %s", c.Name, rec.Code, rec.Body)
	}
	fmt.Printf("%s %s: %s\n", c.Name, c.Arguments, strings.TrimSpace(rec.Body.String()))
	return nil
}
