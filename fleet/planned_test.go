package fleet_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

func plan(t testing.TB, e *headstest.Emulator, specs ...fleet.Spec) *fleet.Report {
	t.Helper()
	report := need(fleet.Plan(t.Context(), e.Client(), specs, fleet.Options{}))(t)
	return report
}

func TestApplyChangesOnlyWhatWasPlanned(t *testing.T) {
	const url = "https://a.example.com/0123456789abcdef0123"
	e := newEmulator(t)
	ctx, c := t.Context(), e.Client()
	update := func(u *heads.HeadUpdate) func(string) error {
		return func(id string) error { return c.Heads.Update(ctx, id, u) }
	}
	register := func(id, url string) error {
		_, err := c.Webhooks.Ensure(ctx, heads.WebhookSpec{HeadID: id, URL: url, Events: []heads.EventType{heads.EventEndConversation}}, heads.EnsureOptions{KeepDelivery: true})
		return err
	}
	setTool := func(id, url string) error {
		_, err := c.ConversationSettings.SetTools(ctx, id, heads.Tool{Name: "t", Description: "d", URL: url})
		return err
	}
	for name, tt := range map[string]struct {
		spec   fleet.Spec
		change func(id string) error
	}{
		"field":                 {fleet.Spec{Set: map[string]any{"greetings": "Hi"}}, update(heads.NewHeadUpdate().Greetings("Bonjour"))},
		"masked key":            {fleet.Spec{Set: map[string]any{"voiceflowApiKey": nil}}, update(heads.NewHeadUpdate().VoiceflowAPIKey("another"))},
		"voice before a switch": {fleet.Spec{Streaming: on()}, update(heads.NewHeadUpdate().Voice("azure", "en-US-other"))},
		"registration with another token": {fleet.Spec{Webhooks: []fleet.WebhookSpec{}, PruneWebhooks: true}, func(id string) error {
			hooks := need(c.Webhooks.List(ctx, id))(t)
			require.NoError(t, c.Webhooks.Delete(ctx, hooks[0].ID))
			return register(id, url+"2")
		}},
		"tool that the plan removes": {fleet.Spec{Tools: &[]heads.Tool{}}, func(id string) error { return setTool(id, url+"2") }},
	} {
		t.Run(name, func(t *testing.T) {
			id := e.AddHead(headstest.Head{Fields: map[string]any{"operationMode": "oc", "voiceflowApiKey": "first"}})
			require.NoError(t, register(id, url+"1"))
			require.NoError(t, setTool(id, url+"1"))
			tt.spec.ID = id
			specs := []fleet.Spec{tt.spec, {ID: e.AddHead(headstest.Head{}), Set: map[string]any{"greetings": "Hi"}}}
			planned := plan(t, e, specs...)
			assert.Equal(t, planned.Digest([]byte("k")), plan(t, e, specs...).Digest([]byte("k")))
			assert.NotEqual(t, planned.Digest([]byte("k")), planned.Digest([]byte("l")))
			require.NoError(t, tt.change(id))
			assert.NotEqual(t, planned.Digest([]byte("k")), plan(t, e, specs...).Digest([]byte("k")))
			n := len(e.Requests())
			report := apply(t, e, fleet.Options{Planned: planned}, specs...)
			assert.Equal(t, []fleet.Outcome{fleet.OutcomePending, fleet.OutcomeChanged}, outcomesOf(report))
			assert.NotEmpty(t, report.Results[0].Changes)
			assert.ErrorContains(t, report.Results[0].Err, "no longer as it was planned for")
			assert.Equal(t, []string{"PUT /head/update"}, writes(since(e, n)), "the other head alone")
			again := apply(t, e, fleet.Options{Planned: plan(t, e, specs...)}, specs...)
			assert.Equal(t, []fleet.Outcome{fleet.OutcomeChanged, fleet.OutcomeUnchanged}, outcomesOf(again))
		})
	}
	_, err := fleet.Apply(ctx, c, []fleet.Spec{{ID: e.AddHead(headstest.Head{})}}, fleet.Options{Planned: &fleet.Report{}})
	require.ErrorContains(t, err, "is the plan of other specs")
}

func TestNumbersAndKeysAreKeptAsTheyAre(t *testing.T) {
	e, id := withHead(t, headstest.Head{})
	set := func(field, value string) fleet.Spec {
		return fleet.Spec{ID: id, Set: map[string]any{field: json.RawMessage(value)}}
	}
	for _, row := range []struct{ field, was, wanted string }{
		{"pluginOperationalModeConfig", `{"n":9007199254740992}`, `{"n":9007199254740993}`}, // neighbours of a float
		{"pluginOperationalModeConfig", `{"n":12345678901234567890}`, `{"n":12345678901234567891}`},
		{"pluginOperationalModeConfig", `{"n":0.1}`, `{"n":0.10000000000000000001}`},
		{"semanticThreshold", "9007199254740993", "9007199254740992"},
	} {
		apply(t, e, fleet.Options{}, set(row.field, row.was))
		result := plan(t, e, set(row.field, row.wanted)).Results[0]
		require.Equal(t, fleet.OutcomePending, result.Outcome)
		assert.Equal(t, []fleet.Change{{Field: row.field, From: row.was, To: row.wanted}}, result.Changes)
		apply(t, e, fleet.Options{}, set(row.field, row.wanted))
		assert.Equal(t, fleet.OutcomeUnchanged, plan(t, e, set(row.field, row.wanted)).Results[0].Outcome)
		assert.Contains(t, string(get(t, e, id).Raw.Bytes()), `"`+row.field+`":`+row.wanted)
	}
	for _, same := range []string{"9007199254740992.0", "9007199254740.992e3", "9007199254740992E0"} {
		assert.Equal(t, fleet.OutcomeUnchanged, plan(t, e, set("semanticThreshold", same)).Results[0].Outcome, same)
	}
	words := `{"zebra":"z","apple":"a","mango":"m"}`
	apply(t, e, fleet.Options{}, set("customWords", words))
	assert.Contains(t, string(get(t, e, id).Raw.Bytes()), `"customWords":`+words)
	spec := need(fleet.SpecOf(t.Context(), e.Client(), id))(t)
	assert.Equal(t, json.RawMessage(words), spec.Set["customWords"])
	assert.Equal(t, json.RawMessage("9007199254740992"), spec.Set["semanticThreshold"])
}
