package headstest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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
	"visuals": [{"id": "loops", "mode": "two_loops"}],
	"heads": [{"id": "` + seedHead + `", "name": "Ada", "headVisualId": "loops", "operationMode": "oc", "ttsVoice": "rachel", "enableEvents": true, "publicId": "li-1",
		"publicUrl": "https://canary:canary@chat.example.test/MyOrg-1/li-1?api_key=canary#canary", "organisation": {"apiKey": "canary", "name": "MyOrg"},
		"voiceflowApiKey": "canary",
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

// controlled returns the body of an answer of the control API.
func (a *api) controlled(method, path, body string) string {
	a.t.Helper()
	ans := a.control(method, path, body)
	require.Less(a.t, ans.status, 300, "%s %s: %s", method, path, ans.body)
	assert.Equal(a.t, "application/json", ans.header.Get("Content-Type"))
	return ans.body
}

// read decodes what the control API shows at a path.
func read[T any](a *api, path string) T {
	a.t.Helper()
	return decoded[T](a.t, a.controlled("GET", path, ""))
}

// ids returns the ids of a list of the control API.
func (a *api) ids(path string) (ids []int) {
	a.t.Helper()
	list := read[[]struct{ ID int }](a, path)
	assert.NotNil(a.t, list, "a list even when it is empty")
	for _, item := range list {
		ids = append(ids, item.ID)
	}
	return ids
}

func TestConsoleIsServedToBrowsersWithItsOption(t *testing.T) {
	newAPI(t).do("GET", "/_emulator/", "").refused(t, 404, "not an operation")
	a := withConsole(t)
	a.hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	browse := func(path string) answer {
		req := a.request("GET", path, "")
		req.Header.Del("Authorization")
		req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		return a.send(req)
	}
	assert.Equal(t, 200, browse("/_emulator/").status)
	assert.Contains(t, browse("/_emulator/").header.Get("Content-Type"), "text/html")
	assert.Contains(t, a.control("GET", "", "").body, `"requests"`, "anything else reads the list")
	assert.Equal(t, []any{303, "/_emulator/"}, []any{browse("/").status, browse("/").header.Get("Location")})
	assert.Empty(t, a.Requests(), "the redirect is no request of the API")
	a.do("GET", "/", "").refused(t, 404, "not an operation")
}

func TestControlIsForThisMachineAlone(t *testing.T) {
	const json = "Content-Type: application/json"
	var e *headstest.Emulator
	ask := func(method, path, remote, host, header string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, path, nil)
		remote, listening, own := strings.Cut(remote, " at ")
		if own {
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(listening), Port: 8787}))
		}
		req.RemoteAddr, req.Host = remote, host
		for line := range strings.SplitSeq(header, "|") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				req.Header.Set(name, value)
			}
		}
		rec := httptest.NewRecorder()
		e.ServeHTTP(rec, req)
		return rec
	}
	for _, row := range []struct {
		name, method, remote, host, header string
		status                             int
	}{
		{"read", "GET", "127.0.0.1:5", "127.0.0.1:8787", "", 200},
		{"read by name", "GET", "127.0.0.1:5", "localhost:8787", "", 200},
		{"read over IPv6", "GET", "[::1]:5", "[::1]:8787", "", 200},
		{"host without port", "GET", "127.0.0.1:5", "LOCALHOST", "", 200},
		{"IPv6 host without port", "GET", "[::1]:5", "[::1]", "", 200},
		{"other machine", "GET", "192.0.2.7:5", "127.0.0.1:8787", "", 403},
		{"other machine over IPv6", "GET", "[2001:db8::1]:5", "[::1]:8787", "", 403},
		{"unknown machine", "GET", "", "127.0.0.1:8787", "", 403},
		{"name that resolves to loopback", "GET", "127.0.0.1:5", "attacker.example.test:8787", "", 403},
		{"name that looks like loopback", "GET", "127.0.0.1:5", "127.0.0.1.example.test", "", 403},
		{"name under localhost", "GET", "127.0.0.1:5", "localhost.example.test", "", 403},
		{"address of the network", "GET", "127.0.0.1:5", "192.0.2.1:8787", "", 403},
		{"no host", "GET", "127.0.0.1:5", "", "", 403},
		{"the machine's own address", "GET", "192.0.2.1:5 at 192.0.2.1", "192.0.2.1:8787", "", 200},
		{"other machine at this address", "GET", "192.0.2.7:5 at 192.0.2.1", "192.0.2.1:8787", "", 403},
		{"this machine at another address", "GET", "192.0.2.1:5 at 192.0.2.1", "192.0.2.2:8787", "", 403},
		{"this machine at a name", "GET", "192.0.2.1:5 at 192.0.2.1", "rebound.example.test:8787", "", 403},
		{"change", "POST", "127.0.0.1:5", "127.0.0.1:8787", json, 200},
		{"change with a charset", "POST", "127.0.0.1:5", "127.0.0.1:8787", "Content-Type: Application/JSON; charset=utf-8", 200},
		{"change from the same origin", "POST", "127.0.0.1:5", "127.0.0.1:8787", json + "|Origin: http://127.0.0.1:8787", 200},
		{"change by a page of another site", "POST", "127.0.0.1:5", "127.0.0.1:8787", json + "|Origin: https://attacker.example.test", 403},
		{"change by a page of another port", "POST", "127.0.0.1:5", "127.0.0.1:8787", json + "|Origin: http://127.0.0.1:3000", 403},
		{"change that a browser calls cross-site", "POST", "127.0.0.1:5", "127.0.0.1:8787", json + "|Sec-Fetch-Site: cross-site", 403},
		{"read that a browser calls cross-site", "GET", "127.0.0.1:5", "127.0.0.1:8787", "Sec-Fetch-Site: cross-site", 403},
		{"read by a page of another port", "GET", "127.0.0.1:5", "127.0.0.1:8787", "Sec-Fetch-Site: same-site", 403},
		{"change by a page of another port without an origin", "POST", "127.0.0.1:5", "127.0.0.1:8787", json + "|Sec-Fetch-Site: same-site", 403},
		{"read from the same origin", "GET", "127.0.0.1:5", "127.0.0.1:8787", "Sec-Fetch-Site: same-origin", 200},
		{"read typed into the browser", "GET", "127.0.0.1:5", "127.0.0.1:8787", "Sec-Fetch-Site: none", 200},
		{"change by a name that resolves to loopback", "POST", "127.0.0.1:5", "attacker.example.test", json, 403},
		{"change without a type", "POST", "127.0.0.1:5", "127.0.0.1:8787", "", 415},
		{"change by a form", "POST", "127.0.0.1:5", "127.0.0.1:8787", "Content-Type: application/x-www-form-urlencoded", 415},
		{"change as text", "POST", "127.0.0.1:5", "127.0.0.1:8787", "Content-Type: text/plain", 415},
		{"removal without a type", "DELETE", "127.0.0.1:5", "127.0.0.1:8787", "", 415},
	} {
		t.Run(row.name, func(t *testing.T) {
			e = newEmulator(t, headstest.WithConsole(), headstest.WithToken("right"))
			id := e.AddHead(headstest.Head{})
			path := map[string]string{"GET": "state", "POST": "reset", "DELETE": "faults"}[row.method]
			rec := ask(row.method, "/_emulator/"+path, row.remote, row.host, row.header)
			assert.Equal(t, row.status, rec.Code, rec.Body)
			if row.status != 200 {
				assert.NotContains(t, rec.Body.String(), id)
				assert.Len(t, e.Heads(), 1, "nothing has changed")
			}
		})
	}
	rec := ask("GET", "/head/"+e.Heads()[0], "192.0.2.7:5", "emulator.example.test", "Authorization: Bearer right")
	assert.Equal(t, 200, rec.Code, "the network reaches the operations")
}

func TestAnswersOfTheControlAPIHaveSecurityHeaders(t *testing.T) {
	a := withConsole(t)
	for _, path := range []string{"", "state", "health", "assets/main.js", "assets/style.css", "nothing"} {
		h := a.control("GET", path, "").header
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", path)
		assert.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", path)
		assert.Equal(t, []string{"nosniff", "no-referrer", "same-origin", ""},
			[]string{h.Get("X-Content-Type-Options"), h.Get("Referrer-Policy"), h.Get("Cross-Origin-Opener-Policy"), h.Get("Access-Control-Allow-Origin")}, path)
	}
	assert.JSONEq(t, `{"status":"ok"}`, a.controlled("GET", "health", ""))
}

func TestControlRefusesWhatItDoesNotKnow(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
	session := a.StartSession(id).ID()
	for _, path := range []string{"seed", "sessions", "sessions/" + session + "/message", "sessions/" + session + "/tool-calls",
		"tool-calls", "faults/requests", "faults/deliveries"} {
		a.control("POST", path, `{"misspelt":1}`).refused(t, 400, "misspelt")
		a.control("POST", path, `{`).refused(t, 400, "JSON")
		a.control("POST", path, `{} {}`).refused(t, 400, "after the JSON value")
		a.control("POST", path, `{"x":"`+strings.Repeat("x", 4<<20)+`"}`).refused(t, 413, "larger")
	}
	for _, path := range []string{"nothing", "state/", "heads/x/y", "assets/nothing.js", "assets/index.html", "sessions/x/message/more", "deliveries/1/"} {
		a.control("GET", path, "").refused(t, 404, "GET /_emulator/ lists")
	}
	for path, allow := range map[string]string{"state": "GET", "reset": "POST", "": "GET", "deliveries/1/resend": "POST", "sessions": "GET, POST", "faults": "GET, DELETE"} {
		for _, method := range []string{"PUT", "PATCH", "OPTIONS"} {
			ans := a.control(method, path, "")
			ans.refused(t, 405, method+" is not a method of")
			assert.Equal(t, allow, ans.header.Get("Allow"), path)
		}
	}
	a.control("GET", "reset", "").refused(t, 405, "use POST")
	a.do("GET", "/_emulatorx", "").refused(t, 404, "not an operation")
	for _, path := range []string{"/_emulator/", "/_emulator"} {
		index := decoded[struct{ Requests []string }](t, a.ok("GET", path, "").body)
		assert.Equal(t, []string{"GET /_emulator/", "GET /_emulator/deliveries"}, index.Requests[:2], "in order")
	}
}

func TestStateShowsTheRecords(t *testing.T) {
	a := withConsole(t)
	assert.NotContains(t, a.controlled("GET", "state", ""), "null", "a list even when it is empty")
	a.controlled("POST", "seed", canaries)
	a.Inject(headstest.Fault{Route: "/head/never", Times: 2, Status: 503})
	session := a.StartSession(seedHead).ID()
	assert.JSONEq(t, `{
		"heads": [{"id": "`+seedHead+`", "name": "Ada", "publicId": "li-1", "headVisualId": "loops", "operationMode": "oc",
			"ttsProvider": "azure", "ttsVoice": "rachel", "videoStreaming": false, "splitter": true, "enableEvents": true, "isActive": true,
			"address": "https://chat.example.test/MyOrg-1/li-1", "tools": ["weather"]}],
		"visuals": [{"id": "loops", "mode": "two_loops"}],
		"registrations": [{"id": 1, "headId": "`+seedHead+`", "receiver": "http://127.0.0.1:1", "events": ["end_conversation"]}],
		"sessions": [{"id": "`+session+`", "headId": "`+seedHead+`", "closed": false}],
		"faults": {"requests": [{"n": 1, "route": "/head/never", "times": 2, "status": 503}], "deliveries": []}}`, a.controlled("GET", "state", ""))
}

func TestPageHoldsNoSecretUntilItIsRevealed(t *testing.T) {
	a := withConsole(t, headstest.WithRetrySchedule())
	a.controlled("POST", "seed", canaries)
	session := a.StartSession(seedHead)
	page := a.request("GET", "/_emulator/", "")
	page.Header.Set("Accept", "text/html")
	shown := a.controlled("POST", "heads/"+seedHead+"/update", `{"voiceflowApiKey":"canary two","fileUrl":"https://f.example.test/?sig=canary"}`) +
		a.controlled("POST", "heads/"+seedHead+"/splitter", "") + a.controlled("POST", "sessions/"+session.ID()+"/tool-calls", `{"tool":"weather"}`) +
		a.controlled("POST", "sessions/"+session.ID()+"/close", "")
	a.endedOf(session)
	shown += a.send(page).body + a.controlled("GET", "deliveries/1/go-test", "") + a.shown()
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
	a.controlled("POST", "seed", canaries)
	export := a.controlled("GET", "export", "")
	a.controlled("POST", "reset", "")
	assert.Empty(t, a.Heads())
	a.controlled("POST", "seed", export)
	assert.Equal(t, []string{seedHead}, a.Heads())
	assert.Contains(t, a.head(seedHead)["publicUrl"], "api_key=", "keys are generated anew")
	a.control("GET", "export?keys=perhaps", "").refused(t, 400, "keys=true")
}

func TestRequestShowsWhatItChangedAndWhatWasIgnored(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
	a.ok("GET", "/head/"+id, "")
	a.ok("PUT", "/head/update", `{"id":"`+id+`","name":"Bea","publicId":"li-9","added":1}`)
	a.do("PUT", "/head/update", `{"id":"`+id+`","name":5,"splitter":true}`).refused(t, 400, "name")
	type row struct {
		ID, Status           int
		Method, Path, HeadID string
	}
	rows := read[[]row](a, "requests")
	require.Len(t, rows, 3)
	assert.Equal(t, row{2, 200, "PUT", "/head/update", id}, rows[1])
	type request struct{ Changes, Ignored json.RawMessage }
	changed, refused := read[request](a, "requests/2"), read[request](a, "requests/3")
	assert.JSONEq(t, `[{"field":"added","before":null,"after":1},{"field":"name","before":"Ada","after":"Bea"}]`, string(changed.Changes))
	assert.JSONEq(t, `[{"field":"publicId","value":"li-9"}]`, string(changed.Ignored))
	assert.JSONEq(t, `[]`, string(refused.Changes))
	assert.JSONEq(t, `[{"field":"splitter","value":true}]`, string(refused.Ignored))
	a.control("GET", "requests/4", "").refused(t, 404, "no request")

	for _, path := range []string{streaming(id, true), "/head/" + id + "/enable-events?enableEvents=true", "/head/" + id + "/splitter?splitter=true"} {
		a.ok("PUT", path, "")
		changed = read[request](a, fmt.Sprintf("requests/%d", len(a.Requests())))
		assert.Contains(t, string(changed.Changes), `"after":true`, path)
	}
	assert.Equal(t, []int{2, 3}, a.ids("requests?limit=2&before=4"))
	for _, query := range []string{"limit=0", "before=x", "Limit=1"} {
		a.control("GET", "requests?"+query, "").refused(t, 400, strings.Split(query, "=")[0])
	}
}

func TestPageChangesAHeadThroughTheOperations(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{TTSProvider: "polly"})
	path := "heads/" + id
	a.controlled("POST", path+"/update", `{"name":"Bea","id":"another"}`)
	assert.Equal(t, "Bea", a.head(id)["name"], "the id is added")
	a.control("POST", path+"/update", `{"name":5}`).refused(t, 400, "name must be a string")
	a.control("POST", path+"/update", `{"name":`).refused(t, 400, "not JSON")
	a.control("POST", path+"/update", ``).refused(t, 400, "empty")
	a.control("POST", path+"/update", `{}`).refused(t, 400, "no field to change")
	a.control("POST", path+"/video-streaming", `{"videoStreaming":true}`).refused(t, 422, "polly")
	a.control("POST", path+"/video-streaming", `{}`).refused(t, 400, "videoStreaming")
	a.controlled("POST", path+"/enable-events", `{"enableEvents":true}`)
	assert.Equal(t, true, a.head(id)["enableEvents"])
	a.Inject(headstest.Fault{Method: "PUT", Times: 1, Cut: headstest.CutBefore})
	a.control("POST", path+"/update", `{"name":"Cleo"}`).refused(t, 502, "cut")
	a.Inject(headstest.Fault{Method: "PUT", Times: 1, Status: 503, Body: "<b>busy</b>"})
	a.control("POST", path+"/update", `{"name":"Cleo"}`).refused(t, 503, "<b>busy</b>")
	a.control("POST", "heads/nobody/update", `{"name":"Cleo"}`).refused(t, 404, "no head")
	a.control("POST", "heads/nobody/splitter", "").refused(t, 404, "no head")
	a.control("GET", "heads/nobody", "").refused(t, 404, "no head")

	streams := a.AddHead(headstest.Head{VideoStreaming: true})
	view := object(t, a.controlled("POST", "heads/"+streams+"/splitter", ""))
	assert.Equal(t, []any{streams, false, true}, []any{view["id"], view["videoStreaming"], view["splitter"]})
	assert.Contains(t, view["address"], "https://chat.example.test/")
}

func TestSessionActsAsAUserDoes(t *testing.T) {
	type session struct {
		ID, HeadID string
		Closed     bool
	}
	a, id := withConsole(t).with(headstest.Head{OperationMode: heads.OperationModeOC})
	require.NoError(t, a.AddTool(id, json.RawMessage(`{"name":"hours","url":"http://127.0.0.1:1/"}`)))
	s := decoded[session](t, a.controlled("POST", "sessions", `{"headId":"`+id+`"}`))
	assert.Equal(t, session{s.ID, id, false}, s)
	path := "sessions/" + s.ID
	for _, step := range []string{"message", "tool-calls", "inactive"} {
		a.controlled("POST", path+"/"+step, map[string]string{"message": `{"text":"Hello"}`, "tool-calls": `{"tool":"hours"}`}[step])
	}
	assert.Equal(t, session{s.ID, id, true}, decoded[session](t, a.controlled("POST", path+"/timeout", "")))
	log := read[struct {
		Closed bool
		Log    []struct{ Kind, Text, Event, Tool, Problem string }
	}](a, path)
	var kinds []string
	for _, h := range log.Log {
		kinds = append(kinds, h.Kind+h.Event)
	}
	assert.Equal(t, []string{"start", "message", "eventstart_conversation", "tool call", "inactive", "eventinactivity_warning",
		"timeout", "eventtimeout_conversation", "eventend_conversation"}, kinds)
	assert.Equal(t, []any{true, "Hello", "hours"}, []any{log.Closed, log.Log[1].Text, log.Log[3].Tool})
	assert.Contains(t, log.Log[3].Problem, "no whole reply")

	a.control("POST", path+"/close", "").refused(t, 409, "closed")
	other := a.StartSession(id).ID()
	assert.True(t, decoded[session](t, a.controlled("POST", "sessions/"+other+"/close", "")).Closed)
	assert.Equal(t, []session{{s.ID, id, true}, {other, id, true}}, read[[]session](a, "sessions"))

	a.control("POST", "sessions", `{"headId":"nobody"}`).refused(t, 404, "no head")
	a.control("POST", "sessions", "").refused(t, 404, "no head")
	a.control("POST", "sessions/nobody/close", "").refused(t, 404, "no session")
	a.control("POST", path+"/sleep", "").refused(t, 404, `no "sleep"`)
	moved := a.StartSession(id).ID()
	a.ok("PUT", streaming(id, true), "")
	a.control("POST", "sessions/"+moved+"/message", "").refused(t, 409, "no longer accessible")
}

func TestToolIsCalledAndItsReplyJudged(t *testing.T) {
	var got []byte
	reply := `{"message":"From nine to five."}`
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply)
	})
	a := withConsole(t)
	id := withTool(a.Emulator, url+"/canary")
	session := a.StartSession(id).ID()
	type outcome struct {
		Tool, Message, Problem, Reply string
		Status                        int
		Sent                          json.RawMessage
	}
	called := decoded[outcome](t, a.controlled("POST", "tool-calls", `{"headId":"`+id+`","tool":"weather","arguments":{"n":12345678901234567890}}`))
	assert.Equal(t, outcome{"weather", "From nine to five.", "", reply, 200, called.Sent}, called)
	assert.JSONEq(t, string(got), string(called.Sent))
	assert.Contains(t, string(got), `"n":12345678901234567890`, "digit by digit")

	reply = `{"result":"From nine to five."}`
	body := a.controlled("POST", "sessions/"+session+"/tool-calls", `{"tool":"weather"}`)
	called = decoded[outcome](t, body)
	assert.Equal(t, outcome{"weather", "", `expected {"message": "…"}, the reply has "result"`, reply, 200, called.Sent}, called)
	assert.Contains(t, string(called.Sent), session)
	assert.NotContains(t, body, "canary", "the address is not shown")

	a.control("POST", "tool-calls", `{"headId":"`+id+`","tool":"other"}`).refused(t, 409, `no tool "other"`)
	a.control("POST", "tool-calls", `{"headId":"nobody","tool":"weather"}`).refused(t, 404, "no head")
	a.control("POST", "sessions/nobody/tool-calls", `{"tool":"weather"}`).refused(t, 404, "no session")
}

func TestDeliveriesAreShownWaitedForAndResent(t *testing.T) {
	type delivery struct {
		ID, WebhookID, Attempt, Status, EventID                           int
		Receiver, Event, HeadID, SessionID, Error, Body, Reply, Signature string
		Headers                                                           map[string]string
		Final                                                             bool
	}
	a, id := withConsole(t, headstest.WithRetrySchedule(0)).with(headstest.Head{EnableEvents: true})
	got, answer := make(chan string, 8), []int{500, 200, 200, 200, 200}
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		w.WriteHeader(answer[0])
		_, _ = io.WriteString(w, "I am ill")
		answer = answer[1:]
	})
	addWebhook(t, a, id, url+"/canary", allEvents...)
	a.InjectDelivery(headstest.DeliveryFault{Times: 1, CorruptSignature: true})
	s := a.StartSession(id)
	require.NoError(t, s.UserMessage("Hello"))
	assert.Equal(t, []int{2}, a.ids("deliveries?wait=30s&final=true"))
	first, retry := read[delivery](a, "deliveries/1"), read[delivery](a, "deliveries/2")
	headers := map[string]string{"Content-Type": "application/json", "User-Agent": "headstest", "X-Signature-256": a.Deliveries()[0].Header.Get("X-Signature-256")}
	assert.Equal(t, delivery{1, 1, 1, 500, first.EventID, url, "start_conversation", id, s.ID(), "", <-got, "I am ill", "wrong", headers, false}, first)
	assert.Equal(t, []any{first.EventID, first.Body, "wrong"}, []any{retry.EventID, <-got, retry.Signature}, "a retry is of the same event")
	assert.Equal(t, first.Body, a.control("GET", "deliveries/1/body", "").body, "byte for byte")

	a.controlled("POST", "deliveries/1/resend", "")
	assert.Equal(t, first.Body, <-got)
	require.NoError(t, perform(s, "inactive close"))
	assert.Equal(t, []int{5}, a.ids("deliveries?wait=30s&event=end_conversation&webhookId=1"))
	assert.Equal(t, "right", read[delivery](a, "deliveries/4").Signature)
	for query, want := range map[string][]int{
		"": {1, 2, 3, 4, 5}, "webhookId=2": nil, "sessionId=x": nil, "event=end_conversation": {5}, "final=true": {2, 3, 4, 5}, "final=false": {1, 2, 3, 4, 5},
		"wait=1ms&webhookId=2": nil, "limit=2": {4, 5}, "limit=2&before=4": {2, 3}, "outcome=failed": {1}, "outcome=delivered&headId=" + id: {2, 3, 4, 5}, "headId=other": nil,
	} {
		assert.Equal(t, want, a.ids("deliveries?"+query), query)
	}
	a.ok("DELETE", "/head-events/1", "")
	a.control("POST", "deliveries/1/resend", "").refused(t, 409, "removed")
	assert.Equal(t, "unknown", read[delivery](a, "deliveries/4").Signature)
	for _, id := range []string{"0", "99", "x", "01"} {
		a.control("GET", "deliveries/"+id, "").refused(t, 404, "no delivery")
		a.control("GET", "deliveries/"+id+"/body", "").refused(t, 404, "no delivery")
		a.control("POST", "deliveries/"+id+"/resend", "").refused(t, 404, "no delivery")
	}
	for _, query := range []string{"webhookId=x", "final=perhaps", "wait=5", "wait=-1s", "wait=2m", "sessionid=x", "limit=0", "before=-1", "outcome=perhaps"} {
		a.control("GET", "deliveries?"+query, "").refused(t, 400, strings.Split(query, "=")[0])
	}
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
	a, id := withConsole(t).with(headstest.Head{})
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
	for _, unreadable := range []string{e.id, "x", "a b c d e", "a -1 -1 -1 -1"} {
		assert.True(t, (<-a.readStream(unreadable)).Fresh, "the state is another: %s", unreadable)
	}
}

func TestStreamIsBoundedAndEndsWithTheEmulator(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
	first := <-a.readStream("")
	for range 250 {
		a.ok("GET", "/head/"+id, "")
	}
	e := <-a.readStream(first.id)
	require.Len(t, e.Requests, 100)
	assert.Equal(t, 250, e.Requests[99].ID, "the newest")
	began := time.Now()
	a.Close()
	assert.Less(t, time.Since(began), 5*time.Second)
}

// whyUndelivered closes a session and returns why its last event has no receiver.
func (a *api) whyUndelivered(s *headstest.Session) string {
	a.t.Helper()
	require.NoError(a.t, s.Close())
	log := read[struct {
		Log []struct {
			Why       string
			Receivers int
		}
	}](a, "sessions/"+s.ID()).Log
	last := log[len(log)-1]
	assert.Equal(a.t, last.Why == "", last.Receivers > 0)
	return last.Why
}

func TestEventWithoutAReceiverHasAReason(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
	why := func() string { return a.whyUndelivered(a.StartSession(id)) }
	assert.Equal(t, "delivery is off", why())
	a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", "")
	assert.Equal(t, "the head has none", why())
	hook, _ := addWebhook(t, a, id, "http://127.0.0.1:1", heads.EventStartConversation)
	assert.Equal(t, "none asks for this event", why())
	a.ok("PATCH", fmt.Sprint("/head-events/", hook), `{"endConversation":true}`)
	assert.Empty(t, why())
	a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=false", "")
	assert.Equal(t, "delivery is off", why())
}

func TestFaultsAreRefused(t *testing.T) {
	a := withConsole(t)
	for body, says := range map[string]string{
		`{"status":99}`: "status", `{"times":-1}`: "times", `{"latency":"-1s"}`: "latency", `{"latency":1}`: "JSON", `{"latency":"1"}`: `"1.5s"`,
		`{"retryAfter":"-1s"}`: "retryAfter", `{"cut":"middle"}`: "cut", `{"method":"POST","route":"/head/update"}`: "never happen", `{"share":2}`: "share",
	} {
		a.control("POST", "faults/requests", body).refused(t, 400, says)
	}
	for body, says := range map[string]string{`{"times":-1}`: "times", `{"delay":"-1s"}`: "delay", `{"encoding":"hex2"}`: "encoding", `{"event":"start"}`: "never happen"} {
		a.control("POST", "faults/deliveries", body).refused(t, 400, says)
	}
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, a.controlled("GET", "faults", ""))
}

// The control API returns every field that was set through it, and the description explains it.
func TestFaultsKeepEveryField(t *testing.T) {
	const (
		request = `"method":"POST","route":"/head-events","share":0.25,"times":3,"status":500,"body":"x","retryAfter":"1s",
			"latency":"2s","cut":"before","cutBody":true,"afterEffect":true}`
		event = `"webhookId":4,"event":"end_conversation","times":5,"drop":true,"duplicate":true,"reorder":true,"delay":"3s",
			"corruptSignature":true,"encoding":"base64","age":"-4s"}`
	)
	a := withConsole(t)
	a.controlled("POST", "faults/requests", "{"+request)
	a.controlled("POST", "faults/requests", `{"cut":"after"}`)
	a.controlled("POST", "faults/deliveries", "{"+event)
	a.control("POST", "faults/deliveries", `{"encoding":"hex","status":503,"drop":true}`).refused(t, 400, "a fault of their own")
	a.controlled("POST", "faults/deliveries", `{"encoding":"hex"}`)
	assert.Equal(t, []headstest.Fault{{Method: "POST", Route: "/head-events", Share: 0.25, Times: 3, Status: 500, Body: "x", RetryAfter: time.Second,
		Latency: 2 * time.Second, Cut: headstest.CutBefore, CutBody: true, After: true}, {Cut: headstest.CutAfter}}, a.Snapshot().Faults)
	assert.Equal(t, []headstest.DeliveryFault{{WebhookID: 4, Event: "end_conversation", Times: 5, Drop: true, Duplicate: true, Reorder: true, Delay: 3 * time.Second,
		CorruptSignature: true, Encoding: headstest.SignatureBase64, Age: -4 * time.Second}, {Encoding: headstest.SignatureHex}}, a.Snapshot().DeliveryFaults)
	assert.JSONEq(t, `{"requests":[{"n":1,`+request+`,{"n":2,"cut":"after"}],"deliveries":[{"n":3,`+event+`,{"n":4,"encoding":"hex"}]}`, a.controlled("GET", "faults", ""))
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, a.controlled("DELETE", "faults", ""))
	assert.JSONEq(t, `{"requests":[],"deliveries":[{"n":5,"status":503}]}`, a.controlled("POST", "faults/deliveries", `{"status":503}`))
	assert.Equal(t, []headstest.DeliveryFault{{Status: 503}}, a.Snapshot().DeliveryFaults)
	for kind, whole := range map[string]string{"requests": "{" + request, "deliveries": `{"status":503,` + event} {
		d := described(t)
		keys := d.at(d.root, "paths", "/_emulator/faults/"+kind, "post", "requestBody", "content", "application/json", "schema", "properties").(map[string]any)
		assert.ElementsMatch(t, slices.Collect(maps.Keys(object(t, whole))), slices.Collect(maps.Keys(keys)))
		for key, schema := range keys {
			assert.NotEmpty(t, d.at(schema, "description"), "%s %s", kind, key)
		}
	}
}

func TestFaultIsRemovedByItsNumber(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
	a.controlled("POST", "faults/requests", `{"status":503}`)
	a.controlled("POST", "faults/deliveries", `{"drop":true}`)
	a.controlled("POST", "faults/requests", `{"status":500}`)
	assert.Equal(t, 503, a.do("GET", "/head/"+id, "").status)
	assert.JSONEq(t, `{"requests":[{"n":3,"status":500}],"deliveries":[{"n":2,"drop":true}]}`, a.controlled("DELETE", "faults/1", ""))
	assert.Equal(t, 500, a.do("GET", "/head/"+id, "").status)
	a.controlled("DELETE", "faults/3", "")
	a.head(id)
	for _, n := range []string{"1", "0", "-1", "x"} {
		a.control("DELETE", "faults/"+n, "").refused(t, 404, fmt.Sprintf("there is no fault %q", n))
	}
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, a.controlled("DELETE", "faults/2", ""))
}

func TestPageUsesUpNoFault(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
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
	a, ada := withConsole(t).with(headstest.Head{})
	bea := a.AddHead(headstest.Head{})
	hook, _ := addWebhook(t, a, ada, "http://127.0.0.1:1", allEvents...)
	ofAda := []int{}
	for n, row := range []struct{ method, path, body, of string }{
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
		assert.Equal(t, row.of, read[struct{ HeadID string }](a, fmt.Sprint("requests/", n+1)).HeadID, "%s %s", row.method, row.path)
		if row.of == ada {
			ofAda = append(ofAda, n+1)
		}
	}
	assert.Equal(t, ofAda, a.ids("requests?headId="+ada))
	assert.Equal(t, ofAda[1:3], a.ids("requests?headId="+ada+"&limit=2&before=6"))
	assert.Empty(t, a.ids("requests?headId=nobody"))
}

func TestPageDeletesAWebhook(t *testing.T) {
	a, id := withConsole(t).with(headstest.Head{})
	hook, _ := addWebhook(t, a, id, "http://127.0.0.1:1", allEvents...)
	path := fmt.Sprint("webhooks/", hook)
	assert.JSONEq(t, fmt.Sprintf(`{"deleted":"%d"}`, hook), a.control("DELETE", path, "").body)
	assert.Empty(t, a.Snapshot().Webhooks)
	assert.Equal(t, fmt.Sprint("DELETE /head-events/", hook), a.Requests()[0].Method+" "+a.Requests()[0].Path, "it is a request like any other")
	a.control("DELETE", path, "").refused(t, 404, "no webhook")
}
