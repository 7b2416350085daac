package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	lobby = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
	other = "9b2c1d3e-4f50-4a6b-8c7d-0e1f2a3b4c5d"
)

func TestFaultySpecsAreRefusedBeforeTheFirstRequest(t *testing.T) {
	set := func(field string, value any) fleet.Spec { return fleet.Spec{Set: map[string]any{field: value}} }
	hooks := func(hooks ...fleet.WebhookSpec) fleet.Spec { return fleet.Spec{Webhooks: hooks} }
	start := []heads.EventType{heads.EventStartConversation}
	tool := heads.Tool{Name: "find", Description: "Finds.", URL: "https://t.example.com/find"}
	for name, tt := range map[string]struct {
		spec fleet.Spec
		want []string
	}{
		"unknown field":       {set("greeting", "Hi"), []string{"set.greeting ", "did you mean greetings?"}},
		"case of a field":     {set("Greetings", "Hi"), []string{"set.Greetings ", "greetings"}},
		"unlike any field":    {set("temperature", 1), []string{"set.temperature ", "is not a field"}},
		"read-only field":     {set("publicId", "x"), []string{"set.publicId ", "read-only"}},
		"wrong type":          {set("greetings", 5), []string{"set.greetings ", "string"}},
		"null":                {set("name", nil), []string{"set.name ", "null"}},
		"placeholder":         {set("greetings", "string"), []string{"set.greetings ", "placeholder"}},
		"deep placeholder":    {set("customWords", map[string]string{"a": "<WORD>"}), []string{"set.customWords ", "placeholder"}},
		"no JSON":             {set("pluginOperationalModeConfig", func() {}), []string{"set.pluginOperationalModeConfig "}},
		"ttsVoice":            {set("ttsVoice", "x"), []string{"set.ttsVoice ", "key voice"}},
		"ttsProvider":         {set("ttsProvider", "x"), []string{"key voice"}},
		"videoStreaming":      {set("videoStreaming", true), []string{"key streaming"}},
		"enableEvents":        {set("enableEvents", true), []string{"key delivery"}},
		"settings":            {set("conversationSettings", nil), []string{"key tools"}},
		"id in set":           {set("id", lobby), []string{"key id"}},
		"half a voice":        {fleet.Spec{Voice: &heads.Voice{Provider: "azure"}}, []string{"voice "}},
		"placeholder voice":   {fleet.Spec{Voice: &heads.Voice{Provider: "azure", ID: "string"}}, []string{"voice ", "placeholder"}},
		"public id":           {fleet.Spec{ID: "li-28379"}, []string{"id ", "public id"}},
		"no id":               {fleet.Spec{ID: "lobby"}, []string{"id "}},
		"no https":            {hooks(fleet.WebhookSpec{URL: "http://hooks.example.com", Events: start}), []string{"webhooks[0].url ", "https"}},
		"URL twice":           {hooks(fleet.WebhookSpec{URL: "https://hooks.example.com/a", Events: start}, fleet.WebhookSpec{URL: "https://HOOKS.example.com:443/a/", Events: start}), []string{"webhooks[1] ", "webhooks[0]"}},
		"no event":            {hooks(fleet.WebhookSpec{URL: "https://hooks.example.com/a"}), []string{"webhooks[0].events "}},
		"unknown event":       {hooks(fleet.WebhookSpec{URL: "https://hooks.example.com/a", Events: []heads.EventType{"later"}}), []string{"later"}},
		"tool without a name": {fleet.Spec{Tools: &[]heads.Tool{{Description: "x", URL: "https://t.example.com"}}}, []string{"tool "}},
		"tool twice":          {fleet.Spec{Tools: &[]heads.Tool{tool, tool}}, []string{`tool "find" `, "twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEmulator(t)
			tt.spec.Label = "Lobby"
			if tt.spec.ID == "" {
				tt.spec.ID = lobby
			}
			for _, run := range []func(context.Context, *heads.Client, []fleet.Spec, fleet.Options) (*fleet.Report, error){fleet.Plan, fleet.Apply} {
				report, err := run(context.Background(), e.Client(), []fleet.Spec{{ID: other}, tt.spec}, fleet.Options{})
				assert.Nil(t, report)
				require.ErrorIs(t, err, heads.ErrInvalid)
				for _, want := range append(tt.want, "specs[1]", `"Lobby"`, fmt.Sprintf("%q", tt.spec.ID)) {
					assert.ErrorContains(t, err, want)
				}
			}
			assert.Empty(t, e.Requests())
		})
	}
}

func TestFaultsOfAllSpecsAreJoined(t *testing.T) {
	e := newEmulator(t)
	specs := []fleet.Spec{
		{ID: lobby, Set: map[string]any{"nam": "x", "publicId": "y"}},
		{ID: other},
		{ID: strings.ToUpper(lobby)},
		{ID: "li-1", Webhooks: []fleet.WebhookSpec{{URL: "https://hooks.example.com/a", Events: []heads.EventType{heads.EventStartConversation}}}},
	}
	_, err := fleet.Apply(context.Background(), e.Client(), specs, fleet.Options{})
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	require.Len(t, joined.Unwrap(), 4)
	for _, fault := range joined.Unwrap() {
		assert.ErrorAs(t, fault, new(*heads.InvalidError))
	}
	for _, want := range []string{"did you mean name?", "read-only", "specs[2]", "entry 0 too", "public id"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestNullIsSentWhereItIsAllowed(t *testing.T) {
	e := newEmulator(t)
	spec := fleet.Spec{ID: e.AddHead(headstest.Head{Fields: map[string]any{"voiceflowApiKey": "vf-1", "fileUrl": "https://files.example.com/a", "pluginOperationalModeConfig": map[string]any{"a": 1}}}),
		Set: map[string]any{"voiceflowApiKey": nil, "fileUrl": nil, "pluginOperationalModeConfig": nil}}
	report := apply(t, e, fleet.Options{}, spec)
	require.Equal(t, fleet.OutcomeChanged, report.Results[0].Outcome, "%v", report.Results[0].Err)
	assert.Equal(t, []fleet.Change{
		{Field: "voiceflowApiKey", From: "[redacted]"}, {Field: "fileUrl", From: "https://files.example.com/a"}, {Field: "pluginOperationalModeConfig", From: `{"a":1}`},
	}, report.Results[0].Changes)
	assert.Equal(t, fleet.OutcomeUnchanged, apply(t, e, fleet.Options{}, spec).Results[0].Outcome)
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	e := newEmulator(t)
	for name, o := range map[string]fleet.Options{
		"Concurrency": {Concurrency: -1}, "StopAfter": {StopAfter: -2},
		"Convert.ConfirmTimeout": {Convert: heads.ConvertOptions{ConfirmTimeout: -time.Second}}, "Convert.SettleTimeout": {Convert: heads.ConvertOptions{SettleTimeout: -time.Second}},
	} {
		_, err := fleet.Apply(context.Background(), e.Client(), nil, o)
		require.ErrorIs(t, err, heads.ErrInvalid)
		assert.ErrorContains(t, err, name)
	}
	for _, client := range []*heads.Client{nil, {}} {
		_, err := fleet.Plan(context.Background(), client, nil, fleet.Options{})
		assert.ErrorIs(t, err, heads.ErrInvalid)
		_, err = fleet.SpecOf(context.Background(), client, lobby)
		assert.ErrorIs(t, err, heads.ErrInvalid)
	}
}
