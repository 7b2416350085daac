package headsmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

func named(names ...string) string {
	var tools []string
	for _, name := range names {
		tools = append(tools, `{"name":"`+name+`","description":"A tool.","inputSchema":{"type":"object","properties":{"q":{"type":"string","description":"Query."}}}}`)
	}
	return "[" + strings.Join(tools, ",") + "]"
}

func toolNames(h *heads.ToolHandler) (names []string) {
	for _, t := range h.Tools() {
		names = append(names, t.Name)
	}
	return names
}

func TestAllPagesAreReadInOrder(t *testing.T) {
	for _, row := range []struct{ pages, want []string }{
		{[]string{named("c", "a"), named(), named("b")}, []string{"c", "a", "b"}},
		{[]string{"[]"}, []string{}},
	} {
		h := newHandler(t)
		names, err := tryAdd(t, h, row.pages)
		require.NoError(t, err)
		assert.Equal(t, row.want, names)
		assert.ElementsMatch(t, names, toolNames(h))
	}
}

func TestThousandToolsAreTheLimit(t *testing.T) {
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("t%04d", i)
	}
	names, err := tryAdd(t, newHandler(t), []string{named(many[:500]...), named(many[500:1000]...)})
	require.NoError(t, err)
	assert.Len(t, names, 1000)
	for name, pages := range map[string][]string{
		"1001":                    {named(many[:500]...), named(many[500:]...)},
		"empty pages without end": append(strings.Split(strings.Repeat("[] ", 1100), " ")[:1100], named("a")),
	} {
		h := newHandler(t)
		_, err := tryAdd(t, h, pages)
		require.ErrorIs(t, err, heads.ErrInvalid, name)
		assert.ErrorContains(t, err, "more than 1000 tools")
		assert.Empty(t, h.Tools())
	}
}

func TestOnlyAddsTheNamedTools(t *testing.T) {
	pages := []string{named("c", "bad name", "a", "b")}
	names, err := tryAdd(t, newHandler(t), pages, Only("b"), Only("c"))
	require.NoError(t, err)
	assert.Equal(t, []string{"c", "b"}, names, "in the server's order")

	_, err = tryAdd(t, newHandler(t), pages, Only("a", "x", "y"))
	require.ErrorIs(t, err, heads.ErrInvalid)
	assert.ErrorContains(t, err, `tool "x" is not one of the server's`)
	assert.ErrorContains(t, err, `tool "y" is not one of the server's`)
}

func TestPrefixIsForTheHeadAlone(t *testing.T) {
	called := ""
	s := rawServer{pages: []string{named("a")}, answer: func(params json.RawMessage) string {
		called = string(params)
		return `"result":{"content":[]}`
	}}
	h, session := newHandler(t), s.connect(t)
	names, err := AddTools(t.Context(), h, session, Prefix("crm_"))
	require.NoError(t, err)
	assert.Equal(t, []string{"crm_a"}, names)
	assert.Equal(t, "Done", call(t, h, "crm_a", `{}`))
	assert.Contains(t, called, `"name":"a"`)

	require.NoError(t, heads.AddTool(h, "a", "Mine", func(context.Context, struct{}) (string, error) { return "", nil }))
	_, err = AddTools(t.Context(), h, session, Prefix("shop_"))
	require.NoError(t, err, "the name without the prefix may be taken")
	_, err = AddTools(t.Context(), h, session, Prefix("shop_"))
	require.ErrorContains(t, err, `tool "shop_a" has the name of a tool of this handler`)
}

func TestDescribeReplacesTexts(t *testing.T) {
	h := newHandler(t)
	_, err := tryAdd(t, h, []string{named("a", "b")}, Describe(func(t *mcp.Tool, parameter string) string {
		if t.Name == "a" {
			return ""
		}
		return "My " + t.Name + parameter
	}))
	require.NoError(t, err)
	a, b := h.Tools()[0], h.Tools()[1]
	assert.Equal(t, []string{"A tool.", "Query. Optional."}, []string{a.Description, a.Parameters[0].Description}, "the server's text stays")
	assert.Equal(t, []string{"My b.", "My bq. Optional."}, []string{b.Description, b.Parameters[0].Description})
}

func TestFaultsOfAllToolsComeTogether(t *testing.T) {
	h := newHandler(t)
	require.NoError(t, heads.AddTool(h, "taken", "Mine", func(context.Context, struct{}) (string, error) { return "", nil }))
	names, err := tryAdd(t, h, []string{`[{"name":"a b","description":"A tool.","inputSchema":{"oneOf":[]}},{"name":"good","description":"A tool.","inputSchema":{}},
		{"name":"mute","inputSchema":{}},{"name":"taken","description":"A tool.","inputSchema":{}}]`, named("good")})
	require.ErrorIs(t, err, heads.ErrInvalid)
	for _, want := range []string{`tool "a b" input schema has oneOf at the top`, `tool "a b" name`, `tool "mute" description`, `tool "taken" has the name of a tool of this handler`, `tool "good" name is taken`} {
		assert.ErrorContains(t, err, want)
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		assert.True(t, strings.HasPrefix(line, "heads: headsmcp.AddTools: tool "), line)
	}
	assert.Empty(t, names)
	assert.Equal(t, []string{"taken"}, toolNames(h))
}

func TestWhatIsNotGivenIsRefused(t *testing.T) {
	_, err := AddTools(t.Context(), nil, nil, nil, Only(), Describe(nil), Reconnect(nil))
	for _, want := range []string{"handler", "session", "option is nil", "option Only", "option Describe", "option Reconnect"} {
		assert.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, err, heads.ErrInvalid)
	_, err = tryAdd(t, &heads.ToolHandler{}, []string{named("a")})
	require.ErrorIs(t, err, heads.ErrInvalid)
}

func TestListThatFailsAddsNothing(t *testing.T) {
	h := newHandler(t)
	_, err := tryAdd(t, h, []string{named("a"), `{"code":-32000,"message":"canary"}`})
	require.EqualError(t, err, "headsmcp: list the tools: the server answered with protocol error -32000")
	assert.Empty(t, h.Tools())
}

func TestListThatHangsEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := rawServer{pages: []string{named("a")}, handled: func(method string, _ json.RawMessage) {
		if method == "tools/list" {
			cancel()
			<-t.Context().Done()
		}
	}}
	_, err := AddTools(ctx, newHandler(t), s.connect(t))
	require.ErrorIs(t, err, context.Canceled)
}

func TestChangedCoalescesAndKeepsTheHandler(t *testing.T) {
	const change = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	told := make(chan struct{}, 53)
	o := &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} }}
	changed := Changed(o)
	s := rawServer{pages: []string{named("a")}, client: o}
	session := s.connect(t)
	for range 3 {
		s.send(change)
	}
	for range 3 {
		<-told
	}
	require.NoError(t, session.Ping(t.Context(), nil), "what came before has been handled")
	<-changed
	assert.Empty(t, changed, "three changes are one value")
	var handlers sync.WaitGroup
	for range 50 {
		handlers.Go(func() { o.ToolListChangedHandler(t.Context(), nil) })
	}
	handlers.Wait()
	<-changed
	assert.Empty(t, changed, "so are changes at the same time")
}

func TestCallsAtTheSameTimeDoNotMix(t *testing.T) {
	s := rawServer{answer: func(params json.RawMessage) string {
		var p struct{ Arguments struct{ N int } }
		_ = json.Unmarshal(params, &p)
		return fmt.Sprintf(`"result":{"content":[{"type":"text","text":"%d"}]}`, p.Arguments.N)
	}}
	h := serving(t, &s, `{"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`)
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() { assert.Equal(t, strconv.Itoa(i), call(t, h, "tool", fmt.Sprintf(`{"n":"%d"}`, i))) })
	}
	calls.Wait()
}

// A server of the SDK, with the protocol that the two agree on.
func TestServerChangesItsTools(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	type arguments struct {
		City string `json:"city" jsonschema:"City to report on"`
		Days int    `json:"days,omitempty"`
	}
	add := func(name string) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Weather"}, func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
			if in.City == "Atlantis" {
				return nil, nil, errors.New("there is no such city")
			}
			return nil, map[string]any{"city": in.City, "days": in.Days}, nil
		})
	}
	add("weather")
	o := &mcp.ClientOptions{}
	changed := Changed(o)
	near, far := mcp.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), far, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), near, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = session.Close()
		_ = serving.Wait()
	})

	h := newHandler(t)
	names, err := AddTools(t.Context(), h, session)
	require.NoError(t, err)
	assert.Equal(t, []string{"weather"}, names)
	assert.Equal(t, []heads.ToolParameter{{Name: "city", Type: "string", Description: "City to report on."}, {Name: "days", Type: "integer", Description: "Optional."}}, h.Tools()[0].Parameters)
	assert.Equal(t, `{"city":"Oslo","days":3}`, call(t, h, "weather", `{"city":"Oslo","days":"3"}`))
	assert.Equal(t, "there is no such city", call(t, h, "weather", `{"city":"Atlantis"}`))

	add("forecast")
	<-changed
	server.RemoveTools("weather")
	<-changed
	names, err = AddTools(t.Context(), newHandler(t), session)
	require.NoError(t, err)
	assert.Equal(t, []string{"forecast"}, names)
	assert.Equal(t, failed, call(t, h, "weather", `{"city":"Oslo"}`), "the old handler keeps what the server has lost")
}
