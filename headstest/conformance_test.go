package headstest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryRouteIsInTheDescription(t *testing.T) {
	text, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(text, &description))
	var described []string
	for path, methods := range description.Paths {
		if strings.HasPrefix(path, "/_emulator/") {
			continue
		}
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(described)
	assert.Equal(t, described, headstest.Routes())
	assert.Equal(t, described, headstest.Patterns())
	assert.Len(t, described, 11+3, "the contract's, and those seen in the field")
}

func TestDeliverySwitchAndModeAreIndependent(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	mode, delivers := false, false
	for _, step := range []string{"video", "events", "video", "events", "events", "video", "video", "events"} {
		if step == "video" {
			mode = !mode
			a.ok("PUT", streaming(id, mode), "")
		} else {
			delivers = !delivers
			a.ok("PUT", fmt.Sprintf("/head/%s/enable-events?enableEvents=%t", id, delivers), "")
		}
		h := a.head(id)
		require.Equal(t, []any{mode, delivers}, []any{h["videoStreaming"], h["enableEvents"]})
	}
}

func TestVoiceAloneCanBeChanged(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	want := a.head(id)
	a.ok("PUT", "/head/update", `{"id":"`+id+`","ttsProvider":"elevenlabs","ttsVoice":"rachel"}`)
	got := a.head(id)
	want["ttsProvider"], want["ttsVoice"], want["updatedAt"] = "elevenlabs", "rachel", got["updatedAt"]
	assert.Equal(t, want, got)
}

func TestModeOfAVisualIsFoundThroughTheHead(t *testing.T) {
	a := newAPI(t)
	for _, mode := range []string{"default", "two_loops"} {
		id := a.AddHead(headstest.Head{HeadVisualID: a.AddVisual(headstest.Visual{Mode: heads.VisualMode(mode)})})
		visual := object(t, a.ok("GET", fmt.Sprint("/head_visual/", a.head(id)["headVisualId"]), "").body)
		assert.Equal(t, mode, visual["mode"])
	}
}

func TestVoicesOfTheRecommendedModelsStream(t *testing.T) {
	a := newAPI(t)
	for _, model := range []string{"flash_v2", "flash_v2_5", "turbo_v2", "turbo_v2_5"} {
		id := a.AddHead(headstest.Head{TTSProvider: "elevenlabs", TTSVoice: "pNInz6obpgDQGcFmaJgB_eleven_" + model})
		a.ok("PUT", streaming(id, true), "")
		assert.Equal(t, true, a.head(id)["videoStreaming"], model)
	}
}
