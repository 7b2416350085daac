package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type mcpClient struct {
	t       testing.TB
	session *mcp.ClientSession
	cmd     *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer // once the process has ended
}

func (c *terminal) mcp(args ...string) *mcpClient {
	c.t.Helper()
	m := &mcpClient{t: c.t, cmd: c.command(c.t.Context(), append([]string{"mcp"}, args...)...)}
	stdin, stdout := need(m.cmd.StdinPipe())(c.t), need(m.cmd.StdoutPipe())(c.t)
	m.stdin, m.cmd.Stderr = stdin, &m.stderr
	require.NoError(c.t, m.cmd.Start())
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	m.session = need(client.Connect(c.t.Context(), &mcp.IOTransport{Reader: stdout, Writer: stdin}, nil))(c.t)
	return m
}

// end ends the input, and returns the exit code.
func (m *mcpClient) end() int {
	m.t.Helper()
	require.NoError(m.t, m.stdin.Close())
	_ = m.session.Wait()
	return exitCode(m.t, m.cmd.Wait())
}

// call returns the text of a reply, whose structured content is the same unless
// it is an error text.
func (m *mcpClient) call(tool string, arguments any) (text string, isError bool) {
	m.t.Helper()
	r := need(m.session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments}))(m.t)
	require.Len(m.t, r.Content, 1)
	text = r.Content[0].(*mcp.TextContent).Text
	if r.StructuredContent != nil || !r.IsError {
		assert.JSONEq(m.t, string(need(json.Marshal(r.StructuredContent))(m.t)), text)
	}
	return text, r.IsError
}

func (m *mcpClient) ok(tool string, arguments any) object {
	m.t.Helper()
	text, isError := m.call(tool, arguments)
	require.False(m.t, isError, text)
	return parse[object](m.t, text)
}

func (m *mcpClient) fails(tool string, arguments any) string {
	m.t.Helper()
	text, isError := m.call(tool, arguments)
	require.True(m.t, isError, text)
	return text
}

func (m *mcpClient) tools() map[string]*mcp.Tool {
	m.t.Helper()
	tools := map[string]*mcp.Tool{}
	for _, tool := range need(m.session.ListTools(m.t.Context(), nil))(m.t).Tools {
		tools[tool.Name] = tool
	}
	return tools
}

func TestMCPReadsWithoutTheFlag(t *testing.T) {
	c := demo(t)
	m := c.mcp()
	tools := m.tools()
	assert.Len(t, tools, 5)
	for _, name := range []string{"heads_get", "heads_examine", "heads_plan", "webhooks_list", "tools_check"} {
		if assert.Contains(t, tools, name) {
			assert.True(t, tools[name].Annotations.ReadOnlyHint, name)
		}
	}
	tools = c.mcp("--allow-writes").tools()
	assert.Equal(t, "array", tools["heads_convert"].InputSchema.(object)["properties"].(object)["ids"].(object)["type"])
	assert.Len(t, tools, 7)
	for _, name := range []string{"heads_apply", "heads_convert"} {
		_, err := m.session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: object{"ids": c.ids[:1]}})
		assert.ErrorContains(t, err, name, "refused")
		assert.False(t, tools[name].Annotations.ReadOnlyHint)
	}
	assert.Contains(t, c.ok("get", c.ids[0]), "MODE            legacy")
}

func TestMCPRepliesAsTheTerminalDoes(t *testing.T) {
	c := demo(t)
	c.ok("webhooks", "ensure", c.ids[0], "--url", "https://a.example.com/events", "--event", "end_conversation")
	m := c.mcp("--debug")
	assert.Equal(t, c.head(c.ids[0]), m.ok("heads_get", object{"id": c.ids[0]}))
	for tool, args := range map[string][]string{"heads_examine": {"doctor"}, "tools_check": {"tools", "check"}, "webhooks_list": {"webhooks", "list"}} {
		for _, id := range []string{c.ids[0], c.ids[12], c.ids[22]} {
			list := parse[[]any](t, c.run(append(args, id, "-o", "json")...).stdout)
			assert.Equal(t, object{"items": list}, m.ok(tool, object{"id": id}), "%s %s", tool, id)
		}
	}
	for _, tool := range []string{"heads_get", "heads_examine", "tools_check", "webhooks_list"} {
		assert.Contains(t, m.fails(tool, object{"id": "li-1"}), `"li-1" is not the id of a head; give the UUID`)
		assert.Contains(t, m.fails(tool, object{}), `"" is not the id of a head`)
		assert.Equal(t, "the argument id holds a value of type number; want a string", m.fails(tool, object{"id": 5}))
		assert.Equal(t, `the arguments can't be read: unknown field "ids"`, m.fails(tool, object{"id": c.ids[0], "ids": 1}))
	}
	assert.Contains(t, m.fails("heads_get", object{"id": someID}), "check the id and HEADS_BASE_URL", "the remedy")
	assert.Equal(t, 0, m.end())
	assert.Contains(t, m.stderr.String(), "debug: GET /head/{id} 200 in ")
}

func TestMCPPlansTheTextOfASpec(t *testing.T) {
	c := demo(t)
	m := c.mcp()
	reply := m.ok("heads_plan", object{"spec": "heads: [{id: " + c.ids[0] + ", set: {greetings: Hi}}, {id: " + c.ids[1] + "}]"})
	items := reply["items"].([]any)
	require.Len(t, items, 2)
	assert.Subset(t, items[0], object{"head_id": c.ids[0], "outcome": "pending"})
	assert.Equal(t, "Hi", items[0].(object)["changes"].([]any)[0].(object)["to"])
	assert.Subset(t, reply["counts"], object{"pending": 1., "unchanged": 1.})
	assert.Contains(t, m.fails("heads_plan", object{"spec": "heads:\n  - id: " + c.ids[0] + "\n    wet: {}\n"}), `spec:3:5: unknown key "wet"`)
	assert.Contains(t, m.fails("heads_plan", object{"spec": ""}), "there are no heads")
	assert.Contains(t, m.fails("heads_plan", object{"spec": "environments: {a: {base_url: 'https://a.example.com'}}\nheads: [{id: {a: " + c.ids[0] + "}}]"}), "spec has environments")
}

func TestMCPReadsNoFiles(t *testing.T) {
	c := demo(t)
	path := c.write("canary.txt", "canary-file")
	m := c.mcp("--allow-writes")
	for _, entry := range []string{
		"set: {greetings: {file: PATH}}", "set: {suggestions: [{file: PATH}]}", "set: {promptConfig: {system_prompt: {file: PATH}}}",
		"label: {file: PATH}", "voice: {provider: {file: PATH}, id: x}", "webhooks: [{url: {file: PATH}, events: [end_conversation]}]",
		"tools: [{name: x, description: {file: PATH}, url: 'https://a.example.com/x', parameters: []}]",
	} {
		for _, tool := range []string{"heads_plan", "heads_apply"} {
			for _, place := range []string{path, "canary.txt", "nowhere"} {
				spec := "heads: [{id: " + c.ids[0] + ", " + strings.ReplaceAll(entry, "PATH", place) + "}]"
				assert.Contains(t, m.fails(tool, object{"spec": spec}), "{file: PATH} is refused here", spec)
			}
		}
	}
}

func TestMCPConvertsWhatWasConfirmed(t *testing.T) {
	c := demo(t)
	m := c.mcp("--allow-writes")
	ids := []string{c.ids[0], c.ids[12], c.ids[17]} // legacy, streaming, two_loops
	dry := m.ok("heads_convert", object{"ids": ids})
	changes := dry["changes"].([]any)
	require.NotEmpty(t, changes)
	assert.Subset(t, changes[len(changes)-1], object{"head_id": c.ids[0], "field": "streaming", "from": "false", "to": "true"})
	assert.Len(t, dry["items"], 3)
	require.NotEmpty(t, dry["confirm"])
	assert.Contains(t, c.ok("get", c.ids[0]), "MODE            legacy", "a dry run")
	assert.Equal(t, dry["confirm"], m.ok("heads_convert", object{"ids": ids})["confirm"], "the same once more")

	done := m.ok("heads_convert", object{"ids": ids, "confirm": dry["confirm"]})
	assert.NotContains(t, done, "confirm")
	assert.EqualValues(t, 1, done["counts"].(object)["changed"])
	items := done["items"].([]any)
	require.Len(t, items, 3)
	assert.Equal(t, "changed", items[0].(object)["outcome"])
	assert.Contains(t, items[0].(object)["after"], "https://stream.example.test/")
	assert.Equal(t, "unchanged", items[1].(object)["outcome"])
	assert.Contains(t, c.ok("get", c.ids[0]), "MODE            streaming")

	again := parse[object](t, m.fails("heads_convert", object{"ids": ids, "confirm": dry["confirm"]}))
	assert.Contains(t, again["error"], "nothing was done")
	assert.Empty(t, again["changes"])
	for want, arguments := range map[string]object{
		"there are no ids": {"ids": []string{}}, `"x" is not the id of a head`: {"ids": []string{"x", c.ids[1]}}, "PROVIDER/ID": {"ids": ids, "voice": "azure"},
		"the argument ids holds a value of type string; want a list of strings": {"ids": c.ids[1]},
	} {
		assert.Contains(t, m.fails("heads_convert", arguments), want)
	}
}

// Two plans may look the same, since keys and tokens are masked and long texts are cut.
func TestMCPRefusesAConfirmationThatNoLongerHolds(t *testing.T) {
	c := demo(t)
	id := c.ids[0]
	ensure := func(token string) {
		c.ok("webhooks", "ensure", id, "--url", "https://a.example.com/"+token+strings.Repeat("0", 16), "--event", "end_conversation")
	}
	replaceHook := func() {
		c.ok("webhooks", "delete", fmt.Sprint(c.hooks(id)[0]["id"]))
		ensure("other")
	}
	c.ok("set", id, "promptConfig.system_prompt="+longPrompt("Old."))
	ensure("first")
	m, other := c.mcp("--allow-writes"), c.mcp("--allow-writes")
	for name, row := range map[string]struct {
		entry, then string // the entry may become another
		meanwhile   func()
		same        bool // to look at
		done        string
	}{
		"another key":     {"set: {voiceflowApiKey: first}", "set: {voiceflowApiKey: second}", func() {}, true, `"voiceflowApiKey":"second"`},
		"another text":    {"set: {greetings: Hi, name: Foyer}", "", func() { c.ok("set", id, "greetings=Bonjour") }, false, `"name":"Foyer"`},
		"end of a text":   {"set: {promptConfig: {system_prompt: New.}}", "", func() { c.ok("set", id, "promptConfig.system_prompt="+longPrompt("Not.")) }, true, "New."},
		"another webhook": {"webhooks: [], prune_webhooks: true", "", replaceHook, true, ""},
	} {
		spec := object{"spec": "heads: [{id: " + id + ", " + row.entry + "}]"}
		dry := m.ok("heads_apply", spec)
		assert.NotEqual(t, dry["confirm"], other.ok("heads_apply", spec)["confirm"], "another process has another key")
		row.meanwhile()
		before := c.ok("get", id, "--raw", "--show-secrets") + fmt.Sprint(c.hooks(id))
		spec = object{"spec": "heads: [{id: " + id + ", " + cmp.Or(row.then, row.entry) + "}]", "confirm": dry["confirm"]}
		fresh := parse[object](t, m.fails("heads_apply", spec))
		assert.Contains(t, fresh["error"], "nothing was done", name)
		assert.Equal(t, before, c.ok("get", id, "--raw", "--show-secrets")+fmt.Sprint(c.hooks(id)), name)
		assert.NotEqual(t, dry["confirm"], fresh["confirm"], name)
		assert.Equal(t, row.same, assert.ObjectsAreEqual(dry["changes"], fresh["changes"]), name)
		if !row.same {
			assert.Contains(t, fresh["changes"], object{"head_id": id, "label": "Lobby", "field": "greetings", "from": "Bonjour", "to": "Hi"})
		}
		spec["confirm"] = fresh["confirm"]
		assert.EqualValues(t, 1, m.ok("heads_apply", spec)["counts"].(object)["changed"], name)
		assert.Contains(t, c.ok("get", id, "--raw", "--show-secrets"), row.done, name)
	}
	assert.Empty(t, c.hooks(id))
}

func TestMCPChangesNoHeadThatTheDryRunCouldNotRead(t *testing.T) {
	c := demo(t)
	var reads atomic.Int64
	m := c.behind(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/head/"+c.ids[1]) && reads.Add(1) <= 2 { // by the dry run, and by the check of its confirmation
			w.WriteHeader(http.StatusForbidden)
			return
		}
		service.ServeHTTP(w, r)
	}).mcp("--allow-writes")
	ids := []string{c.ids[0], c.ids[1]}
	dry := m.ok("heads_convert", object{"ids": ids})
	assert.EqualValues(t, 1, dry["counts"].(object)["failed"])
	done := parse[object](t, m.fails("heads_convert", object{"ids": ids, "confirm": dry["confirm"]}))
	assert.Subset(t, done["counts"], object{"changed": 1., "failed": 1.})
	assert.Contains(t, c.ok("get", c.ids[1]), "MODE            legacy")
}

func TestMCPInterruptedEndsItsCallsAndThen130(t *testing.T) {
	arrived := make(chan struct{}, 1)
	silent := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	m := newTerminal(t).at(silent.URL, "token").mcp()
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _ = m.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "heads_get", Arguments: object{"id": someID}})
	}()
	<-arrived
	require.NoError(t, m.cmd.Process.Signal(os.Interrupt))
	<-called
	_ = m.session.Wait()
	assert.Equal(t, 130, exitCode(t, m.cmd.Wait()))
}

func TestMCPFinishesAHeadThatHasBegunAtEOF(t *testing.T) {
	c := demo(t)
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	m := c.behind(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if r.Method == http.MethodPut {
			arrived <- struct{}{}
			<-release
		}
		service.ServeHTTP(w, r)
	}).mcp("--allow-writes")
	spec := "heads: [{id: " + c.ids[0] + ", set: {name: Foyer}, streaming: true, delivery: true, " +
		"webhooks: [{url: 'https://a.example.com/events', events: [end_conversation]}]}]"
	confirm := m.ok("heads_apply", object{"spec": spec})["confirm"]
	replies := make(chan *mcp.CallToolResult)
	go func() {
		reply, err := m.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "heads_apply", Arguments: object{"spec": spec, "confirm": confirm}})
		assert.NoError(t, err)
		replies <- reply
	}()
	<-arrived
	require.NoError(t, m.stdin.Close())
	close(release)
	assert.EqualValues(t, 1, (<-replies).StructuredContent.(object)["counts"].(object)["changed"])
	_ = m.session.Wait()
	assert.Equal(t, 0, exitCode(t, m.cmd.Wait()))
	c.write("spec.yaml", spec)
	assert.Contains(t, c.ok("plan", "-f", "spec.yaml"), "0 pending, 1 unchanged", "all of it is done")
}

// getEach returns the lines of a client that sends all its calls at once.
func getEach(ids []string) string {
	lines := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	for i, id := range ids {
		lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"heads_get","arguments":{"id":%q}}}`+"\n", i+1, id)
	}
	return lines
}

func TestMCPAnswersEveryCallBeforeItEnds(t *testing.T) {
	c := demo(t)
	r := c.runWith(getEach(c.ids), "mcp")
	assert.Equal(t, 0, r.code)
	assert.Empty(t, r.stderr)
	answered := map[any]bool{}
	for line := range strings.Lines(r.stdout) {
		reply := parse[object](t, line)
		assert.Contains(t, reply, "result", line)
		answered[reply["id"]] = true
	}
	assert.Len(t, answered, 1+len(c.ids))
	again := strings.Replace(getEach(c.ids), `"id":2`, `"id":1`, 1)
	assert.Equal(t, 0, c.runWith(again+`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "mcp").code, "an id that is used again")
}

func TestMCPEndsWith1IfStdoutCantBeWritten(t *testing.T) {
	c := demo(t)
	cmd := c.command(t.Context(), "mcp")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(getEach(c.ids)), nobodyReads(t), &stderr
	assert.Equal(t, 1, exitCode(t, cmd.Run()))
	assert.Contains(t, stderr.String(), "error: the session broke off: write ")
}

func TestMCPWantsAClientAndSettings(t *testing.T) {
	c := newTerminal(t).at("http://127.0.0.1:1", "token")
	assert.Equal(t, result{}, c.run("mcp", "--debug"), "nothing but the protocol, and 0 at the end of the input")
	r := c.runWith("garbage\n", "mcp")
	assert.Equal(t, 1, r.code)
	assert.Empty(t, r.stdout)
	assert.Contains(t, r.stderr, "wants an MCP client on stdin and stdout")
	c.at("", "token").fails(2, "HEADS_BASE_URL", "mcp")
	c.fails(2, "no arguments", "mcp", "x")
}

func TestNoMCPReplyShowsASecret(t *testing.T) {
	c := secretive(t)
	secrets := append(slices.Clone(canaries), c.hooks(someID)[0]["sharedKey"].(string), c.token)
	m := c.with("HEADS_STREAM_URL=https://stream.example.test").mcp("--allow-writes", "--debug")
	replies := map[string]string{}
	call := func(name, tool string, arguments object) object {
		text, isError := m.call(tool, arguments)
		replies[name] = text
		assertNone(t, text, secrets, name)
		if isError {
			return nil
		}
		return parse[object](t, text)
	}
	for _, tool := range []string{"heads_get", "heads_examine", "webhooks_list", "tools_check"} {
		assert.NotNil(t, call(tool, tool, object{"id": someID}), replies[tool])
		call(tool+" of no head", tool, object{"id": strings.ReplaceAll(someID, "0", "9")})
		call(tool+" with a wrong type", tool, object{"id": object{"k": c.token}})
		call(tool+" with an unknown argument", tool, object{"id": someID, "k": c.token})
	}
	assert.NotNil(t, call("plan", "heads_plan", object{"spec": changesEverything}), replies["plan"])
	for _, bad := range []any{
		"heads:\n  - id: " + someID + "\n    set: {voiceflowApiKey: [\"" + dialogKey + "\"]}\n", object{"token": c.token, "key": dialogKey}, "heads: [" + dialogKey, dialogKey,
	} {
		call("bad plan", "heads_plan", object{"spec": bad})
	}
	writes := []object{{"spec": changesEverything}, {"ids": []string{someID}}}
	for i, tool := range []string{"heads_apply", "heads_convert"} {
		arguments := writes[i]
		dry := call(tool, tool, arguments)
		require.NotNil(t, dry, replies[tool])
		arguments["confirm"] = "stale"
		call(tool+" that no longer holds", tool, arguments)
		arguments["confirm"] = dry["confirm"]
		assert.NotNil(t, call(tool+" confirmed", tool, arguments), replies[tool+" confirmed"])
	}
	m.end()
	assertNone(t, m.stderr.String(), secrets)
}

// Between the check of a confirmation and the first change the head is read once
// more.
func TestMCPComparesEachHeadBeforeItsFirstChange(t *testing.T) {
	c := emulator(t, legacyHeads(1))
	var reads atomic.Int64
	m := c.behind(func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if r.Method == http.MethodGet && reads.Add(1) == 3 { // the dry run, the check, and then
			c.ends(0, "set", c.ids[0], "greetings=Bonjour")
		}
		service.ServeHTTP(w, r)
	}).mcp("--allow-writes")
	spec := object{"spec": "heads: [{id: " + c.ids[0] + ", set: {greetings: Hi}}]"}
	spec["confirm"] = m.ok("heads_apply", spec)["confirm"]
	reply := parse[object](t, m.fails("heads_apply", spec))
	assert.EqualValues(t, 1, reply["counts"].(object)["pending"])
	assert.Contains(t, fmt.Sprint(reply["items"]), "no longer as it was planned for")
	assert.Contains(t, fmt.Sprint(reply["items"]), "from:Bonjour")
	assert.Equal(t, "Bonjour", c.head(c.ids[0])["greetings"])
}
