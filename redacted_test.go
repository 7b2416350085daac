package heads

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRedactedHeadShowsNoSecretAsJSON(t *testing.T) {
	// These names would not reveal that they hold a secret.
	document := strings.NewReplacer(`"auth"`, `"authToken"`, `"x"`, `"x_key"`, `"iconConfig":"`, `"iconConfig":"https://x.example.com/?`).Replace(canaryHead)
	head := new(Head)
	require.NoError(t, decodeAnswer([]byte(document), head))
	raw, err := json.Marshal(head)
	require.NoError(t, err)
	require.Contains(t, string(raw), "canary")

	redactedHead := head.Redacted()
	raw, err = json.Marshal(redactedHead)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "canary")
	assert.Empty(t, redactedHead.Raw)
	assert.Equal(t, head.ID, redactedHead.ID)
	assert.Equal(t, Secret("[redacted]"), *redactedHead.VoiceflowAPIKey)
	assert.Equal(t, "https://chat.example.com/MyOrg-1234/li-28379?api_key=[redacted]", redactedHead.PublicURL.Reveal())
	assert.True(t, head.Has("name"), "the head itself is unchanged")
	assert.NotEqual(t, head.VoiceflowAPIKey, redactedHead.VoiceflowAPIKey)
}

func TestRedactedHeadIsADeepCopy(t *testing.T) {
	head := new(Head)
	require.NoError(t, decodeAnswer([]byte(readFile(t, "head_full.json")), head))
	before, err := json.Marshal(head)
	require.NoError(t, err)
	c := head.Redacted()
	c.Phrases[0], c.Suggestions[0] = "changed", "changed"
	c.PromptConfig.SystemPrompt, c.Organisation.Name = "changed", "changed"
	for word := range c.CustomWords {
		c.CustomWords[word] = "changed"
	}
	c.ConversationSettings.Tools[0].Name = "changed"
	c.AllowedOrigins[0] = "changed"
	for i := range c.IconConfig {
		c.IconConfig[i] = ' '
	}
	after, err := json.Marshal(head)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

func TestRedactedKeepsOtherFields(t *testing.T) {
	head := &Head{Name: "Ada", Greetings: "See https://example.com/?page=1", CustomWords: map[string]string{"token": "toh-ken"}}
	assert.Equal(t, head, head.Redacted())
	assert.Nil(t, (*Head)(nil).Redacted())
	assert.Nil(t, (*Webhook)(nil).Redacted())
}

func TestRedactedAccessURLThatIsNotAURLIsMasked(t *testing.T) {
	assert.Equal(t, Secret("[redacted]"), redactAccessURL("0123456789abcdef0123456789abcdef"))
	assert.Empty(t, redactAccessURL(""))
}

func TestRedactedToolsHideTheirPathToken(t *testing.T) {
	cs := new(ConversationSettings)
	require.NoError(t, json.Unmarshal([]byte(`{"llm":{"provider_key":"s3cret"},"tools":[{"name":"get_weather","description":"d","auth_token":"s3cret",
		"url":"https://a.example.com/tools/s3cret-s3cret-s3cret/get_weather?x=s3cret","parameters":[{"name":"city","type":"string","description":"d","token":"s3cret"}]}]}`), cs))
	head := (&Head{ConversationSettings: cs}).Redacted()
	raw, err := json.Marshal(head.ConversationSettings)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "s3cret")
	assert.Contains(t, string(raw), `https://a.example.com/tools/[redacted]/get_weather?x=[redacted]`)
	assert.Equal(t, 5, strings.Count(string(raw), "[redacted]"), string(raw))
}

func TestRedactedWebhookShowsNoSecretAsJSON(t *testing.T) {
	hook := new(Webhook)
	require.NoError(t, json.Unmarshal([]byte(canaryHook), hook))
	raw, err := json.Marshal(hook.Redacted())
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "canary")
	assert.Contains(t, string(raw), `"webhookUrl":"https://hooks.example.com/[redacted]?key=[redacted]"`)
}
