package headstest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headsapi/heads-go/headstest"
)

func TestResetKeepsOnlyTheOptions(t *testing.T) {
	a := newAPI(t, headstest.WithResponses(headstest.ResponsesBool))
	id := a.AddHead(headstest.Head{HeadVisualID: "v"})
	a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test"}`)
	a.Inject(headstest.Fault{Method: "GET", Route: "/head/{id}", Status: 500})
	a.Reset()
	assert.Empty(t, a.Requests())
	assert.Empty(t, a.Heads())
	a.do("GET", "/head/"+id, "").refused(t, 404, "no head")
	a.do("GET", "/head_visual/v", "").refused(t, 404, "no head visual")
	a.do("GET", "/head-events/1", "").refused(t, 404, "no webhook")
	again := a.AddHead(headstest.Head{})
	assert.Equal(t, "true", a.ok("PUT", "/head/update", `{"id":"`+again+`","name":"Bea"}`).body)
}

func TestSeedMakesTheSameIDs(t *testing.T) {
	record := func(a *api) string {
		id := a.AddHead(headstest.Head{})
		h := a.head(id)
		_, key := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test"}`)
		return fmt.Sprint(a.Token, id, h["headVisualId"], h["publicUrl"], h["publicId"], h["orgId"], key)
	}
	one, two := newAPI(t, headstest.WithSeed(7)), newAPI(t, headstest.WithSeed(7))
	first := record(one)
	assert.Equal(t, first, record(two))
	one.Reset()
	assert.Equal(t, first, record(one), "a reset starts over")
	assert.NotEqual(t, first, record(newAPI(t, headstest.WithSeed(8))))
	unseeded := newAPI(t)
	first = record(unseeded)
	unseeded.Reset()
	assert.NotEqual(t, first, record(unseeded), "without a seed nothing made up comes back")
}

func TestManyCallsAtOnce(t *testing.T) {
	a, id := withConsole(t, headstest.WithJournalSize(100)).with(headstest.Head{})
	calls := []func(n int){
		func(n int) { a.ok("PUT", "/head/update", fmt.Sprintf(`{"id":"%s","name":"n%d"}`, id, n)) },
		func(int) { a.head(id) },
		func(n int) { a.ok("PUT", fmt.Sprintf("/head/%s/video-streaming?videoStreaming=%t", id, n%2 == 0), "") },
		func(int) {
			a.ok("POST", "/head-events", `{"headId":"`+id+`","webhookUrl":"https://hook.example.test"}`)
		},
		func(int) { a.ok("GET", "/head-events?headId="+id, "") },
		func(int) { a.AddHead(headstest.Head{}) },
		func(int) { a.Inject(headstest.Fault{Route: "/head/nobody", Times: 1})() },
		func(int) { assert.NoError(t, a.EnableSplitter(id)); a.Requests() },
		func(int) { a.controlled("POST", "sessions", `{"headId":"`+id+`"}`) },
		func(n int) {
			a.controlled("GET", []string{"state", "sessions", "deliveries", "faults", "health", "requests"}[n%6], "")
		},
	}
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for n := range 50 {
				calls[(worker+n)%len(calls)](n)
			}
		})
	}
	wg.Wait()
	assert.Len(t, a.list(id), 80)
	assert.Len(t, a.Requests(), 100)
}

func TestClosedServerAnswersNothing(t *testing.T) {
	a, id := withHead(t)
	a.head(id)
	a.Close()
	assert.Error(t, a.rename(id, time.Minute))
}
