package heads

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pointer[T any](v T) *T { return &v }

// fullHead is the head of testdata/head_full.json, written by hand.
func fullHead() *Head {
	return &Head{
		ID:                          "3fa85f64-5717-4562-b3fc-2c963f66afa6",
		Name:                        "Museum guide",
		Alias:                       "guide",
		Language:                    "en-GB",
		LanguageSpeechRecognition:   "en-IE",
		TTSProvider:                 "azure",
		TTSVoice:                    "en-GB-SoniaNeural",
		OperationMode:               OperationModeOC,
		OCProvider:                  "playground",
		PromptConfig:                &PromptConfig{ID: "0c8f1a52-9f1e-4a7e-8a53-1d2f7a9b6c11", SystemPrompt: "You are the guide of a small museum. Use opening_hours with day."},
		Greetings:                   "Welcome! What would you like to see today?",
		VoiceflowAPIKey:             pointer(NewSecret("VF.DM.canary-voiceflow")),
		IsRandomSuggestions:         true,
		Phrases:                     []string{"hello", "goodbye"},
		Suggestions:                 []string{"Opening hours", "Tickets & tours"},
		CustomWords:                 map[string]string{"MoMA": "mo-ma", "4th": "fourth"},
		PublicURL:                   NewSecret("https://chat.example.com/MyOrg-1234/li-28379?api_key=0123456789abcdef0123456789abcdef"),
		FileURL:                     pointer("https://files.example.com/guide.pdf"),
		PluginOperationalModeConfig: NewRaw([]byte(`{"plugin": "tickets", "limit": 1.0}`)),
		SemanticThreshold:           0.75,
		VideoStreaming:              false,
		Splitter:                    true,
		EnableEvents:                true,
		CreatedAt:                   Time{time.Date(2026, 8, 31, 6, 56, 30, 123e6, time.UTC), "2026-08-31T06:56:30.123Z"},
		UpdatedAt:                   Time{time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC), "2026-09-01 10:00:00"},
		PublicID:                    "li-28379",
		OrgID:                       "5b1f0c7a-6a3d-4c58-9a8e-2f4d6b8c0e12",
		OrgPublicID:                 "MyOrg-1234",
		HeadVisualID:                "8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f",
		DocumentURL:                 "https://files.example.com/document.pdf",
		EncodedPath:                 "heads%2Fguide",
		HeadVisualVideoURL:          "https://media.example.com/visual.mp4",
		PosterVideoImage:            "https://media.example.com/poster.png",
		TTSDisplayName:              "Sonia",
		IsActive:                    true,
		TTSStream:                   true,
		ExpirationSeconds:           3600.5,
		AllowedOrigins:              []string{"https://www.example.com", "https://shop.example.com"},
		AllowedIframeOrigins:        []string{"https://embed.example.com"},
		DocumentJSONDTO:             NewRaw([]byte(`{"pages": 12}`)),
		IconConfig:                  NewRaw([]byte(`{"color": "#336699"}`)),
		VideoCache:                  NewRaw([]byte(`{"entries": 3}`)),
		Organisation: &Organisation{
			ID:               "5b1f0c7a-6a3d-4c58-9a8e-2f4d6b8c0e12",
			CreatedAt:        Time{time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC), "2025-01-02T03:04:05Z"},
			APIKey:           NewSecret("canary-organisation-key"),
			Name:             "My Org",
			PublicID:         "MyOrg-1234",
			Alias:            "my-org",
			SubscriptionType: "business",
			Slots:            4,
			Streaming:        true,
			IsActive:         true,
		},
	}
}

func TestEveryDocumentedFieldOfAHeadIsRead(t *testing.T) {
	head := readHead(t, readFile(t, "head_full.json"))
	settings := head.ConversationSettings
	require.NotNil(t, settings)
	require.Len(t, settings.Tools, 1)
	tool := settings.Tools[0]
	assert.Equal(t, "opening_hours", tool.Name)
	assert.Equal(t, "Tells when the museum is open", tool.Description)
	assert.Equal(t, "https://tools.example.com/opening_hours", tool.URL)
	require.Len(t, tool.Parameters, 1)
	assert.Equal(t, "day", tool.Parameters[0].Name)
	assert.Equal(t, "string", tool.Parameters[0].Type)
	assert.Equal(t, "Day of the week", tool.Parameters[0].Description)

	changed := head.Organisation.UpdatedAt // its zone has no name to compare
	assert.True(t, changed.Equal(time.Date(2025, 2, 3, 2, 5, 6, 0, time.UTC)))
	assert.Equal(t, "2025-02-03T04:05:06+02:00", changed.Text)

	head.ConversationSettings, head.Organisation.UpdatedAt, head.Raw = nil, Time{}, Raw{}
	assert.Equal(t, fullHead(), head)
}

func TestSwitchesAreReadOnTheirOwn(t *testing.T) {
	for field, value := range map[string]func(*Head) bool{
		"videoStreaming": func(h *Head) bool { return h.VideoStreaming }, "splitter": func(h *Head) bool { return h.Splitter },
		"enableEvents": func(h *Head) bool { return h.EnableEvents }, "isRandomSuggestions": func(h *Head) bool { return h.IsRandomSuggestions },
		"isActive": func(h *Head) bool { return h.IsActive }, "ttsStream": func(h *Head) bool { return h.TTSStream },
	} {
		assert.True(t, value(readHead(t, `{"`+field+`":true}`)), field)
		assert.False(t, value(readHead(t, `{"`+field+`":false}`)), field)
	}
}

// The document of the tests has every field of the contract, and Head has a field
// for each.
func TestFullDocumentHoldsEveryDocumentedField(t *testing.T) {
	documented := append(slices.Clone(writableNames), readOnlyNames...)
	documented = append(documented, "id", "videoStreaming", "enableEvents", "conversationSettings")
	var names, fields []string
	for name := range parseObject(t, readFile(t, "head_full.json")) {
		names = append(names, name)
	}
	head := reflect.TypeFor[Head]()
	for i := range head.NumField() {
		if name, _, _ := strings.Cut(head.Field(i).Tag.Get("json"), ","); name != "-" {
			fields = append(fields, name)
		}
	}
	assert.ElementsMatch(t, documented, names)
	assert.ElementsMatch(t, documented, fields)
}

// ofEachType has one value of every JSON type except null.
var ofEachType = map[string]string{
	"string": `"canary"`, "number": `17.5`, "boolean": `true`, "array": `[["canary"]]`, "object": `{"key":{"key":"canary"}}`,
}

// documentedTypes are the fields whose type the contract states.
var documentedTypes = map[string]string{
	"id": "string", "name": "string", "alias": "string", "language": "string", "languageSpeechRecognition": "string",
	"ttsProvider": "string", "ttsVoice": "string", "operationMode": "string", "ocProvider": "string",
	"promptConfig": "object or string", "promptConfig.system_prompt": "string", "greetings": "string", "voiceflowApiKey": "string",
	"isRandomSuggestions": "boolean", "phrases": "array of strings", "suggestions": "array of strings", "customWords": "object of strings",
	"publicUrl": "string", "fileUrl": "string", "semanticThreshold": "number", "videoStreaming": "boolean", "splitter": "boolean",
	"enableEvents": "boolean", "conversationSettings": "object", "conversationSettings.tools": "array",
}

func TestDocumentedFieldOfTheWrongTypeIsADecodeError(t *testing.T) {
	full := parseObject(t, readFile(t, "head_full.json"))
	for field, want := range documentedTypes {
		for kind, value := range ofEachType {
			if slices.Contains(strings.Split(want, " or "), kind) {
				continue
			}
			t.Run(field+" "+kind, func(t *testing.T) {
				document := full.with(t, field, value).String()
				head, err := newFakeAPI(t, answering(document)).Heads.Get(t.Context(), testHead)
				assert.Nil(t, head)
				wrong := As[*DecodeError](t, err)
				assert.Equal(t, "Heads.Get", wrong.Operation)
				assert.Equal(t, document, string(wrong.Body.Bytes()))
				assert.Contains(t, err.Error(), inSettings(field), "names the field")
				assertHides(t, err, "canary", "0123456789abcdef")
			})
		}
		t.Run(field+" null", func(t *testing.T) {
			readHead(t, full.with(t, field, "null").String())
		})
	}
}

// inSettings returns how an error names a field of the settings. They have a
// decoder of their own, and not every version of encoding/json adds the outer
// field.
func inSettings(field string) string {
	return strings.TrimPrefix(strings.TrimPrefix(field, "conversationSettings"), ".")
}

// The configuration of the plugin mode may be any JSON.
func TestPluginConfigurationOfAnyTypeIsRead(t *testing.T) {
	for kind, value := range ofEachType {
		head := readHead(t, `{"pluginOperationalModeConfig":`+value+`}`)
		assert.Equal(t, value, string(head.PluginOperationalModeConfig.Bytes()), kind)
	}
}

// untypedKinds are the fields whose type the contract does not state, with their
// type in Head. "" accepts everything.
var untypedKinds = map[string]string{
	"createdAt": "time", "updatedAt": "time", "publicId": "string", "orgId": "string", "orgPublicId": "string", "headVisualId": "string",
	"documentUrl": "string", "encodedPath": "string", "headVisualVideoUrl": "string", "posterVideoImage": "string", "ttsDisplayName": "string",
	"isActive": "boolean", "ttsStream": "boolean", "expirationSeconds": "number",
	"allowedOrigins": "array of strings", "allowedIframeOrigins": "array of strings",
	"documentJsonDto": "", "iconConfig": "", "videoCache": "", "organisation": "object",
	"promptConfig.id": "string",
	"organisation.id": "string", "organisation.createdAt": "time", "organisation.updatedAt": "time", "organisation.apiKey": "string",
	"organisation.name": "string", "organisation.publicId": "string", "organisation.alias": "string", "organisation.subscriptionType": "string",
	"organisation.slots": "number", "organisation.streaming": "boolean", "organisation.isActive": "boolean",
}

// fieldOf finds a field of a struct by the path of its JSON names.
func fieldOf(v reflect.Value, path string) reflect.Value {
	outer, inner, nested := strings.Cut(path, ".")
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name == outer {
			if nested {
				return fieldOf(v.Field(i).Elem(), inner)
			}
			return v.Field(i)
		}
	}
	panic("no field " + path)
}

func TestUntypedFieldOfAnotherTypeIsZeroAndStaysInRaw(t *testing.T) {
	require.Len(t, untypedKinds, len(readOnlyNames)-1+1+11, "splitter has a type, promptConfig.id and the organisation's fields have none")
	full := parseObject(t, readFile(t, "head_full.json"))
	for field, kind := range untypedKinds {
		for given, value := range ofEachType {
			if given == kind || kind == "" {
				continue
			}
			t.Run(field+" "+given, func(t *testing.T) {
				document := full.with(t, field, value).String()
				head := Must(newFakeAPI(t, answering(document)).Heads.Get(t.Context(), testHead))(t)
				assert.Equal(t, document, string(head.Raw.Bytes()))

				found := fieldOf(reflect.ValueOf(head).Elem(), field)
				if kind == "time" {
					require.True(t, found.FieldByName("Time").IsZero())
				} else {
					require.True(t, found.IsZero(), "%v", found)
				}
				// Every other field is as it is without this one.
				absent := full.without(field)
				if outer, inner, nested := strings.Cut(field, "."); nested {
					absent = full.with(t, outer, parseObject(t, string(full[outer])).without(inner).String())
				}
				want := readHead(t, absent.String())
				found.SetZero()
				head.Raw, want.Raw = Raw{}, Raw{}
				assert.Equal(t, want, head)
			})
		}
	}
}

func TestManyUntypedFieldsOfOtherTypesAtOnce(t *testing.T) {
	document := parseObject(t, readFile(t, "head_full.json"))
	for field, kind := range untypedKinds {
		if field != "organisation" && kind != "" {
			wrong := `{"not":"a ` + kind + `"}`
			document = document.with(t, field, wrong)
		}
	}
	head := Must(newFakeAPI(t, answering(document.String())).Heads.Get(t.Context(), testHead))(t)
	for field, kind := range untypedKinds {
		found := fieldOf(reflect.ValueOf(head).Elem(), field)
		switch {
		case kind == "time":
			assert.True(t, found.FieldByName("Time").IsZero(), field)
		case kind != "" && field != "organisation":
			assert.True(t, found.IsZero(), field)
		}
	}
	assert.Equal(t, "Museum guide", head.Name)
	assert.Equal(t, fullHead().PromptConfig.SystemPrompt, head.PromptConfig.SystemPrompt)
	assert.Equal(t, `{"color":"#336699"}`, string(head.IconConfig.Bytes()))
	assert.Equal(t, document.String(), string(head.Raw.Bytes()))
}

func TestUntypedFieldHidesNoFaultInADocumentedOne(t *testing.T) {
	for _, document := range []string{`{"isActive":"yes","name":5}`, `{"name":5,"isActive":"yes"}`, `{"organisation":"x","promptConfig":{"id":5,"system_prompt":6}}`} {
		assert.Error(t, decodeAnswer([]byte(document), new(Head)), document)
	}
}

func TestOneBadElementOfAnUntypedListLeavesItEmpty(t *testing.T) {
	head := readHead(t, `{"name":"n","allowedOrigins":["https://a.example.com",5],"allowedIframeOrigins":["https://b.example.com"]}`)
	assert.Equal(t, "n", head.Name)
	assert.Empty(t, head.AllowedOrigins)
	assert.Equal(t, []string{"https://b.example.com"}, head.AllowedIframeOrigins)
}

// A field of an unexpected type must not change what is written back.
func TestUntypedFieldOfAnotherTypeLeavesOtherBytesAlone(t *testing.T) {
	const settings = `{ "tools" : [ ], "model": {"html": "<b>&", "n": 1.0, "e": "\u00e9"} }`
	const plugin = `{ "z": 1e3, "a": "<&>" }`
	head := readHead(t, `{"isActive":"yes","pluginOperationalModeConfig":`+plugin+`,"conversationSettings":`+settings+`,"organisation":{"slots":"x"}}`)
	assert.Equal(t, plugin, string(head.PluginOperationalModeConfig.Bytes()))
	model, _ := head.ConversationSettings.Extra("model")
	assert.Equal(t, `{"html": "<b>&", "n": 1.0, "e": "\u00e9"}`, string(model.Bytes()))
	assert.Equal(t, strings.Replace(settings, "[ ]", "[]", 1), string(head.ConversationSettings.document()))
}

// variants are other spellings of a name, which package json takes for it.
func variants(name string) []string {
	all := []string{strings.ToUpper(name), strings.ToLower(name), strings.ToUpper(name[:1]) + name[1:], strings.ReplaceAll(name, "s", "\u017f")}
	return slices.DeleteFunc(all, func(s string) bool { return s == name })
}

// besideVariants returns a document with variants of every name in it before and
// after the name, at every depth, each with a value of another type.
func besideVariants(t *testing.T, document string) string {
	t.Helper()
	var before, after []string
	for name, value := range parseObject(t, document) {
		odd := `"odd"`
		switch text := string(value); text[0] {
		case '"':
			odd = `17`
		case '{':
			if slices.Contains([]string{"promptConfig", "conversationSettings", "organisation"}, name) { // other objects are kept as they are
				value = json.RawMessage(besideVariants(t, text))
			}
		case '[':
			value = besideVariantsInList(t, value)
		}
		for _, variant := range variants(name) {
			before = append(before, fmt.Sprintf("%q:%s", variant, odd))
			after = append(after, fmt.Sprintf("%q:%s", variant, odd))
		}
		before = append(before, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(append(before, after...), ",") + "}"
}

func besideVariantsInList(t *testing.T, list json.RawMessage) json.RawMessage {
	t.Helper()
	var items []json.RawMessage
	require.NoError(t, json.Unmarshal(list, &items))
	for i, item := range items {
		if item[0] == '{' {
			items[i] = json.RawMessage(besideVariants(t, string(item)))
		}
	}
	raw := Must(json.Marshal(items))(t)
	return raw
}

func TestNamesAreExact(t *testing.T) {
	full := parseObject(t, readFile(t, "head_full.json")).String()
	document := besideVariants(t, full)
	require.Greater(t, len(document), 3*len(full), "the variants are there")
	want := readHead(t, full)
	for name, head := range map[string]*Head{"Get": readHead(t, document), "encoding/json": new(Head)} {
		if name == "encoding/json" {
			require.NoError(t, json.Unmarshal([]byte(document), head))
		}
		assert.JSONEq(t, document, string(head.Raw.Bytes()), name)
		settings, wanted := head.ConversationSettings, want.ConversationSettings
		require.Len(t, settings.Tools, 1, name)
		assert.Equal(t, wanted.Tools[0].Name, settings.Tools[0].Name, name)
		assert.Equal(t, wanted.Tools[0].URL, settings.Tools[0].URL, name)
		assert.Equal(t, wanted.Tools[0].Parameters[0].Type, settings.Tools[0].Parameters[0].Type, name)
		head.Raw, head.ConversationSettings = want.Raw, wanted
		assert.Equal(t, want, head, name)
	}

	service := newFakeAPI(t, map[string]string{
		"GET /head_visual/v-1": `{"ID":"v-2","Mode":"two_loops","id":"v-1","MODE":5}`,
		"GET /head-events/7":   besideVariants(t, canaryHookOf(7)),
		"GET /head-events":     `[` + besideVariants(t, canaryHookOf(7)) + `]`,
		"POST /head-events":    besideVariants(t, canaryHookOf(7)),
	})
	visual := Must(service.HeadVisuals.Get(t.Context(), "v-1"))(t)
	assert.Equal(t, "v-1", visual.ID)
	assert.Empty(t, visual.Mode)

	var hook Webhook
	require.NoError(t, json.Unmarshal([]byte(canaryHookOf(7)), &hook))
	got := Must(service.Webhooks.Get(t.Context(), 7))(t)
	assert.Equal(t, &hook, got)
	list := Must(service.Webhooks.List(t.Context(), testHead))(t)
	assert.Equal(t, []Webhook{hook}, list)
	created := Must(service.Webhooks.Create(t.Context(), hookSpec()))(t)
	assert.Equal(t, &hook, created)
}

func canaryHookOf(id int) string {
	return fmt.Sprintf(`{"id":%d,"createdAt":"2026-08-31T06:56:30Z","updatedAt":"2026-08-31T06:56:31Z","orgId":"o","headId":%q,`+
		`"webhookUrl":"https://hooks.example.com/h","sharedKey":"k","startConversation":true,"endConversation":false,"timeoutConversation":true,"inactivityWarning":false}`, id, testHead)
}

func TestVariantOfANameAloneIsNotTheField(t *testing.T) {
	head := readHead(t, `{"ttsvoice":"v","TTSProvider":"p","videostreaming":"yes","Organisation":5,"promptconfig":"x","conversationsettings":{"tools":5}}`)
	raw := head.Raw
	head.Raw = Raw{}
	assert.Equal(t, &Head{}, head)
	assert.Contains(t, string(raw.Bytes()), `"ttsvoice":"v"`)
	assert.ErrorContains(t, ErrorOf(newFakeAPI(t, answering(`{"ID":"`+testHead+`"}`)).Heads.Get(t.Context(), testHead)), "it holds no id")
	_, err := newFakeAPI(t, map[string]string{"POST /head-events": `{"sharedkey":"k"}`}).Webhooks.Create(t.Context(), hookSpec())
	assert.ErrorContains(t, err, "no sharedKey")
}

// twice returns a document in which one member occurs twice, with the same value.
func twice(t *testing.T, document, field string) string {
	t.Helper()
	outer, inner, nested := strings.Cut(field, ".")
	o := parseObject(t, document)
	if nested {
		return o.with(t, outer, twice(t, string(o[outer]), inner)).String()
	}
	return strings.TrimSuffix(o.String(), "}") + fmt.Sprintf(",%q:%s}", field, o[field])
}

func TestNameThatOccursTwiceIsADecodeError(t *testing.T) {
	full := parseObject(t, readFile(t, "head_full.json")).String()
	var fields []string
	for name := range parseObject(t, full) {
		fields = append(fields, name)
	}
	for outer, inner := range map[string][]string{"promptConfig": {"id", "system_prompt"}, "conversationSettings": {"tools"}, "organisation": nil} {
		if inner == nil {
			for name := range parseObject(t, string(parseObject(t, full)[outer])) {
				inner = append(inner, name)
			}
		}
		for _, name := range inner {
			fields = append(fields, outer+"."+name)
		}
	}
	require.Len(t, fields, len(headFields)-1+2+1+11)
	for _, field := range fields {
		t.Run(field, func(t *testing.T) {
			document := twice(t, full, field)
			head, err := newFakeAPI(t, answering(document)).Heads.Get(t.Context(), testHead)
			assert.Nil(t, head)
			assertTwice(t, err, "Heads.Get", field)
			assertHides(t, err, "canary", "0123456789abcdef")
			assert.ErrorContains(t, json.Unmarshal([]byte(document), new(Head)), "occurs twice")
		})
	}
	tool := `{"name":"n","description":"d","url":"https://a.example","parameters":[{"name":"p","type":"string","description":"d"}]}`
	for _, name := range []string{"name", "description", "url", "parameters"} {
		document := `{"id":"` + testHead + `","conversationSettings":{"tools":[` + tool + `,` + twice(t, tool, name) + `]}}`
		assertTwice(t, ErrorOf(newFakeAPI(t, answering(document)).Heads.Get(t.Context(), testHead)), "Heads.Get", "conversationSettings.tools."+name)
		assert.ErrorContains(t, json.Unmarshal([]byte(twice(t, tool, name)), new(Tool)), "occurs twice")
	}
	parameter := `{"name":"p","type":"string","description":"d"}`
	for _, name := range []string{"name", "type", "description"} {
		document := `{"id":"` + testHead + `","conversationSettings":{"tools":[{"parameters":[` + twice(t, parameter, name) + `]}]}}`
		_, err := newFakeAPI(t, answering(document)).Heads.Get(t.Context(), testHead)
		assertTwice(t, err, "Heads.Get", "conversationSettings.tools.parameters."+name)
		assert.ErrorContains(t, json.Unmarshal([]byte(twice(t, parameter, name)), new(ToolParameter)), "occurs twice")
	}
	for _, name := range []string{"id", "mode"} {
		_, err := newFakeAPI(t, map[string]string{"GET /head_visual/v-1": twice(t, `{"id":"v-1","mode":"default"}`, name)}).HeadVisuals.Get(t.Context(), "v-1")
		assertTwice(t, err, "HeadVisuals.Get", name)
	}
	for name := range parseObject(t, canaryHookOf(7)) {
		document := twice(t, canaryHookOf(7), name)
		service := newFakeAPI(t, map[string]string{"GET /head-events/7": document, "GET /head-events": "[" + document + "]", "POST /head-events": document})
		assertTwice(t, ErrorOf(service.Webhooks.Get(t.Context(), 7)), "Webhooks.Get", name)
		assertTwice(t, ErrorOf(service.Webhooks.List(t.Context(), testHead)), "Webhooks.List", name)
		assertTwice(t, ErrorOf(service.Webhooks.Create(t.Context(), hookSpec())), "Webhooks.Create", name)
	}
}

func assertTwice(t *testing.T, err error, operation, field string) {
	t.Helper()
	wrong := As[*DecodeError](t, err)
	assert.Equal(t, operation, wrong.Operation)
	assert.ErrorContains(t, err, fmt.Sprintf("field %q occurs twice", field))
}

// Names that the contract does not have, and the words of customWords, may occur
// twice: nothing reads them, or the last one counts.
func TestOtherNamesMayOccurTwice(t *testing.T) {
	head := readHead(t, `{"new":1,"new":2,"ttsvoice":"a","ttsvoice":"b","customWords":{"a":"1","a":"2"},"iconConfig":{"x":1,"x":2},"conversationSettings":{"model":1,"model":2}}`)
	assert.Equal(t, map[string]string{"a": "2"}, head.CustomWords)
	model, _ := head.ConversationSettings.Extra("model")
	assert.Equal(t, "2", string(model.Bytes()))
}

func TestDecodedVisualHasItsRaw(t *testing.T) {
	const document = ` {"id":5,"mode":["x"],"gender":"f"} `
	response := &Response{Body: NewRaw([]byte(document))}
	for name, decode := range map[string]func(v any) error{
		"encoding/json": func(v any) error { return json.Unmarshal([]byte(document), v) }, "Response": response.Decode,
	} {
		var visual HeadVisual
		require.NoError(t, decode(&visual), name)
		assert.Equal(t, strings.TrimSpace(document), string(visual.Raw.Bytes()), name)
		assert.Equal(t, "5", visual.ID, name)
	}
	var head Head
	require.NoError(t, (&Response{Body: NewRaw([]byte(`{"id":"x","alias":null,"isActive":"yes"}`))}).Decode(&head))
	assert.Equal(t, `{"id":"x","alias":null,"isActive":"yes"}`, string(head.Raw.Bytes()))
	assert.True(t, head.Has("alias"))
	assert.False(t, head.Has("name"))
	require.NoError(t, json.Unmarshal([]byte(`null`), &head))
	assert.True(t, head.Has("alias"), "null changes nothing, as in package json")
	var heads []*Head
	require.NoError(t, json.Unmarshal([]byte(`[{"id":"a"},null,{"id":"b","name":"n"}]`), &heads))
	require.Len(t, heads, 3)
	assert.True(t, heads[2].Has("name"))
	assert.False(t, heads[0].Has("name"))
}

// A field that the document does not have keeps its value, as in package json.
func TestDecodingIntoAHeadKeepsOtherFields(t *testing.T) {
	head := &Head{Name: "n", Alias: "a", PromptConfig: &PromptConfig{ID: "i", SystemPrompt: "p"}, Phrases: []string{"x"}, FileURL: pointer("u")}
	require.NoError(t, json.Unmarshal([]byte(`{"name":"m","alias":null,"promptConfig":{"system_prompt":"q"},"phrases":null,"fileUrl":null}`), head))
	head.Raw = Raw{}
	assert.Equal(t, &Head{Name: "m", Alias: "a", PromptConfig: &PromptConfig{ID: "i", SystemPrompt: "q"}}, head)
}

// goTypes are words of Go that mean nothing to someone who reads about JSON.
var goTypes = regexp.MustCompile(`\b(bool|u?int[0-9]*|float64|struct|map|heads|webhookList|createdWebhook|Go)\b|\[\]|\*`)

func TestDecodeErrorsUseTheWordsOfJSON(t *testing.T) {
	values := map[string]string{"string": `"x"`, "number": "5", "boolean": "true", "array": "[1]", "object": `{"a":1}`, "list of records": `[{"id":[]}]`, "null": "null"}
	for _, op := range described() {
		for kind, value := range values {
			documents := []string{value}
			for _, field := range []string{"id", "name", "promptConfig", "phrases", "customWords", "semanticThreshold", "videoStreaming", "conversationSettings", "voiceflowApiKey",
				"mode", "headId", "webhookUrl", "sharedKey", "startConversation", "createdAt"} {
				record := fmt.Sprintf("{%q:%s}", field, value)
				documents = append(documents, record, "["+record+"]")
			}
			for _, document := range documents {
				err := op.run(t.Context(), newTestClient(t, memoryURL, newScript(answer(200, document))))
				if err == nil {
					continue // an empty list, or the form of a create
				}
				var wrong *DecodeError
				require.ErrorAs(t, err, &wrong, "%s %s %s", op.name, kind, document)
				text := strings.TrimPrefix(err.Error(), "heads: "+op.operation()+": ")
				assert.NotRegexp(t, goTypes, text, document)
			}
		}
	}
	for document, says := range map[string]string{
		`{"id":5}`:     "it is a JSON object; want a JSON array",
		`5`:            "it is a JSON number; want a JSON array",
		`[[]]`:         "it is a JSON array; want a JSON object",
		`[{"id":"x"}]`: `field "id" holds a JSON string; want a JSON number without a fraction`,
	} {
		client := newTestClient(t, memoryURL, newScript(answer(200, document)))
		assert.ErrorContains(t, named("Webhooks.List")(t.Context(), client), says)
	}
	response := &Response{Body: NewRaw([]byte(`{"a":"x","b":["x"]}`)), operation: opDo}
	for _, v := range []any{new([]Webhook), new(map[string]int), new(map[string][]float64), new(struct{ A bool }), new(struct{ A *[]byte }), new(struct{ B [2]uint8 }), new(struct{ B []struct{ C int } })} {
		err := response.Decode(v)
		if err == nil {
			continue
		}
		text := strings.TrimPrefix(err.Error(), "heads: Client.Do: ")
		assert.NotRegexp(t, goTypes, text, "%T", v)
	}
}

// hostileAnswers are answers of someone who wants to break the client.
var hostileAnswers = map[string]string{
	"nothing": "", "space": " \r\n", "null": "null", "true": "true", "a number": "17", "a string": `"` + testHead + `"`, "an array": `[]`, "an empty object": `{}`,
	"an array of the head":   `[{"id":"` + testHead + `"}]`,
	"a wrapped head":         `{"data":{"id":"` + testHead + `","name":"canary"}}`,
	"another head":           `{"id":"` + otherID + `","voiceflowApiKey":"canary"}`,
	"id twice":               `{"id":"` + testHead + `","id":"` + testHead + `"}`,
	"two ids":                `{"id":"` + otherID + `","id":"` + testHead + `"}`,
	"two ids, one escaped":   `{"id":"` + otherID + `","\u0069d":"` + testHead + `"}`,
	"id in another case":     `{"ID":"` + testHead + `"}`,
	"a long s for an s":      `{"i\u0064\u017f":"` + testHead + `"}`,
	"id with a NUL":          `{"id":"` + testHead + `\u0000"}`,
	"id with white space":    `{"id":" ` + testHead + `"}`,
	"id in a list":           `{"id":["` + testHead + `"]}`,
	"id as a number":         `{"id":1e999}`,
	"an id inside":           `{"name":"canary","organisation":{"id":"` + testHead + `"}}`,
	"a maintenance page":     `{"message":"canary: we are back soon"}`,
	"an id of null":          `{"id":null,"name":"canary"}`,
	"an empty id":            `{"id":"","name":"canary"}`,
	"a longer id":            `{"id":"` + testHead + `0","name":"canary"}`,
	"broken off":             `{"id":"` + testHead + `"`,
	"broken off in a string": `{"id":"` + testHead,
	"two documents":          `{"id":"` + testHead + `"}{"id":"` + testHead + `"}`,
	"text after it":          `{"id":"` + testHead + `"} <!-- x -->`,
	"a trailing comma":       `{"id":"` + testHead + `",}`,
	"single quotes":          `{'id':'` + testHead + `'}`,
	"a comment":              `{"id":"` + testHead + `"/*x*/}`,
	"a byte order mark":      "\ufeff" + `{"id":"` + testHead + `"}`,
	"UTF-16":                 "\xff\xfe{\x00\"\x00i\x00d\x00",
	"not a number":           `{"id":"` + testHead + `","semanticThreshold":NaN}`,
	"a page":                 "<html><body>maintenance</body></html>",
	"10,001 arrays":          `{"id":"` + testHead + `","x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`,
	"arrays without end":     strings.Repeat("[", 200_000),
	"objects without end":    strings.Repeat(`{"a":`, 100_000),
	"a name twice inside":    `{"id":"` + testHead + `","conversationSettings":{"tools":[],"tools":[]}}`,
}

// No such answer is taken for the head, and each is refused in no time. Nothing is
// written after it.
func TestHostileAnswersAreDecodeErrors(t *testing.T) {
	changes := []string{"Heads.Modify", "Heads.ConvertToStreaming", "ConversationSettings.Modify", "ConversationSettings.SetTools",
		"ConversationSettings.PutTool", "ConversationSettings.RemoveTool"}
	for name, body := range hostileAnswers {
		t.Run(name, func(t *testing.T) {
			for _, change := range append(changes, "Heads.Get") {
				sent := newScript(answer(http.StatusOK, body))
				begun := time.Now()
				err := named(change)(t.Context(), newTestClient(t, memoryURL, sent))
				assert.Less(t, time.Since(begun), 5*time.Second)
				var wrong *DecodeError
				require.ErrorAs(t, err, &wrong, change)
				assertClean(t, err.Error())
				assert.Less(t, len(err.Error()), 300)
				assert.Equal(t, body[:min(len(body), maxDecodeBody)], string(wrong.Body.Bytes()))
				assert.Equal(t, []string{"GET /head/" + testHead}, sent.routes(), "nothing is written, and nothing is asked again")
				assertHides(t, err, "canary", otherID)
			}
			for _, op := range described() {
				err := op.run(t.Context(), newTestClient(t, memoryURL, newScript(answer(http.StatusOK, body))))
				if err != nil {
					require.ErrorAs(t, err, new(*DecodeError), op.name)
					assertClean(t, err.Error())
				}
			}
		})
	}
}

// described are the operations whose answer the contract describes.
func described() []method {
	return slices.DeleteFunc(operations(), func(m method) bool { return m.answer == "" })
}

func TestAnswerMustBeWhatWasAskedFor(t *testing.T) {
	const mine = `{"id":7,"headId":"` + testHead + `","sharedKey":"canary"}`
	const aRecord = "a record in it does not belong to the head that was asked for"
	for _, row := range []struct {
		route, says string
		call        callOf
		answers     []string
	}{
		{"GET /head/" + testHead, "the head that was asked for", getHead,
			[]string{`{}`, `{"id":null}`, `{"id":"` + otherID + `","name":"canary"}`, `{"id":"` + testHead + `0"}`}},
		{"GET /head_visual/v-1", "the head visual that was asked for", getVisual, []string{`{}`, `{"message":"canary"}`,
			`{"data":{"id":"v-1","mode":"default"}}`, `{"id":"v-2","mode":"default"}`, `{"id":17,"mode":"default"}`, `{"id":{"id":"v-1"}}`}},
		{"GET /head-events/7", "the webhook that was asked for", getHook, []string{`{}`, `{"message":"canary"}`, `{"data":{"id":7}}`,
			`{"id":null}`, `{"id":8,"sharedKey":"canary"}`, `{"id":"70"}`}},
		{"GET /head-events/7", "the webhook that was asked for", modifyHook, []string{`{}`, `{"id":8,"sharedKey":"canary"}`}},
		{"GET /head-events", aRecord, named("Webhooks.List"), []string{`[{"message":"canary"}]`, `[` + mine + `,{"id":8}]`,
			`[` + mine + `,{"id":8,"headId":null}]`, `[` + mine + `,{"id":8,"headId":"` + otherID + `","sharedKey":"canary"}]`, `[` + mine + `,null]`}},
		{"POST /head-events", "another head", postHook, []string{`{"id":7,"headId":"` + otherID + `","sharedKey":"canary"}`}},
	} {
		for _, document := range row.answers {
			t.Run(row.route+" "+document, func(t *testing.T) {
				service := newFakeAPI(t, map[string]string{row.route: document})
				err := row.call(t.Context(), service.Client)
				require.ErrorAs(t, err, new(*DecodeError))
				assert.ErrorContains(t, err, row.says)
				assertHides(t, err, "canary", otherID)
				assert.Equal(t, []string{row.route}, service.routes(), "nothing is written")
			})
		}
	}
	hook, err := newFakeAPI(t, map[string]string{"GET /head-events/7": `{"id":"7","sharedKey":"k"}`}).Webhooks.Get(t.Context(), 7)
	require.NoError(t, err, "an id of digits")
	assert.EqualValues(t, 7, hook.ID)
	assert.Equal(t, "k", hook.SharedKey.Reveal())
}

func getVisual(ctx context.Context, c *Client) error { return ErrorOf(c.HeadVisuals.Get(ctx, "v-1")) }

func getHook(ctx context.Context, c *Client) error { return ErrorOf(c.Webhooks.Get(ctx, 7)) }

func modifyHook(ctx context.Context, c *Client) error {
	return ErrorOf(c.Webhooks.Modify(ctx, 7, Edit(func(w *Webhook) { w.EndConversation = true })))
}

func TestPromptConfigMayBeAString(t *testing.T) {
	const document = `{"id":"` + testHead + `","isActive":"yes","promptConfig":"Be \u0062rief.","name":"n"}`
	service := newFakeAPI(t, answering(document))
	head := Must(service.Heads.Get(t.Context(), testHead))(t)
	assert.Equal(t, &PromptConfig{SystemPrompt: "Be brief."}, head.PromptConfig)
	assert.Equal(t, "n", head.Name)
	assert.Equal(t, document, string(head.Raw.Bytes()))

	Must(service.Heads.Modify(t.Context(), testHead, Edit(func(h *Head) { h.Name = "m" })))(t)
	assert.Equal(t, `{"id":"`+testHead+`","name":"m"}`, service.bodyOf(t, "PUT /head/update"))
	Must(service.Heads.Modify(t.Context(), testHead, Edit(func(h *Head) { h.PromptConfig.SystemPrompt = "Be kind." })))(t)
	assert.Equal(t, `{"id":"`+testHead+`","promptConfig":{"system_prompt":"Be kind."}}`, service.bodyOf(t, "PUT /head/update"))

	u := Must(HeadUpdateFromJSON(head.Raw.Bytes()))(t)
	assert.JSONEq(t, `{"system_prompt":"Be brief."}`, string(parseObject(t, string(u.document(testHead)))["promptConfig"]))
}

func TestRecordProvesAChangeOnlyIfItIsWhole(t *testing.T) {
	for body, proves := range map[string]bool{
		`{"id":"` + testHead + `"}`:                              true,
		`{"id":"` + strings.ToUpper(testHead) + `"}`:             true,
		`{"id":"` + testHead + `"`:                               false,
		`{"id":"` + testHead + `"} <!-- of a page -->`:           false,
		`{"id":"` + otherID + `"}`:                               false,
		`{"id":"` + otherID + `","id":"` + testHead + `"}`:       false,
		`{"id":"` + testHead + `","\u0069d":"` + testHead + `"}`: false,
		`{"ID":"` + testHead + `"}`:                              false,
		`{"id":"` + testHead + `","ID":"` + otherID + `"}`:       true,
	} {
		assert.Equal(t, proves, (&Response{Body: NewRaw([]byte(body))}).isOwn(testHead), body)
	}
}

func TestEmptiedListIsShownByNullToo(t *testing.T) {
	for _, shown := range []string{"[]", "null"} {
		tr := newScript(answer(200, `{"id":"`+testHead+`","phrases":["a"]}`), answer(200, `{"status":"done"}`), answer(200, `{"id":"`+testHead+`","phrases":`+shown+`}`))
		_, err := newTestClient(t, memoryURL, tr).Heads.Modify(t.Context(), testHead, Edit(func(h *Head) { h.Phrases = nil }))
		require.NoError(t, err, shown)
		assert.Equal(t, 3, tr.sent())
	}
}
