package headstest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// canaries are secrets, one for every field of a head, a tool and a webhook
// that can hold one.
const canaries = `{
	"heads": [{"id": "` + seedHead + `", "name": "Ada", "operationMode": "oc", "enableEvents": true, "voiceflowApiKey": "canary",
		"publicUrl": "https://canary:canary@chat.example.test/MyOrg-1/li-1?api_key=canary#canary", "organisation": {"apiKey": "canary", "name": "MyOrg"},
		"extra": {"apiKey": "canary", "nested": [{"access_token": "canary"}], "link": "https://x.example.test/?k=canary"},
		"conversationSettings": {"model": {"api_key": "canary"}, "tools": [{"name": "weather", "url": "http://127.0.0.1:1/w?key=canary"}]}}],
	"registrations": [{"headId": "` + seedHead + `", "webhookUrl": "http://127.0.0.1:1/?key=canary", "endConversation": true, "sharedKey": "canary"}]
}`

// withConsole starts a server with a console. Requests have the headers of its own page.
func withConsole(t testing.TB, opts ...headstest.Option) *api {
	return newAPI(t, append(opts, headstest.WithConsole(), headstest.WithLoopbackHTTP())...)
}

// control calls the control API as the console's page does.
func (a *api) control(method, path, body string) answer {
	a.t.Helper()
	req := a.request(method, "/_emulator/"+path, body)
	req.Header.Del("Authorization")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Content-Type", "application/json")
	return a.send(req)
}

func (a *api) controlled(method, path, body string, v any) {
	a.t.Helper()
	ans := a.control(method, path, body)
	require.Less(a.t, ans.status, 300, "%s %s: %s", method, path, ans.body)
	if v != nil {
		require.NoError(a.t, json.Unmarshal([]byte(ans.body), v), ans.body)
	}
}

// ids returns the ids of a list of the control API.
func (a *api) ids(path string) (ids []int) {
	a.t.Helper()
	var list []struct{ ID int }
	a.controlled("GET", path, "", &list)
	for _, item := range list {
		ids = append(ids, item.ID)
	}
	return ids
}

func TestConsoleIsServedOnlyWithItsOption(t *testing.T) {
	newAPI(t).do("GET", "/_emulator/", "").refused(t, 404, "not an operation")
	a := withConsole(t)
	browser := a.request("GET", "/_emulator/", "")
	browser.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	ans := a.send(browser)
	assert.Equal(t, 200, ans.status)
	assert.Contains(t, ans.header.Get("Content-Type"), "text/html")
	assert.Contains(t, a.control("GET", "", "").body, `"requests"`, "anything else reads the list")
}

func TestBrowserIsRedirectedToTheConsole(t *testing.T) {
	a := withConsole(t)
	a.hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req := a.request("GET", "/", "")
	a.send(req).refused(t, 404, "not an operation")
	req.Header.Del("Authorization")
	a.send(req).refused(t, 404, "not an operation")
	req.Header.Set("Accept", "text/html")
	ans := a.send(req)
	assert.Equal(t, []any{303, "/_emulator/"}, []any{ans.status, ans.header.Get("Location")})
	assert.Len(t, a.Requests(), 2, "the redirect is no request of the API")
}

func TestConsoleRefusesOtherMachinesAndSites(t *testing.T) {
	a := withConsole(t)
	for _, path := range []string{"", "state", "assets/main.js", "assets/style.css", "nothing"} {
		h := a.control("GET", path, "").header
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", path)
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", path)
		assert.Equal(t, []string{"nosniff", "no-referrer", "same-origin"},
			[]string{h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"), h.Get("Cross-Origin-Opener-Policy")}, path)
	}
}

func TestPageHoldsNoSecretUntilItIsRevealed(t *testing.T) {
	a := withConsole(t)
	a.controlled("POST", "seed", canaries, nil)
	a.controlled("POST", "heads/"+seedHead+"/update", `{"voiceflowApiKey":"canary two","fileUrl":"https://f.example.test/?sig=canary"}`, nil)
	var session struct{ ID string }
	a.controlled("POST", "sessions", `{"headId":"`+seedHead+`"}`, &session)
	a.controlled("POST", "sessions/"+session.ID+"/tool-calls", `{"tool":"weather"}`, nil)
	a.controlled("POST", "sessions/"+session.ID+"/close", "", nil)
	a.controlled("GET", "deliveries?wait=30s", "", nil)
	page := a.request("GET", "/_emulator/", "")
	page.Header.Set("Accept", "text/html")
	shown := a.send(page).body
	for _, path := range []string{"state", "heads/" + seedHead, "sessions", "sessions/" + session.ID, "deliveries", "deliveries/1", "deliveries/1/go-test",
		"requests", "requests/1", "faults", "export"} {
		ans := a.control("GET", path, "")
		require.Equal(t, 200, ans.status, path)
		assert.NotContains(t, ans.body, "canary", path)
		shown += ans.body
	}
	assert.NotContains(t, shown, "canary")
	assert.NotContains(t, shown, a.Token)
	assert.Contains(t, shown, "https://chat.example.test/MyOrg-1/li-1")

	for path, secret := range map[string]string{"heads/" + seedHead + "/address": "api_key=canary", "deliveries/1/curl": "?key=canary", "export?keys=true": `"sharedKey":"canary"`} {
		assert.Contains(t, a.control("GET", path, "").body, secret, path)
		for name, value := range map[string]string{"Sec-Fetch-Site": "none", "Origin": "http://attacker.example.test", "Content-Type": "text/plain"} {
			req := a.request("GET", "/_emulator/"+path, "")
			req.Header.Set("Content-Type", "application/json")
			if name == "Content-Type" {
				req.Header.Set("Sec-Fetch-Site", "same-origin")
			}
			req.Header.Set(name, value)
			ans := a.send(req)
			assert.GreaterOrEqual(t, ans.status, 400, "%s with %s %s", path, name, value)
			assert.NotContains(t, ans.body, "canary", path)
		}
	}
}

func TestExportWithoutKeysCanBeImported(t *testing.T) {
	a := withConsole(t)
	a.controlled("POST", "seed", canaries, nil)
	export := a.control("GET", "export", "").body
	a.controlled("POST", "reset", "", nil)
	assert.Empty(t, a.Heads())
	a.controlled("POST", "seed", export, nil)
	assert.Equal(t, []string{seedHead}, a.Heads())
	assert.Contains(t, a.head(seedHead)["publicUrl"], "api_key=", "keys are generated anew")
	a.control("GET", "export?keys=perhaps", "").refused(t, 400, "keys=true")
}

func TestControlAPIAnswersAtTheAddressOfTheConnection(t *testing.T) {
	e := newEmulator(t, headstest.WithConsole())
	get := func(remote, host string) int {
		req := httptest.NewRequest("GET", "/_emulator/state", nil)
		req.RemoteAddr, req.Host = remote, host
		listening := &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 8787}
		rec := httptest.NewRecorder()
		e.ServeHTTP(rec, req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, listening)))
		return rec.Code
	}
	assert.Equal(t, 200, get("192.0.2.1:5", "192.0.2.1:8787"), "the machine itself, at its own address")
	assert.Equal(t, 403, get("192.0.2.7:5", "192.0.2.1:8787"), "another machine")
	assert.Equal(t, 403, get("192.0.2.1:5", "192.0.2.2:8787"), "another address")
	assert.Equal(t, 403, get("192.0.2.1:5", "rebound.example.test:8787"), "a name")
}

func TestRequestShowsWhatItChangedAndWhatWasIgnored(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{Name: "Ada"})
	a.ok("GET", "/head/"+id, "")
	a.ok("PUT", "/head/update", `{"id":"`+id+`","name":"Bea","publicId":"li-9","added":1}`)
	a.do("PUT", "/head/update", `{"id":"`+id+`","name":5,"splitter":true}`).refused(t, 400, "name")
	var rows []struct {
		ID, Status   int
		Method, Path string
	}
	a.controlled("GET", "requests", "", &rows)
	require.Len(t, rows, 3)
	assert.Equal(t, []any{2, 200, "PUT", "/head/update"}, []any{rows[1].ID, rows[1].Status, rows[1].Method, rows[1].Path})
	var changed, refused struct {
		Changes, Ignored json.RawMessage
		HeadID           string
	}
	a.controlled("GET", "requests/2", "", &changed)
	assert.JSONEq(t, `[{"field":"added","before":null,"after":1},{"field":"name","before":"Ada","after":"Bea"}]`, string(changed.Changes))
	assert.JSONEq(t, `[{"field":"publicId","value":"li-9"}]`, string(changed.Ignored))
	assert.Equal(t, id, changed.HeadID)
	a.controlled("GET", "requests/3", "", &refused)
	assert.JSONEq(t, `[]`, string(refused.Changes))
	assert.JSONEq(t, `[{"field":"splitter","value":true}]`, string(refused.Ignored))
	a.control("GET", "requests/4", "").refused(t, 404, "no request")

	for _, path := range []string{streaming(id, true), "/head/" + id + "/enable-events?enableEvents=true", "/head/" + id + "/splitter?splitter=true"} {
		a.ok("PUT", path, "")
		a.controlled("GET", fmt.Sprintf("requests/%d", len(a.Requests())), "", &changed)
		assert.Contains(t, string(changed.Changes), `"after":true`, path)
	}
	a.controlled("GET", "requests?limit=2&before=4", "", &rows)
	assert.Equal(t, []int{2, 3}, []int{rows[0].ID, rows[1].ID})
	for _, query := range []string{"limit=0", "before=x", "Limit=1"} {
		a.control("GET", "requests?"+query, "").refused(t, 400, strings.Split(query, "=")[0])
	}
}

func TestPageChangesAHeadThroughTheOperations(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{TTSProvider: "polly"})
	path := "heads/" + id
	a.controlled("POST", path+"/update", `{"name":"Bea","id":"another"}`, nil)
	assert.Equal(t, "Bea", a.head(id)["name"], "the id is added")
	a.control("POST", path+"/update", `{"name":5}`).refused(t, 400, "name must be a string")
	a.control("POST", path+"/update", `{"name":`).refused(t, 400, "not JSON")
	a.control("POST", path+"/update", ``).refused(t, 400, "empty")
	a.control("POST", path+"/update", `{}`).refused(t, 400, "no field to change")
	a.control("POST", path+"/video-streaming", `{"videoStreaming":true}`).refused(t, 422, "polly")
	a.control("POST", path+"/video-streaming", `{}`).refused(t, 400, "videoStreaming")
	a.controlled("POST", path+"/enable-events", `{"enableEvents":true}`, nil)
	assert.Equal(t, true, a.head(id)["enableEvents"])
	a.Inject(headstest.Fault{Method: "PUT", Times: 1, Cut: headstest.CutBefore})
	a.control("POST", path+"/update", `{"name":"Cleo"}`).refused(t, 502, "cut")
	a.Inject(headstest.Fault{Method: "PUT", Times: 1, Status: 503, Body: "<b>busy</b>"})
	a.control("POST", path+"/update", `{"name":"Cleo"}`).refused(t, 503, "<b>busy</b>")
	a.control("POST", "heads/nobody/update", `{"name":"Cleo"}`).refused(t, 404, "no head")
	a.control("GET", "heads/nobody", "").refused(t, 404, "no head")
}

func TestSessionsLogHoldsWhatHappened(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{OperationMode: heads.OperationModeOC})
	require.NoError(t, a.AddTool(id, json.RawMessage(`{"name":"hours","url":"http://127.0.0.1:1/"}`)))
	s := a.StartSession(id)
	require.NoError(t, s.UserMessage("Hello"))
	_, err := s.CallTool(t.Context(), "hours", map[string]any{"day": "Monday"})
	require.NoError(t, err)
	require.NoError(t, s.Timeout())
	var log struct {
		Closed bool
		Log    []struct{ Kind, Text, Event, Tool, Problem string }
	}
	a.controlled("GET", "sessions/"+s.ID(), "", &log)
	var kinds []string
	for _, h := range log.Log {
		kinds = append(kinds, h.Kind+h.Event)
	}
	assert.Equal(t, []string{"start", "message", "eventstart_conversation", "tool call", "timeout", "eventtimeout_conversation", "eventend_conversation"}, kinds)
	assert.Equal(t, []any{true, "Hello", "hours"}, []any{log.Closed, log.Log[1].Text, log.Log[3].Tool})
	assert.Contains(t, log.Log[3].Problem, "no whole reply")
}

func TestDeliveriesAreListedInPages(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{EnableEvents: true})
	answers := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers++; answers == 1 {
			w.WriteHeader(500)
		}
	}))
	defer receiver.Close()
	hook, _, err := a.AddWebhook(id, receiver.URL, allEvents...)
	require.NoError(t, err)
	a.InjectDelivery(headstest.DeliveryFault{Times: 1, CorruptSignature: true})
	s := a.StartSession(id)
	for range 4 {
		require.NoError(t, s.Inactive())
	}
	_, err = a.WaitDelivery(t.Context(), func(d headstest.Delivery) bool { return d.ID == 5 })
	require.NoError(t, err)
	ids := func(query string) []int { return a.ids("deliveries?" + query) }
	assert.Equal(t, []int{4, 5}, ids("limit=2"))
	assert.Equal(t, []int{2, 3}, ids("limit=2&before=4"))
	assert.Equal(t, []int{1}, ids("outcome=failed"))
	assert.Equal(t, []int{2, 3, 4, 5}, ids("outcome=delivered&headId="+id))
	assert.Empty(t, ids("headId=other"))
	for _, query := range []string{"limit=0", "before=-1", "outcome=perhaps"} {
		a.control("GET", "deliveries?"+query, "").refused(t, 400, strings.Split(query, "=")[0])
	}
	var one struct {
		Signature string
		EventID   int
	}
	a.controlled("GET", "deliveries/1", "", &one)
	assert.Equal(t, "wrong", one.Signature)
	first := one.EventID
	a.controlled("GET", "deliveries/2", "", &one)
	assert.Equal(t, first, one.EventID, "a retry is of the same event")
	a.controlled("GET", "deliveries/3", "", &one)
	assert.Equal(t, "right", one.Signature)
	a.ok("DELETE", fmt.Sprintf("/head-events/%d", hook), "")
	a.controlled("GET", "deliveries/3", "", &one)
	assert.Equal(t, "unknown", one.Signature)
}

// readStream reads the events of the stream until the test ends.
func (a *api) readStream(lastID string) <-chan streamed {
	ctx, cancel := context.WithCancel(context.Background())
	req := a.request("GET", "/_emulator/stream", "").WithContext(ctx)
	req.Header.Set("Last-Event-ID", lastID)
	resp, err := a.hc.Do(req)
	require.NoError(a.t, err)
	require.Equal(a.t, "text/event-stream", resp.Header.Get("Content-Type"))
	events := make(chan streamed, 1000)
	ended := make(chan struct{})
	a.t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		var e streamed
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				e = streamed{id: id}
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
				events <- e
			}
		}
	}()
	return events
}

type streamed struct {
	id                        string
	Fresh, State              bool
	Requests, Deliveries, Log []struct{ ID int }
}

func TestStreamMissesNothingAfterABreak(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{})
	events := a.readStream("")
	first := <-events
	assert.True(t, first.Fresh, "a reader without a position reads everything")
	a.ok("GET", "/head/"+id, "")
	assert.Len(t, (<-events).Requests, 1)

	a.ok("GET", "/head/"+id, "") // while this reader is not connected
	require.NoError(t, a.StartSession(id).UserMessage("x"))
	e := <-a.readStream(first.id)
	assert.False(t, e.Fresh)
	assert.Equal(t, []int{2, 3}, []int{len(e.Requests), len(e.Log)})
	assert.True(t, e.State, "the session is new")

	a.Reset()
	assert.True(t, (<-a.readStream(e.id)).Fresh, "the state is another")
	for _, unreadable := range []string{"x", "a b c d e", "a -1 -1 -1 -1"} {
		assert.True(t, (<-a.readStream(unreadable)).Fresh, unreadable)
	}
}

func TestStreamBoundsWhatItSendsInAFlood(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{})
	first := <-a.readStream("")
	for range 250 {
		a.ok("GET", "/head/"+id, "")
	}
	e := <-a.readStream(first.id)
	require.Len(t, e.Requests, 100)
	assert.Equal(t, 250, e.Requests[99].ID, "the newest")
}

func TestCloseEndsTheStream(t *testing.T) {
	a := withConsole(t)
	<-a.readStream("")
	began := time.Now()
	a.Close()
	assert.Less(t, time.Since(began), 5*time.Second)
}

func TestEventWithoutAReceiverHasAReason(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{})
	why := func() string {
		s := a.StartSession(id)
		require.NoError(t, s.Close())
		var session struct {
			Log []struct {
				Why       string
				Receivers int
			}
		}
		a.controlled("GET", "sessions/"+s.ID(), "", &session)
		last := session.Log[len(session.Log)-1]
		assert.Equal(t, last.Why == "", last.Receivers > 0)
		return last.Why
	}
	assert.Equal(t, "delivery is off", why())
	a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", "")
	assert.Equal(t, "the head has none", why())
	hook, _ := a.register(`{"headId":"` + id + `","webhookUrl":"http://127.0.0.1:1","startConversation":true}`)
	assert.Equal(t, "none asks for this event", why())
	a.ok("PATCH", fmt.Sprint("/head-events/", hook), `{"endConversation":true}`)
	assert.Empty(t, why())
	a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=false", "")
	assert.Equal(t, "delivery is off", why())
}

func TestFaultIsRemovedByItsNumber(t *testing.T) {
	a := withConsole(t)
	head := "/head/" + a.AddHead(headstest.Head{})
	a.controlled("POST", "faults/requests", `{"status":503}`, nil)
	a.controlled("POST", "faults/deliveries", `{"drop":true}`, nil)
	a.controlled("POST", "faults/requests", `{"status":500}`, nil)
	assert.JSONEq(t, `{"requests":[{"n":1,"status":503},{"n":3,"status":500}],"deliveries":[{"n":2,"drop":true}]}`, a.control("GET", "faults", "").body)
	assert.Equal(t, 503, a.do("GET", head, "").status)
	assert.JSONEq(t, `{"requests":[{"n":3,"status":500}],"deliveries":[{"n":2,"drop":true}]}`, a.control("DELETE", "faults/1", "").body)
	assert.Equal(t, 500, a.do("GET", head, "").status)
	a.controlled("DELETE", "faults/3", "", nil)
	a.ok("GET", head, "")
	for _, n := range []string{"1", "0", "-1", "x"} {
		a.control("DELETE", "faults/"+n, "").refused(t, 404, fmt.Sprintf("there is no fault %q", n))
	}
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, a.control("DELETE", "faults/2", "").body)
}

func TestPageUsesUpNoFault(t *testing.T) {
	a := withConsole(t)
	id := a.AddHead(headstest.Head{})
	a.Inject(headstest.Fault{Times: 1, Status: 503})
	page := a.request("POST", "/_emulator/heads/"+id+"/enable-events", `{"enableEvents":true}`)
	page.Header.Del("Authorization")
	page.Header.Set("Emulator-Console", "1")
	assert.Equal(t, 200, a.send(page).status)
	assert.Len(t, a.Snapshot().Faults, 1)
	assert.Equal(t, 503, a.do("GET", "/head/"+id, "").status)
	assert.Equal(t, true, a.head(id)["enableEvents"])
}

func TestRequestsOfAHead(t *testing.T) {
	a := withConsole(t)
	ada, bea := a.AddHead(headstest.Head{}), a.AddHead(headstest.Head{})
	hook, _, err := a.AddWebhook(ada, "http://127.0.0.1:1", allEvents...)
	require.NoError(t, err)
	ofAda := []int{}
	for _, row := range []struct {
		method, path, body string
		of                 string
	}{
		{"GET", "/head/" + ada, "", ada},
		{"GET", "/head/" + bea, "", bea},
		{"PUT", "/head/update", `{"id":"` + ada + `","name":"Ada"}`, ada},
		{"PUT", "/head/" + ada + "/enable-events?enableEvents=true", "", ada},
		{"POST", "/head-events", `{"headId":"` + bea + `","webhookUrl":"http://127.0.0.1:1"}`, bea},
		{"GET", "/head-events?headId=" + ada, "", ada},
		{"DELETE", fmt.Sprint("/head-events/", hook), "", ada},
		{"GET", fmt.Sprint("/head-events/", hook), "", ""},
		{"PUT", "/head/update", `not JSON`, ""},
		{"GET", "/nowhere", "", ""},
	} {
		a.do(row.method, row.path, row.body)
		n := len(a.Requests())
		var view struct{ HeadID string }
		a.controlled("GET", fmt.Sprint("requests/", n), "", &view)
		assert.Equal(t, row.of, view.HeadID, "%s %s", row.method, row.path)
		if row.of == ada {
			ofAda = append(ofAda, n)
		}
	}
	ids := func(query string) []int { return a.ids("requests?" + query) }
	assert.Equal(t, ofAda, ids("headId="+ada))
	assert.Equal(t, ofAda[1:3], ids("headId="+ada+"&limit=2&before=6"))
	assert.Empty(t, ids("headId=nobody"))
}

func TestPageDeletesAWebhook(t *testing.T) {
	a := withConsole(t)
	hook, _, err := a.AddWebhook(a.AddHead(headstest.Head{}), "http://127.0.0.1:1", allEvents...)
	require.NoError(t, err)
	path := fmt.Sprint("webhooks/", hook)
	assert.JSONEq(t, fmt.Sprintf(`{"deleted":"%d"}`, hook), a.control("DELETE", path, "").body)
	assert.Empty(t, a.Snapshot().Webhooks)
	assert.Equal(t, fmt.Sprint("DELETE /head-events/", hook), a.Requests()[0].Method+" "+a.Requests()[0].Path, "it is a request like any other")
	a.control("DELETE", path, "").refused(t, 404, "no webhook")
}
