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
	report, err := fleet.Plan(t.Context(), e.Client(), specs, fleet.Options{})
	require.NoError(t, err)
	return report
}

func TestApplyChangesOnlyWhatWasPlanned(t *testing.T) {
	const token = "0123456789abcdef0123"
	for name, tt := range map[string]struct {
		spec   fleet.Spec
		change func(t *testing.T, c *heads.Client, id string)
	}{
		"field": {fleet.Spec{Set: map[string]any{"greetings": "Hi"}}, func(t *testing.T, c *heads.Client, id string) {
			err := c.Heads.Update(t.Context(), id, heads.NewHeadUpdate().Greetings("Bonjour"))
			require.NoError(t, err)
		}},
		"masked key": {fleet.Spec{Set: map[string]any{"voiceflowApiKey": nil}}, func(t *testing.T, c *heads.Client, id string) {
			err := c.Heads.Update(t.Context(), id, heads.NewHeadUpdate().VoiceflowAPIKey("another"))
			require.NoError(t, err)
		}},
		"registration with another token": {fleet.Spec{Webhooks: []fleet.WebhookSpec{}, PruneWebhooks: true}, func(t *testing.T, c *heads.Client, id string) {
			hooks, err := c.Webhooks.List(t.Context(), id)
			require.NoError(t, err)
			require.NoError(t, c.Webhooks.Delete(t.Context(), hooks[0].ID))
			_, err = c.Webhooks.Ensure(t.Context(), heads.WebhookSpec{HeadID: id, URL: "https://a.example.com/" + token + "2", Events: []heads.EventType{heads.EventEndConversation}}, heads.EnsureOptions{KeepDelivery: true})
			require.NoError(t, err)
		}},
		"voice before a switch": {fleet.Spec{Streaming: on()}, func(t *testing.T, c *heads.Client, id string) {
			err := c.Heads.Update(t.Context(), id, heads.NewHeadUpdate().Voice("azure", "en-US-other"))
			require.NoError(t, err)
		}},
		"tool that the plan removes": {fleet.Spec{Tools: &[]heads.Tool{}}, func(t *testing.T, c *heads.Client, id string) {
			_, err := c.ConversationSettings.SetTools(t.Context(), id, heads.Tool{Name: "t", Description: "d", URL: "https://a.example.com/" + token + "2"})
			require.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, id := withHead(t, headstest.Head{Fields: map[string]any{"operationMode": "oc", "voiceflowApiKey": "first"}})
			other := e.AddHead(headstest.Head{})
			c := e.Client()
			_, err := c.Webhooks.Ensure(t.Context(), heads.WebhookSpec{HeadID: id, URL: "https://a.example.com/" + token + "1", Events: []heads.EventType{heads.EventEndConversation}}, heads.EnsureOptions{KeepDelivery: true})
			require.NoError(t, err)
			_, err = c.ConversationSettings.SetTools(t.Context(), id, heads.Tool{Name: "t", Description: "d", URL: "https://a.example.com/" + token + "1"})
			require.NoError(t, err)
			tt.spec.ID = id
			specs := []fleet.Spec{tt.spec, {ID: other, Set: map[string]any{"greetings": "Hi"}}}
			planned := plan(t, e, specs...)
			assert.Equal(t, planned.Digest([]byte("k")), plan(t, e, specs...).Digest([]byte("k")))
			assert.NotEqual(t, planned.Digest([]byte("k")), planned.Digest([]byte("l")))
			tt.change(t, c, id)
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
	e := newEmulator(t)
	specs := []fleet.Spec{{ID: e.AddHead(headstest.Head{})}}
	_, err := fleet.Apply(t.Context(), e.Client(), specs, fleet.Options{Planned: &fleet.Report{}})
	require.ErrorContains(t, err, "is the plan of other specs")
}

func TestNumbersAndKeysAreKeptAsTheyAre(t *testing.T) {
	for name, row := range map[string]struct{ was, wanted string }{
		"neighbours of a float": {`{"n":9007199254740992}`, `{"n":9007199254740993}`},
		"twenty digits":         {`{"n":12345678901234567890}`, `{"n":12345678901234567891}`},
		"fraction":              {`{"n":0.1}`, `{"n":0.10000000000000000001}`},
	} {
		t.Run(name, func(t *testing.T) {
			e, id := withHead(t, headstest.Head{})
			set := func(v string) fleet.Spec {
				return fleet.Spec{ID: id, Set: map[string]any{"pluginOperationalModeConfig": jsonText(v)}}
			}
			apply(t, e, fleet.Options{}, set(row.was))
			report := plan(t, e, set(row.wanted))
			require.Equal(t, fleet.OutcomePending, report.Results[0].Outcome)
			assert.Equal(t, []fleet.Change{{Field: "pluginOperationalModeConfig", From: row.was, To: row.wanted}}, report.Results[0].Changes)
			apply(t, e, fleet.Options{}, set(row.wanted))
			assert.Equal(t, fleet.OutcomeUnchanged, plan(t, e, set(row.wanted)).Results[0].Outcome)
			assert.Contains(t, string(get(t, e, id).Raw.Bytes()), `"pluginOperationalModeConfig":`+row.wanted)
		})
	}
	e, id := withHead(t, headstest.Head{})
	number := func(v string) fleet.Spec {
		return fleet.Spec{ID: id, Set: map[string]any{"semanticThreshold": jsonText(v)}}
	}
	apply(t, e, fleet.Options{}, number("9007199254740992"))
	report := plan(t, e, number("9007199254740993"))
	require.Len(t, report.Results[0].Changes, 1)
	assert.Equal(t, fleet.Change{Field: "semanticThreshold", From: "9007199254740992", To: "9007199254740993"}, report.Results[0].Changes[0])
	for _, same := range []string{"9007199254740992.0", "9007199254740.992e3", "9007199254740992E0"} {
		assert.Equal(t, fleet.OutcomeUnchanged, plan(t, e, number(same)).Results[0].Outcome, same)
	}
	words := `{"zebra":"z","apple":"a","mango":"m"}`
	apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Set: map[string]any{"customWords": jsonText(words)}})
	assert.Contains(t, string(get(t, e, id).Raw.Bytes()), `"customWords":`+words)
	spec, err := fleet.SpecOf(t.Context(), e.Client(), id)
	require.NoError(t, err)
	assert.Equal(t, jsonText(words), spec.Set["customWords"])
	assert.Equal(t, jsonText("9007199254740992"), spec.Set["semanticThreshold"])
}

func TestAnUpdateThatTheHeadDoesNotShowFails(t *testing.T) {
	e, id := withHead(t, headstest.Head{Fields: map[string]any{"greetings": "Hello"}})
	e.Inject(headstest.Fault{Method: "PUT", Status: 200, Body: "<html>maintenance</html>"})
	report := apply(t, e, fleet.Options{}, fleet.Spec{ID: id, Set: map[string]any{"greetings": "Hi"}})
	assert.Equal(t, fleet.OutcomeFailed, report.Results[0].Outcome)
	assert.ErrorContains(t, report.Results[0].Err, "the field greetings was set, but the head does not show it")
}

func jsonText(text string) json.RawMessage { return json.RawMessage(text) }
