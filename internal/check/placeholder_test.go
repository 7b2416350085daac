package check_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/headsapi/heads-go/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlaceholders(t *testing.T) {
	for _, text := range []string{
		"string", " string ", "string\n", "<API_KEY>", "<ACCESS_TOKEN>", "<SHARED_KEY>", "<your key>", "<key-2>", "<a>", " <API_KEY> ",
		"https://chat.example.com/o/h?api_key=<PUBLIC_API_KEY>", "https://chat.example.com/<ORG>/h",
	} {
		assert.True(t, check.IsPlaceholder(text), "%q", text)
	}
	for _, text := range []string{
		"", "String", "STRING", "strings", "a string", "string of pearls", "<", "<>", "< API_KEY >", "<1>", "a < b", "a <b> c", "<b>bold</b>",
		"Bearer <TOKEN>", "<a><b>", "{API_KEY}", "1 < 2 > 0", "https://chat.example.com/?q=a<b>", "https://chat.example.com/?q=<b>",
		"<RULES>Answer briefly.</RULES> More at https://www.example.com",
		"See https://www.example.com and the section <OPENING_HOURS> below.",
	} {
		assert.False(t, check.IsPlaceholder(text), "%q", text)
	}
}

func TestSamplesAreNoValues(t *testing.T) {
	for _, text := range []string{"YOUR_ORG", "YOUR_KEY", "YOUR-API-KEY", "your_api_key", "Your key", "voiceID", "voiceId", "voice_id", "VOICE_ID", "voiceID_eleven_turbo_v2_5", "apiKey", "API_KEY",
		"headId", "a voice of your choice", "Provider of your choice", "of-your-choice", " voiceID ", "string", "<KEY>"} {
		assert.True(t, check.IsSample(text), "%q", text)
	}
	for _, text := range []string{"", "azure", "rachel", "en-GB-SoniaNeural", "pNInz6obpgDQGcFmaJgB_eleven_turbo_v2_5", "0123456789abcdef", "MyOrg-1234", "your-org-1234", "Yours", "yourvoice",
		"VF.DM.0123", "voice-1", "keyId", "li-28379", "of your own choice"} {
		assert.False(t, check.IsSample(text), "%q", text)
	}
}

func TestFindPlaceholderLooksAtValuesAtEveryDepth(t *testing.T) {
	tests := []struct{ name, document, found string }{
		{"nothing", `null`, ""},
		{"a number", `1`, ""},
		{"a text", `"string"`, "string"},
		{"an escaped text", `"\u0073tring"`, "string"},
		{"white space", " \n\"string\"", "string"},
		{"a list", `[1,["a",["<X>"]]]`, "<X>"},
		{"an object", `{"a":{"b":{"c":"<API_KEY>"}}}`, "<API_KEY>"},
		{"the first of two", `{"a":"<FIRST>","b":"string"}`, "<FIRST>"},
		{"the name of a member", `{"string":"a","<API_KEY>":{"string":1}}`, ""},
		{"of an address only the placeholder", `"https://chat.example.com/canary?api_key=<KEY>&x=canary"`, "<KEY>"},
		{"part of a text", `{"a":"a string","b":"use <KEY> here"}`, ""},
		{"the name of a member before white space", "{\"string\" \n\t: \"a\"}", ""},
		{"behind a quotation mark in a text", `["\"<A>\\",{"a":"\\\"string"},"<X>"]`, "<X>"},
		{"behind braces in a text", `["}]{[:,","string"]`, "string"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, json.Valid([]byte(tt.document)))
			assert.Equal(t, tt.found, check.FindPlaceholder([]byte(tt.document)))
		})
	}
}

// Nesting must not multiply the time. One pass takes less than a millisecond; one
// pass for each level takes many seconds.
func TestFindPlaceholderReadsADocumentOnce(t *testing.T) {
	const depth = 1 << 17
	document := strings.Repeat(`[`, depth) + `"<X>"` + strings.Repeat(`]`, depth)
	start := time.Now()
	assert.Equal(t, "<X>", check.FindPlaceholder([]byte(document)))
	assert.Less(t, time.Since(start), 3*time.Second)
}
