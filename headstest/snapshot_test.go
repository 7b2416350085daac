package headstest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestSnapshotHoldsWhatTheOperationsAnswer(t *testing.T) {
	a := newAPI(t)
	assert.Empty(t, a.Snapshot().Heads)
	second := a.AddHead(headstest.Head{ID: "b", HeadVisualID: a.AddVisual(headstest.Visual{ID: "w", Mode: "two_loops", HideMode: true})})
	first := a.AddHead(headstest.Head{ID: "a", HeadVisualID: a.AddVisual(headstest.Visual{ID: "v"})})
	for range 12 {
		a.register(`{"headId":"` + first + `","webhookUrl":"https://hook.example.test","endConversation":true}`)
	}
	requests := len(a.Requests())
	s := a.Snapshot()
	assert.Len(t, a.Requests(), requests, "it leaves no trace")
	assert.Equal(t, []int{2, 2, 12}, []int{len(s.Heads), len(s.Visuals), len(s.Webhooks)})
	paths := []string{"/head/" + first, "/head/" + second, "/head_visual/v", "/head_visual/w"}
	for i := range s.Webhooks {
		paths = append(paths, fmt.Sprint("/head-events/", i+1))
	}
	for i, record := range slices.Concat(s.Heads, s.Visuals, s.Webhooks) {
		assert.Equal(t, a.ok("GET", paths[i], "").body, string(record), paths[i])
	}
}

func TestSnapshotHoldsTheFaultsThatAreLeft(t *testing.T) {
	a := newAPI(t)
	always, twice := headstest.Fault{Route: "/head/{id}", Status: 500}, headstest.Fault{Status: 429, Times: 2}
	a.Inject(twice)
	a.Inject(always)
	drop := headstest.DeliveryFault{Drop: true, Times: 3}
	a.InjectDelivery(drop)
	a.InjectDelivery(headstest.DeliveryFault{Reorder: true})
	require.Equal(t, 429, a.do("GET", "/head/x", "").status)
	twice.Times = 1
	s := a.Snapshot()
	assert.Equal(t, []headstest.Fault{twice, always}, s.Faults)
	assert.Equal(t, []headstest.DeliveryFault{drop, {Reorder: true}}, s.DeliveryFaults)
	a.do("GET", "/head/x", "")
	require.Equal(t, 500, a.do("GET", "/head/x", "").status)
	assert.Equal(t, []headstest.Fault{always}, a.Snapshot().Faults, "always stays always")
}

func TestRemoveFaultsEndsThemAll(t *testing.T) {
	play(t, &receiver{}, nil, func(s *scene) {
		remove := s.Inject(headstest.Fault{Status: 500})
		removeDrop := s.InjectDelivery(headstest.DeliveryFault{Drop: true})
		s.converse("message")
		removeDrop()
		s.converse("close")
		assert.Equal(t, []string{"end_conversation"}, s.types(), "one was removed")
		s.InjectDelivery(headstest.DeliveryFault{Drop: true})
		s.InjectDelivery(headstest.DeliveryFault{CorruptSignature: true})
		s.RemoveFaults()
		assert.Empty(t, s.Snapshot().Faults)
		remove()
		s.converse("message")
		require.Len(t, s.all(), 2)
		assert.Equal(t, hexHMAC(s.all()[1].body, s.key), s.all()[1].signature)
		s.api.head(s.head)
	})
}

func TestDeliveriesCountFromOne(t *testing.T) {
	play(t, &receiver{answer: always(500)}, []headstest.Option{headstest.WithJournalSize(3)}, func(s *scene) {
		ids := func() (ids []int) {
			for _, d := range s.Deliveries() {
				ids = append(ids, d.ID)
			}
			return ids
		}
		session := s.StartSession(s.head)
		require.NoError(t, session.UserMessage("x"))
		first := need(s.WaitDelivery(s.t.Context(), nil))(t)
		assert.Equal(t, 1, first.ID)
		s.settle()
		assert.Equal(t, []int{2, 3, 4}, ids(), "what has left the journal counts too")
		s.InjectDelivery(headstest.DeliveryFault{Drop: true})
		require.NoError(t, session.Inactive())
		assert.Equal(t, []int{3, 4, 5}, ids())
		s.Reset()
		id := s.AddHead(headstest.Head{EnableEvents: true})
		addWebhook(t, s, id, "https://hook.example.test", allEvents...)
		require.NoError(t, s.StartSession(id).Inactive())
		again := need(s.WaitDelivery(s.t.Context(), nil))(t)
		assert.Equal(t, 1, again.ID)
	})
}

func TestAddToolFollowsTheOperationsRules(t *testing.T) {
	const settings = `{"model":{"n" : 1.0},"tools":[{"name" : "first","url":"https://tools.example.test/1"}]}`
	a, id := newAPI(t).with(headstest.Head{OperationMode: heads.OperationModeOC, Fields: map[string]any{"conversationSettings": json.RawMessage(settings)}})
	before := a.ok("GET", "/head/"+id, "").body
	for definition, says := range map[string]string{
		``: "not a JSON object", `[]`: "not a JSON object", `null`: "not a JSON object", `{}`: "tools[1] needs a name",
		`{"name":"a"}`: "url", `{"name":"a","url":"http://a.example.test"}`: "HTTPS", `{"name":"a","url":"https://a.example.test","parameters":[{}]}`: "parameters[0]",
	} {
		assert.ErrorContains(t, a.AddTool(id, json.RawMessage(definition)), says, definition)
	}
	assert.Equal(t, before, a.ok("GET", "/head/"+id, "").body, "a refused tool changes nothing")
	assert.ErrorContains(t, a.AddTool("nobody", json.RawMessage(goodTool)), "no head")

	const added = `{"name": "second", "url": "https://tools.example.test/2", "extra" : 2.0}`
	require.NoError(t, a.AddTool(id, json.RawMessage(added)))
	want := `"conversationSettings":{"model":{"n" : 1.0},"tools":[{"name" : "first","url":"https://tools.example.test/1"},` + added + `]}`
	assert.Contains(t, a.ok("GET", "/head/"+id, "").body, want, "byte for byte")

	bare := a.AddHead(headstest.Head{Fields: map[string]any{"conversationSettings": nil}})
	require.NoError(t, a.AddTool(bare, json.RawMessage(goodTool)))
	assert.Contains(t, a.ok("GET", "/head/"+bare, "").body, `"conversationSettings":{"tools":[`+goodTool+`]}`)
}
