package heads

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hoursTool() Tool {
	return Tool{Name: "opening_hours", Description: "Tells when the museum is open", URL: "https://tools.example.com/opening_hours?a=1&b=2", Parameters: []ToolParameter{
		{Name: "day", Type: "string", Description: "Day of the week"},
		{Name: "guests", Type: "integer", Description: "Number of guests"},
	}}
}

// oddSettings is testdata/settings_odd.json around and in its tools.
type oddSettings struct{ whole, before, tools, after, hours, weather, rewritten string }

func readOddSettings(t testing.TB) (s oddSettings) {
	t.Helper()
	s.whole = strings.TrimSuffix(readFile(t, "settings_odd.json"), "\n")
	var found bool
	s.before, s.after, found = strings.Cut(s.whole, `  "tools": [`)
	require.True(t, found)
	s.before += `  "tools": `
	s.tools, s.after, found = strings.Cut(s.after, "\n  ],\n")
	require.True(t, found)
	s.tools, s.after = "["+s.tools+"\n  ]", ",\n"+s.after
	s.hours, s.weather, found = strings.Cut(strings.TrimSuffix(strings.TrimPrefix(s.tools, "[\n    "), "\n  ]"), ",\n    {\"name\":\"weather\"")
	require.True(t, found)
	s.weather = `{"name":"weather"` + s.weather
	// Changed parameters are written without white space.
	s.rewritten = s.hours
	for _, space := range []string{"[\n        {", ",\n        {", "}\n      ]"} {
		require.Contains(t, s.hours, space)
		s.rewritten = strings.Replace(s.rewritten, space, strings.Join(strings.Fields(space), ""), 1)
	}
	require.Equal(t, s.whole, s.before+s.tools+s.after)
	return s
}

// body returns the body that is sent for these tools.
func (s oddSettings) body(tools ...string) string {
	return `{"conversationSettings":` + s.before + "[" + strings.Join(tools, ",") + "]" + s.after + `}`
}

func (s oddSettings) head(mode OperationMode) string {
	return fmt.Sprintf(`{"id":%q, "operationMode":%q, "conversationSettings": %s }`, testHead, mode, s.whole)
}

const settingsRoute = "PUT /head/" + testHead + "/conversation-settings"

// settingsCall changes settings and returns the written ones.
type settingsCall func(context.Context, *ConversationSettingsService) (*ConversationSettings, error)

func modifying(change func(*ConversationSettings) error) settingsCall {
	return func(ctx context.Context, s *ConversationSettingsService) (*ConversationSettings, error) {
		return s.Modify(ctx, testHead, change)
	}
}

func putting(tool Tool) settingsCall {
	return func(ctx context.Context, s *ConversationSettingsService) (*ConversationSettings, error) {
		return s.PutTool(ctx, testHead, tool)
	}
}

func setting(tools ...Tool) settingsCall {
	return func(ctx context.Context, s *ConversationSettingsService) (*ConversationSettings, error) {
		return s.SetTools(ctx, testHead, tools...)
	}
}

func removing(name string) settingsCall {
	return func(ctx context.Context, s *ConversationSettingsService) (*ConversationSettings, error) {
		return s.RemoveTool(ctx, testHead, name)
	}
}

func TestUnknownKeysSurviveByteForByte(t *testing.T) {
	odd := readOddSettings(t)
	const tickets = `{"name":"tickets","description":"Sells tickets","parameters":[{"name":"count","type":"integer","description":"How many"}],"url":"https://tools.example.com/tickets?a=1&b=<2>"}`
	ticketsTool := Tool{Name: "tickets", Description: "Sells tickets", URL: "https://tools.example.com/tickets?a=1&b=<2>",
		Parameters: []ToolParameter{{Name: "count", Type: "integer", Description: "How many"}}}
	replacement := hoursTool()
	replacement.Description = "Tells opening hours & prices"
	replacement.Parameters = []ToolParameter{
		{Name: "lang", Type: "string", Description: "Language"},
		{Name: "day", Type: "string", Description: "Any day"},
	}
	replaced := odd.rewritten
	for old, changed := range map[string]string{
		`"Tells when the museum is open"`:                                                       `"Tells opening hours & prices"`,
		`"https:\/\/tools.example.com\/opening_hours"`:                                          `"https://tools.example.com/opening_hours?a=1&b=2"`,
		`[{"name": "day", "type": "string", "description": "Day of the week"`:                   `[{"name":"lang","type":"string","description":"Language"},{"name": "day", "type": "string", "description": "Any day"`,
		`,{"description": "Number of guests", "type": "integer", "name": "guests", "min": 1.0}`: ``,
	} {
		require.Contains(t, replaced, old)
		replaced = strings.Replace(replaced, old, changed, 1)
	}
	tests := []struct {
		name string
		call settingsCall
		body string
	}{
		{"PutTool of a new tool", putting(ticketsTool), odd.body(odd.hours, odd.weather, tickets)},
		{"PutTool of a tool that is there", putting(replacement), odd.body(replaced, odd.weather)},
		{"SetTools to another one", setting(ticketsTool), odd.body(tickets)},
		{"SetTools to one that is there and another one", setting(ticketsTool, replacement), odd.body(tickets, replaced)},
		{"SetTools to none", setting(), odd.body()},
		{"RemoveTool", removing("opening_hours"), odd.body(odd.weather)},
		{"Modify appending a tool", modifying(func(cs *ConversationSettings) error {
			cs.Tools = append(cs.Tools, ticketsTool)
			return nil
		}), odd.body(odd.hours, odd.weather, tickets)},
		{"Modify changing the order", modifying(func(cs *ConversationSettings) error {
			cs.Tools[0], cs.Tools[1] = cs.Tools[1], cs.Tools[0]
			return nil
		}), odd.body(odd.weather, odd.hours)},
		{"Modify renaming a tool", modifying(func(cs *ConversationSettings) error {
			cs.Tools[0].Name = "hours"
			return nil
		}), odd.body(strings.Replace(odd.hours, `"opening_hours"`, `"hours"`, 1), odd.weather)},
		{"Modify changing a parameter in place", modifying(func(cs *ConversationSettings) error {
			cs.Tools[0].Parameters[1].Type = "number"
			return nil
		}), odd.body(strings.Replace(odd.rewritten, `"integer"`, `"number"`, 1), odd.weather)},
		{"Modify adding a parameter", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Parameters = append(cs.Tools[1].Parameters, ToolParameter{Name: "city", Type: "string", Description: "Where"})
			return nil
		}), odd.body(odd.hours, strings.Replace(odd.weather, `[]`, `[{"name":"city","type":"string","description":"Where"}]`, 1))},
		{"Modify changing an unknown key", modifying(func(cs *ConversationSettings) error {
			return cs.SetExtra("list", json.RawMessage(`[ 4.0 ]`))
		}), strings.Replace(odd.body(odd.hours, odd.weather), `[ 1 , 2.0 ,3e0 ]`, `[ 4.0 ]`, 1)},
		{"Modify changing a key that is written with an escape", modifying(func(cs *ConversationSettings) error {
			return cs.SetExtra("escaped key", json.RawMessage(`0`))
		}), strings.Replace(odd.body(odd.hours, odd.weather), `"caf\u00e9 \/ \ud83d\ude00 caf\u00E9"`, `0`, 1)},
		{"Modify removing an unknown key", modifying(func(cs *ConversationSettings) error { return cs.SetExtra("alpha", nil) }),
			strings.Replace(odd.body(odd.hours, odd.weather), ",\n  \"alpha\":1e3", "", 1)},
		{"Modify removing the first key", modifying(func(cs *ConversationSettings) error { return cs.SetExtra("zeta", nil) }),
			strings.Replace(odd.body(odd.hours, odd.weather), "\n\t\"zeta\" : 1.0,", "", 1)},
		{"Modify removing the last key", modifying(func(cs *ConversationSettings) error { return cs.SetExtra("Tools", nil) }),
			strings.Replace(odd.body(odd.hours, odd.weather), ",\n  \"Tools\": \"not the tools\"", "", 1)},
		{"Modify adding a key", modifying(func(cs *ConversationSettings) error { return cs.SetExtra("added", json.RawMessage(`1.50`)) }),
			strings.Replace(odd.body(odd.hours, odd.weather), `"not the tools"`, `"not the tools","added":1.50`, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, answering(odd.head(OperationModeOC)))
			written, err := tt.call(t.Context(), service.ConversationSettings)
			require.NoError(t, err)
			sent := service.bodyOf(t, settingsRoute)
			assert.Equal(t, tt.body, sent)
			assert.True(t, json.Valid([]byte(sent)))
			assert.Equal(t, tt.body, `{"conversationSettings":`+string(written.document())+`}`, "the written settings are returned")
		})
	}
}

func TestSettingsAreSentOnlyWhenSomethingChanged(t *testing.T) {
	odd := readOddSettings(t)
	same := hoursTool()
	same.URL = "https://tools.example.com/opening_hours"
	tests := map[string]settingsCall{
		"PutTool of the same tool": putting(same),
		"SetTools to the same":     setting(same, Tool{Name: "weather", Description: "Tells the weather", URL: "https://tools.example.com/weather"}),
		"RemoveTool of none":       removing("tickets"),
		"Modify without a change":  modifying(func(*ConversationSettings) error { return nil }),
		"Modify of an equal value": modifying(func(cs *ConversationSettings) error { return cs.SetExtra("list", json.RawMessage(`[ 1 , 2.0 ,3e0 ]`)) }),
		"Modify removing no key":   modifying(func(cs *ConversationSettings) error { return cs.SetExtra("absent", nil) }),
		"Modify there and back": modifying(func(cs *ConversationSettings) error {
			cs.Tools[0].Name, cs.Tools[0].Name = "x", "opening_hours"
			return nil
		}),
		"Modify nil for no parameter": modifying(func(cs *ConversationSettings) error { cs.Tools[1].Parameters = nil; return nil }),
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(odd.head(OperationModeOC)))
			settings, err := call(t.Context(), service.ConversationSettings)
			require.NoError(t, err)
			assert.Len(t, settings.Tools, 2)
			assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
		})
	}
}

func TestHeadWithoutSettingsHasEmptyOnes(t *testing.T) {
	for name, settings := range map[string]string{
		"null": `null`, "empty": `{}`, "no tools": `{"tools":[]}`, "null for all": `{"tools":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(`{"id":"`+testHead+`","operationMode":"oc","conversationSettings":`+settings+`}`))
			settings, err := service.ConversationSettings.Get(t.Context(), testHead)
			require.NoError(t, err)
			assert.Empty(t, settings.Tools)
			_, err = service.ConversationSettings.PutTool(t.Context(), testHead, weatherTool())
			require.NoError(t, err)
			assert.Equal(t, `{"conversationSettings":{"tools":[{"name":"weather","description":"Tells the weather of today","parameters":[],"url":"https://tools.example.com/weather"}]}}`,
				service.bodyOf(t, settingsRoute))
		})
	}
}

// A document without settings does not mean that the head has none.
func TestSettingsThatAreNotShownAreNotWrittenBack(t *testing.T) {
	const document = `{"id":"` + testHead + `","operationMode":"oc"}`
	for name, call := range map[string]settingsCall{
		"PutTool": putting(weatherTool()), "SetTools": setting(weatherTool()), "SetTools to none": setting(), "RemoveTool": removing("weather"),
		"Modify": modifying(func(cs *ConversationSettings) error { return cs.SetExtra("model", json.RawMessage(`1`)) }),
	} {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(document))
			settings, err := call(t.Context(), service.ConversationSettings)
			assert.Nil(t, settings)
			var wrong *DecodeError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, document, string(wrong.Body.Bytes()))
			assert.ErrorContains(t, err, "heads: ConversationSettings.")
			assert.ErrorContains(t, err, "the head holds no conversationSettings")
			assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
		})
	}
	t.Run("Get, then Replace", func(t *testing.T) {
		service := newFakeAPI(t, answering(document))
		settings, err := service.ConversationSettings.Get(t.Context(), testHead)
		require.NoError(t, err)
		assert.Empty(t, settings.Tools)
		settings.Tools = []Tool{weatherTool()}
		err = service.ConversationSettings.Replace(t.Context(), testHead, settings)
		assert.Equal(t, []string{"settings"}, invalidFields(t, err))
		assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
	})
}

func TestSettingsAreReadFromTheHead(t *testing.T) {
	odd := readOddSettings(t)
	service := newFakeAPI(t, answering(odd.head(OperationModeTTT)))
	settings, err := service.ConversationSettings.Get(t.Context(), testHead)
	require.NoError(t, err)
	require.Len(t, settings.Tools, 2)
	assert.Equal(t, "https://tools.example.com/opening_hours", settings.Tools[0].URL)
	assert.Equal(t, "guests", settings.Tools[0].Parameters[1].Name)
	assert.Equal(t, "integer", settings.Tools[0].Parameters[1].Type)
	for key, want := range map[string]string{
		"zeta": "1.0", "alpha": "1e3", "big": "12345678901234567890", "tiny": "-0.0E-7", "escaped key": `"caf\u00e9 \/ \ud83d\ude00 caf\u00E9"`,
		"model": `{"api_key": "canary-model-key", "tools": [1, 2.50]}`, "html": `"<b>&amp;</b> — “quoted”"`, "empty": "{  }",
		"list": "[ 1 , 2.0 ,3e0 ]", "nothing": "null", "": `"the empty key"`, "Tools": `"not the tools"`,
	} {
		value, ok := settings.Extra(key)
		assert.True(t, ok, key)
		assert.Equal(t, want, string(value.Bytes()), key)
	}
	_, err = newFakeAPI(t, nil).ConversationSettings.Get(t.Context(), testHead)
	assert.ErrorIs(t, err, ErrNotFound)
}

func TestReplaceSendsWhatItIsGiven(t *testing.T) {
	service := newFakeAPI(t, answering(""))
	err := service.ConversationSettings.Replace(t.Context(), testHead, &ConversationSettings{Tools: []Tool{hoursTool(), weatherTool()}})
	require.NoError(t, err)
	assert.Equal(t, golden(t, "settings_replace.json"), service.bodyOf(t, settingsRoute))

	err = service.ConversationSettings.Replace(t.Context(), testHead, &ConversationSettings{})
	require.NoError(t, err)
	assert.Equal(t, `{"conversationSettings":{"tools":[]}}`, service.bodyOf(t, settingsRoute))

	var read ConversationSettings
	require.NoError(t, json.Unmarshal([]byte(readFile(t, "settings_odd.json")), &read))
	err = service.ConversationSettings.Replace(t.Context(), otherID, &read)
	assert.ErrorIs(t, err, ErrNotFound)
	odd := readOddSettings(t)
	assert.Equal(t, odd.body(odd.hours, odd.weather), service.bodyOf(t, "PUT /head/"+otherID+"/conversation-settings"), "settings of one head, written to another")
}

func TestReplaceReportsAllFaultsTogether(t *testing.T) {
	service := newFakeAPI(t, answering(""))
	err := service.ConversationSettings.Replace(t.Context(), "li-28379", nil)
	assert.Equal(t, []string{"head id", "settings"}, invalidFields(t, err))
	bad := weatherTool()
	bad.URL, bad.Description = "http://tools.example.com", ""
	err = service.ConversationSettings.Replace(t.Context(), "li-28379", &ConversationSettings{Tools: []Tool{bad, weatherTool()}})
	assert.Equal(t, []string{"head id", `tool "weather"`, `tool "weather" url`, `tool "weather"`}, invalidFields(t, err))
	assert.Empty(t, service.since())
}

func TestToolHelpersReportAllFaultsTogether(t *testing.T) {
	service := newFakeAPI(t, answering(""))
	bad := Tool{Name: "a b", Description: "d", URL: "https://tools.example.com"}
	_, err := service.ConversationSettings.SetTools(t.Context(), "li-28379", bad, weatherTool(), weatherTool())
	assert.Equal(t, []string{"head id", `tool "a b"`, `tool "weather"`}, invalidFields(t, err))
	_, err = service.ConversationSettings.PutTool(t.Context(), "li-28379", bad)
	assert.Equal(t, []string{"head id", `tool "a b"`}, invalidFields(t, err))
	_, err = service.ConversationSettings.RemoveTool(t.Context(), "li-28379", "")
	assert.Equal(t, []string{"head id", "tool name"}, invalidFields(t, err))
	_, err = service.ConversationSettings.Modify(t.Context(), "li-28379", nil)
	assert.Equal(t, []string{"head id", "change"}, invalidFields(t, err))
	assert.Empty(t, service.since(), "faults are found before anything is read")
}

func TestTwoToolsOfOneNameAreRefused(t *testing.T) {
	odd := readOddSettings(t)
	for name, call := range map[string]settingsCall{
		"SetTools": setting(weatherTool(), hoursTool(), weatherTool()),
		"Modify": modifying(func(cs *ConversationSettings) error {
			cs.Tools = append(cs.Tools, weatherTool())
			return nil
		}),
		"Modify of a copy": modifying(func(cs *ConversationSettings) error {
			cs.Tools = append(cs.Tools, cs.Tools[1])
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(odd.head(OperationModeOC)))
			_, err := call(t.Context(), service.ConversationSettings)
			assert.Equal(t, []string{`tool "weather"`}, invalidFields(t, err))
			assert.ErrorContains(t, err, "twice")
			assert.NotContains(t, service.routes(), settingsRoute)
		})
	}
}

func TestToolsOfAHeadThatCannotCallThemAreRefused(t *testing.T) {
	odd := readOddSettings(t)
	changed := weatherTool()
	changed.Description = "Changed"
	refused := map[string]settingsCall{
		"PutTool of a new tool":           putting(Tool{Name: "tickets", Description: "d", URL: "https://tools.example.com"}),
		"PutTool of a tool that is there": putting(changed),
		"SetTools":                        setting(changed),
		"Modify": modifying(func(cs *ConversationSettings) error {
			cs.Tools[0].Parameters = nil
			return nil
		}),
	}
	allowed := map[string]settingsCall{
		"RemoveTool":       removing("weather"),
		"SetTools to none": setting(),
		"an unknown key":   modifying(func(cs *ConversationSettings) error { return cs.SetExtra("zeta", json.RawMessage("2")) }),
		"another order": modifying(func(cs *ConversationSettings) error {
			cs.Tools[0], cs.Tools[1] = cs.Tools[1], cs.Tools[0]
			return nil
		}),
	}
	for _, mode := range []OperationMode{OperationModeTTT, "plugin", "OC", ""} {
		for name, call := range refused {
			t.Run(fmt.Sprintf("%q %s", mode, name), func(t *testing.T) {
				service := newFakeAPI(t, answering(odd.head(mode)))
				_, err := call(t.Context(), service.ConversationSettings)
				assert.Equal(t, []string{"tools"}, invalidFields(t, err))
				assert.ErrorContains(t, err, fmt.Sprintf("operation mode %q", mode))
				assert.ErrorContains(t, err, "HeadUpdate.OperationMode")
				assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
			})
		}
		for name, call := range allowed {
			t.Run(fmt.Sprintf("%q %s", mode, name), func(t *testing.T) {
				service := newFakeAPI(t, answering(odd.head(mode)))
				_, err := call(t.Context(), service.ConversationSettings)
				require.NoError(t, err)
				assert.Contains(t, service.routes(), settingsRoute)
			})
		}
	}
}

func TestSettingsHelpersReturnTheErrorsOfTheService(t *testing.T) {
	odd := readOddSettings(t)
	for name, answers := range map[string]map[string]string{
		"of the read":  {},
		"of the write": {"GET /head/" + testHead: odd.head(OperationModeOC)},
	} {
		t.Run(name, func(t *testing.T) {
			settings, err := newFakeAPI(t, answers).ConversationSettings.RemoveTool(t.Context(), testHead, "weather")
			assert.Nil(t, settings)
			assert.ErrorIs(t, err, ErrNotFound)
		})
	}
}

func TestToolOfAnotherHeadKeepsItsOwnUnknownKeys(t *testing.T) {
	odd := readOddSettings(t)
	service := newFakeAPI(t, answering(odd.head(OperationModeOC)))
	var other ConversationSettings
	require.NoError(t, json.Unmarshal([]byte(`{"tools":[{"name":"weather","description":"d","url":"https://w.example.com","parameters":[],"own":1.0}]}`), &other))
	_, err := service.ConversationSettings.PutTool(t.Context(), testHead, other.Tools[0])
	require.NoError(t, err)
	assert.Equal(t, odd.body(odd.hours, `{"name":"weather","description":"d","url":"https://w.example.com","parameters":[],"own":1.0}`), service.bodyOf(t, settingsRoute))
}

func TestCallersToolIsNotChanged(t *testing.T) {
	service := newFakeAPI(t, answering(readOddSettings(t).head(OperationModeOC)))
	tool := hoursTool()
	_, err := service.ConversationSettings.PutTool(t.Context(), testHead, tool)
	require.NoError(t, err)
	assert.Equal(t, hoursTool(), tool)
	_, err = service.ConversationSettings.SetTools(t.Context(), testHead, tool)
	require.NoError(t, err)
	assert.Equal(t, hoursTool(), tool)
}

func TestSetExtra(t *testing.T) {
	tests := []struct {
		name, key string
		value     json.RawMessage
		field     string // of the InvalidError
		document  string
	}{
		{"a new key", "a", json.RawMessage(`1.0`), "", `{"b":2,"tools":[],"a":1.0}`},
		{"another value", "b", json.RawMessage(` [ 1 ] `), "", `{"b":[ 1 ],"tools":[]}`},
		{"null", "b", json.RawMessage(`null`), "", `{"b":null,"tools":[]}`},
		{"nil", "b", nil, "", `{"tools":[]}`},
		{"nil for a key that is not there", "x", nil, "", `{"b":2,"tools":[]}`},
		{"a key to escape", "<\"é\n", json.RawMessage(`{}`), "", `{"b":2,"tools":[],"<\"é\n":{}}`},
		{"tools", "tools", json.RawMessage(`[]`), "key", `{"b":2,"tools":[]}`},
		{"removing tools", "tools", nil, "key", `{"b":2,"tools":[]}`},
		{"no key", "", json.RawMessage(`1`), "key", `{"b":2,"tools":[]}`},
		{"no JSON", "a", json.RawMessage(`{"a":`), "a", `{"b":2,"tools":[]}`},
		{"two values", "a", json.RawMessage(`1,"tools":5`), "a", `{"b":2,"tools":[]}`},
		{"no bytes", "a", json.RawMessage{}, "a", `{"b":2,"tools":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var cs ConversationSettings
			require.NoError(t, json.Unmarshal([]byte(`{"b":2,"tools":[]}`), &cs))
			err := cs.SetExtra(tt.key, tt.value)
			if tt.field == "" {
				require.NoError(t, err)
				value, ok := cs.Extra(tt.key)
				assert.Equal(t, tt.value != nil, ok)
				assert.Equal(t, strings.TrimSpace(string(tt.value)), string(value.Bytes()))
			} else {
				assert.Equal(t, []string{tt.field}, invalidFields(t, err))
			}
			assert.Equal(t, tt.document, string(cs.document()))
		})
	}
	t.Run("into empty settings", func(t *testing.T) {
		var cs ConversationSettings
		require.NoError(t, cs.SetExtra("a", json.RawMessage(`1`)))
		assert.Equal(t, `{"a":1,"tools":[]}`, string(cs.document()))
		require.NoError(t, cs.SetExtra("a", nil))
		assert.Equal(t, `{"tools":[]}`, string(cs.document()))
	})
	t.Run("the caller's bytes are copied", func(t *testing.T) {
		var cs ConversationSettings
		value := json.RawMessage(`"aaaa"`)
		require.NoError(t, cs.SetExtra("a", value))
		copy(value, `"bbbb"`)
		got, _ := cs.Extra("a")
		assert.Equal(t, `"aaaa"`, string(got.Bytes()))
		copy(got.Bytes(), `"cccc"`)
		assert.Equal(t, `{"a":"aaaa","tools":[]}`, string(cs.document()))
	})
	t.Run("the error shows no value", func(t *testing.T) {
		var cs ConversationSettings
		assertHides(t, cs.SetExtra("model", json.RawMessage(`{"api_key":"canary"`)), "canary")
	})
}

func TestExtraDoesNotHoldTools(t *testing.T) {
	var cs ConversationSettings
	require.NoError(t, json.Unmarshal([]byte(`{"tools":[]}`), &cs))
	_, ok := cs.Extra("tools")
	assert.False(t, ok)
	_, ok = cs.Extra("absent")
	assert.False(t, ok)
	_, ok = new(ConversationSettings).Extra("a")
	assert.False(t, ok)
}

func TestToolAsJSONIsReadBack(t *testing.T) {
	stored, err := json.Marshal(hoursTool())
	require.NoError(t, err)
	var tool Tool
	require.NoError(t, json.Unmarshal(stored, &tool))
	assert.Equal(t, hoursTool().URL, tool.URL)
	stored, err = json.Marshal(tool.Parameters[1])
	require.NoError(t, err)
	assert.Equal(t, `{"name":"guests","type":"integer","description":"Number of guests"}`, string(stored))
	var parameter ToolParameter
	require.NoError(t, json.Unmarshal(stored, &parameter))
	assert.Equal(t, "integer", parameter.Type)
}

func TestReadingSettingsForgetsWhatWasThereBefore(t *testing.T) {
	cs := ConversationSettings{Tools: []Tool{weatherTool()}}
	require.NoError(t, cs.SetExtra("a", json.RawMessage("1")))
	require.NoError(t, json.Unmarshal([]byte(`{"b":2}`), &cs))
	assert.Equal(t, `{"b":2,"tools":[]}`, string(cs.document()))
	tool := hoursTool()
	require.NoError(t, json.Unmarshal([]byte(`{"name":"n"}`), &tool))
	assert.Empty(t, tool.URL)
	assert.Empty(t, tool.Parameters)
}

func TestToolValidate(t *testing.T) {
	long := strings.Repeat("a", 64)
	with := func(change func(*Tool)) Tool {
		tool := hoursTool()
		change(&tool)
		return tool
	}
	parameter := func(change func(*ToolParameter)) Tool {
		return with(func(tool *Tool) { change(&tool.Parameters[0]) })
	}
	tests := []struct {
		name string
		tool Tool
		says []string // one for each fault; none when the tool is fine
	}{
		{"a full tool", hoursTool(), nil},
		{"no parameters", weatherTool(), nil},
		{"no name", with(func(t *Tool) { t.Name = "" }), []string{"name"}},
		{"a space in the name", with(func(t *Tool) { t.Name = "opening hours" }), []string{`"opening hours"`}},
		{"a digit first", with(func(t *Tool) { t.Name = "4th" }), []string{"name"}},
		{"an accent in the name", with(func(t *Tool) { t.Name = "musée" }), []string{"name"}},
		{"a dot in the name", with(func(t *Tool) { t.Name = "a.b" }), []string{"name"}},
		{"a line break behind the name", with(func(t *Tool) { t.Name = "a\n" }), []string{"name"}},
		{"a dash in the name", with(func(t *Tool) { t.Name = "opening-hours_2" }), nil},
		{"a name of 64", with(func(t *Tool) { t.Name = long }), nil},
		{"a name of 65", with(func(t *Tool) { t.Name = long + "a" }), []string{"name"}},
		{"no description", with(func(t *Tool) { t.Description = "" }), []string{"description"}},
		{"a blank description", with(func(t *Tool) { t.Description = " \n" }), []string{"description"}},
		{"a placeholder for a description", with(func(t *Tool) { t.Description = "string" }), []string{"description"}},
		{"no URL", with(func(t *Tool) { t.URL = "" }), []string{"url is blank"}},
		{"plain http", with(func(t *Tool) { t.URL = "http://tools.example.com/canary" }), []string{"http://tools.example.com\" is not https"}},
		{"a placeholder in the query", with(func(t *Tool) { t.URL = "https://tools.example.com/canary?k=<KEY>" }), []string{`"<KEY>"`}},
		{"a parameter without a name", parameter(func(p *ToolParameter) { p.Name = "" }), []string{`parameter ""`}},
		{"a space in a parameter's name", parameter(func(p *ToolParameter) { p.Name = "the day" }), []string{`parameter "the day"`}},
		{"a tab in a parameter's name", parameter(func(p *ToolParameter) { p.Name = "the\tday" }), []string{"parameter"}},
		{"the session's name for a parameter", parameter(func(p *ToolParameter) { p.Name = "session_metadata" }), []string{`parameter "session_metadata" has the name that carries the session`}},
		{"a dot in a parameter's name", parameter(func(p *ToolParameter) { p.Name = "day.of-week" }), nil},
		{"two parameters of one name", with(func(t *Tool) { t.Parameters[1].Name = "day" }), []string{`parameter "day" is defined twice`}},
		{"names that differ in case", with(func(t *Tool) { t.Parameters[1].Name = "Day" }), nil},
		{"no type", parameter(func(p *ToolParameter) { p.Type = "" }), nil},
		{"an unknown type", parameter(func(p *ToolParameter) { p.Type = "date" }), nil},
		{"a placeholder for a type", parameter(func(p *ToolParameter) { p.Type = "<TYPE>" }), []string{`type "<TYPE>" is a placeholder; want one of string, number, integer, boolean, array, object`}},
		{"a type in upper case", parameter(func(p *ToolParameter) { p.Type = "String" }), nil},
		{"no description of a parameter", parameter(func(p *ToolParameter) { p.Description = "" }), []string{"description"}},
		{"a placeholder for that", parameter(func(p *ToolParameter) { p.Description = "<DESCRIPTION>" }), []string{"description"}},
		{"all faults together", Tool{Name: "a b", Parameters: []ToolParameter{{Name: "c d", Type: "x"}, {Name: "c d", Type: "string", Description: "e"}}},
			[]string{`tool "a b" name`, "description", "url", `parameter "c d" name`, `parameter "c d" description`, `parameter "c d" name`, "twice"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.tool.Validate()
			if len(tt.says) == 0 {
				assert.NoError(t, err)
				return
			}
			faults := invalidErrors(t, err)
			require.Len(t, faults, len(tt.says), "%v", err)
			for i, says := range tt.says {
				assert.Equal(t, "Tool.Validate", faults[i].Operation)
				assert.Contains(t, faults[i].Error(), says)
			}
			assert.NotContains(t, err.Error(), "canary")
		})
	}
	for _, kind := range []string{"string", "number", "integer", "boolean", "array", "object"} {
		assert.NoError(t, parameter(func(p *ToolParameter) { p.Type = kind }).Validate(), kind)
	}
}

func TestCheckPromptNamesWhatThePromptLacks(t *testing.T) {
	tool := func(name string, parameters ...string) Tool {
		made := Tool{Name: name}
		for _, p := range parameters {
			made.Parameters = append(made.Parameters, ToolParameter{Name: p})
		}
		return made
	}
	tests := []struct {
		name, prompt string
		tools        []Tool
		missing      []PromptProblem // without the sentence
	}{
		{"no tools", "Be kind.", nil, nil},
		{"all is named", "Call opening_hours with day.", []Tool{tool("opening_hours", "day")}, nil},
		{"an empty prompt", "", []Tool{tool("a", "b")}, []PromptProblem{{Tool: "a"}, {Tool: "a", Parameter: "b"}}},
		{"the tool", "Ask for the day.", []Tool{tool("opening_hours", "day")}, []PromptProblem{{Tool: "opening_hours"}}},
		{"a parameter", "Call opening_hours.", []Tool{tool("opening_hours", "day", "lang")}, []PromptProblem{{Tool: "opening_hours", Parameter: "day"}, {Tool: "opening_hours", Parameter: "lang"}}},
		{"every tool in turn", "Call b.", []Tool{tool("a", "x"), tool("b", "y")}, []PromptProblem{{Tool: "a"}, {Tool: "a", Parameter: "x"}, {Tool: "b", Parameter: "y"}}},
		{"part of a longer word", "Call opening_hours_v2 daily.", []Tool{tool("opening_hours", "day")}, []PromptProblem{{Tool: "opening_hours"}, {Tool: "opening_hours", Parameter: "day"}}},
		{"the end of a longer word", "Call my_opening_hours on a Saturday.", []Tool{tool("opening_hours", "day")}, []PromptProblem{{Tool: "opening_hours"}, {Tool: "opening_hours", Parameter: "day"}}},
		{"part of a word, then whole", "opening_hours_v2 is gone, call opening_hours", []Tool{tool("opening_hours")}, nil},
		{"another case", "Call Opening_Hours.", []Tool{tool("opening_hours")}, []PromptProblem{{Tool: "opening_hours"}}},
		{"between signs", "(opening_hours) `day`, \"lang\": {zip}/max.", []Tool{tool("opening_hours", "day", "lang", "zip", "max")}, nil},
		{"between typographic signs", "Call “opening_hours”—with «day»… and ‘lang’。", []Tool{tool("opening_hours", "day", "lang")}, nil},
		{"beside a letter with an accent", "une journéeday, dayé", []Tool{tool("day")}, []PromptProblem{{Tool: "day"}}},
		{"at both ends", "day then lang", []Tool{tool("day", "lang")}, nil},
		{"an overlap", "aaa", []Tool{tool("aa")}, []PromptProblem{{Tool: "aa"}}},
		{"a name that is empty", "anything", []Tool{tool("")}, []PromptProblem{{Tool: ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []PromptProblem
			for _, problem := range CheckPrompt(tt.prompt, tt.tools...) {
				name := problem.Tool
				if problem.Parameter != "" {
					name = problem.Parameter
					assert.Contains(t, problem.Problem, fmt.Sprintf("%q", problem.Tool))
				}
				assert.Contains(t, problem.Problem, "The prompt never names")
				assert.Contains(t, problem.Problem, fmt.Sprintf("%q", name))
				problem.Problem = ""
				got = append(got, problem)
			}
			assert.Equal(t, tt.missing, got)
		})
	}
}

// oddTools are tools that the service stores although a head with one of them may
// not load, and what Validate reports for each.
var oddTools = map[string]struct{ document, says string }{
	"a schema for parameters": {`{"name":"odd", "description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"url":"https://tools.example.com/odd","x":1.0}`,
		`parameters are a JSON object; want a list`},
	"a string for parameters":     {`{"name":"odd","description":"d","parameters":"city","url":"https://tools.example.com/odd"}`, `parameters are a JSON string; want a list`},
	"a parameter without a type":  {`{"name":"odd","description":"d","parameters":[{"name":"city" ,"description":"d"}],"url":"https://tools.example.com/odd"}`, ""}, // loads
	"an empty type":               {`{"name":"odd","description":"d","parameters":[{"name":"city","type":"","description":"d"}],"url":"https://tools.example.com/odd"}`, ""},
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
				return
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

// changing calls Modify on a head with one tool, and returns the error and the fake.
func changing(t *testing.T, document string, change func(*Tool)) (*fakeAPI, error) {
	t.Helper()
	service := newFakeAPI(t, answering(headWith(document)))
	_, err := service.ConversationSettings.Modify(t.Context(), testHead, func(cs *ConversationSettings) error {
		change(&cs.Tools[0])
		return nil
	})
	return service, err
}

func TestChangeOfAToolIsJudgedAloneAndNotWhatWasRead(t *testing.T) {
	for shape, odd := range oddTools {
		t.Run(shape, func(t *testing.T) {
			sound := strings.HasPrefix(odd.document, "{")
			service, err := changing(t, odd.document, func(tool *Tool) { tool.Description = "another one" })
			if sound {
				require.NoError(t, err)
				assert.Contains(t, service.bodyOf(t, settingsRoute), `another one`)
			} else {
				require.ErrorIs(t, err, ErrInvalid, "all of the new object is the caller's")
			}
			for fault, change := range map[string]func(*Tool){
				"an empty parameter":     func(tool *Tool) { tool.Parameters = append(tool.Parameters, ToolParameter{}) },
				"a placeholder":          func(tool *Tool) { tool.Description = "<DESCRIPTION>" },
				"another bad address":    func(tool *Tool) { tool.URL = "http://tools.example.com/other" },
				"a placeholder of types": func(tool *Tool) { tool.Parameters = []ToolParameter{{Name: "a", Type: "<TYPE>", Description: "b"}} },
				"two of one name": func(tool *Tool) {
					day := ToolParameter{Name: "day", Description: "The day."}
					tool.Parameters = append(tool.Parameters, day, day)
				},
			} {
				service, err := changing(t, odd.document, change)
				require.ErrorIs(t, err, ErrInvalid, fault)
				assert.Equal(t, []string{"GET /head/" + testHead}, service.routes(), fault)
			}
		})
	}
}

func TestMissingTypeStaysMissing(t *testing.T) {
	untyped := oddTools["a parameter without a type"].document
	service, err := changing(t, untyped, func(tool *Tool) { tool.Parameters[0].Description = "Where." })
	require.NoError(t, err)
	assert.Equal(t, bodyWith(strings.Replace(untyped, `"description":"d"}]`, `"description":"Where."}]`, 1)), service.bodyOf(t, settingsRoute))

	service, err = changing(t, strings.Replace(untyped, `"name":"city" ,`, `"name":"city","type":"text",`, 1), func(tool *Tool) { tool.Parameters[0].Type = "" })
	require.NoError(t, err)
	assert.Contains(t, service.bodyOf(t, settingsRoute), `"parameters":[{"name":"city","description":"d"}]`)

	made, err := json.Marshal(ToolParameter{Name: "city", Description: "Where."})
	require.NoError(t, err)
	assert.JSONEq(t, `{"name":"city","description":"Where."}`, string(made))
}

func TestOddToolOfTheCallersOwnIsRefused(t *testing.T) {
	for name, odd := range oddTools {
		if odd.says == "" {
			continue
		}
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
		{"PutTool of a type", "a type that is no text", putting(Tool{Name: "odd", Description: "d", URL: "https://tools.example.com/odd", Parameters: city}),
			bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[{"name":"city","type":"string","description":"Where."}],"url":"https://tools.example.com/odd"}`)},
		{"SetTools", "an address that is no text", setting(repaired),
			bodyWith(`{"name":"odd","description":"Does it.","parameters":[],"url":"https://tools.example.com/new"}`)},
		{"Modify emptying the parameters", "a string for parameters", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Parameters = []ToolParameter{}
			return nil
		}), bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[],"url":"https://tools.example.com/odd"}`)},
		{"Modify setting a type", "a parameter without a type", modifying(func(cs *ConversationSettings) error {
			cs.Tools[1].Parameters[0].Type = "string"
			return nil
		}), bodyWith(goodTool, `{"name":"odd","description":"d","parameters":[{"name":"city" ,"description":"d","type":"string"}],"url":"https://tools.example.com/odd"}`)},
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
