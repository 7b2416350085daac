package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const toolFile = `name: order_status
description: {file: about.txt}
url: https://a.example.com/tools/0123456789abcdef0123/order_status
parameters:
  - {name: order, type: string, description: The number of the order.}
x_key: kept
`

func TestToolsArePutListedCheckedAndRemoved(t *testing.T) {
	c := demo(t)
	c.write("tool.yaml", toolFile, "about.txt", "Tells where an order is.\n", "bad.yaml", "name: a b\nurl: http://x.example.com\n")
	assert.Equal(t, "put order_status\n", c.ok("tools", "put", c.ids[0], "-f", "tool.yaml"))
	list := parse[[]object](t, c.ok("tools", "list", c.ids[0], "-o", "json"))
	require.Len(t, list, 1)
	assert.Subset(t, list[0], object{"description": "Tells where an order is.", "url": "https://a.example.com/tools/[redacted]/order_status", "x_key": "[redacted]"})
	assert.Equal(t, "kept", parse[[]object](t, c.ok("tools", "list", c.ids[0], "-o", "json", "--show-secrets"))[0]["x_key"])
	assert.Contains(t, c.ok("tools", "list", c.ids[0]), "order_status  order:string")
	assert.Equal(t, "[]\n", c.ok("tools", "list", c.ids[1], "-o", "json"))
	r := c.ends(1, "tools", "check", c.ids[0], "-o", "json")
	assert.Empty(t, r.stderr)
	assert.Equal(t, "tool_not_in_prompt", parse[[]object](t, r.stdout)[0]["code"])
	assert.Contains(t, c.run("tools", "check", c.ids[22]).stdout, "tool_invalid")
	c.ok("set", c.ids[0], "promptConfig.system_prompt=Call order_status with order.")
	assert.Equal(t, "[]\n", c.ok("tools", "check", c.ids[0], "-o", "json"))
	assert.Equal(t, "unchanged\n", c.fails(0, "did you mean order_status?", "tools", "remove", c.ids[0], "order_statu").stdout)
	assert.Equal(t, "removed order_status\n", c.ok("tools", "remove", c.ids[0], "order_status"))
	assert.Contains(t, c.ends(2, "tools", "put", c.ids[0], "-f", "bad.yaml").stderr, "bad.yaml: ")
	c.ok("set", c.ids[1], "operationMode=ttt")
	c.ends(1, "tools", "put", c.ids[1], "-f", "tool.yaml") // the service would never call it
}

func TestToolsAreCalledAsTheServiceDoes(t *testing.T) {
	bodies := make(chan object, 1)
	replies := map[string]string{"/order": `{"message":"Shipped\u009b2J"}`, "/old": `{"result":"Shipped"}`}
	tool := serving(t, func(w http.ResponseWriter, r *http.Request) {
		var body object
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		bodies <- body
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, replies[r.URL.Path])
	})
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
	assert.Subset(t, body["session_metadata"], object{"head_id": someID, "public_head_id": "li-77777"})
	assert.NotEmpty(t, body["session_metadata"].(object)["session_id"])
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

func TestUnknownTypesAreNotesAndNothingIsLeftOut(t *testing.T) {
	c := emulator(t, legacyHeads(1))
	id := c.ids[0]
	c.ok("set", id, "operationMode=oc", "promptConfig.system_prompt=Call order_status with order and day.")
	c.ok("call", "PUT", "/head/"+id+"/conversation-settings", "--data", `{"conversationSettings":{"tools":[{"name":"order_status","description":"d",`+
		`"url":"https://a.example.com/","parameters":[{"name":"order","description":"d"},{"name":"day","type":"strnig","description":"d"}]}]}}`)
	assert.Contains(t, c.ok("tools", "check", id), "parameter_untyped  tool order_status.order")
	doctor := c.ok("doctor", id)
	assert.Contains(t, doctor, "note    parameter_untyped")
	assert.NotContains(t, doctor, "error ")
	exported := c.ends(0, "export", id)
	assert.NotContains(t, exported.stderr, "left out")
	assert.Contains(t, exported.stdout, "name: order_status")
	const tool = "name: a\ndescription: d\nurl: https://a.example.com/a\nparameters:\n  - {name: x, type: strnig, description: d}\n"
	c.write("heads.yaml", exported.stdout, "tool.yaml", tool, "placeholder.yaml", strings.Replace(tool, "strnig", "<TYPE>", 1))
	plan := c.ends(0, "plan", "-f", "heads.yaml")
	assert.Contains(t, plan.stdout, "0 pending, 1 unchanged")
	assert.Contains(t, plan.stderr, `note: tool "order_status" parameter "day" has the unknown type "strnig" (did you mean string?)`)
	assert.Contains(t, plan.stderr, `note: tool "order_status" parameter "order" has no type`)
	assert.Contains(t, c.ends(0, "tools", "put", id, "-f", "tool.yaml").stderr, "did you mean string?")
	c.fails(2, "is a placeholder", "tools", "put", id, "-f", "placeholder.yaml")
}
