package headstest_test

import (
	"fmt"
	"testing"

	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
)

// The three operations that are not in the contract.

func TestSwitchOfDeliveryCanBeRead(t *testing.T) {
	a := newAPI(t, headstest.WithResponses(headstest.ResponsesRecord))
	id := a.AddHead(headstest.Head{})
	for _, on := range []bool{false, true, false} {
		a.ok("PUT", fmt.Sprintf("/head/%s/enable-events?enableEvents=%t", id, on), "")
		ans := a.ok("GET", "/head/"+id+"/enable-events", "")
		assert.Equal(t, fmt.Sprint(on), ans.body, "bare, whatever the style of the answers")
		assert.Contains(t, ans.header.Get("Content-Type"), "application/json")
	}
}

func TestConversationSettingsCanBeRead(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	path := "/head/" + id + "/conversation-settings"
	assert.Equal(t, `{"conversationSettings":{"tools":[]}}`, a.ok("GET", path, "").body)
	const whole = `{"conversationSettings":{"tools":[` + goodTool + `], "model" : {"n":1.0}}}`
	a.ok("PUT", path, whole)
	assert.Equal(t, whole, a.ok("GET", path, "").body, "byte for byte")
	none := a.AddHead(headstest.Head{Fields: map[string]any{"conversationSettings": nil}})
	assert.Equal(t, `{"conversationSettings":null}`, a.ok("GET", "/head/"+none+"/conversation-settings", "").body)
}

func TestSplitterIsSwitchedByItsOperation(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{HeadVisualID: a.AddVisual(headstest.Visual{})})
	before := a.head(id)
	splitter := func(on bool) string { return fmt.Sprintf("/head/%s/splitter?splitter=%t", id, on) }
	a.ok("PUT", splitter(false), "")
	assert.Equal(t, []any{false, false}, []any{a.head(id)["splitter"], a.head(id)["videoStreaming"]})

	a.ok("PUT", streaming(id, true), "")
	a.ok("PUT", splitter(false), "")
	assert.Equal(t, true, a.head(id)["videoStreaming"])
	a.ok("PUT", splitter(true), "")
	after := a.head(id)
	assert.Equal(t, []any{true, false, before["publicUrl"]}, []any{after["splitter"], after["videoStreaming"], after["publicUrl"]},
		"a streaming head is forced back to legacy")

	for _, query := range []string{"", "?splitter", "?splitter=1", "?splitter=true&splitter=false", "?Splitter=true"} {
		a.do("PUT", "/head/"+id+"/splitter"+query, "").refused(t, 400, "splitter")
	}
}

func TestBodyOfEnableEventsIsIgnored(t *testing.T) {
	a := newAPI(t)
	id := a.AddHead(headstest.Head{})
	a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", `{"enableEvents":false}`)
	assert.Equal(t, true, a.head(id)["enableEvents"])
	a.do("PUT", "/head/"+id+"/enable-events", `{"enableEvents":false}`).refused(t, 400, "query")
}
