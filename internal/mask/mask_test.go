package mask_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestURLsLoseTheirQueryAndLongSegments(t *testing.T) {
	const site, long, tool = "https://a.example.com/", "0123456789abcdef", "get_weather_for_a_city"
	for given, want := range map[string]string{
		site + "x?k=v&e=&f": site + "x?k=[redacted]&e=&[redacted]", site + "#t=v": site + "#[redacted]", "https://u:p@a.example.com/": "https://[redacted]@a.example.com/",
		site + "x": site + "x", site + long[1:]: site + long[1:], site + tool: site + tool, "what?now=1": "what?now=1", "": "",
		"https://a-host-with-a-long-name.example.com": "https://a-host-with-a-long-name.example.com",
	} {
		assert.Equal(t, []string{want, want}, []string{mask.URL(given), mask.CallbackURL(given, tool)})
	}
	assert.Equal(t, site+long+"/x", mask.URL(site+long+"/x"))
	assert.Equal(t, site+"[redacted]/x", mask.CallbackURL(site+long+"/x", tool))
}

func TestJSONHidesTextsUnderTellingNames(t *testing.T) {
	for given, want := range map[string]string{
		`{"apiKey":"s","API_TOKEN":"s","clientSecret":"s","Password":"s"}`: `{"apiKey":"[redacted]","API_TOKEN":"[redacted]","clientSecret":"[redacted]","Password":"[redacted]"}`,
		`{"headers":{"Authorization":"Bearer s"},"credentials":["s"]}`:     `{"headers":{"Authorization":"[redacted]"},"credentials":["[redacted]"]}`,
		`{"author":"Ada"}`: `{"author":"Ada"}`,
		`{"key":"","keys":["s",{"a":"s"}],"tokens":4000,"secret":null}`: `{"key":"","keys":["[redacted]",{"a":"[redacted]"}],"tokens":4000,"secret":null}`,
		`{"model":{"temperature":0.10,"api_key":"s"},"name":"Ada"}`:     `{"model":{"temperature":0.10,"api_key":"[redacted]"},"name":"Ada"}`,
		`{"a":"https://x.example.com/?sig=s","b":"ä\n"}`:                `{"a":"https://x.example.com/?sig=[redacted]","b":"ä\n"}`,
		` [ "s" , 1 ] `: `["s",1]`,
		`"s"`:           `"s"`,
		`null`:          `null`,
	} {
		assert.Equal(t, want, string(mask.JSON(json.RawMessage(given))))
	}
}

func TestTextsLoseWhatTheirURLsHide(t *testing.T) {
	for given, want := range map[string]string{
		"See https://a.example.com/x?k=v now":                "See https://a.example.com/x?k=[redacted] now",
		`<iframe src='//a.example.com/?k=v&l=w'>`:            `<iframe src='//a.example.com/?k=[redacted]&l=[redacted]'>`,
		`{"u":"https:\/\/a.example.com\/?k=v"}`:              `{"u":"https:\/\/a.example.com\/?k=[redacted]"}`,
		"https://u:p@a.example.com https://b.example.com/#t": "https://[redacted]@a.example.com https://b.example.com/#[redacted]",
		"what?now=1 and/or?":                                 "what?now=1 and/or?",
		"the secret is s3cret-value or s3cret-value":         "the secret is [redacted] or [redacted]",
		"the secret is s3cret-value or s3cret%2Dvalue":       "[redacted]",
		"https://a.example.com/s3cret-value":                 "https://a.example.com/[redacted]",
	} {
		assert.Equal(t, want, mask.Text(given, "s3cret-value"))
		assert.Equal(t, want, mask.Text(want, "s3cret-value"), "again")
	}
}

func TestSecretsOfADocumentAreThoseOfItsPlaces(t *testing.T) {
	doc := `{"apiKey":"long-key-1","token":{"a":["long-key-2","short"],"n":1},"publicUrl":"https://x.example.com/a?api_key=long-key-3&lang=english","name":"no secret",
		"sharedKey":"[redacted]","file":"https://u:long-key-4@x.example.com/?sig=long-key-5","tools":[{"name":"a_tool_with_a_long_name","url":"https://x.example.com/0123456789abcdef/a_tool_with_a_long_name"}]}`
	assert.ElementsMatch(t, []string{"long-key-1", "long-key-2", "long-key-3", "long-key-4", "long-key-5", "0123456789abcdef"}, mask.SecretsOf(json.RawMessage(doc)))
	assert.Empty(t, mask.SecretsOf(nil))
	words := `{"customWords":{"token":"toh-ken","key":"a key"}}`
	assert.Equal(t, words, string(mask.JSON(json.RawMessage(words))))
	assert.Equal(t, `{"a":"x [redacted]","[redacted]":["[redacted]"]}`, string(mask.JSON(json.RawMessage(`{"a":"x long-key-1","long-key-1":["long-key-1"]}`), "long-key-1")))
}

// A secret of the document is masked in its other texts too.
func TestSecretsOfADocumentAreMaskedInsideEveryText(t *testing.T) {
	const key, path = "0canary123456789", "canary-path-token"
	address := "https://chat.example.com/MyOrg-1/li-1?api_key=" + key
	document, err := json.Marshal(map[string]any{
		"publicUrl": address, "voiceflowApiKey": "canary-dialog", "encodedPath": key,
		"greetings": `Hello <iframe src="` + address + `&amp;x=1"></iframe>, open //chat.example.com/a/b?api_key=other-canary or https:\/\/x.example.com\/?k=other-canary`,
		"name":      "Key " + key, "phrases": []string{address}, "customWords": map[string]string{key: key, "token": "toh-ken"},
		"fileUrl": "https://files.example.com/" + key, "documentUrl": "https://files.example.com/canary-dialog",
		"promptConfig": map[string]any{"id": "1", "system_prompt": "Post to https://a.example.com/canary-path-token/x with canary-dialog or " + key},
		"iconConfig":   map[string]any{"text": "see " + strings.ReplaceAll(key, "9", "%39")}, "organisation": map[string]any{"name": key, "apiKey": "canary-organisation"},
		"conversationSettings": map[string]any{"model": "of canary-organisation", "tools": []any{map[string]any{
			"name": "order", "description": "canary-organisation", "url": "https://a.example.com/" + path + "/order", "parameters": []any{},
		}}},
	})
	require.NoError(t, err)
	shown := string(mask.JSON(document, mask.SecretsOf(document)...))
	assert.NotContains(t, shown, "canary")
	assert.NotContains(t, shown, "123456789")
	assert.Contains(t, shown, `"name":"Key [redacted]"`)
	assert.Contains(t, shown, `https://chat.example.com/MyOrg-1/li-1?api_key=[redacted]`)
	assert.Contains(t, shown, `"Post to https://a.example.com/[redacted]/x with [redacted] or [redacted]"`)
	assert.Contains(t, shown, `"iconConfig":{"text":"[redacted]"}`, "its characters are escaped")
	assert.Contains(t, shown, `"token":"toh-ken"`)
}

func TestPathsLoseWhatMayBeAToken(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/0123456789abcde/e": "/0123456789abcde/e",
		"/h/correcthorsebatterystaple/e": "/h/[redacted]/e",
		"/get_weather_for_a_city":        "/get_weather_for_a_city",
		"/abcdefghijklmn%zz0":            "/[redacted]",
		"/e?a=1&b&c=&=d&e=f=g":           "/e?a=[redacted]&[redacted]&c=&=[redacted]&e=[redacted]",
	} {
		assert.Equal(t, want, mask.Path(path, "get_weather_for_a_city"))
		assert.Equal(t, want, mask.Path(want, "get_weather_for_a_city"), "once more changes nothing")
	}
}
