package heads

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGetKeepsTheDocumentAsReceived(t *testing.T) {
	document := " " + readFile(t, "head_full.json") + "\n"
	service := newFakeAPI(t, answering(document))
	head := Must(service.Heads.Get(t.Context(), testHead))(t)
	assert.Equal(t, document, string(head.Raw.Bytes()))
	again := Must(service.Heads.Get(t.Context(), testHead))(t)
	again.Raw.Bytes()[1] = 'x'
	assert.Equal(t, document, string(head.Raw.Bytes()), "two heads share no bytes")
}

func TestHasDistinguishesNullFromAbsent(t *testing.T) {
	service := newFakeAPI(t, answering(`{"id":"`+testHead+`","fileUrl":null,"pluginOperationalModeConfig":null,"name":"","nested":{"voiceflowApiKey":1},"a\u006cias":"x"}`))
	head := Must(service.Heads.Get(t.Context(), testHead))(t)
	for field, want := range map[string]bool{
		"fileUrl": true, "pluginOperationalModeConfig": true, "name": true, "alias": true, "nested": true,
		"voiceflowApiKey": false, "phrases": false, "Name": false, "": false,
	} {
		assert.Equal(t, want, head.Has(field), field)
	}
	assert.Nil(t, head.FileURL)
	assert.Nil(t, head.VoiceflowAPIKey)
	assert.False(t, new(Head).Has("name"))
}

// A head is stored as its Raw; its JSON has no secrets.
func TestStoredHeadReadsTheSame(t *testing.T) {
	full := parseObject(t, readFile(t, "head_full.json"))
	for name, document := range map[string]string{
		"every field":            full.String(),
		"white space":            readFile(t, "head_full.json"),
		"signs of HTML":          `{"pluginOperationalModeConfig":{"a":"<&>"},"iconConfig":"<&>","conversationSettings":{"a":"<&>"},"name":"<&>"}`,
		"no field":               `{}`,
		"null":                   `{"voiceflowApiKey":null,"fileUrl":null,"pluginOperationalModeConfig":null,"iconConfig":null,"videoCache":null,"documentJsonDto":null,"phrases":null,"organisation":null,"conversationSettings":null}`,
		"empty":                  `{"phrases":[],"suggestions":[],"customWords":{},"conversationSettings":{},"organisation":{},"promptConfig":{},"allowedOrigins":[]}`,
		"a time without a zone":  `{"createdAt":"2026-08-31 06:56:30"}`,
		"a time that is no time": `{"createdAt":"yesterday"}`,
		"odd numbers":            `{"pluginOperationalModeConfig":{"a":1.0,"b":1e3,"c":12345678901234567890},"conversationSettings":{"tools":[],"a":1.0,"b":1e3,"c":12345678901234567890}}`,
	} {
		t.Run(name, func(t *testing.T) {
			head := readHead(t, document)
			var read Head
			require.NoError(t, json.Unmarshal(head.Raw.Bytes(), &read))
			assert.Equal(t, strings.TrimSpace(document), strings.TrimSpace(string(read.Raw.Bytes())), "Raw is what was decoded")
			assert.Equal(t, head.Has("name"), read.Has("name"))
			assert.False(t, read.Has("names"))
			u := Must(diffHeads("DiffHeads", head, &read))(t)
			assert.Empty(t, u.Fields())
			shown := Must(json.Marshal(head))(t)
			again := Must(json.Marshal(&read))(t)
			assert.Equal(t, string(shown), string(again))
		})
	}
}

func TestHeadIsLoggedByItsName(t *testing.T) {
	assert.Contains(t, readHead(t, readFile(t, "head_full.json")).LogValue().String(), "Museum guide")
}

func TestModifySendsOnlyWhatChanged(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*Head)
		members string
	}{
		{"the greeting", func(h *Head) { h.Greetings = "Hi" }, `"greetings":"Hi"`},
		{"the voice, which brings its provider", func(h *Head) { h.TTSVoice = "en-GB-RyanNeural" }, `"ttsVoice":"en-GB-RyanNeural","ttsProvider":"azure"`},
		{"the provider, which brings its voice", func(h *Head) { h.TTSProvider = "elevenlabs" }, `"ttsProvider":"elevenlabs","ttsVoice":"en-GB-SoniaNeural"`},
		{"the prompt, without its id", func(h *Head) { h.PromptConfig.SystemPrompt = "Be brief." }, `"promptConfig":{"system_prompt":"Be brief."}`},
		{"a phrase in place", func(h *Head) { h.Phrases[1] = "bye" }, `"phrases":["hello","bye"]`},
		{"a word added in place", func(h *Head) { h.CustomWords["SDK"] = "es-dee-kay" }, `"customWords":{"4th":"fourth","MoMA":"mo-ma","SDK":"es-dee-kay"}`},
		{"a word removed in place", func(h *Head) { delete(h.CustomWords, "4th") }, `"customWords":{"MoMA":"mo-ma"}`},
		{"a key overwritten in place", func(h *Head) { *h.VoiceflowAPIKey = NewSecret("VF.DM.2") }, `"voiceflowApiKey":"VF.DM.2"`},
		{"a configuration edited in place", func(h *Head) { h.PluginOperationalModeConfig = NewRaw([]byte(`{"Plugin":"tickets","limit":1.0}`)) }, `"pluginOperationalModeConfig":{"Plugin":"tickets","limit":1.0}`},
		{"null", func(h *Head) { h.VoiceflowAPIKey, h.FileURL, h.PluginOperationalModeConfig = nil, nil, Raw{} },
			`"voiceflowApiKey":null,"fileUrl":null,"pluginOperationalModeConfig":null`},
		{"to false and zero", func(h *Head) { h.IsRandomSuggestions, h.SemanticThreshold = false, 0 }, `"isRandomSuggestions":false,"semanticThreshold":0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			service := newFakeAPI(t, answering(readFile(t, "head_full.json")))
			after := Must(service.Heads.Modify(t.Context(), testHead, Edit(tt.change)))(t)
			sent := service.since()
			require.Len(t, sent, 2)
			assert.Equal(t, "GET /head/"+testHead, sent[0].route)
			assert.Equal(t, "PUT /head/update", sent[1].route)
			assert.Equal(t, `{"id":"`+testHead+`",`+tt.members+`}`, sent[1].body)
			want := readHead(t, readFile(t, "head_full.json"))
			tt.change(want)
			assert.Equal(t, want, after, "the head as change left it")
		})
	}
}

func TestModifySendsNothingWhenNothingChanged(t *testing.T) {
	for name, change := range map[string]func(*Head){
		"no change":                    func(*Head) {},
		"the same values":              func(h *Head) { h.Phrases, h.Name = []string{"hello", "goodbye"}, "Museum guide" },
		"equal words":                  func(h *Head) { h.CustomWords = map[string]string{"4th": "fourth", "MoMA": "mo-ma"} },
		"another spelling of a number": func(h *Head) { h.SemanticThreshold = 0.75 },
		"Raw":                          func(h *Head) { h.Raw = Raw{} },
	} {
		t.Run(name, func(t *testing.T) {
			service := newFakeAPI(t, answering(readFile(t, "head_full.json")))
			after := Must(service.Heads.Modify(t.Context(), testHead, Edit(change)))(t)
			assert.Equal(t, testHead, after.ID)
			assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
		})
	}
}

func TestModifyReturnsTheErrorOfChangeUnchanged(t *testing.T) {
	service := newFakeAPI(t, answering(readFile(t, "head_full.json")))
	wrong := errors.New("not today")
	after, err := service.Heads.Modify(t.Context(), testHead, func(h *Head) error {
		h.Name = "changed"
		return wrong
	})
	assert.Nil(t, after)
	assert.Same(t, wrong, err, "the error itself, not a wrapped one")
	assert.Equal(t, []string{"GET /head/" + testHead}, service.routes())
}

func TestModifyRefusesWhatDiffHeadsOrUpdateRefuses(t *testing.T) {
	for want, change := range map[string]func(*Head){
		"Heads.Modify publicId": func(h *Head) { h.Name, h.PublicID = "changed as well", "x" },
		"Heads.Update name":     func(h *Head) { h.Name, h.Alias = "string", "changed as well" },
		"Heads.Update ttsVoice": func(h *Head) { h.TTSVoice = "" },
	} {
		service := newFakeAPI(t, answering(readFile(t, "head_full.json")))
		faults := invalidErrors(t, ErrorOf(service.Heads.Modify(t.Context(), testHead, Edit(change))))
		require.Len(t, faults, 1)
		assert.Equal(t, want, faults[0].Operation+" "+faults[0].Field)
		assert.Equal(t, []string{"GET /head/" + testHead}, service.routes(), "nothing is changed")
	}
}

func TestModifyRefusesNoFunction(t *testing.T) {
	service := newFakeAPI(t, answering(readFile(t, "head_full.json")))
	assert.Equal(t, []string{"change"}, invalidFields(t, ErrorOf(service.Heads.Modify(t.Context(), testHead, nil))))
	assert.Equal(t, []string{"head id", "change"}, invalidFields(t, ErrorOf(service.Heads.Modify(t.Context(), "li-28379", nil))))
	assert.Empty(t, service.since())
}

func TestModifyReturnsTheErrorsOfTheService(t *testing.T) {
	for name, answers := range map[string]map[string]string{
		"of the read":  {},
		"of the write": {"GET /head/" + testHead: readFile(t, "head_full.json")},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := newFakeAPI(t, answers).Heads.Modify(t.Context(), testHead, Edit(func(h *Head) { h.Name = "changed" }))
			assert.Nil(t, after)
			assert.ErrorIs(t, err, ErrNotFound)
		})
	}
}

func TestHeadVisualReadsTheModeWhereItIsText(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		id           string
		mode         VisualMode
	}{
		{"default", `{"id":"v-1","mode":"default"}`, "v-1", VisualModeDefault},
		{"two loops", `{"id":"v-1","mode":"two_loops"}`, "v-1", VisualModeTwoLoops},
		{"another mode", `{"id":"v-1","mode":"two_loops_streaming"}`, "v-1", "two_loops_streaming"},
		{"no mode", `{"id":"v-1"}`, "v-1", ""},
		{"a mode of null", `{"id":"v-1","mode":null}`, "v-1", ""},
		{"a mode of another type", `{"id":"v-1","mode":{"name":"default"}}`, "v-1", ""},
		{"an id in another case", `{"id":"V-1","mode":"default"}`, "V-1", VisualModeDefault},
		{"an id that is a number", `{"id":17,"mode":["default"]}`, "17", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := strings.ToLower(tt.id)
			visual := Must(newFakeAPI(t, map[string]string{"GET /head_visual/" + asked: tt.answer}).HeadVisuals.Get(t.Context(), asked))(t)
			assert.Equal(t, tt.id, visual.ID)
			assert.Equal(t, tt.mode, visual.Mode)
			assert.Equal(t, tt.answer, string(visual.Raw.Bytes()))
		})
	}
}

func TestHeadVisualIDMustBeASegmentOfAPath(t *testing.T) {
	service := newFakeAPI(t, nil)
	for _, id := range []string{"", " ", "\t\n", ".", ".."} {
		assert.Equal(t, []string{"head visual id"}, invalidFields(t, ErrorOf(service.HeadVisuals.Get(t.Context(), id))), "%q", id)
	}
	assert.Empty(t, service.since())
}
