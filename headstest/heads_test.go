package headstest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestPublicIDsAndAccessURLHaveTheirForms(t *testing.T) {
	a, id := withHead(t)
	h := a.head(id)
	uuid := `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	assert.Regexp(t, uuid, h["id"])
	assert.Regexp(t, uuid, h["orgId"])
	assert.Regexp(t, uuid, h["headVisualId"])
	assert.Regexp(t, `^li-\d{5}$`, h["publicId"])
	assert.NotEqual(t, h["publicId"], a.head(a.AddHead(headstest.Head{}))["publicId"])
	assert.Regexp(t, `^MyOrg-\d{4}$`, h["orgPublicId"])
	assert.Regexp(t, `^https://chat\.example\.test/`+fmt.Sprint(h["orgPublicId"], "/", h["publicId"])+`\?api_key=[0-9a-f]{32}$`, h["publicUrl"])
}

func TestAddedHeadShowsWhatItWasGiven(t *testing.T) {
	a := newAPI(t)
	visual := a.AddVisual(headstest.Visual{})
	id := a.AddHead(headstest.Head{
		ID: seedHead, HeadVisualID: visual, Name: "Cleo", TTSProvider: "elevenlabs", TTSVoice: "rachel",
		OperationMode: heads.OperationModeOC, VideoStreaming: true, EnableEvents: true,
		Fields: map[string]any{"greetings": "Hi", "fileUrl": nil, "splitter": true, "id": "ignored", "phrases": []string(nil), "suggestions": nil,
			"customWords": map[string]string(nil), "promptConfig": nil, "conversationSettings": nil},
		Extra: map[string]any{"brandNew": map[string]any{"a": 1}},
	})
	require.Equal(t, seedHead, id)
	h := a.head(id)
	assert.Subset(t, h, map[string]any{
		"id": id, "headVisualId": visual, "name": "Cleo", "ttsProvider": "elevenlabs", "ttsVoice": "rachel", "operationMode": "oc",
		"videoStreaming": true, "splitter": true, "enableEvents": true, "greetings": "Hi", "brandNew": map[string]any{"a": 1.0}, "fileUrl": nil,
		"phrases": nil, "suggestions": nil, "customWords": nil, "promptConfig": nil, "conversationSettings": nil,
	})
	assert.Contains(t, h["publicUrl"], "https://stream.example.test/")
}

func TestAddHeadAddsAMissingVisual(t *testing.T) {
	a, id := newAPI(t).with(headstest.Head{HeadVisualID: "given"})
	assert.Equal(t, "given", a.head(id)["headVisualId"])
	assert.Equal(t, "default", object(t, a.ok("GET", "/head_visual/given", "").body)["mode"])
}

func TestAddHeadRefusesFieldsThatAreNotInTheContract(t *testing.T) {
	for _, row := range []struct {
		name string
		head headstest.Head
		says string
	}{
		{"unknown name", headstest.Head{Fields: map[string]any{"greeting": "Hi"}}, `no field "greeting"`},
		{"name in another case", headstest.Head{Fields: map[string]any{"Greetings": "Hi"}}, `no field "Greetings"`},
		{"number for a text", headstest.Head{Fields: map[string]any{"greetings": 1}}, "greetings must be a string"},
		{"null for a text", headstest.Head{Fields: map[string]any{"name": nil}}, "name must be a string"},
		{"text for a switch", headstest.Head{Fields: map[string]any{"isActive": "yes"}}, "isActive must be true or false"},
		{"text for the splitter", headstest.Head{Fields: map[string]any{"splitter": "on"}}, "splitter must be true or false"},
		{"list for the settings", headstest.Head{Fields: map[string]any{"conversationSettings": []any{}}}, "conversationSettings must be an object"},
		{"number in a list", headstest.Head{Fields: map[string]any{"phrases": []int{1}}}, "phrases must be a list of strings"},
		{"raw JSON", headstest.Head{Fields: map[string]any{"semanticThreshold": json.RawMessage(`"0.5"`)}}, "semanticThreshold must be a number"},
		{"several", headstest.Head{Fields: map[string]any{"alias": 1, "greeting": "Hi"}}, `alias must be a string; the contract gives a head no field "greeting"`},
		{"no JSON form", headstest.Head{Fields: map[string]any{"iconConfig": func() {}}}, "iconConfig has no JSON form"},
		{"known field as extra", headstest.Head{Extra: map[string]any{"name": "Ada"}}, `the field "name"`},
		{"id as extra", headstest.Head{Extra: map[string]any{"id": "x"}}, `the field "id"`},
		{"extra without a JSON form", headstest.Head{Extra: map[string]any{"added": func() {}}}, "added has no JSON form"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newEmulator(t)
			require.ErrorContains(t, row.head.Validate(), row.says)
			assert.PanicsWithValue(t, "headstest: AddHead: "+row.head.Validate().Error(), func() { e.AddHead(row.head) })
			assert.Empty(t, e.Heads())
			e.AddHead(headstest.Head{}) // the lock is free
		})
	}
}

func TestHeadVisualShowsItsMode(t *testing.T) {
	a := newAPI(t)
	for _, mode := range []heads.VisualMode{"default", "two_loops", "two_loops_streaming"} {
		id := a.AddVisual(headstest.Visual{Mode: mode, Fields: map[string]any{"extra": 1}})
		assert.Subset(t, object(t, a.ok("GET", "/head_visual/"+id, "").body), map[string]any{"id": id, "mode": string(mode), "extra": 1.0})
	}
	hidden := a.AddVisual(headstest.Visual{HideMode: true})
	assert.NotContains(t, object(t, a.ok("GET", "/head_visual/"+hidden, "").body), "mode")
}

func TestUpdateChangesOnlyWhatIsSent(t *testing.T) {
	a, id := withHead(t)
	for _, row := range []struct{ field, value string }{
		{"name", `"n"`}, {"alias", `"a"`}, {"language", `"de-DE"`}, {"languageSpeechRecognition", `"de-DE"`}, {"ttsProvider", `"acme"`},
		{"ttsVoice", `"v"`}, {"operationMode", `"doc_qa"`}, {"ocProvider", `"other"`}, {"greetings", `""`},
		{"voiceflowApiKey", `"k"`}, {"isRandomSuggestions", `true`}, {"phrases", `["p"]`}, {"suggestions", `[]`}, {"customWords", `{"a":"b"}`},
		{"publicUrl", `"https://x.example.test/a/b?api_key=c"`}, {"fileUrl", `"f"`}, {"pluginOperationalModeConfig", `{"x":[1]}`},
		{"semanticThreshold", `0.1`}, {"addedSince", `{"deep":[true]}`},
		{"voiceflowApiKey", `null`}, {"fileUrl", `null`}, {"pluginOperationalModeConfig", `null`},
	} {
		before := a.head(id)
		a.ok("PUT", "/head/update", fmt.Sprintf(`{"id":"%s","%s":%s}`, id, row.field, row.value))
		after := a.head(id)
		before[row.field], before["updatedAt"] = decoded[any](t, row.value), after["updatedAt"]
		assert.Equal(t, before, after, row.field)
	}
}

func TestUpdateRefusesWrongTypes(t *testing.T) {
	a, id := withHead(t)
	before := a.head(id)
	wrong := map[string][]string{
		"voiceflowApiKey": {"1", "{}"}, "fileUrl": {"true"}, "pluginOperationalModeConfig": {`"x"`, "[]", "1"},
		"isRandomSuggestions": {"null", `"true"`, "1"}, "semanticThreshold": {"null", `"0.5"`, "true"},
		"phrases": {"null", `"x"`, "[1]", "[null]", "{}"}, "suggestions": {"null", `"x"`, "[{}]"},
		"customWords": {"null", "[]", `{"a":1}`, `{"a":null}`}, "promptConfig": {"null", `"x"`, "{}", `{"id":"x"}`, `{"system_prompt":1}`, `{"system_prompt":null}`},
	}
	for _, field := range strings.Fields("name alias language languageSpeechRecognition ttsProvider ttsVoice operationMode ocProvider greetings publicUrl") {
		wrong[field] = []string{"null", "1", "true", "[]", "{}"}
	}
	for field, values := range wrong {
		for _, value := range values {
			a.do("PUT", "/head/update", fmt.Sprintf(`{"id":"%s","name":"new","%s":%s}`, id, field, value)).refused(t, 400, field+" must be")
		}
	}
	assert.Equal(t, before, a.head(id), "a refused update changes nothing")
	ans := a.do("PUT", "/head/update", `{"id":"`+id+`","name":1,"alias":null,"greetings":"string"}`)
	for _, field := range []string{"name", "alias", "greetings"} {
		ans.refused(t, 400, field)
	}
}

func TestUpdateNeedsAnIDAndAField(t *testing.T) {
	a, id := withHead(t)
	for body, says := range map[string]string{
		`{}`: "id is missing", `{"name":"x"}`: "id is missing", `{"id":null,"name":"x"}`: "UUID", `{"id":5,"name":"x"}`: "UUID",
		`{"id":"","name":"x"}`: "UUID", `{"id":"string","name":"x"}`: "UUID", `{"id":"` + id + `"}`: "no field",
	} {
		a.do("PUT", "/head/update", body).refused(t, 400, says)
	}
}

func TestUpdateRefusesPlaceholders(t *testing.T) {
	a, id := withHead(t)
	before := a.head(id)
	for _, value := range []string{
		`"name":"string"`, `"voiceflowApiKey":"<API_KEY>"`, `"phrases":["fine","string"]`, `"customWords":{"a":"string"}`,
		`"promptConfig":{"system_prompt":"string"}`, `"pluginOperationalModeConfig":{"a":[{"b":"<KEY_1>"}]}`, `"addedSince":"string"`,
	} {
		a.do("PUT", "/head/update", `{"id":"`+id+`",`+value+`}`).refused(t, 400, "placeholder")
	}
	assert.Equal(t, before, a.head(id))
	a.ok("PUT", "/head/update", `{"id":"`+id+`","greetings":"A string of <b>pearls</b>"}`)
	assert.Equal(t, "A string of <b>pearls</b>", a.head(id)["greetings"])
}

func TestUpdateIgnoresReadOnlyFields(t *testing.T) {
	a, id := withHead(t)
	before := a.head(id)
	for _, field := range strings.Fields(`createdAt updatedAt publicId documentJsonDto documentUrl encodedPath iconConfig headVisualId isActive
		orgId orgPublicId allowedOrigins allowedIframeOrigins videoCache conversationSettings splitter expirationSeconds ttsStream
		headVisualVideoUrl posterVideoImage ttsDisplayName organisation videoStreaming enableEvents`) {
		for _, value := range []string{`"changed"`, `null`, `{"id":"string"}`, `true`} {
			a.ok("PUT", "/head/update", fmt.Sprintf(`{"id":"%s","%s":%s}`, id, field, value))
			assert.Equal(t, before, a.head(id), "%s=%s alone", field, value)
		}
	}
	a.ok("PUT", "/head/update", `{"id":"`+id+`","isActive":false,"name":"Bea"}`)
	after := a.head(id)
	assert.Equal(t, "Bea", after["name"])
	assert.Equal(t, true, after["isActive"])
}

func TestUpdateKeepsThePromptsID(t *testing.T) {
	a, id := withHead(t)
	promptID := a.head(id)["promptConfig"].(map[string]any)["id"]
	a.ok("PUT", "/head/update", `{"id":"`+id+`","promptConfig":{"id":"other","system_prompt":"Be brief."}}`)
	assert.Equal(t, map[string]any{"id": promptID, "system_prompt": "Be brief."}, a.head(id)["promptConfig"])
}

func TestReadHeadCanBeSentAsAnUpdate(t *testing.T) {
	a, id := newAPI(t).with(headstest.Head{VideoStreaming: true})
	read := a.ok("GET", "/head/"+id, "").body
	before := a.head(id)
	a.ok("PUT", "/head/update", strings.Replace(read, `"name":"Ada"`, `"name":"Bea"`, 1))
	after := a.head(id)
	assert.Equal(t, "Bea", after["name"])
	after["name"], after["updatedAt"] = before["name"], before["updatedAt"]
	assert.Equal(t, before, after)
}

func TestUnknownFieldsAreKeptByteForByte(t *testing.T) {
	a, id := withHead(t)
	const odd = `{"b" : 1.50, "a":"<\u0041&>", "n":12345678901234567890}`
	a.ok("PUT", "/head/update", `{"id":"`+id+`","addedSince":`+odd+`}`)
	assert.Contains(t, a.ok("GET", "/head/"+id, "").body, `"addedSince":`+odd)
	added := a.AddHead(headstest.Head{Extra: map[string]any{"raw": json.RawMessage(odd)}, Fields: map[string]any{"greetings": "<b>&</b>"}})
	assert.Contains(t, a.ok("GET", "/head/"+added, "").body, `"raw":`+odd)
	assert.Contains(t, a.ok("GET", "/head/"+added, "").body, `"greetings":"<b>&</b>"`)
}

var key = regexp.MustCompile(`api_key=([0-9a-f]{32})`)

func apiKey(h map[string]any) string { return key.FindStringSubmatch(fmt.Sprint(h["publicUrl"]))[1] }

func TestChangesMoveUpdatedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, id := inMemory(t).with(headstest.Head{})
		hook, _ := addWebhook(t, a, id, "https://hook.example.test")
		stamp := func(path string) string {
			return fmt.Sprint(object(t, a.ok("GET", path, "").body)["updatedAt"])
		}
		hookPath := fmt.Sprint("/head-events/", hook)
		for _, row := range []struct {
			read, method, path, body string
			moves                    bool
		}{
			{"/head/" + id, "PUT", "/head/update", `{"id":"` + id + `","name":"Bea"}`, true},
			{"/head/" + id, "PUT", "/head/update", `{"id":"` + id + `","isActive":false}`, false},
			{"/head/" + id, "PUT", streaming(id, true), "", true},
			{"/head/" + id, "PUT", streaming(id, true), "", false},
			{"/head/" + id, "PUT", "/head/" + id + "/enable-events?enableEvents=true", "", true},
			{"/head/" + id, "PUT", "/head/" + id + "/enable-events?enableEvents=true", "", false},
			{"/head/" + id, "PUT", "/head/" + id + "/conversation-settings", `{"conversationSettings":{}}`, true},
			{hookPath, "PATCH", hookPath, `{"endConversation":true}`, true},
		} {
			before := stamp(row.read)
			<-time.After(time.Second) // of the bubble's clock
			a.ok(row.method, row.path, row.body)
			assert.Equal(t, row.moves, stamp(row.read) != before, "%s %s %s", row.method, row.path, row.body)
		}
		before := stamp("/head/" + id)
		<-time.After(time.Second)
		require.NoError(t, a.EnableSplitter(id))
		assert.NotEqual(t, before, stamp("/head/"+id))
	})
}

// A read after a change must not return the bytes of an earlier read.
func TestReadShowsEveryKindOfChange(t *testing.T) {
	a, id := newAPI(t).with(headstest.Head{ID: seedHead})
	for _, change := range []struct {
		shows string
		do    func()
	}{
		{`"name":"Bea"`, func() { a.ok("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`) }},
		{`"videoStreaming":true`, func() { a.ok("PUT", streaming(id, true), "") }},
		{`"enableEvents":true`, func() { a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", "") }},
		{`"name":"weather"`, func() { require.NoError(t, a.AddTool(id, json.RawMessage(goodTool))) }},
		{`{"tools": []}`, func() { a.ok("PUT", "/head/"+id+"/conversation-settings", `{"conversationSettings":{"tools": []}}`) }},
		{`"splitter":true`, func() { require.NoError(t, a.EnableSplitter(id)) }},
		{`"name":"Cleo"`, func() { a.AddHead(headstest.Head{ID: id, Name: "Cleo"}) }},
	} {
		require.NotContains(t, a.ok("GET", "/head/"+id, "").body, change.shows)
		change.do()
		assert.Contains(t, a.ok("GET", "/head/"+id, "").body, change.shows)
	}
}
