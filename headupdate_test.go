package heads

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writableNames are the fields that an update can change, in the order of the
// contract: all of its table that are neither read-only nor changed by another
// operation.
var writableNames = []string{
	"name", "alias", "language", "languageSpeechRecognition", "ttsProvider", "ttsVoice", "operationMode", "ocProvider",
	"promptConfig", "greetings", "voiceflowApiKey", "isRandomSuggestions", "phrases", "suggestions", "customWords",
	"publicUrl", "fileUrl", "pluginOperationalModeConfig", "semanticThreshold",
}

// readOnlyNames are the fields that the contract lists as ignored in an update.
var readOnlyNames = []string{
	"createdAt", "updatedAt", "publicId", "documentJsonDto", "documentUrl", "encodedPath", "iconConfig", "headVisualId",
	"isActive", "orgId", "orgPublicId", "allowedOrigins", "allowedIframeOrigins", "videoCache", "splitter",
	"expirationSeconds", "ttsStream", "headVisualVideoUrl", "posterVideoImage", "ttsDisplayName", "organisation",
}

// switchedNames are the fields that other operations change.
var switchedNames = map[string]string{
	"videoStreaming":       "Heads.SetVideoStreaming",
	"enableEvents":         "Webhooks.SetDelivery",
	"conversationSettings": "ConversationSettings.Modify",
}

// updateBody returns the body that Update sends.
func updateBody(t testing.TB, u *HeadUpdate) string {
	t.Helper()
	body := u.document(testHead)
	assert.Equal(t, strings.Replace(string(body), `"id":"`+testHead+`"`, "", 1), strings.Replace(string(u.Document().Bytes()), "{", "{,", min(1, len(u.Fields()))), "Document is the body without the id")
	return string(body)
}

// setterNames returns the methods that return the update for chaining.
func setterNames() (names []string) {
	update := reflect.TypeFor[*HeadUpdate]()
	for i := range update.NumMethod() {
		m := update.Method(i)
		if m.Type.NumOut() == 1 && m.Type.Out(0) == update {
			names = append(names, m.Name)
		}
	}
	return names
}

type pluginConfig struct {
	Plugin string      `json:"plugin"`
	Limit  json.Number `json:"limit"`
}

// setterRows has a row for each setter and each way to call it.
var setterRows = []struct {
	setter, how string
	set         func(*HeadUpdate) *HeadUpdate
	members     string
}{
	{"Name", "a text", func(u *HeadUpdate) *HeadUpdate { return u.Name("Ada") }, `"name":"Ada"`},
	{"Name", "empty", func(u *HeadUpdate) *HeadUpdate { return u.Name("") }, `"name":""`},
	{"Alias", "a text", func(u *HeadUpdate) *HeadUpdate { return u.Alias("ada") }, `"alias":"ada"`},
	{"Alias", "empty", func(u *HeadUpdate) *HeadUpdate { return u.Alias("") }, `"alias":""`},
	{"Language", "a tag", func(u *HeadUpdate) *HeadUpdate { return u.Language("en-GB") }, `"language":"en-GB"`},
	{"Language", "empty", func(u *HeadUpdate) *HeadUpdate { return u.Language("") }, `"language":""`},
	{"LanguageSpeechRecognition", "a tag", func(u *HeadUpdate) *HeadUpdate { return u.LanguageSpeechRecognition("en-IE") }, `"languageSpeechRecognition":"en-IE"`},
	{"LanguageSpeechRecognition", "empty", func(u *HeadUpdate) *HeadUpdate { return u.LanguageSpeechRecognition("") }, `"languageSpeechRecognition":""`},
	{"Voice", "provider and voice", func(u *HeadUpdate) *HeadUpdate { return u.Voice("azure", "en-GB-SoniaNeural") }, `"ttsProvider":"azure","ttsVoice":"en-GB-SoniaNeural"`},
	{"OperationMode", "a constant", func(u *HeadUpdate) *HeadUpdate { return u.OperationMode(OperationModeOC) }, `"operationMode":"oc"`},
	{"OperationMode", "another value", func(u *HeadUpdate) *HeadUpdate { return u.OperationMode("doc_qa") }, `"operationMode":"doc_qa"`},
	{"OCProvider", "a text", func(u *HeadUpdate) *HeadUpdate { return u.OCProvider("playground") }, `"ocProvider":"playground"`},
	{"OCProvider", "empty", func(u *HeadUpdate) *HeadUpdate { return u.OCProvider("") }, `"ocProvider":""`},
	{"SystemPrompt", "a text", func(u *HeadUpdate) *HeadUpdate { return u.SystemPrompt("Be kind.") }, `"promptConfig":{"system_prompt":"Be kind."}`},
	{"SystemPrompt", "empty", func(u *HeadUpdate) *HeadUpdate { return u.SystemPrompt("") }, `"promptConfig":{"system_prompt":""}`},
	{"Greetings", "a text", func(u *HeadUpdate) *HeadUpdate { return u.Greetings("Hi & <welcome>,\n\"you\"") }, `"greetings":"Hi & <welcome>,\n\"you\""`},
	{"Greetings", "empty", func(u *HeadUpdate) *HeadUpdate { return u.Greetings("") }, `"greetings":""`},
	{"VoiceflowAPIKey", "a key", func(u *HeadUpdate) *HeadUpdate { return u.VoiceflowAPIKey("VF.DM.1") }, `"voiceflowApiKey":"VF.DM.1"`},
	{"VoiceflowAPIKey", "empty", func(u *HeadUpdate) *HeadUpdate { return u.VoiceflowAPIKey("") }, `"voiceflowApiKey":""`},
	{"ClearVoiceflowAPIKey", "null", func(u *HeadUpdate) *HeadUpdate { return u.ClearVoiceflowAPIKey() }, `"voiceflowApiKey":null`},
	{"IsRandomSuggestions", "true", func(u *HeadUpdate) *HeadUpdate { return u.IsRandomSuggestions(true) }, `"isRandomSuggestions":true`},
	{"IsRandomSuggestions", "false", func(u *HeadUpdate) *HeadUpdate { return u.IsRandomSuggestions(false) }, `"isRandomSuggestions":false`},
	{"Phrases", "two", func(u *HeadUpdate) *HeadUpdate { return u.Phrases("a", "") }, `"phrases":["a",""]`},
	{"Phrases", "none", func(u *HeadUpdate) *HeadUpdate { return u.Phrases() }, `"phrases":[]`},
	{"Phrases", "an empty list", func(u *HeadUpdate) *HeadUpdate { return u.Phrases([]string{}...) }, `"phrases":[]`},
	{"Suggestions", "two", func(u *HeadUpdate) *HeadUpdate { return u.Suggestions("b", "a") }, `"suggestions":["b","a"]`},
	{"Suggestions", "none", func(u *HeadUpdate) *HeadUpdate { return u.Suggestions() }, `"suggestions":[]`},
	{"CustomWords", "two", func(u *HeadUpdate) *HeadUpdate { return u.CustomWords(map[string]string{"b": "2", "a": "1"}) }, `"customWords":{"a":"1","b":"2"}`},
	{"CustomWords", "none", func(u *HeadUpdate) *HeadUpdate { return u.CustomWords(map[string]string{}) }, `"customWords":{}`},
	{"CustomWords", "nil", func(u *HeadUpdate) *HeadUpdate { return u.CustomWords(nil) }, `"customWords":{}`},
	{"PublicURL", "an address", func(u *HeadUpdate) *HeadUpdate { return u.PublicURL("https://c.example.com/o/h?api_key=1&x=2") }, `"publicUrl":"https://c.example.com/o/h?api_key=1&x=2"`},
	{"FileURL", "an address", func(u *HeadUpdate) *HeadUpdate { return u.FileURL("https://f.example.com/a.pdf") }, `"fileUrl":"https://f.example.com/a.pdf"`},
	{"FileURL", "empty", func(u *HeadUpdate) *HeadUpdate { return u.FileURL("") }, `"fileUrl":""`},
	{"ClearFileURL", "null", func(u *HeadUpdate) *HeadUpdate { return u.ClearFileURL() }, `"fileUrl":null`},
	{"PluginOperationalModeConfig", "a struct", func(u *HeadUpdate) *HeadUpdate {
		return u.PluginOperationalModeConfig(pluginConfig{"tickets", "1.0"})
	}, `"pluginOperationalModeConfig":{"plugin":"tickets","limit":1.0}`},
	{"PluginOperationalModeConfig", "a map", func(u *HeadUpdate) *HeadUpdate { return u.PluginOperationalModeConfig(map[string]any{"a": 1}) }, `"pluginOperationalModeConfig":{"a":1}`},
	{"PluginOperationalModeConfig", "JSON", func(u *HeadUpdate) *HeadUpdate {
		return u.PluginOperationalModeConfig(json.RawMessage(`{"big":12345678901234567890}`))
	}, `"pluginOperationalModeConfig":{"big":12345678901234567890}`},
	{"ClearPluginOperationalModeConfig", "null", func(u *HeadUpdate) *HeadUpdate { return u.ClearPluginOperationalModeConfig() }, `"pluginOperationalModeConfig":null`},
	{"SemanticThreshold", "a fraction", func(u *HeadUpdate) *HeadUpdate { return u.SemanticThreshold(0.75) }, `"semanticThreshold":0.75`},
	{"SemanticThreshold", "zero", func(u *HeadUpdate) *HeadUpdate { return u.SemanticThreshold(0) }, `"semanticThreshold":0`},
	{"Set", "a new field", func(u *HeadUpdate) *HeadUpdate { return u.Set("addedSince", []any{1, nil}) }, `"addedSince":[1,null]`},
	{"Set", "a new field to null", func(u *HeadUpdate) *HeadUpdate { return u.Set("addedSince", nil) }, `"addedSince":null`},
	{"Set", "a known field", func(u *HeadUpdate) *HeadUpdate { return u.Set("name", "Ada") }, `"name":"Ada"`},
	{"Set", "a name with a quote", func(u *HeadUpdate) *HeadUpdate { return u.Set(`a"b<é`, true) }, `"a\"b<é":true`},
}

func TestEverySetterSendsItsJSON(t *testing.T) {
	covered := map[string]bool{}
	for _, row := range setterRows {
		covered[row.setter] = true
		t.Run(row.setter+" "+row.how, func(t *testing.T) {
			u := NewHeadUpdate()
			assert.Same(t, u, row.set(u), "setters can be chained")
			assert.Equal(t, `{"id":"3fa85f64-5717-4562-b3fc-2c963f66afa6",`+row.members+`}`, updateBody(t, u))
			assert.NoError(t, u.Validate())
		})
	}
	// A new setter needs a row.
	for _, name := range setterNames() {
		assert.True(t, covered[name], "%s has a row", name)
	}
}

func TestEveryWritableFieldCanBeSetAndNoOtherIsNamed(t *testing.T) {
	assert.ElementsMatch(t, writableNames, WritableFields())
}

func TestClearExistsExactlyWhereNullIsAllowed(t *testing.T) {
	var clears []string
	for _, name := range setterNames() {
		if strings.HasPrefix(name, "Clear") {
			clears = append(clears, name)
		}
	}
	assert.ElementsMatch(t, []string{"ClearVoiceflowAPIKey", "ClearFileURL", "ClearPluginOperationalModeConfig"}, clears)
}

func TestReadOnlyFieldsHaveNoSetter(t *testing.T) {
	for _, name := range append(readOnlyNames, "id", "videoStreaming", "enableEvents", "conversationSettings") {
		for _, setter := range setterNames() {
			assert.False(t, strings.EqualFold(setter, name), setter)
		}
	}
}

func TestUpdateSendsWhatWasSetAndNothingElse(t *testing.T) {
	for _, tt := range []struct {
		name, golden string
		update       *HeadUpdate
	}{
		{"every setter", "update_every_setter.json", NewHeadUpdate().
			Name("Museum guide").Alias("guide").Language("en-GB").LanguageSpeechRecognition("en-IE").
			Voice("elevenlabs", "rachel_eleven_turbo_v2_5").OperationMode(OperationModeOC).OCProvider("playground").
			SystemPrompt("Greet \"politely\" & <briefly>.\nUse opening_hours.").Greetings("Grüße aus dem Museum").
			VoiceflowAPIKey("VF.DM.1234").IsRandomSuggestions(true).Phrases("hello", "goodbye").Suggestions("Opening hours").
			CustomWords(map[string]string{"MoMA": "mo-ma", "4th": "fourth"}).
			PublicURL("https://chat.example.com/MyOrg-1234/li-28379?api_key=0123&lang=en").FileURL("https://files.example.com/guide.pdf").
			PluginOperationalModeConfig(pluginConfig{"tickets", "1.0"}).SemanticThreshold(0.75).Set("addedSince", []any{1, nil})},
		{"empty values", "update_empty_values.json", NewHeadUpdate().
			Name("").SystemPrompt("").Greetings("").ClearVoiceflowAPIKey().IsRandomSuggestions(false).Phrases().Suggestions().
			CustomWords(nil).ClearFileURL().ClearPluginOperationalModeConfig().SemanticThreshold(0)},
		{"the voice alone", "update_voice.json", NewHeadUpdate().Voice("elevenlabs", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, answering(""))
			require.NoError(t, service.Heads.Update(t.Context(), testHead, tt.update))
			assert.Equal(t, golden(t, tt.golden), service.bodyOf(t, "PUT /head/update"))
		})
	}
}

func TestFieldsAreInTheOrderOfTheCalls(t *testing.T) {
	u := NewHeadUpdate()
	assert.Empty(t, u.Fields())
	u.Greetings("a").Voice("azure", "v").Set("zeta", 1).Name("n").Greetings("b")
	assert.Equal(t, []string{"greetings", "ttsProvider", "ttsVoice", "zeta", "name"}, u.Fields())
}

func TestLastCallOfASetterWins(t *testing.T) {
	u := NewHeadUpdate().FileURL("https://a.example.com").Name("a").ClearFileURL().Set("name", "b")
	assert.Equal(t, `{"id":"`+testHead+`","fileUrl":null,"name":"b"}`, updateBody(t, u))
}

func TestSettersCopyWhatTheyAreGiven(t *testing.T) {
	phrases, words, config := []string{"a"}, map[string]string{"a": "b"}, json.RawMessage(`{"a":1}`)
	u := NewHeadUpdate().Phrases(phrases...).CustomWords(words).PluginOperationalModeConfig(config)
	before := updateBody(t, u)
	phrases[0], words["a"] = "changed", "changed"
	copy(config, `{"b":2}`)
	assert.Equal(t, before, updateBody(t, u))
}

func TestSetRefusesWhatAnUpdateCannotChange(t *testing.T) {
	names := map[string]string{"id": "Heads.Update"}
	for _, name := range readOnlyNames {
		names[name] = "it is read-only"
	}
	for name, method := range switchedNames {
		names[name] = "use " + method
	}
	service := newFakeAPI(t, answering(""))
	for name, says := range names {
		for _, spelling := range []string{name, strings.ToUpper(name), strings.ToLower(name), strings.ToUpper(name[:1]) + name[1:]} {
			t.Run(spelling, func(t *testing.T) {
				faults := invalidErrors(t, service.Heads.Update(t.Context(), testHead, NewHeadUpdate().Name("n").Set(spelling, "x")))
				require.Len(t, faults, 1)
				assert.Equal(t, spelling, faults[0].Field)
				assert.Contains(t, faults[0].Problem+"; "+faults[0].Remedy, says)
				assert.Empty(t, service.since())
			})
		}
	}
}

func TestSetChecksTheTypeOfKnownFields(t *testing.T) {
	ofType := map[string][]any{
		"string":           {"x"},
		"boolean":          {true},
		"number":           {1.5},
		"list of strings":  {[]string{"x"}},
		"object of words":  {map[string]string{"a": "b"}},
		"empty object":     {map[string]any{}},
		"null":             {nil},
		"mixed list":       {[]any{"x", 1}},
		"mixed object":     {map[string]any{"a": 1}},
		"prompt":           {map[string]any{"system_prompt": "x"}},
		"prompt of number": {map[string]any{"system_prompt": 1}},
		"prompt of null":   {map[string]any{"system_prompt": nil}},
		"prompt with id":   {map[string]any{"id": "x", "system_prompt": "y"}},
	}
	texts := []string{"string"}
	accepted := map[string][]string{
		"name": texts, "alias": texts, "language": texts, "languageSpeechRecognition": texts, "operationMode": texts,
		"ocProvider": texts, "greetings": texts, "publicUrl": texts,
		"ttsProvider": texts, "ttsVoice": texts,
		"voiceflowApiKey": {"string", "null"}, "fileUrl": {"string", "null"},
		"promptConfig":        {"prompt"},
		"isRandomSuggestions": {"boolean"}, "semanticThreshold": {"number"},
		"phrases": {"list of strings"}, "suggestions": {"list of strings"},
		"customWords":                 {"object of words", "empty object", "prompt", "prompt with id"},
		"pluginOperationalModeConfig": {"object of words", "empty object", "mixed object", "prompt", "prompt of number", "prompt of null", "prompt with id", "null"},
	}
	require.Len(t, accepted, len(writableNames))
	for name, good := range accepted {
		for kind, values := range ofType {
			for _, value := range values {
				t.Run(name+" "+kind, func(t *testing.T) {
					u := NewHeadUpdate().Voice("azure", "v").Set(name, value)
					err := u.Validate()
					if slices.Contains(good, kind) {
						assert.NoError(t, err)
						return
					}
					assert.Contains(t, invalidFields(t, err), name)
				})
			}
		}
	}
}

func TestUpdateRefusesPlaceholdersAtAnyDepthAndWhatIsNoJSON(t *testing.T) {
	tests := []struct {
		name, field, says string
		update            *HeadUpdate
	}{
		{"a text", "name", `holds the placeholder "string"`, NewHeadUpdate().Name("string")},
		{"a key", "voiceflowApiKey", `holds the placeholder "<API_KEY>"`, NewHeadUpdate().VoiceflowAPIKey("<API_KEY>")},
		{"the prompt", "promptConfig", `holds the placeholder "string"`, NewHeadUpdate().SystemPrompt("string")},
		{"in a list", "phrases", `holds the placeholder "string"`, NewHeadUpdate().Phrases("hello", "string")},
		{"in a map", "customWords", `holds the placeholder "<SPOKEN>"`, NewHeadUpdate().CustomWords(map[string]string{"a": "b", "c": "<SPOKEN>"})},
		{"the key of an address", "publicUrl", `holds the placeholder "<PUBLIC_API_KEY>"`, NewHeadUpdate().PublicURL("https://c.example.com/canary/h?api_key=<PUBLIC_API_KEY>")},
		{"a voice", "ttsVoice", `holds the placeholder "string"`, NewHeadUpdate().Voice("azure", "string")},
		{"a provider", "ttsProvider", `holds the placeholder "YOUR_PROVIDER"`, NewHeadUpdate().Voice("YOUR_PROVIDER", "rachel")},
		{"a provider of mode oc", "ocProvider", `holds the placeholder "your_provider"`, NewHeadUpdate().OCProvider("your_provider")},
		{"a file", "fileUrl", `holds the placeholder "YOUR_HOST"`, NewHeadUpdate().FileURL("https://YOUR_HOST/canary.pdf")},
		{"a file by Set", "fileUrl", `holds the placeholder "a URL of your choice"`, NewHeadUpdate().Set("fileUrl", "a URL of your choice")},
		{"deep in an object", "pluginOperationalModeConfig", `holds the placeholder "<TOKEN>"`,
			NewHeadUpdate().PluginOperationalModeConfig(map[string]any{"a": []any{1, map[string]any{"b": []any{nil, "<TOKEN>"}}}})},
		{"a field added since", "addedSince", `holds the placeholder "string"`, NewHeadUpdate().Set("addedSince", [][]string{{"string"}})},
		{"not a number", "semanticThreshold", "JSON", NewHeadUpdate().SemanticThreshold(math.NaN())},
		{"infinity", "semanticThreshold", "JSON", NewHeadUpdate().SemanticThreshold(math.Inf(1))},
		{"negative infinity", "semanticThreshold", "JSON", NewHeadUpdate().SemanticThreshold(math.Inf(-1))},
		{"a channel", "addedSince", "JSON", NewHeadUpdate().Set("addedSince", make(chan int))},
		{"broken JSON", "pluginOperationalModeConfig", "JSON", NewHeadUpdate().PluginOperationalModeConfig(json.RawMessage(`{"a":`))},
		{"two values", "addedSince", "JSON", NewHeadUpdate().Set("addedSince", json.RawMessage(`1,"b":2`))},
	}
	service := newFakeAPI(t, answering(""))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := service.Heads.Update(t.Context(), testHead, tt.update)
			faults := invalidErrors(t, err)
			require.Len(t, faults, 1)
			assert.Equal(t, tt.field, faults[0].Field)
			assert.Contains(t, faults[0].Problem+"; "+faults[0].Remedy, tt.says)
			assert.NotContains(t, err.Error(), "canary")
			assert.Empty(t, service.since())
		})
	}
}

// In a text for people the words of a page can be meant.
func TestUpdateSendsSamplesInTexts(t *testing.T) {
	u := NewHeadUpdate().Name("YOUR_ORG").Alias("voiceID").Greetings("Take a tour of your choice.").SystemPrompt("Ask for the voiceID.").
		Phrases("YOUR_KEY").CustomWords(map[string]string{"YOUR_KEY": "of your choice"}).PluginOperationalModeConfig(map[string]string{"a": "of your choice"}).
		FileURL("https://files.example.com/your-file/your_organs.pdf?x=of+your+own")
	assert.NoError(t, u.Validate())
}

func TestUpdateRefusesAVoiceWithoutItsProvider(t *testing.T) {
	for _, tt := range []struct {
		name   string
		update *HeadUpdate
		says   string // of one that is refused
	}{
		{"only the voice", NewHeadUpdate().Set("ttsVoice", "v"), "the provider is blank"},
		{"only the provider", NewHeadUpdate().Set("ttsProvider", "p"), "the voice is blank"},
		{"an empty provider", NewHeadUpdate().Voice("", "v"), "the provider is blank"},
		{"an empty voice", NewHeadUpdate().Voice("p", ""), "the voice is blank"},
		{"both empty", NewHeadUpdate().Voice("", ""), "both are blank"},
		{"both, one by one", NewHeadUpdate().Set("ttsVoice", "v").Set("ttsProvider", "p"), ""},
		{"both", NewHeadUpdate().Voice("p", "v"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.update.Validate()
			if tt.says == "" {
				assert.NoError(t, err)
				return
			}
			assert.Equal(t, []string{"ttsVoice"}, invalidFields(t, err))
			assert.ErrorContains(t, err, tt.says+"; give both with HeadUpdate.Voice")
		})
	}
}

func TestUpdateRefusesAnEmptyUpdate(t *testing.T) {
	service := newFakeAPI(t, answering(""))
	err := service.Heads.Update(t.Context(), testHead, NewHeadUpdate())
	assert.Equal(t, []string{"update"}, invalidFields(t, err))
	assert.ErrorContains(t, err, "sets no field")
	err = service.Heads.Update(t.Context(), testHead, nil)
	assert.Equal(t, []string{"update"}, invalidFields(t, err))
	assert.ErrorContains(t, err, "NewHeadUpdate")
	assert.Empty(t, service.since())
}

func TestValidateReportsAllFaultsTogether(t *testing.T) {
	err := NewHeadUpdate().Name("string").SemanticThreshold(math.NaN()).Set("isActive", true).
		Set("VideoStreaming", true).Set("phrases", 5).Voice("", "v").Greetings("fine").Validate()
	assert.Equal(t, []string{"name", "semanticThreshold", "isActive", "VideoStreaming", "phrases", "ttsVoice"}, invalidFields(t, err))
	for _, fault := range invalidErrors(t, err) {
		assert.Equal(t, "Heads.Update", fault.Operation)
	}
}

func readHead(t testing.TB, document string) *Head {
	t.Helper()
	h := new(Head)
	require.NoError(t, decodeAnswer([]byte(document), h))
	return h
}

func TestHeadUpdateFromJSONLeavesOnlyWritableFields(t *testing.T) {
	u := Must(HeadUpdateFromJSON([]byte(readFile(t, "head_full.json"))))(t)
	want := slices.DeleteFunc(slices.Clone(writableNames), func(name string) bool { return name == "publicUrl" })
	assert.Equal(t, want, u.Fields())
	service := newFakeAPI(t, answering(""))
	require.NoError(t, service.Heads.Update(t.Context(), testHead, u))
	sent := service.bodyOf(t, "PUT /head/update")
	for name := range parseObject(t, sent) {
		assert.True(t, name == "id" || slices.Contains(want, name), "%s is sent", name)
	}
	compact := Must(rawjson.Encode(json.RawMessage(sent)))(t)
	assert.Equal(t, golden(t, "update_from_get.json"), string(compact))
}

func TestHeadUpdateFromJSONKeepsValuesByteForByte(t *testing.T) {
	u := Must(HeadUpdateFromJSON([]byte(` {"id":"` + testHead + `","semanticThreshold":7.50e-1,"name":"\u00e9\/","pluginOperationalModeConfig":{ "n" : 12345678901234567890, "m":1.0 }}`)))(t)
	assert.Equal(t, `{"id":"`+testHead+`","name":"\u00e9\/","pluginOperationalModeConfig":{ "n" : 12345678901234567890, "m":1.0 },"semanticThreshold":7.50e-1}`, updateBody(t, u))
}

func TestHeadUpdateFromJSONTakesTheQuotesOffANumber(t *testing.T) {
	u := Must(HeadUpdateFromJSON([]byte(`{"id":"` + testHead + `","semanticThreshold":"7.50e-1","name":"5"}`)))(t)
	assert.Equal(t, `{"id":"`+testHead+`","name":"5","semanticThreshold":7.50e-1}`, updateBody(t, u))
	assert.Equal(t, []string{"semanticThreshold"}, invalidFields(t, ErrorOf(HeadUpdateFromJSON([]byte(`{"semanticThreshold":"much"}`)))))
}

func TestHeadUpdateFromJSONDoesNotHoldOnToTheDocument(t *testing.T) {
	document := []byte(`{"id":"` + testHead + `","name":"aaaa"}`)
	u := Must(HeadUpdateFromJSON(document))(t)
	before := updateBody(t, u)
	copy(document, strings.Repeat("x", len(document)))
	assert.Equal(t, before, updateBody(t, u))
}

func TestHeadUpdateFromJSONSkips(t *testing.T) {
	for name, member := range map[string]string{
		"publicUrl":                       `"publicUrl":"https://c.example.com"`,
		"an unknown field":                `"addedSince":5`,
		"null where it is not allowed":    `"name":null`,
		"a prompt of null":                `"promptConfig":null`,
		"a prompt without text":           `"promptConfig":{"id":"p"}`,
		"a prompt with a text of null":    `"promptConfig":{"id":"p","system_prompt":null}`,
		"videoStreaming":                  `"videoStreaming":true`,
		"enableEvents":                    `"enableEvents":true`,
		"conversationSettings":            `"conversationSettings":{"tools":[]}`,
		"a read-only field":               `"isActive":true`,
		"a wrong type in what is ignored": `"organisation":7`,
		"an empty voice":                  `"ttsProvider":"","ttsVoice":""`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, id := range []string{`"` + testHead + `"`, `"` + otherID + `"`, "5", "null"} {
				u, err := HeadUpdateFromJSON([]byte(`{"id":` + id + `,"alias":"a",` + member + `}`))
				require.NoError(t, err, id)
				assert.Equal(t, []string{"alias"}, u.Fields(), id)
			}
		})
	}
}

// Half a voice is refused and not skipped, since it may be an edit.
func TestHalfAVoiceOfADocumentIsRefused(t *testing.T) {
	for _, member := range []string{`"ttsProvider":"azure"`, `"ttsVoice":"rachel"`, `"ttsProvider":"azure","ttsVoice":""`} {
		document := `{"id":"` + testHead + `","name":"n",` + member + `}`
		u := Must(HeadUpdateFromJSON([]byte(document)))(t)
		assert.ErrorContains(t, u.Validate(), "must be set together")
		assert.NoError(t, u.Voice("azure", "rachel").Validate())
	}
}

func TestHeadUpdateFromJSONRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, document string
		fields         []string
	}{
		{"nothing", "", []string{"document"}},
		{"no JSON", "<html>", []string{"document"}},
		{"half a document", `{"id":"` + testHead, []string{"document"}},
		{"null", "null", []string{"document"}},
		{"a list", `[{"id":"` + testHead + `"}]`, []string{"document"}},
		{"values of the wrong type, all of them", `{"id":"` + testHead + `","name":5,"phrases":["a",1],"customWords":{"a":1},"fileUrl":false,"promptConfig":["x"]}`,
			[]string{"name", "promptConfig", "phrases", "customWords", "fileUrl"}},
		{"a prompt that is no text", `{"id":"` + testHead + `","promptConfig":{"system_prompt":5}}`, []string{"promptConfig"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := HeadUpdateFromJSON([]byte(tt.document))
			assert.Nil(t, u)
			assert.Equal(t, tt.fields, invalidFields(t, err))
		})
	}
}

func TestDiffHeadsSendsOnlyDifferences(t *testing.T) {
	text := func(s string) *string { return &s }
	secret := func(s Secret) *Secret { return &s }
	for _, tt := range []struct {
		name          string
		before, after Head
		members       string // "" when nothing differs
	}{
		{"two empty heads", Head{}, Head{}, ""},
		{"the name", Head{Name: "a", Alias: "x"}, Head{Name: "b", Alias: "x"}, `"name":"b"`},
		{"a text emptied", Head{Greetings: "a"}, Head{}, `"greetings":""`},
		{"several, in the contract's order", Head{}, Head{SemanticThreshold: 0.5, Language: "en-GB", IsRandomSuggestions: true, OperationMode: "oc"},
			`"language":"en-GB","operationMode":"oc","isRandomSuggestions":true,"semanticThreshold":0.5`},
		{"the voice brings its provider", Head{TTSProvider: "p", TTSVoice: "a"}, Head{TTSProvider: "p", TTSVoice: "b"}, `"ttsVoice":"b","ttsProvider":"p"`},
		{"the provider brings its voice", Head{TTSProvider: "p", TTSVoice: "a"}, Head{TTSProvider: "q", TTSVoice: "a"}, `"ttsProvider":"q","ttsVoice":"a"`},
		{"the prompt", Head{PromptConfig: &PromptConfig{"p", "a"}}, Head{PromptConfig: &PromptConfig{"p", "b"}}, `"promptConfig":{"system_prompt":"b"}`},
		{"a prompt added", Head{}, Head{PromptConfig: &PromptConfig{SystemPrompt: "b"}}, `"promptConfig":{"system_prompt":"b"}`},
		{"the same prompt elsewhere in memory", Head{PromptConfig: &PromptConfig{"p", "a"}}, Head{PromptConfig: &PromptConfig{"p", "a"}}, ""},
		{"a key added", Head{}, Head{VoiceflowAPIKey: secret(NewSecret("k"))}, `"voiceflowApiKey":"k"`},
		{"a key removed", Head{VoiceflowAPIKey: secret(NewSecret("k"))}, Head{}, `"voiceflowApiKey":null`},
		{"a key emptied", Head{VoiceflowAPIKey: secret(NewSecret("k"))}, Head{VoiceflowAPIKey: secret(NewSecret(""))}, `"voiceflowApiKey":""`},
		{"null became empty", Head{}, Head{VoiceflowAPIKey: secret(NewSecret(""))}, `"voiceflowApiKey":""`},
		{"the same key elsewhere in memory", Head{VoiceflowAPIKey: secret(NewSecret("k"))}, Head{VoiceflowAPIKey: secret(NewSecret("k"))}, ""},
		{"a file removed", Head{FileURL: text("u")}, Head{}, `"fileUrl":null`},
		{"the same file elsewhere in memory", Head{FileURL: text("u")}, Head{FileURL: text("u")}, ""},
		{"a plugin added", Head{}, Head{PluginOperationalModeConfig: NewRaw([]byte(`{"a":1.0}`))}, `"pluginOperationalModeConfig":{"a":1.0}`},
		{"a plugin removed", Head{PluginOperationalModeConfig: NewRaw([]byte(`{"a":1}`))}, Head{}, `"pluginOperationalModeConfig":null`},
		{"a plugin set to null", Head{PluginOperationalModeConfig: NewRaw([]byte(`{"a":1}`))}, Head{PluginOperationalModeConfig: NewRaw([]byte(`null`))}, `"pluginOperationalModeConfig":null`},
		{"a plugin absent, then null", Head{}, Head{PluginOperationalModeConfig: NewRaw([]byte(`null`))}, ""},
		{"a plugin with other white space", Head{PluginOperationalModeConfig: NewRaw([]byte(`{"a":1}`))}, Head{PluginOperationalModeConfig: NewRaw([]byte("{ \"a\": 1\n}"))}, ""},
		{"phrases of the same content", Head{Phrases: []string{"a", "b"}}, Head{Phrases: []string{"a", "b"}}, ""},
		{"phrases in another order", Head{Phrases: []string{"a", "b"}}, Head{Phrases: []string{"b", "a"}}, `"phrases":["b","a"]`},
		{"phrases emptied", Head{Phrases: []string{"a"}}, Head{Phrases: []string{}}, `"phrases":[]`},
		{"phrases set to nil", Head{Phrases: []string{"a"}}, Head{}, `"phrases":[]`},
		{"nil phrases became empty", Head{}, Head{Phrases: []string{}}, `"phrases":[]`},
		{"empty phrases became nil", Head{Phrases: []string{}}, Head{}, ""},
		{"suggestions of the same content", Head{Suggestions: []string{"a"}}, Head{Suggestions: []string{"a"}}, ""},
		{"a suggestion added", Head{Suggestions: []string{"a"}}, Head{Suggestions: []string{"a", ""}}, `"suggestions":["a",""]`},
		{"words of the same content", Head{CustomWords: map[string]string{"a": "1", "b": "2"}}, Head{CustomWords: map[string]string{"b": "2", "a": "1"}}, ""},
		{"a word changed", Head{CustomWords: map[string]string{"a": "1"}}, Head{CustomWords: map[string]string{"a": "2"}}, `"customWords":{"a":"2"}`},
		{"words set to nil", Head{CustomWords: map[string]string{"a": "1"}}, Head{}, `"customWords":{}`},
		{"nil words became empty", Head{}, Head{CustomWords: map[string]string{}}, `"customWords":{}`},
		{"empty words became nil", Head{CustomWords: map[string]string{}}, Head{}, ""},
		{"the address", Head{PublicURL: NewSecret("https://a.example.com")}, Head{PublicURL: NewSecret("https://b.example.com")}, `"publicUrl":"https://b.example.com"`},
		{"Raw is no field", Head{Raw: NewRaw([]byte(`{"a":1}`))}, Head{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.before.ID, tt.after.ID = testHead, testHead
			u := Must(diffHeads("DiffHeads", &tt.before, &tt.after))(t)
			want := `{"id":"` + testHead + `"}`
			if tt.members != "" {
				want = `{"id":"` + testHead + `",` + tt.members + `}`
			}
			assert.Equal(t, want, updateBody(t, u))
			assert.Equal(t, tt.members == "", len(u.Fields()) == 0)
		})
	}
}

func TestEveryWritableFieldIsComparedOnItsOwn(t *testing.T) {
	document := readFile(t, "head_full.json")
	for _, name := range writableNames {
		t.Run(name, func(t *testing.T) {
			before, after := readHead(t, document), readHead(t, document)
			want := []string{name}
			switch name {
			case "promptConfig":
				after.PromptConfig.SystemPrompt = ""
			case "ttsProvider":
				want = append(want, "ttsVoice")
				after.TTSProvider = ""
			case "ttsVoice":
				want = append(want, "ttsProvider")
				after.TTSVoice = ""
			default:
				fieldOf(reflect.ValueOf(after).Elem(), name).SetZero()
			}
			u := Must(diffHeads("DiffHeads", before, after))(t)
			assert.Equal(t, want, u.Fields())
			u = Must(diffHeads("DiffHeads", after, before))(t)
			assert.Equal(t, want, u.Fields(), "and back")
			document := Must(HeadUpdateFromJSON([]byte(document)))(t)
			all, one := parseObject(t, string(document.Document().Bytes())), parseObject(t, string(u.Document().Bytes()))
			if name != "publicUrl" {
				assert.JSONEq(t, string(all[name]), string(one[name]), "as in the document")
			}
		})
	}
}

// readOnlyEdits changes each field that an update can't change.
var readOnlyEdits = map[string]struct {
	edit func(*Head)
	says string
}{
	"id":                   {func(h *Head) { h.ID = otherID }, "Heads.Update"},
	"videoStreaming":       {func(h *Head) { h.VideoStreaming = !h.VideoStreaming }, "Heads.SetVideoStreaming"},
	"enableEvents":         {func(h *Head) { h.EnableEvents = !h.EnableEvents }, "Webhooks.SetDelivery"},
	"conversationSettings": {func(h *Head) { h.ConversationSettings.Tools = nil }, "ConversationSettings.Modify"},
	"splitter":             {func(h *Head) { h.Splitter = !h.Splitter }, "Heads.SetVideoStreaming"},
	"createdAt":            {func(h *Head) { h.CreatedAt = Time{} }, "read-only"},
	"updatedAt":            {func(h *Head) { h.UpdatedAt.Text = "changed" }, "read-only"},
	"publicId":             {func(h *Head) { h.PublicID += "x" }, "read-only"},
	"orgId":                {func(h *Head) { h.OrgID += "x" }, "read-only"},
	"orgPublicId":          {func(h *Head) { h.OrgPublicID += "x" }, "read-only"},
	"headVisualId":         {func(h *Head) { h.HeadVisualID += "x" }, "read-only"},
	"documentUrl":          {func(h *Head) { h.DocumentURL += "x" }, "read-only"},
	"encodedPath":          {func(h *Head) { h.EncodedPath += "x" }, "read-only"},
	"headVisualVideoUrl":   {func(h *Head) { h.HeadVisualVideoURL += "x" }, "read-only"},
	"posterVideoImage":     {func(h *Head) { h.PosterVideoImage += "x" }, "read-only"},
	"ttsDisplayName":       {func(h *Head) { h.TTSDisplayName += "x" }, "read-only"},
	"isActive":             {func(h *Head) { h.IsActive = !h.IsActive }, "read-only"},
	"ttsStream":            {func(h *Head) { h.TTSStream = !h.TTSStream }, "read-only"},
	"expirationSeconds":    {func(h *Head) { h.ExpirationSeconds++ }, "read-only"},
	"allowedOrigins":       {func(h *Head) { h.AllowedOrigins[0] += "x" }, "read-only"},
	"allowedIframeOrigins": {func(h *Head) { h.AllowedIframeOrigins = nil }, "read-only"},
	"documentJsonDto":      {func(h *Head) { h.DocumentJSONDTO = NewRaw([]byte(`{}`)) }, "read-only"},
	"iconConfig":           {func(h *Head) { h.IconConfig = Raw{} }, "read-only"},
	"videoCache":           {func(h *Head) { h.VideoCache = NewRaw([]byte(`1`)) }, "read-only"},
	"organisation":         {func(h *Head) { h.Organisation.Slots++ }, "read-only"},
	"promptConfig.id":      {func(h *Head) { h.PromptConfig.ID += "x" }, "read-only"},
}

func TestReadOnlyEditsCoverEveryFieldThatIsNotWritable(t *testing.T) {
	head := reflect.TypeFor[Head]()
	for i := range head.NumField() {
		name, _, _ := strings.Cut(head.Field(i).Tag.Get("json"), ",")
		_, covered := readOnlyEdits[name]
		assert.Equal(t, !slices.Contains(writableNames, name) && name != "-", covered, name)
	}
}

func TestDiffHeadsRefusesReadOnlyChanges(t *testing.T) {
	document := readFile(t, "head_full.json")
	for name, tt := range readOnlyEdits {
		t.Run(name, func(t *testing.T) {
			after := readHead(t, document)
			tt.edit(after)
			after.Name = "changed as well"
			u, err := diffHeads("DiffHeads", readHead(t, document), after)
			assert.Nil(t, u)
			faults := invalidErrors(t, err)
			require.Len(t, faults, 1)
			assert.Equal(t, name, faults[0].Field)
			assert.Contains(t, faults[0].Problem+"; "+faults[0].Remedy, tt.says)
			assert.NotContains(t, err.Error(), "canary")
		})
	}
	t.Run("all of them", func(t *testing.T) {
		after := readHead(t, document)
		for _, tt := range readOnlyEdits {
			tt.edit(after)
		}
		assert.Len(t, invalidErrors(t, ErrorOf(diffHeads("DiffHeads", readHead(t, document), after))), len(readOnlyEdits))
	})
	t.Run("the id of a prompt that was added", func(t *testing.T) {
		_, err := diffHeads("DiffHeads", &Head{ID: testHead}, &Head{ID: testHead, PromptConfig: &PromptConfig{ID: "made up", SystemPrompt: "x"}})
		assert.Equal(t, []string{"promptConfig.id"}, invalidFields(t, err))
	})
	t.Run("a prompt that was removed", func(t *testing.T) {
		after := readHead(t, document)
		after.PromptConfig = nil
		assert.Equal(t, []string{"promptConfig"}, invalidFields(t, ErrorOf(diffHeads("DiffHeads", readHead(t, document), after))))
	})
}

func TestDiffHeadsLeavesWhatNoUpdateMayHoldToValidate(t *testing.T) {
	u := Must(diffHeads("DiffHeads", &Head{ID: testHead, Name: "a"}, &Head{ID: testHead, Name: "string", SemanticThreshold: math.NaN(), TTSVoice: "v"}))(t)
	assert.Equal(t, []string{"name", "semanticThreshold", "ttsVoice"}, invalidFields(t, u.Validate()))
	assert.ErrorIs(t, u.Validate(), ErrInvalid)
}

func TestSetNamesTheFieldThatWasMeant(t *testing.T) {
	err := NewHeadUpdate().Set("TTSvoice", "rachel").Validate()
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "the name is ttsVoice")
}

func TestEveryFieldOfAHeadIsInTheTable(t *testing.T) {
	head := reflect.TypeFor[Head]()
	for i := range head.NumField() {
		name, _, _ := strings.Cut(head.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if field := findField(name); assert.NotNil(t, field, name) {
			assert.Equal(t, []int{i}, field.index, name)
		}
	}
}

func TestTableHasEachFieldOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, field := range headFields {
		name := strings.ToLower(field.name)
		assert.False(t, seen[name], name)
		seen[name] = true
	}
}

func TestCopyOfAnUpdateIsAnUpdateOfItsOwn(t *testing.T) {
	u := NewHeadUpdate().Name("a").Greetings("b")
	v := *u
	v.Alias("x").Name("y")
	u.Language("en-US").Greetings("c")
	assert.JSONEq(t, `{"name":"a","greetings":"c","language":"en-US"}`, string(u.Document().Bytes()))
	assert.JSONEq(t, `{"name":"y","greetings":"b","alias":"x"}`, string(v.Document().Bytes()))
	assert.Equal(t, []string{"name", "greetings", "alias"}, v.Fields(), "a field that is set again keeps its place")

	w := NewWebhookUpdate().Event(EventStartConversation, true)
	other := *w
	other.Event(EventStartConversation, false).URL("https://a.example.com")
	assert.JSONEq(t, `{"startConversation":true}`, string(w.document()))
	assert.JSONEq(t, `{"startConversation":false,"webhookUrl":"https://a.example.com"}`, string(other.document()))
}
