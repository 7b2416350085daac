package fleet_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/fleet"
	"github.com/headsapi/heads-go/headstest"
)

func TestDriftIsWhatPlanWouldChange(t *testing.T) {
	e, id := withHead(t, headstest.Head{})
	ctx := context.Background()
	for _, url := range []string{"https://a.example.com/x", "https://b.example.com/x"} {
		_, err := e.Client().Webhooks.Ensure(ctx, heads.WebhookSpec{HeadID: id, URL: url, Events: []heads.EventType{heads.EventEndConversation}}, heads.EnsureOptions{KeepDelivery: true})
		require.NoError(t, err)
	}
	spec := fleet.Spec{
		ID: id, Set: map[string]any{"greetings": "Hi", "operationMode": "oc", "promptConfig": map[string]any{"system_prompt": "You call find."}},
		Streaming: on(), Delivery: on(), PruneWebhooks: true,
		Webhooks: []fleet.WebhookSpec{{URL: "https://a.example.com/x", Events: []heads.EventType{heads.EventStartConversation}}},
		Tools:    &[]heads.Tool{{Name: "find", Description: "Finds.", URL: "https://a.example.com/find"}},
	}
	read := func() (*heads.Head, []heads.Webhook) {
		hooks := need(e.Client().Webhooks.List(ctx, id))(t)
		return get(t, e, id), hooks
	}
	planned := plan(t, e, spec)
	head, hooks := read()
	changes := need(fleet.Drift(head, hooks, spec))(t)
	assert.NotEmpty(t, changes)
	assert.ElementsMatch(t, planned.Results[0].Changes, changes)

	apply(t, e, fleet.Options{}, spec)
	head, hooks = read()
	changes = need(fleet.Drift(head, hooks, spec))(t)
	assert.Empty(t, changes)

	head.VideoStreaming = false
	spec.Voice = &heads.Voice{Provider: "polly", ID: "x"} // Plan is blocked by a provider that can't stream
	changes = need(fleet.Drift(head, hooks, spec))(t)
	assert.Equal(t, []fleet.Change{{Field: "voice", From: head.TTSProvider + "/" + head.TTSVoice, To: "polly/x"}, {Field: "streaming", From: "false", To: "true"}}, changes)
}
