package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGetShowsAHeadWithOneRequest(t *testing.T) {
	c := demo(t)
	r := c.ends(0, "get", c.ids[0], "--debug")
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
	c.write("one.yaml", toolFile, "two.yaml", strings.ReplaceAll(toolFile, "order_status", "weather"), "about.txt", "Tells where an order is.")
	c.ok("tools", "put", c.ids[0], "-f", "one.yaml")
	c.ok("tools", "put", c.ids[0], "-f", "two.yaml")
	assert.Contains(t, c.ok("get", c.ids[0]), "TOOLS           order_status, weather\n")
	assert.Contains(t, c.ok("get", c.ids[12]), "MODE            streaming")
	assert.Contains(t, c.ok("get", c.ids[24]), "ACTIVE          no")
}

func TestGetPrintsTheHeadByTheServicesNames(t *testing.T) {
	c := demo(t)
	asJSON := c.head(c.ids[0])
	assert.Equal(t, "azure", asJSON["ttsProvider"])
	assert.YAMLEq(t, c.ok("get", c.ids[0], "-o", "json"), c.ok("get", c.ids[0], "-o", "yaml"))
	assert.Regexp(t, `^https://chat\.example\.test/MyOrg-\d+/li-\d+\?api_key=\[redacted\]$`, asJSON["publicUrl"])
	assert.Equal(t, asJSON["publicUrl"], parse[object](t, c.ok("get", c.ids[0], "--raw"))["publicUrl"])
	for _, args := range [][]string{{"--raw"}, {"-o", "json"}} {
		open := parse[object](t, c.ok(append([]string{"get", c.ids[0], "--show-secrets"}, args...)...))
		assert.Regexp(t, `api_key=[0-9a-f]{32}$`, open["publicUrl"])
	}
}

// Another client may have left a field in another spelling as well.
func TestCommandsReadExactNames(t *testing.T) {
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
