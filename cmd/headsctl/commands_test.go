package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	heads "github.com/headsapi/heads-go"
)

// parse reads JSON that a command has printed.
func parse[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func TestGetShowsAHeadWithOneRequest(t *testing.T) {
	t.Parallel()
	c := demo(t)
	r := c.run("get", c.ids[0], "--debug")
	assert.Equal(t, 0, r.code)
	assert.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
	assert.Contains(t, r.stderr, "debug: GET /head/{id} 200 in ")
	for _, row := range []string{
		"ID              " + c.ids[0], "NAME            Lobby", "MODE            legacy", "VOICE           azure/en-US-plain",
		"OPERATION MODE  oc", "DELIVERY        off", "TOOLS           none", "ACTIVE          yes", "ACCESS URL      https://chat.example.test/MyOrg-",
	} {
		assert.Contains(t, r.stdout, row)
	}
	assert.NotContains(t, r.stdout, "api_key")
	assert.Regexp(t, `ACCESS URL +https://chat\.example\.test/MyOrg-\d+/li-\d+ \(key hidden\)\n`, r.stdout)
	assert.Regexp(t, `ACCESS URL +https://chat\.example\.test/MyOrg-\d+/li-\d+\?api_key=[0-9a-f]{32}\n`, c.ok("get", c.ids[0], "--show-secrets"))
	c.write("one.yaml", toolFile)
	c.write("two.yaml", strings.ReplaceAll(toolFile, "order_status", "weather"))
	c.write("about.txt", "Tells where an order is.")
	c.ok("tools", "put", c.ids[0], "-f", "one.yaml")
	c.ok("tools", "put", c.ids[0], "-f", "two.yaml")
	assert.Contains(t, c.ok("get", c.ids[0]), "TOOLS           order_status, weather\n")
	assert.Contains(t, c.ok("get", c.ids[12]), "MODE            streaming")
	assert.Contains(t, c.ok("get", c.ids[24]), "ACTIVE          no")
}

func TestGetPrintsTheHeadByTheServicesNames(t *testing.T) {
	t.Parallel()
	c := demo(t)
	asJSON := parse[object](t, c.ok("get", c.ids[0], "-o", "json"))
	assert.Equal(t, "azure", asJSON["ttsProvider"])
	assert.Contains(t, asJSON["publicUrl"], "api_key=[redacted]")
	var asYAML object
	require.NoError(t, yaml.Unmarshal([]byte(c.ok("get", c.ids[0], "-o", "yaml")), &asYAML))
	again, err := json.Marshal(asYAML)
	require.NoError(t, err)
	want, err := json.Marshal(asJSON)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(again))

	raw := parse[object](t, c.ok("get", c.ids[0], "--raw"))
	assert.Equal(t, asJSON["publicUrl"], raw["publicUrl"])
	open := parse[object](t, c.ok("get", c.ids[0], "--raw", "--show-secrets"))
	assert.Regexp(t, `api_key=[0-9a-f]{32}$`, open["publicUrl"])
	assert.Regexp(t, `api_key=[0-9a-f]{32}$`, parse[object](t, c.ok("get", c.ids[0], "-o", "json", "--show-secrets"))["publicUrl"])
	assert.Regexp(t, `^https://chat\.example\.test/MyOrg-\d+/li-\d+\?api_key=\[redacted\]$`, parse[object](t, c.ok("get", c.ids[0], "-o", "json"))["publicUrl"])
}

func TestSetChangesTheGivenFieldsOnly(t *testing.T) {
	t.Parallel()
	c := demo(t)
	c.write("prompt.txt", "Be brief.\nBe kind.\n")
	set := append([]string{"set", c.ids[0]}, `greetings=Hi "you"`, `phrases:=["a","b"]`, "promptConfig.system_prompt=@prompt.txt", "semanticThreshold:=0.5", "ttsVoice=en-US-other")
	want := []string{
		"  ~ greetings: Welcome! I am the Lobby. → Hi \"you\"", `  ~ phrases: [] → ["a","b"]`, "  ~ semanticThreshold: 0.75 → 0.5",
		"  ~ promptConfig.system_prompt: You are the Lobby. Answer in one sentence. → Be brief. Be kind.", "  ~ voice: azure/en-US-plain → azure/en-US-other",
	}
	assert.ElementsMatch(t, want, lines(c.ok(append(set, "--dry-run")...)))
	assert.ElementsMatch(t, want, lines(c.ok(set...)))
	assert.Equal(t, "unchanged\n", c.ok(set...))
	head := parse[object](t, c.ok("get", c.ids[0], "-o", "json"))
	assert.Equal(t, "Be brief.\nBe kind.", head["promptConfig"].(object)["system_prompt"], "without the newline at the end")
	assert.Equal(t, "Lobby", head["name"])
	c.fails(1, "404", "set", someID, "name=x")
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func TestWebhooksAreEnsuredListedAndDeleted(t *testing.T) {
	t.Parallel()
	c := demo(t)
	const url = "https://a.example.com/hooks/0123456789abcdef0123"
	id := c.ok("webhooks", "ensure", c.ids[0], "--url", url, "--event", "start_conversation", "--event", "end_conversation")
	assert.Regexp(t, `^[0-9]+\n$`, id)
	assert.Equal(t, id, c.ok("webhooks", "ensure", c.ids[0], "--url", url, "--event", "end_conversation"))
	assert.Regexp(t, `^[0-9]+ \S{16,}\n$`, c.ok("webhooks", "ensure", c.ids[0], "--url", url, "--event", "end_conversation", "--show-secrets"))
	table := c.ok("webhooks", "list", c.ids[0])
	assert.Contains(t, table, "end_conversation  https://a.example.com/hooks/[redacted]")
	list := parse[[]object](t, c.ok("webhooks", "list", c.ids[0], "-o", "json"))
	require.Len(t, list, 1)
	assert.Equal(t, "[redacted]", list[0]["sharedKey"])
	assert.Equal(t, url, parse[[]object](t, c.ok("webhooks", "list", c.ids[0], "-o", "json", "--show-secrets"))[0]["webhookUrl"])
	assert.Equal(t, "[]\n", c.ok("webhooks", "list", c.ids[1], "-o", "json"), "never null")
	id = strings.TrimSpace(id)
	assert.Empty(t, c.run("webhooks", "list", c.ids[0]).stderr)
	c.ok("delivery", "off", c.ids[0])
	assert.Equal(t, "delivery is off, so no webhook receives an event; turn it on with: headsctl delivery on "+c.ids[0]+"\n", c.run("webhooks", "list", c.ids[0], "-o", "json").stderr)
	assert.Equal(t, "deleted "+id+"\n", c.ok("webhooks", "delete", id))
	c.fails(1, "404", "webhooks", "delete", id)
}

func TestDeliveryIsTurnedOnAndOff(t *testing.T) {
	t.Parallel()
	c := demo(t)
	assert.Equal(t, "on "+c.ids[0]+"\non "+c.ids[1]+"\n", c.ok("delivery", "on", c.ids[0], c.ids[1]))
	assert.Contains(t, c.ok("get", c.ids[1]), "DELIVERY        on")
	c.ok("delivery", "off", c.ids[1])
	assert.Contains(t, c.ok("get", c.ids[1]), "DELIVERY        off")
	r := c.fails(1, "404", "delivery", "on", someID, c.ids[2])
	assert.Equal(t, "on "+c.ids[2]+"\n", r.stdout, "the others are done")
}

const toolFile = `name: order_status
description: {file: about.txt}
url: https://a.example.com/tools/0123456789abcdef0123/order_status
parameters:
  - {name: order, type: string, description: The number of the order.}
x_key: kept
`

func TestToolsArePutListedCheckedAndRemoved(t *testing.T) {
	t.Parallel()
	c := demo(t)
	c.write("tool.yaml", toolFile)
	c.write("about.txt", "Tells where an order is.\n")
	assert.Equal(t, "put order_status\n", c.ok("tools", "put", c.ids[0], "-f", "tool.yaml"))
	list := parse[[]object](t, c.ok("tools", "list", c.ids[0], "-o", "json"))
	require.Len(t, list, 1)
	assert.Equal(t, "Tells where an order is.", list[0]["description"])
	assert.Equal(t, "https://a.example.com/tools/[redacted]/order_status", list[0]["url"])
	assert.Equal(t, "[redacted]", list[0]["x_key"])
	assert.Equal(t, "kept", parse[[]object](t, c.ok("tools", "list", c.ids[0], "-o", "json", "--show-secrets"))[0]["x_key"])
	assert.Contains(t, c.ok("tools", "list", c.ids[0]), "order_status  order:string")
	assert.Equal(t, "[]\n", c.ok("tools", "list", c.ids[1], "-o", "json"))

	r := c.run("tools", "check", c.ids[0], "-o", "json")
	assert.Equal(t, 1, r.code)
	assert.Empty(t, r.stderr)
	assert.Equal(t, "tool_not_in_prompt", parse[[]object](t, r.stdout)[0]["code"])
	assert.Contains(t, c.run("tools", "check", c.ids[22]).stdout, "tool_invalid")
	c.ok("set", c.ids[0], "promptConfig.system_prompt=Call order_status with order.")
	assert.Equal(t, "[]\n", c.ok("tools", "check", c.ids[0], "-o", "json"))

	near := c.fails(0, "did you mean order_status?", "tools", "remove", c.ids[0], "order_statu")
	assert.Equal(t, "unchanged\n", near.stdout)
	assert.Equal(t, "removed order_status\n", c.ok("tools", "remove", c.ids[0], "order_status"))

	c.write("bad.yaml", "name: a b\nurl: http://x.example.com\n")
	bad := c.run("tools", "put", c.ids[0], "-f", "bad.yaml")
	assert.Equal(t, 2, bad.code)
	assert.Contains(t, bad.stderr, "bad.yaml: ")
	c.ok("set", c.ids[1], "operationMode=ttt")
	assert.Equal(t, 1, c.run("tools", "put", c.ids[1], "-f", "tool.yaml").code, "the service would never call it")
}

// Another client may have left a field in another spelling as well.
func TestCommandsReadExactNames(t *testing.T) {
	t.Parallel()
	c := demo(t)
	id := c.ids[0]
	c.ok("call", "PUT", "/head/update", "--data", `{"id":"`+id+`","ttsVoice":"en-GB-a","ttsProvider":"azure","ttsvoice":"left-over","videostreaming":"yes","Name":5}`)
	assert.Contains(t, c.ok("get", id), "azure/en-GB-a")
	assert.Contains(t, c.ok("get", id, "--raw"), "left-over")
	assert.Contains(t, c.ok("set", id, "ttsVoice=en-GB-b", "ttsProvider=azure"), "en-GB-b")
	assert.Contains(t, c.ok("set", id, "ttsVoice=en-GB-b", "ttsProvider=azure"), "unchanged")
	exported := c.ok("export", id)
	assert.Contains(t, exported, "en-GB-b")
	assert.NotContains(t, exported, "left-over")
	assert.NotContains(t, c.run("doctor", id).stdout, "left-over")
	assert.Contains(t, c.ok("convert", id, "--yes"), "1 changed")
}

func TestParametersWithoutATypeAreANote(t *testing.T) {
	t.Parallel()
	c := demo(t)
	id := c.ids[0]
	c.ok("set", id, "operationMode=oc", "promptConfig.system_prompt=Call order_status with order.")
	c.ok("call", "PUT", "/head/"+id+"/conversation-settings", "--data", `{"conversationSettings":{"tools":[{"name":"order_status","description":"d",`+
		`"url":"https://a.example.com/","parameters":[{"name":"order","description":"d"}]}]}}`)
	assert.Contains(t, c.ok("tools", "check", id), "parameter_untyped  tool order_status.order")
	doctor := c.run("doctor", id).stdout
	assert.Contains(t, doctor, "note    parameter_untyped")
	assert.NotContains(t, doctor, "error ")
}

func TestToolsAreCalledAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	bodies := make(chan object, 1)
	replies := map[string]string{"/order": `{"message":"Shipped\u009b2J"}`, "/old": `{"result":"Shipped"}`}
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body object
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		bodies <- body
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, replies[r.URL.Path])
	}))
	defer tool.Close()
	c := emulator(t, object{
		"heads": []object{{"id": someID, "operationMode": "oc", "publicId": "li-77777"}, {"id": "1b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01", "operationMode": "ttt"}},
		"tools": []object{
			{"headId": someID, "name": "order", "description": "Tells where an order is.", "url": tool.URL + "/order", "parameters": []object{
				{"name": "order", "type": "string", "description": "d"}, {"name": "count", "type": "integer", "description": "d"}, {"name": "any", "type": "string", "description": "d"},
			}},
			{"headId": someID, "name": "old", "description": "d", "url": tool.URL + "/old", "parameters": []object{}},
		},
	})
	assert.Equal(t, replies["/order"]+"\n", c.ok("tools", "call", someID, "order", "order=007", "count=2", "any:=[1]"))
	body := <-bodies
	metadata, _ := body["session_metadata"].(object)
	assert.Equal(t, someID, metadata["head_id"])
	assert.Equal(t, "li-77777", metadata["public_head_id"])
	assert.NotEmpty(t, metadata["session_id"])
	delete(body, "session_metadata")
	assert.Equal(t, object{"order": "007", "count": 2.0, "any": []any{1.0}}, body)

	r := c.fails(1, `expected {"message": "…"}, the reply has "result"`, "tools", "call", someID, "old")
	assert.Equal(t, replies["/old"]+"\n", r.stdout, "the reply is printed all the same")
	<-bodies
	c.fails(2, `no parameter "ordr" (did you mean order?)`, "tools", "call", someID, "order", "ordr=7")
	c.fails(2, `is not JSON`, "tools", "call", someID, "order", "count=two")
	c.fails(2, `given twice`, "tools", "call", someID, "order", "order=1", "order=2")
	c.fails(1, `the head has no tool "ordr" (did you mean order?)`, "tools", "call", someID, "ordr")
	c.fails(1, "404", "tools", "call", "2b9d6c1a-7f1e-4a52-8a36-2f4c1d9e8b01", "order")
	c.ok("set", someID, "operationMode=ttt")
	c.fails(1, `the service would not call the tool: the head is in operation mode "ttt"`, "tools", "call", someID, "order")
	assert.Empty(t, bodies, "nothing was sent to the tool")
}

func TestDoctorTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := demo(t)
	r := c.run("doctor", "-f", "ids.csv")
	assert.Equal(t, 1, r.code)
	assert.Empty(t, r.stderr)
	assert.Contains(t, r.stdout, c.ids[0]+" Lobby (legacy): nothing found\n")
	assert.Contains(t, r.stdout, "error   tool_invalid tool order_status\n")
	assert.Contains(t, r.stdout, "error   inactive isActive\n")
	list := parse[[]heads.Examination](t, c.run("doctor", c.ids[23], c.ids[0], "-o", "json").stdout)
	require.Len(t, list, 2)
	assert.Empty(t, parse[[]object](t, c.ok("doctor", c.ids[0], "-o", "json"))[0]["findings"])
	assert.Contains(t, c.ok("doctor", c.ids[0], "-o", "json"), `"findings": []`, "never null")
	c.ok("doctor", c.ids[23]) // warnings alone
}

func TestCallPrintsTheBodyWhateverTheStatus(t *testing.T) {
	t.Parallel()
	c := demo(t)
	assert.Equal(t, "false\n", c.ok("call", "get", "/head/"+c.ids[0]+"/enable-events"))
	c.ok("call", "PUT", "/head/"+c.ids[0]+"/enable-events", "--query", "enableEvents=true")
	assert.Equal(t, "true\n", c.ok("call", "GET", "/head/"+c.ids[0]+"/enable-events"))
	file := c.write("body.json", `{"id":"`+c.ids[0]+`","name":"Foyer"}`)
	c.ok("call", "PUT", "/head/update", "--data", "@"+file)
	head := parse[object](t, c.ok("call", "GET", "/head/"+c.ids[0]))
	assert.Equal(t, "Foyer", head["name"])
	assert.Contains(t, head["publicUrl"], "[redacted]")
	assert.Regexp(t, "api_key=[0-9a-f]+", parse[object](t, c.ok("call", "GET", "/head/"+c.ids[0], "--show-secrets"))["publicUrl"])
	r := c.fails(1, "404", "call", "GET", "/nowhere")
	assert.Equal(t, "Not Found", parse[object](t, r.stdout)["error"])
}

func TestVerifyTellsRightFromWrong(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	body := `{"event_type":"end_conversation"}`
	c.write("body.json", body)
	key := c.write("key", "shared-key\n")
	signature := heads.Sign([]byte(body), "shared-key")
	c.ok("events", "verify", "--body", "body.json", "--signature", signature, "--key-file", key)
	assert.Equal(t, 0, c.with("HEADS_SHARED_KEY=shared-key").runWith(body, "events", "verify", "--body", "-", "--signature", "sha256="+signature).code)
	r := c.runWith(body+"\n", "events", "verify", "--body", "-", "--signature", signature, "--key-file", key)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "line end")
	assert.Empty(t, r.stderr)
}

func TestSendDeliversASignedEvent(t *testing.T) {
	t.Parallel()
	events, statuses := make(chan *heads.Event, 2), make(chan int, 2)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = heads.VerifySignature(body, r.Header.Get(heads.SignatureHeader), "shared-key")
		}
		if assert.NoError(t, err) {
			event, err := heads.ParseEvent(body)
			assert.NoError(t, err)
			events <- event
		}
		w.WriteHeader(<-statuses)
	}))
	defer receiver.Close()
	c := newTerminal(t).with("HEADS_SHARED_KEY=shared-key")
	send := []string{"events", "send", receiver.URL + "/x?token=s3cret", "--type", "end_conversation", "--head", someID}
	statuses <- http.StatusNoContent
	assert.Equal(t, "204 No Content\n", c.ok(append(send, "--session", "s-1")...))
	got := <-events
	assert.Equal(t, []any{heads.EventEndConversation, someID, "s-1"}, []any{got.Type, got.HeadID, got.SessionID})
	statuses <- http.StatusServiceUnavailable
	r := c.fails(1, "answered 503", send...)
	assert.Equal(t, "503 Service Unavailable\n", r.stdout)
	receiver.Close()
	r = c.fails(1, "check that it is running", send...)
	assert.NotContains(t, r.stderr, "s3cret")
}

func TestDemoHasTheSameHeadsOnEveryRun(t *testing.T) {
	t.Parallel()
	first, second := demo(t), demo(t)
	assert.Len(t, first.ids, 25)
	assert.Equal(t, first.ids, second.ids)
	assert.NotEqual(t, first.token, second.token)
	plan := first.run("convert", "-f", "ids.csv", "--dry-run")
	assert.Equal(t, 1, plan.code)
	assert.Contains(t, plan.stdout, "15 pending, 5 unchanged, 5 blocked, 0 failed, 0 skipped (a blocked head gets nothing of its entry)\n")
	found, err := filepath.Glob(filepath.Join(first.dir, "site", "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, found)
	r := first.run("plan", "-f", "heads.yaml", "--exit-code")
	assert.Equal(t, 3, r.code)
}

func TestDemoEndsWith0(t *testing.T) {
	t.Parallel()
	s := newTerminal(t).show(80, "demo", "--dir", "d")
	s.wait("Ctrl-C ends")
	s.press("\x03")
	assert.Equal(t, 0, s.end())
	assert.Contains(t, s.String(), "export HEADS_TOKEN=")
	assert.Regexp(t, `# Watch it in a browser: http://127\.0\.0\.1:\d+/_emulator/`, s.String())
	assert.Equal(t, 5, strings.Count(s.String(), "\r\nheadsctl "), "five commands to try\n%s", s)
}
