package main

import (
	"encoding/json"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResetGoesBackToTheSeedFile(t *testing.T) {
	const ada = "11111111-1111-4111-8111-111111111111"
	p := start(t, "-seed", "3", "-seed-file", writeFile(t, `{"visuals":[{"id":"loops"}],"heads":[{"id":"`+ada+`","name":"Ada"},{}],
		"registrations":[{"headId":"`+ada+`","webhookUrl":"http://127.0.0.1:1"}]}`))
	require.Len(t, p.Heads, 2)
	assert.Equal(t, []any{ada, []string{"loops"}, []int64{1}}, []any{p.Heads[0], p.Visuals, p.Registrations[:1]})
	before := p.control("GET", "state", "").body
	p.api("PUT", "/head/update", `{"id":"`+ada+`","name":"changed"}`).ok(t, nil)
	p.api("DELETE", "/head-events/1", "").ok(t, nil)
	p.session("")
	p.control("POST", "faults/requests", `{"status":500}`).ok(t, nil)
	p.control("POST", "seed", `{"heads":[{}]}`).ok(t, nil)
	require.NotEqual(t, before, p.control("GET", "state", "").body)
	var again headstest.Added
	p.control("POST", "reset", "").ok(t, &again)
	assert.Equal(t, p.Added, again)
	assert.Equal(t, before, p.control("GET", "state", "").body)
	p.api("GET", "/head/"+ada, "").ok(t, nil)
}

func TestDemoIsServedToTheClient(t *testing.T) {
	var seed struct{ Heads []map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(demo, &seed))
	require.Len(t, seed.Heads, 1)
	p := start(t)
	var shown map[string]json.RawMessage
	p.api("GET", "/head/"+p.Heads[0], "").ok(t, &shown)
	for name, value := range seed.Heads[0] {
		assert.JSONEq(t, string(value), string(shown[name]), name)
	}
	client, err := heads.New(p.BaseURL, p.Token)
	require.NoError(t, err)
	visual, err := client.HeadVisuals.Get(t.Context(), p.Visuals[0])
	require.NoError(t, err)
	assert.Equal(t, heads.VisualModeDefault, visual.Mode)
	assert.NoError(t, client.Heads.SetVideoStreaming(t.Context(), p.Heads[0], true))
}
