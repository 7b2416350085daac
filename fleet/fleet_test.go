package fleet_test

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

// everything is a spec with every field that differs from the head's state.
func everything(id string) fleet.Spec {
	return fleet.Spec{
		ID: id,
		Set: map[string]any{
			"name": "Lobby", "alias": "lobby", "language": "de-DE", "languageSpeechRecognition": "de-DE", "operationMode": "oc", "ocProvider": "other",
			"promptConfig": map[string]any{"system_prompt": "Call find with q."}, "greetings": "Hallo", "voiceflowApiKey": nil, "isRandomSuggestions": true,
			"phrases": []string{"a", "b"}, "suggestions": []any{}, "customWords": map[string]string{"SDK": "S D K"}, "fileUrl": "https://files.example.com/a",
			"pluginOperationalModeConfig": map[string]any{"z": 1, "a": []int{1, 2}}, "semanticThreshold": 0.5,
		},
		Voice:     &heads.Voice{Provider: "elevenlabs", ID: streamingVoice},
		Streaming: on(),
		Delivery:  on(),
		Webhooks:  []fleet.WebhookSpec{{URL: "https://hooks.example.com/heads", Events: []heads.EventType{heads.EventEndConversation, heads.EventStartConversation}}},
		Tools: &[]heads.Tool{{Name: "find", Description: "Finds.", URL: "https://tools.example.com/find",
			Parameters: []heads.ToolParameter{{Name: "q", Type: "string", Description: "What."}}}},
	}
}

func TestApplyBringsAHeadToItsSpecInOrder(t *testing.T) {
	e, id := withHead(t, headstest.Head{TTSProvider: "polly", TTSVoice: "Joanna"})
	before := len(e.Requests())
	result := apply(t, e, fleet.Options{}, everything(id)).Results[0]
	require.Equal(t, fleet.OutcomeChanged, result.Outcome, "%v", result.Err)
	assert.Equal(t, "Ada", result.Label)
	assert.Equal(t, []string{
		"PUT /head/update", // fields
		"PUT /head/update", // voice
		"PUT /head/" + id + "/video-streaming?videoStreaming=true",
		"PUT /head/" + id + "/enable-events?enableEvents=true",
		"POST /head-events",
		"PUT /head/" + id + "/conversation-settings",
	}, writes(since(e, before)))
	head := get(t, e, id)
	assert.Equal(t, []any{"Hallo", []string{"a", "b"}, []string{}, streamingVoice, true, true},
		[]any{head.Greetings, head.Phrases, head.Suggestions, head.TTSVoice, head.VideoStreaming, head.EnableEvents})
	assert.Len(t, head.ConversationSettings.Tools, 1)
	assert.Equal(t, []string{"https://chat.example.test", "https://stream.example.test"}, []string{result.Before.Base, result.After.Base})
	var fields []string
	for _, c := range result.Changes {
		fields = append(fields, c.Field)
	}
	assert.Equal(t, []string{"name", "alias", "language", "languageSpeechRecognition", "operationMode", "ocProvider", "promptConfig.system_prompt", "greetings",
		"isRandomSuggestions", "phrases", "suggestions", "customWords", "fileUrl", "pluginOperationalModeConfig", "semanticThreshold",
		"voice", "streaming", "delivery", "webhook https://hooks.example.com/heads", "tool find"}, fields)

	before = len(e.Requests())
	assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, everything(id)).Results[0].Outcome)
	assert.Len(t, since(e, before), 2, "a second run only reads")
	assert.Empty(t, writes(since(e, before)))
}

func TestPlanReadsEachHeadTwiceAndChangesNothing(t *testing.T) {
	e, id := withHead(t, headstest.Head{})
	report := plan(t, e, fleet.Spec{ID: id, Streaming: on()})
	assert.Len(t, since(e, 0), 2)
	assert.Empty(t, writes(since(e, 0)))
	result := report.Results[0]
	assert.Equal(t, fleet.OutcomePending, result.Outcome)
	assert.Equal(t, []fleet.Change{{Field: "streaming", From: "false", To: "true"}}, result.Changes)
	assert.Equal(t, "https://chat.example.test", result.Before.Base)
	assert.Zero(t, result.After, "no base is known")
	assert.Empty(t, report.Moves(), "nothing has moved yet")

	client := e.Client(heads.WithAccessBases("https://chat.example.test", "https://live.example.test"))
	report = need(fleet.Plan(context.Background(), client, []fleet.Spec{{ID: id, Streaming: on()}}, fleet.Options{}))(t)
	assert.Equal(t, "https://live.example.test", report.Results[0].After.Base)
	assert.Empty(t, report.Moves(), "nothing has moved yet")
}

func TestASpecThatSpecOfReturnsChangesNothing(t *testing.T) {
	for _, kind := range []string{"bare", "with everything", "odd"} {
		t.Run(kind, func(t *testing.T) {
			e, id := withHead(t, headstest.Head{TTSProvider: "polly"})
			switch kind {
			case "with everything":
				require.Equal(t, fleet.OutcomeChanged, apply(t, e, fleet.Options{}, everything(id)).Results[0].Outcome)
			case "odd":
				id = oddHead(t, e)
			}
			spec := need(fleet.SpecOf(context.Background(), e.Client(), id))(t)
			document := need(json.Marshal(spec))(t)
			var read fleet.Spec
			require.NoError(t, json.Unmarshal(document, &read))
			before := len(e.Requests())
			for _, spec := range []fleet.Spec{*spec, read} {
				result := apply(t, e, fleet.Options{}, spec).Results[0]
				assert.Equal(t, fleet.OutcomeUnchanged, result.Outcome, "%s: %v %v", document, result.Changes, result.Err)
			}
			assert.Empty(t, writes(since(e, before)))
		})
	}
}

// oddHead is a head with values that a Spec can't represent.
func oddHead(t *testing.T, e *headstest.Emulator) string {
	t.Helper()
	id := e.AddHead(headstest.Head{OperationMode: heads.OperationModeOC, Fields: map[string]any{
		"voiceflowApiKey": "vf-secret-1", "pluginOperationalModeConfig": map[string]any{"apiKey": "plugin-secret"}, "greetings": "string",
		"conversationSettings": map[string]any{"tools": []any{
			map[string]any{"name": "find", "description": "Finds.", "url": "https://t.example.com/find", "parameters": map[string]any{"q": "string"}},
			map[string]any{"name": "good", "description": "Good.", "url": "https://t.example.com/good", "parameters": []any{}},
		}},
	}})
	for range 2 {
		_, _, err := e.AddWebhook(id, "https://hooks.example.com/a", heads.EventStartConversation)
		require.NoError(t, err)
	}
	_, _, err := e.AddWebhook(id, "https://hooks.example.com/silent")
	require.NoError(t, err)
	return id
}

func TestSpecOfKeepsToolsWithoutATypeAndOfAnUnknownOne(t *testing.T) {
	e, id := withHead(t, headstest.Head{OperationMode: heads.OperationModeOC})
	require.NoError(t, e.AddTool(id, json.RawMessage(`{"name":"a","description":"d","url":"https://a.example.com/","parameters":[{"name":"p","description":"d"},{"name":"q","type":"date","description":"d"}]}`)))
	spec := need(fleet.SpecOf(t.Context(), e.Client(), id))(t)
	require.Empty(t, spec.Omitted)
	require.Len(t, *spec.Tools, 1)
	assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, *spec).Results[0].Outcome)
}

func TestSpecOfLeavesOutAPluginConfigurationThatIsAText(t *testing.T) {
	e, id := withHead(t, headstest.Head{}) // which stores no such head
	e.Inject(headstest.Fault{Method: http.MethodGet, Route: "/head/{id}", Body: `{"id":"` + id + `","pluginOperationalModeConfig":"a text","greetings":"Hi"}`})
	spec := need(fleet.SpecOf(t.Context(), e.Client(), id))(t)
	require.Len(t, spec.Omitted, 1)
	assert.Contains(t, spec.Omitted[0], "pluginOperationalModeConfig: ")
	assert.Equal(t, map[string]any{"greetings": "Hi"}, spec.Set)
}

func TestSpecOfNamesWhatItLeavesOut(t *testing.T) {
	e := newEmulator(t)
	spec := need(fleet.SpecOf(context.Background(), e.Client(), oddHead(t, e)))(t)
	require.Len(t, spec.Omitted, 4)
	for i, want := range []string{"greetings: ", "pluginOperationalModeConfig: ", "webhook 3: ", "tools: "} {
		assert.Contains(t, spec.Omitted[i], want)
	}
	assert.Len(t, spec.Webhooks, 1)
	assert.Nil(t, spec.Tools)
	for _, name := range []string{"voiceflowApiKey", "publicUrl", "pluginOperationalModeConfig", "greetings", "ttsVoice", "ttsProvider"} {
		assert.NotContains(t, spec.Set, name)
	}
	document := need(json.Marshal(spec))(t)
	assert.NotContains(t, string(document), "secret")
	assert.NotContains(t, string(document), "mitted")
}

func TestSpecOfLeavesOutAVoiceThatNoSpecCanHold(t *testing.T) {
	for voice, omitted := range map[heads.Voice]int{{Provider: "azure", ID: "string"}: 1, {}: 0} {
		e, id := withHead(t, headstest.Head{Fields: map[string]any{"ttsProvider": voice.Provider, "ttsVoice": voice.ID}})
		spec := need(fleet.SpecOf(context.Background(), e.Client(), id))(t)
		assert.Nil(t, spec.Voice)
		assert.Len(t, spec.Omitted, omitted, "%v", spec.Omitted)
		assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, *spec).Results[0].Outcome)
	}
}

func TestWhatIsNoDifferenceIsUnchanged(t *testing.T) {
	for name, row := range map[string]struct {
		head headstest.Head
		spec fleet.Spec
	}{
		"case of a provider": {headstest.Head{TTSProvider: "Azure", TTSVoice: "en-US-plain"}, fleet.Spec{Voice: &heads.Voice{Provider: "azure", ID: "en-US-plain"}}},
		"empty list, null":   {headstest.Head{Fields: map[string]any{"phrases": nil}}, fleet.Spec{Set: map[string]any{"phrases": []string{}}}},
		"empty object, null": {headstest.Head{Fields: map[string]any{"customWords": nil}}, fleet.Spec{Set: map[string]any{"customWords": map[string]string{}}}},
	} {
		e, id := withHead(t, row.head)
		row.spec.ID = id
		assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, row.spec).Results[0].Outcome, name)
	}
}

func TestAChangeThatTheHeadDoesNotShowIsAFailure(t *testing.T) {
	page := headstest.Fault{Method: http.MethodPut, Status: 200, Body: "<html>back soon</html>"} // of a proxy
	for name, row := range map[string]struct {
		spec  fleet.Spec
		fault headstest.Fault
		want  string
	}{
		"delivery":            {fleet.Spec{Delivery: on()}, page, "the delivery of events was set, but the head does not show it"},
		"field":               {fleet.Spec{Set: map[string]any{"greetings": "Hi"}}, page, "the field greetings was set, but the head does not show it"},
		"voice":               {fleet.Spec{Voice: &heads.Voice{Provider: "polly", ID: "Joanna"}}, page, "the field voice was set, but the head does not show it"},
		"webhook":             {fleet.Spec{Webhooks: []fleet.WebhookSpec{}, PruneWebhooks: true}, headstest.Fault{Method: http.MethodDelete, Status: 200, Body: "{}"}, "webhook 1 was deleted, but it is still listed"},
		"webhook, by a proxy": {fleet.Spec{Webhooks: []fleet.WebhookSpec{}, PruneWebhooks: true}, headstest.Fault{Method: http.MethodDelete, Status: 200, Body: page.Body}, "a follow-up read does not show the change"},
	} {
		e, id := withHead(t, headstest.Head{})
		_, _, err := e.AddWebhook(id, "https://hooks.example.com/a")
		require.NoError(t, err)
		e.Inject(row.fault)
		row.spec.ID = id
		result := apply(t, e, fleet.Options{}, row.spec).Results[0]
		assert.Equal(t, []any{fleet.OutcomeFailed, heads.ReasonTemporary}, []any{result.Outcome, result.Reason}, name)
		assert.ErrorContains(t, result.Err, row.want)
		assert.Empty(t, result.Changes, name)
	}
}

func TestAWebhookThatIsGoneWasDeleted(t *testing.T) {
	e, id := withHead(t, headstest.Head{})
	_, _, err := e.AddWebhook(id, "https://hooks.example.com/a")
	require.NoError(t, err)
	e.Inject(headstest.Fault{Method: http.MethodDelete, Status: 404, After: true})
	result := apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Webhooks: []fleet.WebhookSpec{}, PruneWebhooks: true}).Results[0]
	assert.Equal(t, fleet.OutcomeChanged, result.Outcome, "%v", result.Err)
	assert.Equal(t, []fleet.Change{{Field: "webhook https://hooks.example.com/a", From: "no event"}}, result.Changes)
}

func TestWebhooksAloneLeaveDeliveryAsItIs(t *testing.T) {
	e, id := withHead(t, headstest.Head{})
	spec := fleet.Spec{ID: id, Webhooks: []fleet.WebhookSpec{{URL: "https://hooks.example.com/a", Events: []heads.EventType{"start_conversation"}}}}
	assert.Equal(t, fleet.OutcomeChanged, apply(t, e, fleet.Options{}, spec).Results[0].Outcome)
	assert.False(t, get(t, e, id).EnableEvents)
}

func TestPruneDeletesAllOtherRegistrationsAndDuplicates(t *testing.T) {
	e, id := withHead(t, headstest.Head{})
	for _, url := range []string{"https://hooks.example.com/a", "https://HOOKS.example.com:443/a/", "https://hooks.example.com/b"} {
		_, _, err := e.AddWebhook(id, url, heads.EventStartConversation)
		require.NoError(t, err)
	}
	spec := fleet.Spec{ID: id, Webhooks: []fleet.WebhookSpec{{URL: "https://hooks.example.com/a", Events: []heads.EventType{"end_conversation"}}}}
	report := apply(t, e, fleet.Options{}, spec)
	assert.Equal(t, []fleet.Change{{Field: "webhook https://hooks.example.com/a", From: "start_conversation", To: "end_conversation"}}, report.Results[0].Changes)
	hooks, err := e.Client().Webhooks.List(context.Background(), id)
	require.NoError(t, err)
	assert.Len(t, hooks, 3, "without PruneWebhooks none is deleted")

	spec.PruneWebhooks = true
	report = apply(t, e, fleet.Options{}, spec)
	assert.Len(t, report.Results[0].Changes, 2)
	hooks, err = e.Client().Webhooks.List(context.Background(), id)
	require.NoError(t, err)
	require.Len(t, hooks, 1)
	assert.EqualValues(t, 1, hooks[0].ID, "the oldest stays")
	assert.Equal(t, []heads.EventType{heads.EventEndConversation}, hooks[0].Events())
	assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, spec).Results[0].Outcome)

	spec.Webhooks = nil
	assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, spec).Results[0].Outcome, "nil leaves them alone")
	spec.Webhooks = []fleet.WebhookSpec{}
	report = apply(t, e, fleet.Options{}, spec)
	assert.Equal(t, []fleet.Change{{Field: "webhook https://hooks.example.com/a", From: "end_conversation", To: ""}}, report.Results[0].Changes)
}

func TestToolsKeepKeysThatTheSpecDoesNotMention(t *testing.T) {
	e, id := withHead(t, headstest.Head{OperationMode: heads.OperationModeOC})
	for _, tool := range []string{
		`{"timeout":5,"name":"find","description":"Finds.","url":"https://t.example.com/find","parameters":[{"hint":"x","name":"q","type":"string","description":"What."}]}`,
		`{"name":"other","description":"Other.","url":"https://t.example.com/other","parameters":[]}`,
	} {
		require.NoError(t, e.AddTool(id, json.RawMessage(tool)))
	}
	var fromFile heads.Tool
	require.NoError(t, json.Unmarshal([]byte(`{"name":"find","description":"Finds.","url":"https://t.example.com/find","parameters":[{"name":"q","type":"string","description":"What."}]}`), &fromFile))
	other := heads.Tool{Name: "other", Description: "Other.", URL: "https://t.example.com/other"}
	report := apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Tools: &[]heads.Tool{other, fromFile}})
	assert.Equal(t, fleet.OutcomeUnchanged, report.Results[0].Outcome, "%v", report.Results[0].Changes)

	fromFile.Description = "Finds things."
	report = apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Tools: &[]heads.Tool{fromFile}})
	assert.Equal(t, []fleet.Change{
		{Field: "tool find", From: "description: Finds.", To: "description: Finds things."},
		{Field: "tool other", From: "description: Other.; parameters: []; url: https://t.example.com/other", To: ""},
	}, report.Results[0].Changes)
	kept := string(get(t, e, id).Raw.Bytes())
	assert.Contains(t, kept, `"timeout":5`)
	assert.Contains(t, kept, `"hint":"x"`)
}

func TestThePlanOfAToolSaysWhatOfItChanges(t *testing.T) {
	const token, url = "canary-tool-path-token", "https://t.example.com/canary-tool-path-token"
	const when = `{"description":"When.","name":"day","type":"string"}`
	e, id := withHead(t, headstest.Head{OperationMode: heads.OperationModeOC})
	require.NoError(t, e.AddTool(id, json.RawMessage(`{"name":"find","description":"Finds.","url":"`+url+`","parameters":[{"name":"day","type":"string","description":"When."},{"name":"q","type":"string","description":"What."}]}`)))
	day := heads.ToolParameter{Name: "day", Type: "string", Description: "When."}
	q := heads.ToolParameter{Name: "q", Type: "string", Description: "What."}
	later := heads.ToolParameter{Name: "day", Type: "string", Description: "Later."}
	for name, c := range map[string]struct {
		url        string
		parameters []heads.ToolParameter
		from, to   string
	}{
		"url":               {url + "2", []heads.ToolParameter{day, q}, "url: [redacted]", "url: [redacted]"},
		"parameter":         {url, []heads.ToolParameter{later, q}, "parameter day: " + when, `parameter day: {"description":"Later.","name":"day","type":"string"}`},
		"removed parameter": {url, []heads.ToolParameter{q}, "parameter day: " + when, "no parameter day"},
		"order":             {url, []heads.ToolParameter{q, day}, `parameters: [{"description":"When.`, `parameters: [{"description":"What.`},
	} {
		report := plan(t, e, fleet.Spec{ID: id, Tools: &[]heads.Tool{{Name: "find", Description: "Finds.", URL: c.url, Parameters: c.parameters}}})
		require.Len(t, report.Results[0].Changes, 1, name)
		change := report.Results[0].Changes[0]
		assert.Equal(t, "tool find", change.Field)
		assert.True(t, strings.HasPrefix(change.From, c.from), "%s: %s", name, change.From)
		assert.True(t, strings.HasPrefix(change.To, c.to), "%s: %s", name, change.To)
		assert.NotContains(t, change.From+change.To, token, name)
	}
}

func TestEveryHeadHasARowWhateverHappensToTheOthers(t *testing.T) {
	e := newEmulator(t)
	expressive := e.AddHead(headstest.Head{HeadVisualID: e.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})})
	wrongVoice := e.AddHead(headstest.Head{TTSProvider: "polly", TTSVoice: "Joanna"})
	noTools := e.AddHead(headstest.Head{OperationMode: heads.OperationModeTTT})
	refused := e.AddHead(headstest.Head{})
	fine := e.AddHead(headstest.Head{})
	e.Inject(headstest.Fault{Method: http.MethodPut, Route: "/head/" + refused + "/video-streaming", Status: 409, Body: `{"message":"not now"}`})
	tools := []heads.Tool{{Name: "find", Description: "Finds.", URL: "https://t.example.com/find"}}
	greet := map[string]any{"greetings": "Hi"}
	report := apply(t, e, fleet.Options{Concurrency: 1},
		fleet.Spec{ID: expressive, Streaming: on(), Set: greet},
		fleet.Spec{ID: wrongVoice, Streaming: on(), Set: greet},
		fleet.Spec{ID: noTools, Tools: &tools, Set: greet},
		fleet.Spec{ID: lobby, Streaming: on()},
		fleet.Spec{ID: refused, Streaming: on(), Voice: &heads.Voice{Provider: "elevenlabs", ID: streamingVoice}},
		fleet.Spec{ID: fine, Streaming: on()},
	)
	assert.Equal(t, []fleet.Outcome{"blocked", "blocked", "blocked", "failed", "failed", "changed"}, outcomesOf(report))
	for i, reason := range []heads.Reason{heads.ReasonVisual, heads.ReasonProvider, heads.ReasonRefused, heads.ReasonRefused, heads.ReasonRefused, ""} {
		assert.Equal(t, reason, report.Results[i].Reason, i)
		assert.Equal(t, reason == "", report.Results[i].Err == nil, i)
	}
	for _, id := range []string{expressive, wrongVoice, noTools} {
		assert.NotEqual(t, "Hi", get(t, e, id).Greetings, "a blocked head is not changed")
	}
	assert.Equal(t, "en-US-plain", get(t, e, refused).TTSVoice, "the voice was rolled back")
	assert.Empty(t, report.Results[4].Changes)
	assert.ErrorIs(t, report.Results[3].Err, heads.ErrNotFound)
	assert.Len(t, report.Moves(), 1)
}

func TestAHeadBackInLegacyModeCanHaveAnyVoice(t *testing.T) {
	for _, provider := range []string{"azure", "polly"} {
		t.Run(provider, func(t *testing.T) {
			e, id := withHead(t, headstest.Head{VideoStreaming: true})
			before := len(e.Requests())
			var steps []heads.StepName
			o := fleet.Options{OnStep: func(_ string, step heads.ConversionStep) { steps = append(steps, step.Name) }}
			report := apply(t, e, o, fleet.Spec{ID: id, Streaming: off(), Voice: &heads.Voice{Provider: provider, ID: "Vicki"}})
			require.Equal(t, fleet.OutcomeChanged, report.Results[0].Outcome, "%v", report.Results[0].Err)
			assert.Equal(t, []string{"PUT /head/" + id + "/video-streaming?videoStreaming=false", "PUT /head/update"}, writes(since(e, before)))
			assert.Equal(t, []heads.StepName{heads.StepCheck, heads.StepDisable, heads.StepVoice, heads.StepAddress}, steps)
			assert.Equal(t, "Vicki", get(t, e, id).TTSVoice)
			assert.Equal(t, "https://chat.example.test", report.Results[0].After.Base)
		})
	}
}

// If the voice is refused after the switch, the mode is not switched back, and the next run sees
// that.
func TestAVoiceThatIsRefusedAfterTheSwitchBack(t *testing.T) {
	e, id := withHead(t, headstest.Head{VideoStreaming: true})
	e.Inject(headstest.Fault{Method: http.MethodPut, Route: "/head/update", Status: 400, Times: 1})
	o := fleet.Options{Journal: openJournal(t, journalPath(t))}
	spec := fleet.Spec{ID: id, Streaming: off(), Voice: &heads.Voice{Provider: "polly", ID: "Vicki"}}
	result := apply(t, e, o, spec).Results[0]
	assert.Equal(t, []any{fleet.OutcomeFailed, heads.ReasonRefused}, []any{result.Outcome, result.Reason}, "%v", result.Err)
	assert.Equal(t, []fleet.Change{{Field: "streaming", From: "true", To: "false"}}, result.Changes)
	assert.Equal(t, "https://stream.example.test", result.Before.Base)
	assert.Zero(t, result.After)
	before := len(e.Requests())
	again := apply(t, e, o, spec)
	assert.Equal(t, fleet.OutcomeChanged, again.Results[0].Outcome, "%v", again.Results[0].Err)
	assert.Equal(t, []string{"PUT /head/update"}, writes(since(e, before)))
	require.Len(t, again.Moves(), 1)
	assert.Equal(t, "https://chat.example.test", again.Moves()[0].New.Base)
}

func TestAStreamingHeadRefusesAVoiceThatCannotStream(t *testing.T) {
	for _, streaming := range []*bool{nil, on()} {
		e, id := withHead(t, headstest.Head{VideoStreaming: true})
		result := apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Streaming: streaming, Voice: &heads.Voice{Provider: "polly", ID: "Vicki"}}).Results[0]
		assert.Equal(t, []any{fleet.OutcomeBlocked, heads.ReasonProvider}, []any{result.Outcome, result.Reason})
		assert.Empty(t, writes(since(e, 0)))
	}
}

func TestStepsAndResultsComeOneAtATime(t *testing.T) {
	e := newEmulator(t)
	specs := converting(e, 20)
	busy, ended, steps := false, []string{}, map[string]int{}
	one := func(note func()) {
		assert.False(t, busy, "two calls at a time")
		busy = true
		note()
		for range 100 {
			runtime.Gosched() // give another call a chance to run
		}
		busy = false
	}
	apply(t, e, fleet.Options{
		Concurrency: 8,
		OnResult:    func(r fleet.Result) { one(func() { ended = append(ended, r.HeadID) }) },
		OnStep:      func(id string, step heads.ConversionStep) { one(func() { steps[id]++ }) },
	}, specs...)
	assert.Len(t, ended, 20)
	assert.Len(t, steps, 20)
	for id, n := range steps {
		assert.Equal(t, 4, n, id)
	}
}

func TestToolsAreRemovedInAnyOperationMode(t *testing.T) {
	e, id := withHead(t, headstest.Head{OperationMode: heads.OperationModeTTT})
	require.NoError(t, e.AddTool(id, json.RawMessage(`{"name":"other","description":"Other.","url":"https://t.example.com/other","parameters":[]}`)))
	report := apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Tools: &[]heads.Tool{}})
	assert.Equal(t, fleet.OutcomeChanged, report.Results[0].Outcome, "%v", report.Results[0].Err)
	assert.Empty(t, get(t, e, id).ConversationSettings.Tools)
}
