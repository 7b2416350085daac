package headstest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

const goodTool = `{"name":"weather","description":"Weather of a city","parameters":[{"name":"city","type":"string","description":"The city"}],"url":"https://tools.example.test/weather"}`

func TestSettingsMustBeWrapped(t *testing.T) {
	a, id := withHead(t)
	for _, body := range []string{`{"tools":[]}`, `{}`, `{"conversationSettings":null}`, `{"conversationSettings":[]}`, `{"conversationSettings":"x"}`} {
		a.do("PUT", "/head/"+id+"/conversation-settings", body).refused(t, 400, "conversationSettings")
	}
}

func TestSettingsRefuseMalformedTools(t *testing.T) {
	a, id := withHead(t)
	before := a.head(id)
	for _, row := range []struct{ name, tools, says string }{
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
		{"parameters text", `[{"name":"a","url":"https://a.example.test","parameters":"city"}]`, "list of parameters"},
		{"parameter without name", `[{"name":"a","url":"https://a.example.test","parameters":[{"type":"string"}]}]`, "parameters[0] needs a name"},
		{"parameter type", `[{"name":"a","url":"https://a.example.test","parameters":[{"name":"x","type":1}]}]`, "string type"},
		{"parameter description", `[{"name":"a","url":"https://a.example.test","parameters":[{"name":"x","type":"string","description":1}]}]`, "description"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a.do("PUT", "/head/"+id+"/conversation-settings", `{"conversationSettings":{"tools":`+row.tools+`}}`).refused(t, 400, row.says)
		})
	}
	assert.Equal(t, before, a.head(id))
}

func TestSettingsAcceptPlainHTTPOnLoopbackWhenAllowed(t *testing.T) {
	a, id := withHead(t, headstest.WithLoopbackHTTP())
	path := "/head/" + id + "/conversation-settings"
	a.ok("PUT", path, `{"conversationSettings":{"tools":[{"name":"a","url":"http://127.0.0.1:1/x"}]}}`)
	a.do("PUT", path, `{"conversationSettings":{"tools":[{"name":"a","url":"http://a.example.test"}]}}`).refused(t, 400, "HTTPS")
}

func TestParametersMayHaveNoType(t *testing.T) {
	a, id := newAPI(t).with(headstest.Head{OperationMode: "oc"})
	const settings = `{"tools":[{"name":"a","url":"https://a.example.test","parameters":[{"name":"x","description":"X."}]}]}`
	a.ok("PUT", "/head/"+id+"/conversation-settings", `{"conversationSettings":`+settings+`}`)
	assert.Contains(t, a.ok("GET", "/head/"+id, "").body, `"conversationSettings":`+settings)
	require.NoError(t, perform(a.StartSession(id), "message inactive timeout"))
}

func TestParametersAsAnObjectAreStoredAndPreventLoading(t *testing.T) {
	for _, parameters := range []string{`{"type":"object","properties":{"city":{"type":"string"}}}`, `{"city":"The city"}`, `{}`} {
		t.Run(parameters, func(t *testing.T) {
			a, id := newAPI(t).with(headstest.Head{OperationMode: "oc"})
			path := "/head/" + id + "/conversation-settings"
			before := a.StartSession(id)
			settings := `{"tools":[` + goodTool + `,{"name":"a","url":"https://a.example.test","parameters":` + parameters + `}]}`
			a.ok("PUT", path, `{"conversationSettings":`+settings+`}`)
			assert.Contains(t, a.ok("GET", "/head/"+id, "").body, `"conversationSettings":`+settings)

			for _, session := range []*headstest.Session{before, a.StartSession(id)} {
				for _, step := range []string{"message", "inactive", "timeout"} {
					assert.ErrorContains(t, perform(session, step), "can't be loaded: the parameters of conversationSettings.tools[1]")
				}
			}
			_, err := a.CallTool(t.Context(), id, "weather", nil)
			assert.ErrorContains(t, err, "can't be loaded")
			require.NoError(t, before.Close(), "the window closes all the same")

			a.ok("PUT", path, `{"conversationSettings":{"tools":[`+goodTool+`]}}`)
			assert.NoError(t, a.StartSession(id).UserMessage("x"), "the head is repaired")
		})
	}
}

func TestSettingsAreReplacedWhole(t *testing.T) {
	a, id := withHead(t)
	path := "/head/" + id + "/conversation-settings"
	assert.Equal(t, `{"conversationSettings":{"tools":[]}}`, a.ok("GET", path, "").body)
	for _, settings := range []string{`{"tools":[` + goodTool + `], "model" : {"api_key":"k","n":1.0}}`, `{"other":true}`} {
		a.ok("PUT", path, `{"conversationSettings":`+settings+`}`)
		assert.Contains(t, a.ok("GET", "/head/"+id, "").body, `"conversationSettings":`+settings+`,`, "byte for byte")
		assert.Equal(t, `{"conversationSettings":`+settings+`}`, a.ok("GET", path, "").body)
	}
	none := a.AddHead(headstest.Head{Fields: map[string]any{"conversationSettings": nil}})
	assert.Equal(t, `{"conversationSettings":null}`, a.ok("GET", "/head/"+none+"/conversation-settings", "").body)
}
