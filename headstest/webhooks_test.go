package headstest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

func (a *api) list(headID string) []map[string]any {
	a.t.Helper()
	return decoded[[]map[string]any](a.t, a.ok("GET", "/head-events?headId="+headID, "").body)
}

func TestWebhookShowsItsRecord(t *testing.T) {
	a, id := withHead(t)
	assert.Equal(t, "[]", a.ok("GET", "/head-events?headId="+id, "").body)
	created := a.ok("POST", "/head-events", `{"headId":"`+id+`","webhookUrl":"https://hook.example.test/x","endConversation":true}`)
	assert.Equal(t, 201, created.status)
	key := object(t, created.body)["sharedKey"]
	require.NotEmpty(t, key)
	assert.Len(t, object(t, created.body), 1)

	got := object(t, a.ok("GET", "/head-events/1", "").body)
	assert.NotEmpty(t, got["createdAt"])
	assert.NotEmpty(t, got["updatedAt"])
	assert.Equal(t, map[string]any{
		"id": 1.0, "orgId": a.head(id)["orgId"], "headId": id, "webhookUrl": "https://hook.example.test/x", "sharedKey": key, "createdAt": got["createdAt"],
		"updatedAt": got["updatedAt"], "startConversation": false, "endConversation": true, "timeoutConversation": false, "inactivityWarning": false,
	}, got, "flags that are left out are off")
	assert.Equal(t, got, a.list(id)[0])
}

func TestSecondWebhookIsAdded(t *testing.T) {
	a, id := withHead(t)
	other := a.AddHead(headstest.Head{})
	body := `{"headId":"` + id + `","webhookUrl":"https://hook.example.test"}`
	first, firstKey := a.register(body)
	second, secondKey := a.register(body)
	a.register(`{"headId":"` + other + `","webhookUrl":"https://hook.example.test"}`)
	assert.NotEqual(t, first, second)
	assert.NotEqual(t, firstKey, secondKey)
	for range 20 {
		a.register(body)
	}
	list := a.list(id)
	require.Len(t, list, 22)
	for i := range list[1:] {
		assert.Less(t, list[i]["id"], list[i+1]["id"], "oldest first")
	}
}

func TestWebhookIsRefused(t *testing.T) {
	a, id := withHead(t)
	for _, row := range []struct{ name, body, says string }{
		{"no head", `{"webhookUrl":"https://hook.example.test"}`, "headId is missing"},
		{"no address", `{"headId":"` + id + `"}`, "webhookUrl is missing"},
		{"head null", `{"headId":null,"webhookUrl":"https://hook.example.test"}`, "headId"},
		{"head number", `{"headId":1,"webhookUrl":"https://hook.example.test"}`, "headId"},
		{"address null", `{"headId":"` + id + `","webhookUrl":null}`, "webhookUrl"},
		{"address number", `{"headId":"` + id + `","webhookUrl":1}`, "webhookUrl"},
		{"address relative", `{"headId":"` + id + `","webhookUrl":"/x"}`, "absolute"},
		{"http", `{"headId":"` + id + `","webhookUrl":"http://hook.example.test"}`, "must use HTTPS"},
		{"http on loopback", `{"headId":"` + id + `","webhookUrl":"http://127.0.0.1:1"}`, "must use HTTPS (WithLoopbackHTTP allows"},
		{"other scheme", `{"headId":"` + id + `","webhookUrl":"ftp://hook.example.test"}`, "must use HTTPS"},
		{"flag text", `{"headId":"` + id + `","webhookUrl":"https://hook.example.test","endConversation":"true"}`, "endConversation"},
		{"flag null", `{"headId":"` + id + `","webhookUrl":"https://hook.example.test","inactivityWarning":null}`, "inactivityWarning"},
		{"flag number", `{"headId":"` + id + `","webhookUrl":"https://hook.example.test","timeoutConversation":1}`, "timeoutConversation"},
		{"flag list", `{"headId":"` + id + `","webhookUrl":"https://hook.example.test","startConversation":[]}`, "startConversation"},
	} {
		t.Run(row.name, func(t *testing.T) { a.do("POST", "/head-events", row.body).refused(t, 400, row.says) })
	}
	assert.Empty(t, a.list(id))
}

func TestPlainHTTPIsForLoopbackOnly(t *testing.T) {
	a, id := withHead(t, headstest.WithLoopbackHTTP())
	for _, host := range []string{"127.0.0.1:80", "127.1.2.3", "[::1]:5", "localhost:5"} {
		a.ok("POST", "/head-events", `{"headId":"`+id+`","webhookUrl":"http://`+host+`/x"}`)
	}
	for _, host := range []string{"hook.example.test", "10.0.0.1", "localhost.example.test", "127.0.0.1.example.test"} {
		a.do("POST", "/head-events", `{"headId":"`+id+`","webhookUrl":"http://`+host+`/x"}`).refused(t, 400, "HTTPS")
	}
}

func TestListNeedsAHead(t *testing.T) {
	a := newAPI(t)
	for _, query := range []string{"", "?headId=", "?headid=x", "?headId=a&headId=b", "?headId=%zz"} {
		a.do("GET", "/head-events"+query, "").refused(t, 400, "query")
	}
}

func TestPatchMerges(t *testing.T) {
	a, id := withHead(t)
	other := a.AddHead(headstest.Head{})
	hook, key := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test/x","endConversation":true,"inactivityWarning":true}`)
	path := fmt.Sprint("/head-events/", hook)
	for _, row := range []struct {
		name, body, field string
		want              any
	}{
		{"flag on", `{"startConversation":true}`, "startConversation", true},
		{"flag off", `{"endConversation":false}`, "endConversation", false},
		{"address", `{"webhookUrl":"https://hook.example.test/y"}`, "webhookUrl", "https://hook.example.test/y"},
		{"head", `{"headId":"` + other + `"}`, "headId", other},
		{"what is read-only", `{"id":99,"sharedKey":"mine","orgId":"x","timeoutConversation":true}`, "timeoutConversation", true},
	} {
		before := object(t, a.ok("GET", path, "").body)
		a.ok("PATCH", path, row.body)
		after := object(t, a.ok("GET", path, "").body)
		before[row.field], before["updatedAt"] = row.want, after["updatedAt"]
		assert.Equal(t, before, after, row.name)
		assert.Equal(t, key, after["sharedKey"])
	}
	assert.Empty(t, a.list(id))
	assert.Len(t, a.list(other), 1)
}

func TestPatchIsRefused(t *testing.T) {
	a, id := withHead(t)
	hook, _ := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test/x"}`)
	path := fmt.Sprint("/head-events/", hook)
	before := a.ok("GET", path, "").body
	a.do("PATCH", path, `{}`).refused(t, 400, "no field")
	a.do("PATCH", path, `{"endConversation":true,"webhookUrl":"http://hook.example.test"}`).refused(t, 400, "HTTPS")
	a.do("PATCH", path, `{"webhookUrl":"https://y.example.test","endConversation":"x"}`).refused(t, 400, "endConversation")
	a.do("PATCH", path, `{"endConversation":true,"headId":"nobody"}`).refused(t, 404, "no head")
	assert.Equal(t, before, a.ok("GET", path, "").body, "a refused change changes nothing")
}

func TestDeletedWebhookIsRemoved(t *testing.T) {
	a, id := withHead(t)
	hook, _ := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test/x"}`)
	path := fmt.Sprint("/head-events/", hook)
	a.ok("DELETE", path, "")
	for _, path := range []string{path, "/head-events/99", "/head-events/0", "/head-events/-1", "/head-events/x", "/head-events/99999999999999999999"} {
		a.do("GET", path, "").refused(t, 404, "no webhook")
		a.do("PATCH", path, `{"endConversation":true}`).refused(t, 404, "no webhook")
		a.do("DELETE", path, "").refused(t, 404, "no webhook")
	}
	again, _ := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test/x"}`)
	assert.NotEqual(t, hook, again)
}

const early = "made before delivery was enabled; the real service may not deliver to it"

// The contract does not define the order. It was seen in the field that a webhook made
// first never delivers.
func TestWebhookMadeBeforeDeliveryIsEnabled(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict %t", strict), func(t *testing.T) {
			var log lockedBuilder
			opts := []headstest.Option{log.option(), headstest.WithRetrySchedule()}
			if strict {
				opts = append(opts, headstest.WithStrictOrder())
			}
			a, id := withConsole(t, opts...).with(headstest.Head{})
			other := a.AddHead(headstest.Head{})
			body := `{"headId":"` + id + `","webhookUrl":"` + serving(t, func(http.ResponseWriter, *http.Request) {}) + `","endConversation":true}`
			before, _ := a.register(body)
			assert.Contains(t, log.String(), fmt.Sprintf(`level=WARN msg=%q webhook=%d head=%s strict_order=%t`, early, before, id, strict))
			a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", "")
			after, _ := a.register(body)
			a.ok("PATCH", fmt.Sprint("/head-events/", before), `{"startConversation":true}`)
			notes := func() (notes []any) {
				for _, r := range read[struct{ Registrations []map[string]any }](a, "state").Registrations {
					notes = append(notes, r["note"])
				}
				return notes
			}
			assert.Equal(t, []any{early, nil}, notes())
			assert.Equal(t, 1, strings.Count(log.String(), early), "one line")

			delivered := func() (ids []int64) {
				s := a.StartSession(id)
				require.NoError(t, s.Close())
				for _, d := range a.endedOf(s) {
					ids = append(ids, d.WebhookID)
				}
				slices.Sort(ids)
				return ids
			}
			if strict {
				assert.Equal(t, []int64{after}, delivered())
				a.ok("DELETE", fmt.Sprint("/head-events/", after), "")
				assert.Empty(t, delivered())
				assert.Equal(t, "made before delivery was enabled", a.whyUndelivered(a.StartSession(id)))
			} else {
				assert.Equal(t, []int64{before, after}, delivered())
			}

			// Disabling delivery again changes nothing for a webhook. A webhook that is moved to
			// another head is then made for that head.
			a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=false", "")
			a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", "")
			a.ok("PUT", "/head/"+other+"/enable-events?enableEvents=true", "")
			for _, move := range []struct {
				head string
				note any
			}{{id, early}, {other, nil}, {a.AddHead(headstest.Head{}), early}} {
				a.ok("PATCH", fmt.Sprint("/head-events/", before), `{"headId":"`+move.head+`"}`)
				assert.Equal(t, move.note, notes()[0])
			}
			assert.Equal(t, 2, strings.Count(log.String(), early))
		})
	}
}

// endedOf returns the deliveries of a session after each has ended.
func (a *api) endedOf(s *headstest.Session) (list []headstest.Delivery) {
	a.t.Helper()
	of := func(d headstest.Delivery) bool { return d.Event.SessionID == s.ID() }
	for seen := 0; s.Undelivered() > 0; {
		d, err := a.WaitDelivery(a.t.Context(), func(d headstest.Delivery) bool { return of(d) && d.ID > seen })
		require.NoError(a.t, err)
		seen = d.ID
	}
	return slices.DeleteFunc(a.Deliveries(), func(d headstest.Delivery) bool { return !of(d) })
}

func TestWebhooksOfASeedAreMadeAfterTheirHeads(t *testing.T) {
	var log lockedBuilder
	e := newEmulator(t, log.option())
	const seed = `{"heads":[{"id":"` + seedHead + `","enableEvents":%t}],"registrations":[{"headId":"` + seedHead + `","webhookUrl":"https://a.example.test"}]}`
	_, err := e.Restart(seedOf(t, fmt.Sprintf(seed, true)))
	require.NoError(t, err)
	assert.NotContains(t, log.String(), early)
	_, err = e.Restart(seedOf(t, fmt.Sprintf(seed, false)))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(log.String(), early))
	_, err = e.Import(seedOf(t, `{"registrations":[{"headId":"`+seedHead+`","webhookUrl":"https://a.example.test"},{"headId":"nobody","webhookUrl":"https://a.example.test"}]}`))
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(log.String(), early), "a refused seed makes none")
}

func TestAddWebhookFollowsTheOperationsRules(t *testing.T) {
	e := newEmulator(t)
	id := e.AddHead(headstest.Head{})
	_, _, err := e.AddWebhook(id, "http://hook.example.test")
	assert.ErrorContains(t, err, "HTTPS")
	_, _, err = e.AddWebhook("nobody", "https://hook.example.test")
	assert.ErrorContains(t, err, "no head")
	_, _, err = e.AddWebhook(id, "https://hook.example.test", "coffee_break")
	assert.ErrorContains(t, err, "coffee_break")
}

func TestDeliverySwitchAndModeAreIndependent(t *testing.T) {
	a, id := withHead(t, headstest.WithResponses(headstest.ResponsesRecord))
	a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test/x"}`)
	paths := map[string]string{"videoStreaming": "video-streaming", "enableEvents": "enable-events"}
	want := map[string]bool{} // delivery is disabled at first
	for _, step := range strings.Fields("videoStreaming=true enableEvents=true enableEvents=true videoStreaming=false enableEvents=false " +
		"enableEvents=false videoStreaming=true videoStreaming=false") {
		h := a.head(id)
		require.Equal(t, []any{want["videoStreaming"], want["enableEvents"]}, []any{h["videoStreaming"], h["enableEvents"]})
		ans := a.ok("GET", "/head/"+id+"/enable-events", "")
		assert.Equal(t, fmt.Sprint(want["enableEvents"]), ans.body, "bare, whatever the style of the answers")
		assert.Contains(t, ans.header.Get("Content-Type"), "application/json")
		assert.Len(t, a.list(id), 1, "the webhooks are kept")
		name, value, _ := strings.Cut(step, "=")
		a.ok("PUT", "/head/"+id+"/"+paths[name]+"?"+step, "")
		want[name] = value == "true"
	}
}

func TestBodyOfEnableEventsIsIgnored(t *testing.T) {
	a, id := withHead(t)
	a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", `{"enableEvents":false}`)
	assert.Equal(t, true, a.head(id)["enableEvents"])
	a.do("PUT", "/head/"+id+"/enable-events", `{"enableEvents":false}`).refused(t, 400, "query")
}
