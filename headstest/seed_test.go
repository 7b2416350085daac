package headstest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

const seedHead = "11111111-1111-4111-8111-111111111111"

func seedOf(t *testing.T, text string) headstest.Seed {
	t.Helper()
	s, err := headstest.ParseSeed([]byte(text))
	require.NoError(t, err)
	return s
}

func TestExportImportedIsTheSame(t *testing.T) {
	from := newEmulator(t, headstest.WithLoopbackHTTP())
	visual := from.AddVisual(headstest.Visual{Mode: heads.VisualModeTwoLoops})
	id := from.AddHead(headstest.Head{HeadVisualID: visual, Name: "Ada", Fields: map[string]any{"voiceflowApiKey": "key"},
		Extra: map[string]any{"addedSince": json.RawMessage(`[1.50]`)}})
	require.NoError(t, from.AddTool(id, json.RawMessage(`{"name":"hours","url":"https://tools.example.test/hours"}`)))
	addWebhook(t, from, id, "http://127.0.0.1:1/x", heads.EventEndConversation)

	file, err := json.Marshal(from.Export())
	require.NoError(t, err)
	to := newEmulator(t, headstest.WithLoopbackHTTP())
	added, err := to.Import(seedOf(t, string(file)))
	require.NoError(t, err)
	assert.Equal(t, headstest.Added{Heads: []string{id}, Visuals: []string{visual}, Registrations: []int64{1}}, added)
	assert.Equal(t, from.Snapshot().Heads, to.Snapshot().Heads, "byte for byte, keys included")
	again, err := json.Marshal(to.Export())
	require.NoError(t, err)
	assert.JSONEq(t, string(file), string(again))
}

func TestVisualsInSeedsTakeExtraFieldsAsHeadsDo(t *testing.T) {
	a := newAPI(t)
	_, err := a.Import(seedOf(t, `{"visuals":[{"id":"v","mode":"two_loops","status":"ready","gender":"f","extra":{"addedSince":[1.50],"nested":{"a":null}}},
		{"id":"w","extra":null}]}`))
	require.NoError(t, err)
	body := a.ok("GET", "/head_visual/v", "").body
	visual := object(t, body)
	assert.Equal(t, []any{"v", "two_loops", "ready", "f"}, []any{visual["id"], visual["mode"], visual["status"], visual["gender"]})
	assert.Contains(t, body, `"addedSince":[1.50]`, "byte for byte")
	assert.Contains(t, body, `"nested":{"a":null}`)
	assert.NotContains(t, visual, "extra")
	assert.NotContains(t, a.ok("GET", "/head_visual/w", "").body, "extra")

	exported, err := json.Marshal(a.Export())
	require.NoError(t, err)
	b := newAPI(t)
	_, err = b.Import(seedOf(t, string(exported)))
	require.NoError(t, err)
	assert.Equal(t, body, b.ok("GET", "/head_visual/v", "").body, "an export keeps them")

	for text, says := range map[string]string{
		`{"extra":[]}`: "extra must be an object", `{"extra":"x"}`: "extra must be an object", `{"extra":{"id":"x"}}`: `"id"`,
		`{"extra":{"mode":"default"}}`: `"mode"`, `{"status":"a","extra":{"status":"b"}}`: `"status"`,
	} {
		_, err := headstest.ParseSeed([]byte(`{"visuals":[` + text + `]}`))
		assert.ErrorContains(t, err, "visuals[0]: ", text)
		assert.ErrorContains(t, err, says, text)
	}
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

func TestNamesInASeedAreExactAndOccurOnce(t *testing.T) {
	for text, says := range map[string]string{
		`{"Heads":[]}`:                               `unknown field "Heads"`,
		`{"heads":[],"HEADS":[]}`:                    `unknown field "HEADS"`,
		`{"heads":[],"heads":[]}`:                    `field "heads" occurs twice`,
		`{"heads":[{"name":"a","name":"b"}]}`:        `heads[0]: field "name" occurs twice`,
		`{"heads":[{"Name":"a"}]}`:                   `no field "Name"`,
		`{"registrations":[{"headID":"a"}]}`:         `no field "headID"`,
		`{"visuals":[{"id":"a","id":"a"}]}`:          `visuals[0]: field "id" occurs twice`,
		`{"tools":[{},{"headId":"a","headId":"b"}]}`: `tools[1]: field "headId" occurs twice`,
	} {
		_, err := headstest.ParseSeed([]byte(text))
		assert.ErrorContains(t, err, says, text)
	}
	s := seedOf(t, `{"heads":[{"id":"`+seedHead+`","ttsVoice":"v","extra":{"ttsvoice":"left-over","videostreaming":"yes"}}]}`)
	e := headstest.NewServer()
	defer e.Close()
	_, err := e.Import(s)
	require.NoError(t, err)
	client, err := heads.New(e.URL, e.BearerToken())
	require.NoError(t, err)
	head, err := client.Heads.Get(t.Context(), seedHead)
	require.NoError(t, err)
	assert.Equal(t, "v", head.TTSVoice)
	assert.Contains(t, string(head.Raw.Bytes()), `"ttsvoice":"left-over"`)
}

func TestRestartRemovesEverything(t *testing.T) {
	e := newEmulator(t)
	session := e.StartSession(e.AddHead(headstest.Head{}))
	added, err := e.Restart(seedOf(t, `{"heads":[{"name":"Ada"}]}`))
	require.NoError(t, err)
	assert.Equal(t, added.Heads, e.Heads())
	assert.ErrorContains(t, session.UserMessage("x"), "reset")
}
