package headstest_test

import (
	"testing"

	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
)

const goodTool = `{"name":"weather","description":"Weather of a city","parameters":[{"name":"city","type":"string","description":"The city"}],"url":"https://tools.example.test/weather"}`

func TestSettingsAreReplacedWhole(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	path := "/head/" + id + "/conversation-settings"
	const first = `{"tools":[` + goodTool + `], "model" : {"api_key":"k","n":1.0}}`
	a.ok("PUT", path, `{"conversationSettings":`+first+`}`)
	assert.Contains(t, a.ok("GET", "/head/"+id, "").body, `"conversationSettings":`+first, "byte for byte")
	a.ok("PUT", path, `{"conversationSettings":{"other":true}}`)
	assert.Equal(t, map[string]any{"other": true}, a.head(id)["conversationSettings"])
}

func TestSettingsMustBeWrapped(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	for _, body := range []string{`{"tools":[]}`, `{}`, `{"conversationSettings":null}`, `{"conversationSettings":[]}`, `{"conversationSettings":"x"}`} {
		t.Run(body, func(t *testing.T) {
			a.do("PUT", "/head/"+id+"/conversation-settings", body).refused(t, 400, "conversationSettings")
		})
	}
}

func TestSettingsRefuseMalformedTools(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	before := a.head(id)
	rows := []struct{ name, tools, says string }{
		{"not a list", `{}`, "tools must be a list"},
		{"null", `null`, "tools must be a list"},
		{"not an object", `["x"]`, "tools[0]"},
		{"second", `[` + goodTool + `,{}]`, "tools[1] needs a name"},
		{"empty name", `[{"name":"","url":"https://a.example.test"}]`, "name"},
		{"description", `[{"name":"a","description":5,"url":"https://a.example.test"}]`, "description"},
		{"no address", `[{"name":"a"}]`, "url"},
		{"http", `[{"name":"a","url":"http://a.example.test"}]`, "HTTPS"},
		{"http on loopback", `[{"name":"a","url":"http://127.0.0.1:1"}]`, "HTTPS"},
		{"no host", `[{"name":"a","url":"https:///x"}]`, "HTTPS"},
		{"parameters null", `[{"name":"a","url":"https://a.example.test","parameters":null}]`, "list of parameters"},
		{"parameters object", `[{"name":"a","url":"https://a.example.test","parameters":{}}]`, "list of parameters"},
		{"parameter without name", `[{"name":"a","url":"https://a.example.test","parameters":[{"type":"string"}]}]`, "parameters[0] needs a name"},
		{"parameter without type", `[{"name":"a","url":"https://a.example.test","parameters":[{"name":"x"}]}]`, "needs a type"},
		{"parameter description", `[{"name":"a","url":"https://a.example.test","parameters":[{"name":"x","type":"string","description":1}]}]`, "description"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			a.do("PUT", "/head/"+id+"/conversation-settings", `{"conversationSettings":{"tools":`+row.tools+`}}`).refused(t, 400, row.says)
		})
	}
	assert.Equal(t, before, a.head(id))
}

func TestSettingsTakePlainHTTPOnLoopbackWhenAsked(t *testing.T) {
	a := newAPI(t, headstest.WithLoopbackHTTP())
	path := "/head/" + a.AddHead(headstest.Head{}) + "/conversation-settings"
	a.ok("PUT", path, `{"conversationSettings":{"tools":[{"name":"a","url":"http://127.0.0.1:1/x"}]}}`)
	a.do("PUT", path, `{"conversationSettings":{"tools":[{"name":"a","url":"http://a.example.test"}]}}`).refused(t, 400, "HTTPS")
}
