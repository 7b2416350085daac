package headstest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func streaming(id string, on bool) string {
	return fmt.Sprintf("/head/%s/video-streaming?videoStreaming=%t", id, on)
}

func TestLegacyHeadSwitchesToStreaming(t *testing.T) {
	for _, provider := range []string{"azure", "elevenlabs", "Azure", "ElevenLabs"} {
		a, id := newAPI(t).with(headstest.Head{TTSProvider: provider})
		before := a.head(id)
		assert.Equal(t, true, before["splitter"])
		assert.Contains(t, before["publicUrl"], "https://chat.example.test/")
		a.ok("PUT", streaming(id, true), "")
		after := a.head(id)
		assert.Equal(t, true, after["videoStreaming"], provider)
		assert.Equal(t, false, after["splitter"], "text splitting is disabled with it")
		assert.Equal(t, fmt.Sprintf("https://stream.example.test/%s/%s?api_key=%s", after["orgPublicId"], after["publicId"], apiKey(before)), after["publicUrl"])
	}
}

func TestSwitchToStreamingIsRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		visual headstest.Visual
		head   headstest.Head
		status int
		says   string
	}{
		{"two loops", headstest.Visual{Mode: heads.VisualModeTwoLoops}, headstest.Head{}, 409, "two_loops"},
		{"two loops streaming", headstest.Visual{Mode: "two_loops_streaming"}, headstest.Head{}, 409, "two_loops_streaming"},
		{"hidden two loops", headstest.Visual{Mode: "two_loops", HideMode: true}, headstest.Head{}, 409, "new head"},
		{"no visual", headstest.Visual{}, headstest.Head{Fields: map[string]any{"headVisualId": nil}}, 409, "no visual"},
		{"provider", headstest.Visual{}, headstest.Head{TTSProvider: "acme"}, 422, "acme"},
		{"provider alike", headstest.Visual{}, headstest.Head{TTSProvider: "azure2"}, 422, "not capable of streaming"},
		{"voice", headstest.Visual{}, headstest.Head{TTSVoice: "mute"}, 422, "does not support streaming"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newAPI(t, headstest.WithNonStreamingVoices("mute"))
			row.head.HeadVisualID = a.AddVisual(row.visual)
			id := a.AddHead(row.head)
			before := a.head(id)
			a.do("PUT", streaming(id, true), "").refused(t, row.status, row.says)
			assert.Equal(t, before, a.head(id), "a refused switch changes nothing")
		})
	}
}

func TestSwitchInTheRecommendedOrder(t *testing.T) {
	a, id := newAPI(t).with(headstest.Head{TTSProvider: "acme"})
	a.do("PUT", streaming(id, true), "").refused(t, 422, "first")
	a.ok("PUT", "/head/update", `{"id":"`+id+`","ttsProvider":"elevenlabs","ttsVoice":"rachel"}`)
	a.ok("PUT", streaming(id, true), "")
	assert.Equal(t, true, a.head(id)["videoStreaming"])
}

func TestSwitchAgainChangesNothing(t *testing.T) {
	a := newAPI(t)
	for _, on := range []bool{true, false} {
		id := a.AddHead(headstest.Head{VideoStreaming: on, HeadVisualID: a.AddVisual(headstest.Visual{Mode: "two_loops"})})
		before := a.head(id)
		a.ok("PUT", streaming(id, on), "")
		assert.Equal(t, before, a.head(id))
	}
}

func TestSwitchBackToLegacyNeedsADefaultVisual(t *testing.T) {
	a, id := withHead(t)
	before := a.head(id)
	a.ok("PUT", streaming(id, true), "")
	a.ok("PUT", streaming(id, false), "")
	after := a.head(id)
	assert.Equal(t, false, after["videoStreaming"])
	assert.Equal(t, before["publicUrl"], after["publicUrl"])
	assert.Equal(t, false, after["splitter"], "text splitting does not come back by itself")

	silent := a.AddHead(headstest.Head{VideoStreaming: true, TTSProvider: "acme"})
	a.ok("PUT", streaming(silent, false), "")

	expressive := a.AddHead(headstest.Head{VideoStreaming: true, HeadVisualID: a.AddVisual(headstest.Visual{Mode: "two_loops"})})
	a.do("PUT", streaming(expressive, false), "").refused(t, 409, "two_loops")
	assert.Equal(t, true, a.head(expressive)["videoStreaming"])
}

func TestSplitterForcesAHeadBackToLegacy(t *testing.T) {
	a, id := withHead(t)
	before := a.head(id)
	splitter := "/head/" + id + "/splitter?splitter="
	a.ok("PUT", splitter+"false", "")
	assert.Subset(t, a.head(id), map[string]any{"splitter": false, "videoStreaming": false})
	for _, turnOn := range []func(){func() { a.ok("PUT", splitter+"true", "") }, func() { require.NoError(t, a.EnableSplitter(id)) }} {
		a.ok("PUT", streaming(id, true), "")
		a.ok("PUT", splitter+"false", "")
		assert.Equal(t, true, a.head(id)["videoStreaming"])
		turnOn()
		assert.Subset(t, a.head(id), map[string]any{"splitter": true, "videoStreaming": false, "publicUrl": before["publicUrl"]})
	}
	assert.ErrorContains(t, a.EnableSplitter("nobody"), "no head")
}

func TestSwitchNeedsABooleanAndNoBody(t *testing.T) {
	a, id := withHead(t)
	for _, operation := range []string{"video-streaming?videoStreaming", "enable-events?enableEvents", "splitter?splitter"} {
		path, name, _ := strings.Cut("/head/"+id+"/"+operation, "?")
		for _, query := range []string{"", "?", "?*", "?*=", "?*=1", "?*=yes", "?*=TRUE", "?*=true&x=%zz", "?*s=true", "?" + strings.ToUpper(name) + "=true"} {
			a.do("PUT", path+strings.ReplaceAll(query, "*", name), "").refused(t, 400, "query")
		}
		a.do("PUT", path, "").refused(t, 400, name)
		a.do("PUT", path+"?"+name+"=true&"+name+"=false", "").refused(t, 400, "once")
	}
	a.do("PUT", streaming(id, true), `{}`).refused(t, 400, "no body")
	assert.Equal(t, false, a.head(id)["videoStreaming"])
}

func TestStreamingHeadRefusesAVoiceThatCantStream(t *testing.T) {
	a, id := newAPI(t, headstest.WithNonStreamingVoices("mute")).with(headstest.Head{VideoStreaming: true})
	before := a.head(id)
	for _, fields := range []string{`"ttsProvider":"acme","ttsVoice":"x"`, `"ttsProvider":"acme"`, `"ttsVoice":"mute"`} {
		a.do("PUT", "/head/update", `{"id":"`+id+`","name":"new",`+fields+`}`).refused(t, 422, "stream")
	}
	assert.Equal(t, before, a.head(id))
	a.ok("PUT", "/head/update", `{"id":"`+id+`","ttsProvider":"ElevenLabs","ttsVoice":"rachel"}`)
	odd := a.AddHead(headstest.Head{VideoStreaming: true, TTSProvider: "acme"})
	a.ok("PUT", "/head/update", `{"id":"`+odd+`","name":"other fields are free"}`)
}

func TestAccessURLsAreSettable(t *testing.T) {
	a, id := withHead(t, headstest.WithAccessURLs("http://127.0.0.1:1/chat/", "http://127.0.0.1:2/stream"))
	assert.Contains(t, a.head(id)["publicUrl"], "http://127.0.0.1:1/chat/MyOrg-")
	a.ok("PUT", streaming(id, true), "")
	assert.Contains(t, a.head(id)["publicUrl"], "http://127.0.0.1:2/stream/MyOrg-")
	a, id = withHead(t, headstest.WithStaleAddresses())
	before := a.head(id)["publicUrl"]
	a.ok("PUT", streaming(id, true), "")
	assert.Subset(t, a.head(id), map[string]any{"publicUrl": before, "videoStreaming": true})
}

func TestHeadWithoutAnAccessURLGetsOne(t *testing.T) {
	a, id := newAPI(t).with(headstest.Head{Fields: map[string]any{"publicUrl": ""}})
	assert.Empty(t, a.head(id)["publicUrl"])
	a.ok("PUT", streaming(id, true), "")
	assert.NotEmpty(t, apiKey(a.head(id)))
}

func TestStreamingProvidersAreSettable(t *testing.T) {
	a := newAPI(t, headstest.WithStreamingProviders("acme"))
	a.ok("PUT", streaming(a.AddHead(headstest.Head{TTSProvider: "acme"}), true), "")
	a.do("PUT", streaming(a.AddHead(headstest.Head{TTSProvider: "azure"}), true), "").refused(t, 422, "acme")
}

func TestVoicesOfTheRecommendedModelsStream(t *testing.T) {
	a := newAPI(t)
	for _, model := range []string{"flash_v2", "flash_v2_5", "turbo_v2", "turbo_v2_5"} {
		id := a.AddHead(headstest.Head{TTSProvider: "elevenlabs", TTSVoice: "pNInz6obpgDQGcFmaJgB_eleven_" + model})
		a.ok("PUT", streaming(id, true), "")
		assert.Equal(t, true, a.head(id)["videoStreaming"], model)
	}
}
