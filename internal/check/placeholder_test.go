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
		"<RULES>Answer briefly.</RULES> More at https://www.example.com", "See https://www.example.com and the section <OPENING_HOURS> below.",
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
	for document, found := range map[string]string{
		`null`: "", `1`: "", `"string"`: "string", `"\u0073tring"`: "string", " \n\"string\"": "string",
		`[1,["a",["<X>"]]]`: "<X>", `{"a":{"b":{"c":"<API_KEY>"}}}`: "<API_KEY>", `{"a":"<FIRST>","b":"string"}`: "<FIRST>",
		`{"string":"a","<API_KEY>":{"string":1}}`: "", "{\"string\" \n\t: \"a\"}": "", // the names of members
		`"https://chat.example.com/canary?api_key=<KEY>&x=canary"`: "<KEY>", `{"a":"a string","b":"use <KEY> here"}`: "",
		`["\"<A>\\",{"a":"\\\"string"},"<X>"]`: "<X>", `["}]{[:,","string"]`: "string",
	} {
		require.True(t, json.Valid([]byte(document)))
		assert.Equal(t, found, check.FindPlaceholder([]byte(document)), document)
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
