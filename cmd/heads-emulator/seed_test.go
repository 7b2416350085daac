package main

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	headA = "11111111-1111-4111-8111-111111111111"
	headB = "22222222-2222-4222-8222-222222222222"
)

const wholeSeed = `{
	"visuals": [{"id": "loops", "mode": "two_loops", "extra": {"a" : 1.0}}],
	"heads": [
		{"id": "` + headA + `", "name": "Ada", "operationMode": "oc", "greetings": "Hi", "extra": {"addedSince": [1.50]},
		 "conversationSettings": {"model": {"n" : 1.0}, "tools": [{"name": "first", "url": "https://tools.example.test/1"}]}},
		{"id": "` + headB + `", "name": "Bea", "headVisualId": "loops", "enableEvents": true},
		{"name": "Cleo", "videoStreaming": true}
	],
	"tools": [{"headId": "` + headA + `", "name": "second", "url": "http://127.0.0.1:1/2", "parameters": [{"name": "day", "type": "string"}], "extra" : 2.0}],
	"registrations": [{"headId": "` + headB + `", "webhookUrl": "http://127.0.0.1:1/x", "endConversation": true, "inactivityWarning": true}]
}`

func TestSeedFileFillsTheEmulator(t *testing.T) {
	p := start(t, "-seed-file", writeFile(t, wholeSeed))
	require.Len(t, p.Heads, 3)
	assert.Equal(t, []string{headA, headB}, p.Heads[:2])
	assert.Equal(t, []string{"loops"}, p.Visuals)
	assert.Equal(t, []int64{1}, p.Registrations)

	var ada, bea, cleo map[string]any
	ans := p.api("GET", "/head/"+headA, "")
	ans.ok(t, &ada)
	assert.Equal(t, []any{"Ada", "oc", "Hi"}, []any{ada["name"], ada["operationMode"], ada["greetings"]})
	assert.Equal(t, "azure", ada["ttsProvider"], "what is left out is generated")
	assert.Contains(t, ans.body, `"addedSince":[1.50]`, "byte for byte")
	assert.Contains(t, ans.body, `"model":{"n" : 1.0}`)
	assert.Contains(t, ans.body, `"tools":[{"name": "first", "url": "https://tools.example.test/1"},{`)
	assert.Contains(t, ans.body, `"extra":2.0`)
	assert.NotContains(t, ans.body, `"headId"`)
	p.api("GET", "/head/"+headB, "").ok(t, &bea)
	assert.Equal(t, []any{"loops", true}, []any{bea["headVisualId"], bea["enableEvents"]})
	p.api("GET", "/head/"+p.Heads[2], "").ok(t, &cleo)
	assert.Equal(t, []any{"Cleo", true, false}, []any{cleo["name"], cleo["videoStreaming"], cleo["splitter"]})
	visual := p.api("GET", "/head_visual/loops", "")
	visual.ok(t, nil)
	assert.Contains(t, visual.body, `"a":1.0`)
	assert.Contains(t, visual.body, `"mode":"two_loops"`)
	var hook map[string]any
	p.api("GET", "/head-events/1", "").ok(t, &hook)
	assert.Equal(t, []any{headB, "http://127.0.0.1:1/x", false, true, false, true},
		[]any{hook["headId"], hook["webhookUrl"], hook["startConversation"], hook["endConversation"], hook["timeoutConversation"], hook["inactivityWarning"]})
}

func TestAnswerOfAReadIsASeed(t *testing.T) {
	p := start(t)
	head := p.api("GET", "/head/"+p.Heads[0], "")
	var h struct{ HeadVisualID string }
	head.ok(t, &h)
	visual := p.api("GET", "/head_visual/"+h.HeadVisualID, "")
	again := start(t, "-seed-file", writeFile(t, `{"visuals":[`+visual.body+`],"heads":[`+head.body+`]}`))
	assert.Equal(t, head.body, again.api("GET", "/head/"+p.Heads[0], "").body)
	assert.Equal(t, visual.body, again.api("GET", "/head_visual/"+h.HeadVisualID, "").body)
}

func TestSeedsAreRefused(t *testing.T) {
	rows := []struct{ name, seed, says string }{
		{"not JSON", `heads: []`, "JSON"},
		{"empty", ``, "JSON"},
		{"two values", `{}{}`, "after the JSON value"},
		{"list", `[]`, "JSON"},
		{"misspelt list", `{"head":[]}`, `"head"`},
		{"head that is no object", `{"heads":["x"]}`, "heads[0] must be a JSON object"},
		{"head null", `{"heads":[{},null]}`, "heads[1] must be a JSON object"},
		{"head id that is no UUID", `{"heads":[{"id":"demo"}]}`, `heads[0]: the id "demo" is not a UUID`},
		{"head id that is no text", `{"heads":[{"id":1}]}`, "heads[0]: id must be a string"},
		{"head with a visual id that is no text", `{"heads":[{"headVisualId":{}}]}`, "headVisualId must be a string"},
		{"head with a switch that is no switch", `{"heads":[{"enableEvents":"yes"}]}`, "enableEvents must be true or false"},
		{"head with an unknown field", `{"heads":[{"greeting":"Hi"}]}`, `heads[0]: the contract gives a head no field "greeting"`},
		{"head with a field of another type", `{"heads":[{"greetings":1}]}`, "heads[0]: greetings must be a string"},
		{"head with a known field as extra", `{"heads":[{"extra":{"name":"Ada"}}]}`, `heads[0]: the contract gives a head the field "name"`},
		{"head with an extra that is no object", `{"heads":[{"extra":[]}]}`, "heads[0]: extra must be an object"},
		{"visual mode that is no text", `{"visuals":[{"mode":1}]}`, "visuals[0]: mode must be a string"},
		{"visual id that is no text", `{"visuals":[{"id":1}]}`, "id must be a string"},
		{"tool for no head", `{"tools":[{"name":"a","url":"https://a.example.test"}]}`, "tools[0]"},
		{"tool whose head is no text", `{"tools":[{"headId":1}]}`, "headId must be a string"},
		{"tool without address", `{"heads":[{"id":"` + headA + `"}],"tools":[{"headId":"` + headA + `","name":"a"}]}`, "tools[0]"},
		{"tool over plain http", `{"heads":[{"id":"` + headA + `"}],"tools":[{"headId":"` + headA + `","name":"a","url":"http://a.example.test"}]}`, "HTTPS"},
		{"registration for no head", `{"registrations":[{"headId":"x","webhookUrl":"https://a.example.test"}]}`, "registrations[0]"},
		{"registration over plain http", `{"heads":[{"id":"` + headA + `"}],"registrations":[{"headId":"` + headA + `","webhookUrl":"http://a.example.test"}]}`, "HTTPS"},
		{"registration with an unknown field", `{"registrations":[{"headId":"x","secret":"x"}]}`, `registrations[0]: a registration has no field "secret"`},
		{"registration with an empty key", `{"registrations":[{"sharedKey":""}]}`, "registrations[0]: sharedKey must be"},
		{"registration with a key that is no text", `{"registrations":[{"sharedKey":1}]}`, "registrations[0]: sharedKey must be"},
	}
	p := start(t)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			assert.ErrorContains(t, startAndStop(t, io.Discard, io.Discard, "-addr", "127.0.0.1:0", "-seed-file", writeFile(t, row.seed)), row.says)
			p.control("POST", "seed", row.seed).refused(t, 400, row.says)
		})
	}
}

func TestSeedIsAddedWhileRunning(t *testing.T) {
	p := start(t)
	var added headstest.Added
	p.control("POST", "seed", wholeSeed).ok(t, &added)
	assert.Len(t, added.Heads, 3)
	var s stateView
	p.control("GET", "state", "").ok(t, &s)
	assert.Len(t, s.Heads, 4, "what was there stays")
	p.control("POST", "seed", `{"tools":[{"headId":"`+p.Heads[0]+`","name":"late","url":"https://tools.example.test"}]}`).ok(t, nil)
	assert.Contains(t, p.api("GET", "/head/"+p.Heads[0], "").body, `"late"`)
}

func TestResetGoesBackToTheStart(t *testing.T) {
	p := start(t, "-seed-file", writeFile(t, wholeSeed), "-seed", "3")
	before := p.control("GET", "state", "").body
	p.api("PUT", "/head/update", `{"id":"`+headA+`","name":"changed"}`).ok(t, nil)
	p.api("DELETE", "/head-events/1", "").ok(t, nil)
	p.session()
	p.control("POST", "faults/requests", `{"status":500}`).ok(t, nil)
	p.control("POST", "seed", `{"heads":[{}]}`).ok(t, nil)
	require.NotEqual(t, before, p.control("GET", "state", "").body)
	var again headstest.Added
	p.control("POST", "reset", "").ok(t, &again)
	assert.Equal(t, p.Added, again)
	assert.Equal(t, before, p.control("GET", "state", "").body)
	p.api("GET", "/head/"+headA, "").ok(t, nil)
}

func TestDemoIsARightSeed(t *testing.T) {
	var demoHead struct {
		Heads []map[string]json.RawMessage `json:"heads"`
	}
	require.NoError(t, json.Unmarshal(demo, &demoHead))
	require.Len(t, demoHead.Heads, 1)
	p := start(t)
	ans := p.api("GET", "/head/"+p.Heads[0], "")
	var shown map[string]json.RawMessage
	ans.ok(t, &shown)
	for name, value := range demoHead.Heads[0] {
		assert.JSONEq(t, string(value), string(shown[name]), name)
	}
	p.api("PUT", "/head/"+p.Heads[0]+"/video-streaming?videoStreaming=true", "").ok(t, nil)
}
