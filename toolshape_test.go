package heads

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oddTools are tools that the service stores although a head with one of them may
// not load, and what Validate reports for each.
var oddTools = map[string]struct{ document, says string }{
	"a schema for parameters": {`{"name":"odd", "description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"url":"https://tools.example.com/odd","x":1.0}`,
		`parameters are a JSON object; want a list`},
	"a string for parameters":     {`{"name":"odd","description":"d","parameters":"city","url":"https://tools.example.com/odd"}`, `parameters are a JSON string; want a list`},
	"a parameter without a type":  {`{"name":"odd","description":"d","parameters":[{"name":"city" ,"description":"d"}],"url":"https://tools.example.com/odd"}`, ""}, // loads
	"an empty type":               {`{"name":"odd","description":"d","parameters":[{"name":"city","type":"","description":"d"}],"url":"https://tools.example.com/odd"}`, `type "" is unknown`},
	"a type that is no text":      {`{"name":"odd","description":"d","parameters":[{"name":"city","type":["string"],"description":"d"}],"url":"https://tools.example.com/odd"}`, `type is a JSON array; want a string`},
	"a parameter that is a text":  {`{"name":"odd","description":"d","parameters":[ "city" ],"url":"https://tools.example.com/odd"}`, `is a JSON string; want an object with name, type and description`},
	"a parameter of null":         {`{"name":"odd","description":"d","parameters":[null],"url":"https://tools.example.com/odd"}`, `is a JSON null; want an object`},
	"a name that is no text":      {`{"name":5,"description":"d","parameters":[],"url":"https://tools.example.com/odd"}`, `name is a JSON number; want a string`},
	"a description that is none":  {`{"name":"odd","description":{"en":"d"},"parameters":[],"url":"https://tools.example.com/odd"}`, `description is a JSON object; want a string`},
	"an address that is no text":  {`{"name":"odd","description":"d","parameters":[],"url":["https://tools.example.com/odd"]}`, `url is a JSON array; want a string`},
	"a text for a tool":           {`"odd {name} \u00e9"`, `is a JSON string; want an object with name, description, parameters and url`},
	"a number for a tool":         {`17.50`, `is a JSON number; want an object`},
	"a list for a tool":           {`[ {"name":"odd"} ]`, `is a JSON array; want an object`},
	"null for a tool":             {`null`, `is a JSON null; want an object`},
	"an object without any field": {`{ "x" : 1.0 }`, `use a letter`},
}

const goodTool = `{"name":"weather","description":"Tells the weather","parameters":[],"url":"https://tools.example.com/weather"}`

// headWith returns a head with these tools.
func headWith(tools ...string) string {
	return `{"id":"` + testHead + `","operationMode":"oc","conversationSettings":{"model":{"api_key":"k"} , "tools":[` + strings.Join(tools, ",") + `]}}`
}

func bodyWith(tools ...string) string {
	return `{"conversationSettings":{"model":{"api_key":"k"} , "tools":[` + strings.Join(tools, ",") + `]}}`
}

func TestHeadWithAToolOfAnOddShapeIsRead(t *testing.T) {
	for name, odd := range oddTools {
		t.Run(name, func(t *testing.T) {
			head, err := newFakeAPI(t, answering(headWith(goodTool, odd.document))).Heads.Get(t.Context(), testHead)
			require.NoError(t, err)
			tools := head.ConversationSettings.Tools
			require.Len(t, tools, 2)
			require.NoError(t, tools[0].Validate())
			assert.Equal(t, odd.document, string(tools[1].document()), "its bytes")
			stored, err := json.Marshal(head)
			require.NoError(t, err)
			assert.Contains(t, string(stored), compacted(t, odd.document), "in a head that is stored")
			err = tools[1].Validate()
			if odd.says == "" {
				require.NoError(t, err)
				tools[1].Description += "."
				err, odd.says = tools[1].Validate(), `type "" is unknown`
			}
			require.ErrorIs(t, err, ErrInvalid)
			assert.ErrorContains(t, err, odd.says)
			assert.ErrorContains(t, err, "Tool.Validate")
		})
	}
}

func compacted(t *testing.T, document string) string {
	t.Helper()
	raw, err := json.Marshal(json.RawMessage(document))
	require.NoError(t, err)
	return string(raw)
}

func TestOddToolKeepsWhatCanBeRead(t *testing.T) {
	head, err := newFakeAPI(t, answering(headWith(oddTools["a type that is no text"].document, oddTools["a schema for parameters"].document))).Heads.Get(t.Context(), testHead)
	require.NoError(t, err)
	tool := head.ConversationSettings.Tools[0]
	assert.Equal(t, "odd", tool.Name)
	assert.Equal(t, "d", tool.Description)
	assert.Equal(t, "https://tools.example.com/odd", tool.URL)
	require.Len(t, tool.Parameters, 1)
	assert.Equal(t, "city", tool.Parameters[0].Name)
	assert.Empty(t, tool.Parameters[0].Type)
	changed := head.ConversationSettings.Tools[1]
	assert.Nil(t, changed.Parameters)
	changed.Description = "another one"
	assert.Contains(t, string(changed.document()), `{"type":"object","properties":{"city":{"type":"string"}}}`, "until they are set")
}

func TestUnchangedToolIsNeverRefusedOnItsWayBack(t *testing.T) {
	for name, odd := range oddTools {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(headWith(goodTool, odd.document)))
			settings := service.ConversationSettings
			read, err := settings.Get(t.Context(), testHead)
			require.NoError(t, err)
			service.since()
			const added = `{"name":"tickets","description":"d","parameters":[],"url":"https://tools.example.com/t"}`
			tickets := Tool{Name: "tickets", Description: "d", URL: "https://tools.example.com/t"}

			_, err = settings.PutTool(t.Context(), testHead, tickets)
			require.NoError(t, err)
			assert.Equal(t, bodyWith(goodTool, odd.document, added), service.bodyOf(t, settingsRoute))

			_, err = settings.RemoveTool(t.Context(), testHead, "weather")
			require.NoError(t, err)
			assert.Equal(t, bodyWith(odd.document), service.bodyOf(t, settingsRoute))

			_, err = settings.SetTools(t.Context(), testHead, read.Tools[1], tickets)
			require.NoError(t, err)
			assert.Equal(t, bodyWith(odd.document, added), service.bodyOf(t, settingsRoute))

			_, err = settings.PutTool(t.Context(), testHead, read.Tools[1])
			if read.Tools[1].Name == "" {
				assert.ErrorIs(t, err, ErrInvalid, "a tool without a name replaces none")
				assert.Empty(t, service.since())
			} else {
				require.NoError(t, err)
				assert.Equal(t, []string{"GET /head/" + testHead}, service.routes(), "nothing has changed")
			}

			read.Tools = append(read.Tools, tickets)
			err = settings.Replace(t.Context(), testHead, read)
			require.NoError(t, err)
			assert.Equal(t, bodyWith(goodTool, odd.document, added), service.bodyOf(t, settingsRoute))

			_, err = settings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
				return cs.SetExtra("model", json.RawMessage(`1`))
			})
			require.NoError(t, err)
			assert.Contains(t, service.bodyOf(t, settingsRoute), odd.document)
		})
	}
}

// A tool that was read earlier is still accepted after another program has changed
// it.
func TestToolThatWasReadEarlierIsNotRefused(t *testing.T) {
	odd := oddTools["a parameter without a type"].document
	service := newFakeAPI(t, answering(headWith(odd)))
	read, err := service.ConversationSettings.Get(t.Context(), testHead)
	require.NoError(t, err)
	service.mu.Lock()
	service.answer("GET /head/"+testHead, headWith(strings.Replace(odd, `"d"`, `"changed"`, 1)))
	service.mu.Unlock()
	_, err = service.ConversationSettings.SetTools(t.Context(), testHead, read.Tools...)
	require.NoError(t, err)
	assert.Equal(t, bodyWith(odd), service.bodyOf(t, settingsRoute))
}

func TestChangedToolOfAnOddShapeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Tool){
		"by Modify":                  func(t *Tool) { t.Description = "another one" },
		"with another address":       func(t *Tool) { t.URL = "https://tools.example.com/other" },
		"with a bad parameter added": func(t *Tool) { t.Parameters = append(t.Parameters, ToolParameter{}) },
	} {
		for shape, odd := range oddTools {
			t.Run(name+" "+shape, func(t *testing.T) {
				service := newFakeAPI(t, answering(headWith(odd.document)))
				_, err := service.ConversationSettings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
					change(&cs.Tools[0])
					return nil
				})
				if shape == "a description that is none" && name == "by Modify" || shape == "an address that is no text" && name == "with another address" {
					require.NoError(t, err, "this has repaired it")
					return
				}
				assert.ErrorIs(t, err, ErrInvalid)
				assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
			})
		}
	}
}

func TestOddToolOfTheCallersOwnIsRefused(t *testing.T) {
	for name, odd := range oddTools {
		t.Run(name, func(t *testing.T) {
			var mine ConversationSettings
			require.NoError(t, json.Unmarshal([]byte(`{"tools":[`+odd.document+`]}`), &mine))
			service := newFakeAPI(t, answering(headWith(goodTool)))
			err := service.ConversationSettings.Replace(t.Context(), testHead, &mine)
			assert.ErrorIs(t, err, ErrInvalid)
			_, err = service.ConversationSettings.SetTools(t.Context(), testHead, mine.Tools...)
			assert.ErrorIs(t, err, ErrInvalid)
			_, err = service.ConversationSettings.PutTool(t.Context(), testHead, mine.Tools[0])
			assert.ErrorIs(t, err, ErrInvalid)
			assert.NotContains(t, service.routes(), settingsRoute)
		})
	}
}

func TestToolHelpersRepairAnOddTool(t *testing.T) {
	repaired := Tool{Name: "odd", Description: "Does it.", URL: "https://tools.example.com/new"}
	city := []ToolParameter{{Name: "city", Type: "string", Description: "Where."}}
	tests := []struct {
		name, odd string
		call      settingsCall
		body      string
	}{
		{"PutTool", "a schema for parameters", putting(repaired),
			bodyWith(goodTool, `{"name":"odd", "description":"Does it.","parameters":[],"url":"https://tools.example.com/new","x":1.0}`)},
		{"PutTool with parameters", "a parameter that is a text", putting(Tool{Name: repaired.Name, Description: repaired.Description, URL: repaired.URL, Parameters: city}),
			bodyWith(goodTool, `{"name":"odd","description":"Does it.","parameters":[{"name":"city","type":"string","description":"Where."}],"url":"https://tools.example.com/new"}`)},
		{"PutTool of a type", "a type that is no text", putting(Tool{Name: "odd", Description: "d", URL: "https://tools.example.com/odd", Parameters: city}),
			bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[{"name":"city","type":"string","description":"Where."}],"url":"https://tools.example.com/odd"}`)},
		{"SetTools", "an address that is no text", setting(repaired),
			bodyWith(`{"name":"odd","description":"Does it.","parameters":[],"url":"https://tools.example.com/new"}`)},
		{"SetTools to none", "null for a tool", setting(), bodyWith()},
		{"RemoveTool", "a schema for parameters", removing("odd"), bodyWith(goodTool)},
		{"Modify taking it out", "a list for a tool", modifying(func(cs *ConversationSettings) error {
			cs.Tools = cs.Tools[:1]
			return nil
		}), bodyWith(goodTool)},
		{"Modify emptying the parameters", "a string for parameters", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Parameters = []ToolParameter{}
			return nil
		}), bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[],"url":"https://tools.example.com/odd"}`)},
		{"Modify setting a type", "a parameter without a type", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Parameters[0].Type = "string"
			return nil
		}), bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[{"name":"city" ,"description":"d","type":"string"}],"url":"https://tools.example.com/odd"}`)},
		{"Modify setting a name", "a name that is no text", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Name = "odd"
			return nil
		}), bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[],"url":"https://tools.example.com/odd"}`)},
		{"Modify making a tool of a text", "a text for a tool", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Name, cs.Tools[1].Description, cs.Tools[1].URL = "odd", "d", "https://tools.example.com/odd"
			return nil
		}), bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[],"url":"https://tools.example.com/odd"}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, answering(headWith(goodTool, oddTools[tt.odd].document)))
			_, err := tt.call(t.Context(), service.ConversationSettings)
			require.NoError(t, err)
			assert.Equal(t, tt.body, service.bodyOf(t, settingsRoute))
		})
	}
}
