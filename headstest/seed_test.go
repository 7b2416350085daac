package headstest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

const seedHead = "11111111-1111-4111-8111-111111111111"

func seedOf(t *testing.T, text string) headstest.Seed {
	t.Helper()
	s := need(headstest.ParseSeed([]byte(text)))(t)
	return s
}

const otherHead = "22222222-2222-4222-8222-222222222222"

const wholeSeed = `{
	"visuals": [{"id": "loops", "mode": "two_loops", "status": "ready", "extra": {"a" : [1.50], "nested": {"b": null}}}, {"id": "w", "extra": null}],
	"heads": [
		{"id": "` + seedHead + `", "name": "Ada", "operationMode": "oc", "greetings": "Hi", "voiceflowApiKey": "key", "extra": {"addedSince": [1.50]},
		 "conversationSettings": {"model": {"n" : 1.0}, "tools": [{"name": "first", "url": "https://tools.example.test/1"}]}},
		{"id": "` + otherHead + `", "name": "Bea", "headVisualId": "loops", "enableEvents": true},
		{"name": "Cleo", "videoStreaming": true}
	],
	"tools": [{"headId": "` + seedHead + `", "name": "second", "url": "http://127.0.0.1:1/2", "parameters": [{"name": "day", "type": "string"}], "extra" : 2.0}],
	"registrations": [{"headId": "` + otherHead + `", "webhookUrl": "http://127.0.0.1:1/x", "endConversation": true, "inactivityWarning": true}]
}`

func TestSeedFillsTheEmulator(t *testing.T) {
	a := newAPI(t, headstest.WithLoopbackHTTP())
	added, err := a.Import(seedOf(t, wholeSeed))
	require.NoError(t, err)
	require.Len(t, added.Heads, 3)
	assert.Equal(t, headstest.Added{Heads: []string{seedHead, otherHead, added.Heads[2]}, Visuals: []string{"loops", "w"}, Registrations: []int64{1}}, added)

	ada := a.ok("GET", "/head/"+seedHead, "").body
	assert.Subset(t, object(t, ada), map[string]any{"name": "Ada", "operationMode": "oc", "greetings": "Hi", "ttsProvider": "azure"}, "what is left out is generated")
	assert.Contains(t, ada, `"addedSince":[1.50]`, "byte for byte")
	assert.Contains(t, ada, `"conversationSettings":{"model":{"n" : 1.0},"tools":[{"name": "first", "url": "https://tools.example.test/1"},{`)
	assert.Contains(t, ada, `"extra":2.0`)
	assert.NotContains(t, ada, `"headId"`)
	assert.Subset(t, a.head(otherHead), map[string]any{"headVisualId": "loops", "enableEvents": true})
	assert.Subset(t, a.head(added.Heads[2]), map[string]any{"name": "Cleo", "videoStreaming": true, "splitter": false})
	visual := a.ok("GET", "/head_visual/loops", "").body
	assert.Subset(t, object(t, visual), map[string]any{"id": "loops", "mode": "two_loops", "status": "ready", "nested": map[string]any{"b": nil}})
	assert.Contains(t, visual, `"a":[1.50]`, "byte for byte")
	assert.NotContains(t, visual+a.ok("GET", "/head_visual/w", "").body, "extra")
	assert.Subset(t, a.list(otherHead)[0], map[string]any{"webhookUrl": "http://127.0.0.1:1/x", "startConversation": false, "endConversation": true,
		"timeoutConversation": false, "inactivityWarning": true})
	_, err = a.Import(seedOf(t, `{"tools":[{"headId":"`+otherHead+`","name":"late","url":"https://tools.example.test"}]}`))
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(a.head(otherHead)["conversationSettings"]), "late", "a seed may add to what is there")

	again, bea := newAPI(t), a.ok("GET", "/head/"+otherHead, "").body
	_, err = again.Import(seedOf(t, `{"visuals":[`+visual+`],"heads":[`+bea+`]}`))
	require.NoError(t, err)
	assert.Equal(t, bea, again.ok("GET", "/head/"+otherHead, "").body, "the answer of a read is a seed")
	assert.Equal(t, visual, again.ok("GET", "/head_visual/loops", "").body)
}

func TestExportImportedIsTheSame(t *testing.T) {
	from, to := newEmulator(t, headstest.WithLoopbackHTTP()), newEmulator(t, headstest.WithLoopbackHTTP())
	added, err := from.Import(seedOf(t, strings.Join(strings.Fields(wholeSeed), ""))) // a file is compact
	require.NoError(t, err)
	file := need(json.Marshal(from.Export()))(t)
	again := need(to.Import(seedOf(t, string(file))))(t)
	assert.ElementsMatch(t, added.Heads, again.Heads)
	assert.Equal(t, added.Registrations, again.Registrations)
	assert.Equal(t, from.Snapshot().Heads, to.Snapshot().Heads, "byte for byte, keys included")
	assert.Equal(t, from.Snapshot().Visuals, to.Snapshot().Visuals)
	twice := need(json.Marshal(to.Export()))(t)
	assert.JSONEq(t, string(file), string(twice))
}

func TestRefusedSeedAddsNothing(t *testing.T) {
	e := newEmulator(t, headstest.WithSeed(1))
	_, err := e.Import(seedOf(t, `{"heads":[{"id":"`+seedHead+`","name":"Ada"}]}`))
	require.NoError(t, err)
	before := e.Export()
	const refused = `{"visuals":[{"id":"new"}],"heads":[{"id":"` + seedHead + `","name":"Bea"},{}],
		"tools":[{"headId":"` + seedHead + `","name":"a","url":"https://a.example.test"}],"registrations":[{"headId":"nobody","webhookUrl":"https://a.example.test"}]}`
	_, err = e.Import(seedOf(t, refused))
	require.ErrorContains(t, err, "registrations[0]")
	assert.Equal(t, before, e.Export())
	_, err = e.Restart(seedOf(t, refused))
	require.ErrorContains(t, err, "registrations[0]")
	assert.Equal(t, before, e.Export())

	other := newEmulator(t, headstest.WithSeed(1))
	_, err = other.Import(seedOf(t, `{"heads":[{"id":"`+seedHead+`","name":"Ada"}]}`))
	require.NoError(t, err)
	assert.Equal(t, other.AddHead(headstest.Head{}), e.AddHead(headstest.Head{}), "the refused records use up no id")
}

func TestSeedsAreRefused(t *testing.T) {
	a := withConsole(t)
	for seed, says := range map[string]string{
		`heads: []`:                            "JSON",
		``:                                     "JSON",
		`{}{}`:                                 "after the JSON value",
		`[]`:                                   "JSON",
		`{"head":[]}`:                          `"head"`,
		`{"heads":["x"]}`:                      "heads[0] must be a JSON object",
		`{"heads":[{},null]}`:                  "heads[1] must be a JSON object",
		`{"heads":[{"id":"demo"}]}`:            `heads[0]: the id "demo" is not a UUID`,
		`{"heads":[{"id":1}]}`:                 "heads[0]: id must be a string",
		`{"heads":[{"headVisualId":{}}]}`:      "headVisualId must be a string",
		`{"heads":[{"enableEvents":"yes"}]}`:   "enableEvents must be true or false",
		`{"heads":[{"greeting":"Hi"}]}`:        `heads[0]: the contract gives a head no field "greeting"`,
		`{"heads":[{"greetings":1}]}`:          "heads[0]: greetings must be a string",
		`{"heads":[{"extra":{"name":"Ada"}}]}`: `heads[0]: the contract gives a head the field "name"`,
		`{"heads":[{"extra":[]}]}`:             "heads[0]: extra must be an object",
		`{"visuals":[{"mode":1}]}`:             "visuals[0]: mode must be a string",
		`{"visuals":[{"id":1}]}`:               "id must be a string",
		`{"tools":[{"name":"a","url":"https://a.example.test"}]}`:                                                                    "tools[0]",
		`{"tools":[{"headId":1}]}`:                                                                                                   "headId must be a string",
		`{"heads":[{"id":"` + seedHead + `"}],"tools":[{"headId":"` + seedHead + `","name":"a"}]}`:                                   "tools[0]",
		`{"heads":[{"id":"` + seedHead + `"}],"tools":[{"headId":"` + seedHead + `","name":"a","url":"http://a.example.test"}]}`:     "HTTPS",
		`{"registrations":[{"headId":"x","webhookUrl":"https://a.example.test"}]}`:                                                   "registrations[0]",
		`{"heads":[{"id":"` + seedHead + `"}],"registrations":[{"headId":"` + seedHead + `","webhookUrl":"http://a.example.test"}]}`: "HTTPS",
		`{"registrations":[{"headId":"x","secret":"x"}]}`:                                                                            `registrations[0]: a registration has no field "secret"`,
		`{"registrations":[{"sharedKey":""}]}`:                                                                                       "registrations[0]: sharedKey must be",
		`{"registrations":[{"sharedKey":1}]}`:                                                                                        "registrations[0]: sharedKey must be",
		`{"Heads":[]}`:                                                                                                               `unknown field "Heads"`,
		`{"heads":[],"HEADS":[]}`:                                                                                                    `unknown field "HEADS"`,
		`{"heads":[],"heads":[]}`:                                                                                                    `field "heads" occurs twice`,
		`{"heads":[{"name":"a","name":"b"}]}`:                                                                                        `heads[0]: field "name" occurs twice`,
		`{"heads":[{"Name":"a"}]}`:                                                                                                   `no field "Name"`,
		`{"registrations":[{"headID":"a"}]}`:                                                                                         `no field "headID"`,
		`{"visuals":[{"id":"a","id":"a"}]}`:                                                                                          `visuals[0]: field "id" occurs twice`,
		`{"tools":[{},{"headId":"a","headId":"b"}]}`:                                                                                 `tools[1]: field "headId" occurs twice`,
		`{"visuals":[{"extra":[]}]}`:                                                                                                 "visuals[0]: extra must be an object",
		`{"visuals":[{"extra":"x"}]}`:                                                                                                "visuals[0]: extra must be an object",
		`{"visuals":[{"extra":{"id":"x"}}]}`:                                                                                         `visuals[0]: a visual has the field "id"`,
		`{"visuals":[{"extra":{"mode":"default"}}]}`:                                                                                 `"mode"`,
		`{"visuals":[{"status":"a","extra":{"status":"b"}}]}`:                                                                        `"status"`,
	} {
		a.control("POST", "seed", seed).refused(t, 400, says)
	}
	assert.Empty(t, a.Heads())
}

func TestExtraFieldsMayDifferInCaseAlone(t *testing.T) {
	s := seedOf(t, `{"heads":[{"id":"`+seedHead+`","ttsVoice":"v","extra":{"ttsvoice":"left-over","videostreaming":"yes"}}]}`)
	e := newEmulator(t)
	_, err := e.Import(s)
	require.NoError(t, err)
	head := need(e.Client().Heads.Get(t.Context(), seedHead))(t)
	assert.Equal(t, "v", head.TTSVoice)
	assert.Contains(t, string(head.Raw.Bytes()), `"ttsvoice":"left-over"`)
}

func TestRestartRemovesEverything(t *testing.T) {
	e := newEmulator(t)
	session := e.StartSession(e.AddHead(headstest.Head{}))
	added := need(e.Restart(seedOf(t, `{"heads":[{"name":"Ada"}]}`)))(t)
	assert.Equal(t, added.Heads, e.Heads())
	assert.ErrorContains(t, session.UserMessage("x"), "reset")
}
