package heads

import (
	"encoding/json"
	"reflect"
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
	head := &Head{Name: "Ada", Greetings: "See https://example.com/page/1, or ask: what?now=1", CustomWords: map[string]string{"token": "toh-ken"}}
	assert.Equal(t, head, head.Redacted())
	assert.Nil(t, (*Head)(nil).Redacted())
	assert.Nil(t, (*Webhook)(nil).Redacted())
}

func TestRedactedMasksSecretsInsideEveryText(t *testing.T) {
	const key, path = "0canary123456789", "canary-path-token"
	address := "https://chat.example.com/MyOrg-1/li-1?api_key=" + key
	document, err := json.Marshal(map[string]any{
		"publicUrl": address, "voiceflowApiKey": "canary-dialog", "operationMode": "oc", "headVisualId": key, "encodedPath": key, "orgId": key,
		"greetings": `Hello <iframe src="` + address + `&amp;x=1"></iframe>, open //chat.example.com/a/b?api_key=other-canary or https:\/\/x.example.com\/?k=other-canary`,
		"name":      "Key " + key, "alias": key, "language": key, "phrases": []string{address}, "suggestions": []string{key}, "customWords": map[string]string{key: key},
		"fileUrl": "https://files.example.com/" + key, "documentUrl": "https://files.example.com/canary-dialog", "allowedOrigins": []string{key},
		"promptConfig": map[string]any{"id": "1", "system_prompt": "Post to https://a.example.com/canary-path-token/x with canary-dialog or " + strings.ReplaceAll(key, "9", "%39")},
		"iconConfig":   map[string]any{"text": "see " + address}, "organisation": map[string]any{"name": key, "apiKey": "canary-organisation"},
		"conversationSettings": map[string]any{"model": "of " + key, "tools": []any{map[string]any{
			"name": "order", "description": "canary-organisation", "url": "https://a.example.com/" + path + "/order", "parameters": []any{},
		}}},
	})
	require.NoError(t, err)
	head := new(Head)
	require.NoError(t, decodeAnswer(document, head))
	for name, given := range map[string]*Head{"as read": head, "of fields": {PublicURL: head.PublicURL, Greetings: key, Raw: json.RawMessage(`{}`)}} {
		raw, err := json.Marshal(given.Redacted())
		require.NoError(t, err)
		assert.NotContains(t, string(raw), "canary", name)
		assert.NotContains(t, string(raw), "123456789", name)
	}
	redacted := head.Redacted()
	assert.Equal(t, "Key [redacted]", redacted.Name)
	assert.Contains(t, redacted.Greetings, `<iframe src="https://chat.example.com/MyOrg-1/li-1?api_key=[redacted]`)
	assert.Equal(t, "Post to https://a.example.com/[redacted]/x with [redacted] or [redacted]", redacted.PromptConfig.SystemPrompt)
	assert.Contains(t, head.Greetings, key, "the head itself is unchanged")
	assert.Equal(t, key, head.Suggestions[0])
}

// Every exported text of a head is one that Redacted masks.
func TestRedactedKnowsEveryTextOfAHead(t *testing.T) {
	head := &Head{PromptConfig: &PromptConfig{}, Organisation: &Organisation{}, FileURL: new(string)}
	known := map[any]bool{}
	for _, text := range head.texts() {
		known[text] = true
	}
	var check func(reflect.Value, string)
	check = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			field, name := v.Field(i), path+v.Type().Field(i).Name
			if field.Kind() == reflect.Pointer && !field.IsNil() {
				field = field.Elem()
			}
			switch {
			case field.Type() == reflect.TypeFor[Secret]():
			case field.Kind() == reflect.String:
				assert.True(t, known[field.Addr().Convert(reflect.TypeFor[*string]()).Interface()], name)
			case field.Type() == reflect.TypeFor[PromptConfig](), field.Type() == reflect.TypeFor[Organisation]():
				check(field, name+".")
			}
		}
	}
	check(reflect.ValueOf(head).Elem(), "")
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
