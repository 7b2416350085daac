package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCallPrintsTheBodyWhateverTheStatus(t *testing.T) {
	c := demo(t)
	assert.Equal(t, "false\n", c.ok("call", "get", "/head/"+c.ids[0]+"/enable-events"))
	c.ok("call", "PUT", "/head/"+c.ids[0]+"/enable-events", "--query", "enableEvents=true")
	assert.Equal(t, "true\n", c.ok("call", "GET", "/head/"+c.ids[0]+"/enable-events"))
	c.ok("call", "PUT", "/head/update", "--data", "@"+c.write("body.json", `{"id":"`+c.ids[0]+`","name":"Foyer"}`))
	head := parse[object](t, c.ok("call", "GET", "/head/"+c.ids[0]))
	assert.Equal(t, "Foyer", head["name"])
	assert.Contains(t, head["publicUrl"], "[redacted]")
	assert.Regexp(t, "api_key=[0-9a-f]+", parse[object](t, c.ok("call", "GET", "/head/"+c.ids[0], "--show-secrets"))["publicUrl"])
	assert.Equal(t, "Not Found", parse[object](t, c.fails(1, "404", "call", "GET", "/nowhere").stdout)["error"])
}
