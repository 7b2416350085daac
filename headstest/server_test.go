package headstest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResetKeepsOnlyTheOptions(t *testing.T) {
	a := newAPI(t, headstest.WithResponses(headstest.ResponsesBool))
	visual := a.AddVisual(headstest.Visual{})
	id := a.AddHead(headstest.Head{HeadVisualID: visual})
	a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test"}`)
	a.Inject(headstest.Fault{Method: "GET", Route: "/head/{id}", Status: 500})
	a.Reset()
	assert.Empty(t, a.Requests())
	assert.Empty(t, a.Heads())
	a.do("GET", "/head/"+id, "").refused(t, 404, "no head")
	a.do("GET", "/head_visual/"+visual, "").refused(t, 404, "no head visual")
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

func TestEmulatorIsAPlainHandler(t *testing.T) {
	e := headstest.NewEmulator(headstest.WithToken("t"))
	defer e.Close()
	id := e.AddHead(headstest.Head{})
	req, err := http.NewRequest("GET", "/head/"+id, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer t")
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, req)
	assert.Equal(t, 200, rec.Code)
	assert.Contains(t, rec.Body.String(), id)
}

func TestManyCallsAtOnce(t *testing.T) {
	a := newAPI(t, headstest.WithJournalSize(100))
	id := a.AddHead(headstest.Head{})
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
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(a.ok("GET", "/head-events?headId="+id, "").body), &list))
	assert.Len(t, list, 100)
	assert.Len(t, a.Requests(), 100)
}

func TestClientReachesTheServer(t *testing.T) {
	srv := headstest.NewServer(headstest.WithLogger(nil))
	defer srv.Close()
	id := srv.AddHead(headstest.Head{Name: "Ada"})
	h, err := srv.Client().Heads.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "Ada", h.Name)
}

func TestClientPanicsOnARefusedOption(t *testing.T) {
	srv := headstest.NewServer()
	defer srv.Close()
	twice := heads.WithTokenSource(nil) // a token is already set
	assert.Panics(t, func() { srv.Client(twice) })
}

func TestClosedServerAnswersNothing(t *testing.T) {
	srv := headstest.NewServer()
	srv.Close()
	resp, err := (&http.Client{Transport: &http.Transport{}}).Get(srv.URL)
	if err == nil {
		err = errors.Join(errors.New("answered"), resp.Body.Close())
	}
	assert.NotContains(t, err.Error(), "answered")
}
