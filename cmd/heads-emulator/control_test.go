package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHealthNeedsNoToken(t *testing.T) {
	ans := start(t).control("GET", "health", "")
	ans.ok(t, nil)
	assert.JSONEq(t, `{"status":"ok"}`, ans.body)
	assert.Equal(t, "application/json", ans.header.Get("Content-Type"))
	assert.Equal(t, "nosniff", ans.header.Get("X-Content-Type-Options"))
	assert.Empty(t, ans.header.Get("Access-Control-Allow-Origin"))
}

func TestControlIsForThisMachineAlone(t *testing.T) {
	rows := []struct {
		name, method, remote, host string
		header                     http.Header
		status                     int
	}{
		{"read", "GET", "127.0.0.1:5", "127.0.0.1:8787", nil, 200},
		{"read by name", "GET", "127.0.0.1:5", "localhost:8787", nil, 200},
		{"read over IPv6", "GET", "[::1]:5", "[::1]:8787", nil, 200},
		{"host without port", "GET", "127.0.0.1:5", "LOCALHOST", nil, 200},
		{"IPv6 host without port", "GET", "[::1]:5", "[::1]", nil, 200},
		{"other machine", "GET", "192.0.2.7:5", "127.0.0.1:8787", nil, 403},
		{"other machine over IPv6", "GET", "[2001:db8::1]:5", "[::1]:8787", nil, 403},
		{"unknown machine", "GET", "", "127.0.0.1:8787", nil, 403},
		{"name that resolves to loopback", "GET", "127.0.0.1:5", "attacker.example.test:8787", nil, 403},
		{"name that looks like loopback", "GET", "127.0.0.1:5", "127.0.0.1.example.test", nil, 403},
		{"name under localhost", "GET", "127.0.0.1:5", "localhost.example.test", nil, 403},
		{"address of the network", "GET", "127.0.0.1:5", "192.0.2.1:8787", nil, 403},
		{"no host", "GET", "127.0.0.1:5", "", nil, 403},
		{"change", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/json"}}, 200},
		{"change with a charset", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"Application/JSON; charset=utf-8"}}, 200},
		{"change from the same origin", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/json"}, "Origin": {"http://127.0.0.1:8787"}}, 200},
		{"change by a page of another site", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/json"}, "Origin": {"https://attacker.example.test"}}, 403},
		{"change by a page of another port", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/json"}, "Origin": {"http://127.0.0.1:3000"}}, 403},
		{"change that a browser calls cross-site", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/json"}, "Sec-Fetch-Site": {"cross-site"}}, 403},
		{"read that a browser calls cross-site", "GET", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"read by a page of another port", "GET", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		{"change by a page of another port without an origin", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/json"}, "Sec-Fetch-Site": {"same-site"}}, 403},
		{"read from the same origin", "GET", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
		{"read typed into the browser", "GET", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"change by a name that resolves to loopback", "POST", "127.0.0.1:5", "attacker.example.test", http.Header{"Content-Type": {"application/json"}}, 403},
		{"change without a type", "POST", "127.0.0.1:5", "127.0.0.1:8787", nil, 415},
		{"change by a form", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 415},
		{"change as text", "POST", "127.0.0.1:5", "127.0.0.1:8787", http.Header{"Content-Type": {"text/plain"}}, 415},
		{"removal without a type", "DELETE", "127.0.0.1:5", "127.0.0.1:8787", nil, 415},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			e := headstest.NewEmulator(headstest.WithConsole())
			defer e.Close()
			id := e.AddHead(headstest.Head{})
			path := map[string]string{"GET": "state", "POST": "reset", "DELETE": "faults"}[row.method]
			req := httptest.NewRequest(row.method, controlPrefix+path, nil)
			req.RemoteAddr, req.Host, req.Header = row.remote, row.host, row.header
			if req.Header == nil {
				req.Header = http.Header{}
			}
			rec := httptest.NewRecorder()
			e.ServeHTTP(rec, req)
			assert.Equal(t, row.status, rec.Code, rec.Body)
			if row.status != 200 {
				assert.NotContains(t, rec.Body.String(), id)
				assert.Len(t, e.Heads(), 1, "nothing has changed")
			}
		})
	}
}

func TestNetworkReachesTheOperationsAlone(t *testing.T) {
	e := headstest.NewEmulator(headstest.WithConsole(), headstest.WithToken("right"))
	defer e.Close()
	req := httptest.NewRequest("GET", "/head/"+e.AddHead(headstest.Head{}), nil)
	req.RemoteAddr, req.Host = "192.0.2.7:5", "emulator.example.test"
	req.Header.Set("Authorization", "Bearer right")
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, req)
	assert.Equal(t, 200, rec.Code)
}

func TestControlRefusesWhatItDoesNotKnow(t *testing.T) {
	p := start(t)
	session := p.session()
	bodies := []string{"seed", "sessions", "sessions/" + session + "/message", "sessions/" + session + "/tool-calls",
		"tool-calls", "faults/requests", "faults/deliveries"}
	for _, path := range bodies {
		t.Run(path, func(t *testing.T) {
			p.control("POST", path, `{"misspelt":1}`).refused(t, 400, "misspelt")
			p.control("POST", path, `{`).refused(t, 400, "JSON")
			p.control("POST", path, `{} {}`).refused(t, 400, "after the JSON value")
			p.control("POST", path, `{"x":"`+strings.Repeat("x", 4<<20)+`"}`).refused(t, 413, "larger")
		})
	}
	for _, path := range []string{"nothing", "state/", "heads/x/y", "assets/nothing.js", "assets/index.html", "sessions/x/message/more", "deliveries/1/"} {
		p.control("GET", path, "").refused(t, 404, "GET /_emulator/ lists")
	}
	for path, allow := range map[string]string{"state": "GET", "reset": "POST", "": "GET", "deliveries/1/resend": "POST", "sessions": "GET, POST", "faults": "GET, DELETE"} {
		for _, method := range []string{"PUT", "PATCH", "OPTIONS"} {
			ans := p.control(method, path, "")
			ans.refused(t, 405, method+" is not a method of")
			assert.Equal(t, allow, ans.header.Get("Allow"), path)
			assert.Equal(t, "application/json", ans.header.Get("Content-Type"))
		}
	}
	p.control("GET", "reset", "").refused(t, 405, "use POST")
	p.api("GET", "/_emulatorx", "").refused(t, 404, "not an operation")
}

func TestControlListsItself(t *testing.T) {
	p := start(t)
	for _, path := range []string{controlPrefix, strings.TrimSuffix(controlPrefix, "/")} {
		var index struct{ Requests []string }
		p.send(p.request("GET", path, "")).ok(t, &index)
		assert.Equal(t, []string{"GET /_emulator/", "GET /_emulator/deliveries"}, index.Requests[:2], "in order")
		assert.Contains(t, index.Requests, "DELETE /_emulator/faults")
	}
}

func TestStateShowsTheRecordsAndNoSecret(t *testing.T) {
	assert.NotContains(t, start(t).control("GET", "state", "").body, "null", "a list even when it is empty")
	p := start(t, "-seed-file", writeFile(t, `{
		"visuals": [{"id": "loops", "mode": "two_loops"}],
		"heads": [{"id": "`+headA+`", "name": "Ada", "headVisualId": "loops", "operationMode": "oc", "ttsVoice": "rachel", "voiceflowApiKey": "canary",
			"publicUrl": "https://canary:canary@chat.example.test/MyOrg-1/li-1?api_key=canary#canary", "publicId": "li-1",
			"organisation": {"apiKey": "canary"}, "extra": {"added": "canary"},
			"conversationSettings": {"model": {"api_key": "canary"}, "tools": [{"name": "weather", "url": "http://127.0.0.1:1/canary/weather"}]}}],
		"registrations": [{"headId": "`+headA+`", "webhookUrl": "http://127.0.0.1:1/canary?key=canary", "endConversation": true}]}`))
	p.control("POST", "faults/requests", `{"method":"GET","route":"/head/never","times":2,"status":503,"retryAfter":"1m30s"}`).ok(t, nil)
	p.control("POST", "faults/deliveries", `{"event":"end_conversation","webhookId":9,"encoding":"base64"}`).ok(t, nil)
	var session sessionView
	p.control("POST", "sessions", `{"headId":"`+headA+`"}`).ok(t, &session)
	ans := p.control("GET", "state", "")
	assert.JSONEq(t, `{
		"heads": [{"id": "`+headA+`", "name": "Ada", "publicId": "li-1", "headVisualId": "loops", "operationMode": "oc",
			"ttsProvider": "azure", "ttsVoice": "rachel", "videoStreaming": false, "splitter": true, "enableEvents": false, "isActive": true,
			"address": "https://chat.example.test/MyOrg-1/li-1", "tools": ["weather"]}],
		"visuals": [{"id": "loops", "mode": "two_loops"}],
		"registrations": [{"id": 1, "headId": "`+headA+`", "receiver": "http://127.0.0.1:1", "events": ["end_conversation"],
			"note": "made before delivery was enabled; the real service may not deliver to it"}],
		"sessions": [{"id": "`+session.ID+`", "headId": "`+headA+`", "closed": false}],
		"faults": {"requests": [{"n": 1, "method": "GET", "route": "/head/never", "times": 2, "status": 503, "retryAfter": "1m30s"}],
			"deliveries": [{"n": 2, "event": "end_conversation", "webhookId": 9, "encoding": "base64"}]}}`, ans.body)

	call := p.control("POST", "tool-calls", `{"headId":"`+headA+`","tool":"weather"}`)
	call.ok(t, nil)
	splitter := p.control("POST", "heads/"+headA+"/splitter", "")
	splitter.ok(t, nil)
	assert.NotContains(t, ans.body+call.body+splitter.body+p.control("GET", "deliveries", "").body, "canary")
}

func TestSplitterForcesAHeadBackToLegacy(t *testing.T) {
	p := start(t)
	p.api("PUT", "/head/"+p.Heads[0]+"/video-streaming?videoStreaming=true", "").ok(t, nil)
	var h headView
	p.control("POST", "heads/"+p.Heads[0]+"/splitter", "").ok(t, &h)
	assert.Equal(t, []any{p.Heads[0], false, true}, []any{h.ID, h.VideoStreaming, h.Splitter})
	assert.Contains(t, h.Address, "https://chat.example.test/")
	p.control("POST", "heads/nobody/splitter", "").refused(t, 404, "no head")
}

func TestSessionActsAsAUserDoes(t *testing.T) {
	p := start(t)
	p.hook(receiver(t, accept))
	var s, again sessionView
	p.control("POST", "sessions", `{"headId":"`+p.Heads[0]+`"}`).ok(t, &s)
	assert.Equal(t, sessionView{s.ID, p.Heads[0], false}, s)
	for _, step := range []string{"message", "message", "inactive", "timeout"} {
		p.control("POST", "sessions/"+s.ID+"/"+step, `{"text":"hello"}`).ok(t, &again)
	}
	assert.Equal(t, sessionView{s.ID, p.Heads[0], true}, again)
	p.deliveries("event=end_conversation")
	var events []string
	for _, d := range p.deliveries("sessionId=" + s.ID) {
		events = append(events, d.Event)
	}
	assert.Equal(t, []string{"start_conversation", "inactivity_warning", "timeout_conversation", "end_conversation"}, events)

	p.control("POST", "sessions/"+s.ID+"/close", "").refused(t, 409, "closed")
	other := p.session()
	p.control("POST", "sessions/"+other+"/close", "").ok(t, &again)
	assert.True(t, again.Closed)
	var list []sessionView
	p.control("GET", "sessions", "").ok(t, &list)
	assert.Equal(t, []sessionView{{s.ID, p.Heads[0], true}, {other, p.Heads[0], true}}, list)

	p.control("POST", "sessions", `{"headId":"nobody"}`).refused(t, 404, "no head")
	p.control("POST", "sessions", "").refused(t, 404, "no head")
	p.control("POST", "sessions/nobody/close", "").refused(t, 404, "no session")
	p.control("POST", "sessions/"+p.session()+"/sleep", "").refused(t, 404, `no "sleep"`)
	moved := p.session()
	p.api("PUT", "/head/"+p.Heads[0]+"/video-streaming?videoStreaming=true", "").ok(t, nil)
	p.control("POST", "sessions/"+moved+"/message", "").refused(t, 409, "no longer accessible")
}

func TestOldestSessionsAreForgotten(t *testing.T) {
	const kept = 4096
	srv := headstest.NewServer(headstest.WithConsole())
	defer srv.Close()
	head := srv.AddHead(headstest.Head{})
	first := srv.StartSession(head)
	for range kept {
		srv.StartSession(head)
	}
	p := &program{t: t, hc: &http.Client{}, announcement: announcement{BaseURL: srv.URL}}
	var list []sessionView
	p.control("GET", "sessions", "").ok(t, &list)
	assert.Len(t, list, kept)
	p.control("POST", "sessions/"+first.ID()+"/close", "").refused(t, 404, "no session")
}

func TestToolIsCalledAndItsReplyJudged(t *testing.T) {
	var got []byte
	reply := `{"message":"From nine to five."}`
	tool := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply)
	})
	p := start(t)
	p.api("PUT", "/head/"+p.Heads[0]+"/conversation-settings", `{"conversationSettings":{"tools":[{"name":"hours","url":"`+tool+`/canary"}]}}`).ok(t, nil)
	var called toolReply
	p.control("POST", "tool-calls", `{"headId":"`+p.Heads[0]+`","tool":"hours","arguments":{"day":"Monday","n":12345678901234567890}}`).ok(t, &called)
	assert.Equal(t, []any{"hours", 200, "From nine to five.", ""}, []any{called.Tool, called.Status, called.Message, called.Problem})
	assert.JSONEq(t, string(got), string(called.Sent))
	assert.Contains(t, string(got), `"n":12345678901234567890`, "digit by digit")

	session := p.session()
	reply = `{"result":"From nine to five."}`
	ans := p.control("POST", "sessions/"+session+"/tool-calls", `{"tool":"hours"}`)
	ans.ok(t, &called)
	assert.Equal(t, []any{"", `expected {"message": "…"}, the reply has "result"`}, []any{called.Message, called.Problem})
	assert.Contains(t, string(called.Sent), session)
	assert.NotContains(t, ans.body, "canary", "the address is not shown")

	p.control("POST", "tool-calls", `{"headId":"`+p.Heads[0]+`","tool":"other"}`).refused(t, 409, `no tool "other"`)
	p.control("POST", "tool-calls", `{"headId":"nobody","tool":"hours"}`).refused(t, 404, "no head")
	p.control("POST", "sessions/nobody/tool-calls", `{"tool":"hours"}`).refused(t, 404, "no session")

	require.NoError(t, p.stop())
	assert.Contains(t, p.log.String(), `msg="tool call failed"`)
	assert.Contains(t, p.log.String(), `problem="expected {\"message\": \"…\"}, the reply has \"result\""`)
}

func TestDeliveriesAreShownWaitedForAndResent(t *testing.T) {
	got := make(chan string, 8)
	p := start(t, "-retry", "0s")
	status := http.StatusInternalServerError
	key := p.hook(receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "I am ill")
		status = http.StatusOK
	}) + "/canary")
	session := p.session()
	p.control("POST", "sessions/"+session+"/message", "").ok(t, nil)
	list := p.deliveries("final=true")
	require.Len(t, list, 1)
	assert.Equal(t, 2, list[0].ID)
	list = p.deliveries("sessionId=" + session)
	require.Len(t, list, 2)
	first := list[0]
	assert.Equal(t, []any{1, int64(1), "start_conversation", p.Heads[0], session, 1, 500, false, "", "I am ill"},
		[]any{first.ID, first.WebhookID, first.Event, first.HeadID, first.SessionID, first.Attempt, first.Status, first.Final, first.Error, first.Reply})
	assert.Equal(t, <-got, first.Body)
	assert.Regexp(t, "^[0-9a-f]{64}$", first.Headers["X-Signature-256"])
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+$`, first.Receiver)
	assert.Equal(t, first.Body, <-got)

	var one deliveryView
	p.control("GET", "deliveries/1", "").ok(t, &one)
	assert.Equal(t, first, one)
	body := p.control("GET", "deliveries/1/body", "")
	assert.Equal(t, first.Body, body.body, "byte for byte")

	p.control("POST", "deliveries/1/resend", "").ok(t, nil)
	assert.Equal(t, first.Body, <-got)
	p.control("POST", "sessions/"+session+"/close", "").ok(t, nil)
	assert.Len(t, p.deliveries("event=end_conversation&webhookId=1"), 1)
	for query, want := range map[string]int{"": 4, "?webhookId=2": 0, "?sessionId=x": 0, "?event=end_conversation": 1, "?final=true": 3, "?final=false": 4, "?wait=1ms&webhookId=2": 0} {
		list = nil
		p.control("GET", "deliveries"+query, "").ok(t, &list)
		assert.NotNil(t, list, "a list even when it is empty")
		assert.Len(t, list, want, query)
	}
	p.api("DELETE", "/head-events/1", "").ok(t, nil)
	p.control("POST", "deliveries/1/resend", "").refused(t, 409, "removed")
	for _, id := range []string{"0", "99", "x", "01"} {
		p.control("GET", "deliveries/"+id, "").refused(t, 404, "no delivery")
		p.control("GET", "deliveries/"+id+"/body", "").refused(t, 404, "no delivery")
		p.control("POST", "deliveries/"+id+"/resend", "").refused(t, 404, "no delivery")
	}
	for _, query := range []string{"webhookId=x", "final=perhaps", "wait=5", "wait=-1s", "wait=2m", "sessionid=x"} {
		p.control("GET", "deliveries?"+query, "").refused(t, 400, strings.Split(query, "=")[0])
	}
	assert.NotContains(t, p.control("GET", "deliveries", "").body, key)
	assert.NotContains(t, p.control("GET", "deliveries", "").body, "canary")
}

func TestRequestsGoWrongOnDemand(t *testing.T) {
	p := start(t)
	path := "/head/" + p.Heads[0]
	var faults faultsView
	const given = `{"method":"GET","route":"/head/{id}","times":2,"status":503,"body":"{\"busy\":true}","retryAfter":"2s"}`
	p.control("POST", "faults/requests", given).ok(t, &faults)
	assert.Len(t, faults.Requests, 1)
	ans := p.api("GET", path, "")
	assert.Equal(t, []any{503, "2", `{"busy":true}`}, []any{ans.status, ans.header.Get("Retry-After"), ans.body})
	p.control("GET", "faults", "").ok(t, &faults)
	assert.Equal(t, 1, faults.Requests[0].Times, "what is left")
	assert.Equal(t, 503, p.api("GET", path, "").status)
	p.api("GET", path, "").ok(t, nil)
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, p.control("GET", "faults", "").body)

	p.control("POST", "faults/requests", `{"method":"PUT","cut":"after","latency":"1ms","times":1}`).ok(t, nil)
	req := p.request("PUT", "/head/update", `{"id":"`+p.Heads[0]+`","name":"Bea"}`)
	req.Header.Set("Authorization", "Bearer "+p.Token)
	resp, err := p.hc.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	assert.Error(t, err, "the connection is cut")
	assert.Contains(t, p.api("GET", path, "").body, `"name":"Bea"`, "after the effect")

	p.control("POST", "faults/requests", `{"status":500,"cutBody":true,"afterEffect":true}`).ok(t, nil)
	p.control("POST", "faults/deliveries", `{"drop":true}`).ok(t, nil)
	p.control("DELETE", "faults", "").ok(t, nil)
	p.api("GET", path, "").ok(t, nil)
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, p.control("GET", "faults", "").body)
}

func TestDeliveriesGoWrongOnDemand(t *testing.T) {
	p := start(t)
	p.hook(receiver(t, accept))
	session := p.session()
	step := func(fault, step string) []deliveryView {
		p.control("POST", "faults/deliveries", fault).ok(t, nil)
		p.control("POST", "sessions/"+session+"/"+step, "").ok(t, nil)
		return p.deliveries("event=" + map[string]string{"message": "start_conversation", "inactive": "inactivity_warning", "close": "end_conversation"}[step])
	}
	dropped := step(`{"times":1,"drop":true}`, "message")[0]
	assert.Equal(t, []any{0, 0, true}, []any{dropped.Attempt, dropped.Status, dropped.Final})
	assert.Contains(t, dropped.Error, "dropped by a fault")
	assert.Regexp(t, "^[A-Za-z0-9+/]{43}=$", step(`{"times":1,"encoding":"base64","event":"inactivity_warning","webhookId":1}`, "inactive")[0].Headers["X-Signature-256"])
	old := step(`{"times":1,"age":"48h","delay":"1ms"}`, "close")[0]
	var body struct{ Timestamp string }
	require.NoError(t, json.Unmarshal([]byte(old.Body), &body))
	stamp, err := time.Parse("2006-01-02 15:04:05", body.Timestamp)
	require.NoError(t, err)
	assert.WithinDuration(t, old.At.Add(-48*time.Hour), stamp, time.Minute)
}

func TestFaultsAreRefused(t *testing.T) {
	p := start(t)
	for body, says := range map[string]string{
		`{"status":99}`: "status", `{"status":100}`: "status", `{"status":600}`: "status", `{"status":-1}`: "status",
		`{"times":-1}`: "times", `{"latency":"-1s"}`: "latency", `{"latency":1}`: "JSON", `{"latency":"1"}`: `"1.5s"`, `{"retryAfter":"-1s"}`: "retryAfter", `{"cut":"middle"}`: "cut",
		`{"route":"/nowhere"}`: "never happen", `{"method":"POST","route":"/head/update"}`: "never happen", `{"share":2}`: "share", `{"share":-1}`: "share",
	} {
		p.control("POST", "faults/requests", body).refused(t, 400, says)
	}
	for body, says := range map[string]string{
		`{"times":-1}`: "times", `{"delay":"-1s"}`: "delay", `{"encoding":"hex2"}`: "encoding", `{"event":"start"}`: "never happen", `{"status":99}`: "status 99", `{"status":503,"drop":true}`: "a fault of their own",
	} {
		p.control("POST", "faults/deliveries", body).refused(t, 400, says)
	}
	assert.JSONEq(t, `{"requests":[],"deliveries":[]}`, p.control("GET", "faults", "").body)
}

// The control API returns every field that was set through it.
func TestFaultsKeepEveryField(t *testing.T) {
	p := start(t)
	for _, row := range [][2]string{
		{"requests", `{"method":"POST","route":"/head-events","share":0.25,"times":3,"status":500,"body":"x","retryAfter":"1s","latency":"2s","cut":"before","cutBody":true,"afterEffect":true}`},
		{"deliveries", `{"webhookId":4,"event":"end_conversation","times":5,"drop":true,"duplicate":true,"reorder":true,"delay":"3s",
			"corruptSignature":true,"encoding":"hex","age":"-4s"}`},
		{"deliveries", `{"webhookId":4,"event":"end_conversation","times":5,"status":503}`},
	} {
		path, given := row[0], row[1]
		p.control("POST", "faults/"+path, given).ok(t, nil)
		var shown map[string][]json.RawMessage
		p.control("GET", "faults", "").ok(t, &shown)
		require.Len(t, shown[path], 1)
		armed := value(t, string(shown[path][0])).(map[string]any)
		n := armed["n"]
		delete(armed, "n")
		assert.Equal(t, value(t, given), any(armed))
		p.control("DELETE", fmt.Sprintf("faults/%v", n), "").ok(t, nil)
	}
}

func TestManyControlCallsAtOnce(t *testing.T) {
	p := start(t)
	p.hook(receiver(t, accept))
	paths := []string{"state", "sessions", "deliveries", "faults", "health"}
	done := make(chan struct{})
	for i := range 16 {
		go func() {
			defer func() { done <- struct{}{} }()
			for j := range 8 {
				switch (i + j) % 4 {
				case 0:
					p.control("POST", "sessions/"+p.session()+"/message", "")
				case 1:
					p.control("POST", "faults/requests", fmt.Sprintf(`{"route":"/head/never%d","status":500}`, i))
				case 2:
					p.control("DELETE", "faults", "")
				default:
					assert.Less(t, p.control("GET", paths[j%len(paths)], "").status, 300)
				}
			}
		}()
	}
	for range 16 {
		<-done
	}
}
