package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type received struct {
	at        time.Time
	event     *heads.Event
	body      string
	signature string
}

// journal is a receiver that keeps what it gets until it is taken.
func journal(t testing.TB) (address string, take func() []received) {
	var mu sync.Mutex
	var got []received
	address = server(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		event, err := heads.ParseEvent(body)
		assert.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, received{time.Now(), event, string(body), r.Header.Get("X-Signature-256")})
	})
	return address, func() (taken []received) {
		mu.Lock()
		defer mu.Unlock()
		taken, got = got, nil
		return taken
	}
}

// Each sentence of the page does what it says, as the journal of a receiver shows.
func TestPresetsDoWhatTheySay(t *testing.T) {
	hook, take := journal(t)
	p := start(t, "-retry", "1ms,1ms,1ms", "-seed-file", scene(t, hook))
	p.call("PUT", "/head/"+ada+"/enable-events?enableEvents=true", "")
	b := open(t, p.at("heads/"+ada+"/faults"))
	arm := func(preset string) {
		b.get("form", preset).press("Arm")
		b.until("armed", func() bool {
			return strings.Contains(b.region("Armed").text(), ".") && !strings.Contains(b.region("Armed").text(), "Nothing")
		})
	}
	// events plays events until each has its final attempt, and returns what the receiver got.
	session := p.session(ada)
	events := func(n int) []received {
		final := func() int { return strings.Count(p.control("GET", "deliveries?final=true", ""), `"eventId"`) }
		before := final()
		p.idle(session, n)
		require.Eventually(t, func() bool { return final() >= before+n }, patience, 5*time.Millisecond)
		b.region("Armed").shows("Nothing goes wrong now.")
		return take()
	}
	attempts := func() (list []string) {
		var found []struct{ Attempt, Status int }
		p.json("deliveries?limit=4", &found)
		for _, d := range found {
			list = append(list, fmt.Sprint(d.Attempt, " ", d.Status))
		}
		return list
	}
	arm("Fail the next 3 attempts with 503")
	b.region("Armed").shows("Fail the next 3 attempts with 503.")
	assert.Len(t, events(1), 1, "nothing is sent for a failed attempt")
	assert.Equal(t, []string{"1 503", "2 503", "3 503", "4 200"}, attempts())

	arm("Lose the next 3 events")
	assert.Len(t, events(4), 1)

	arm("Deliver the next 1 event twice")
	twice := events(2)
	require.Len(t, twice, 3)
	assert.Equal(t, twice[0].body, twice[1].body)

	arm("Swap the next 1 event with the event that follows")
	p.idle(session, 1)
	b.region("Armed").shows("Nothing goes wrong now.")
	other := p.session(ada)
	p.idle(other, 1)
	var swapped []received
	require.Eventually(t, func() bool { swapped = append(swapped, take()...); return len(swapped) == 2 }, patience, 5*time.Millisecond)
	assert.Equal(t, []string{other, session}, []string{swapped[0].event.SessionID, swapped[1].event.SessionID})

	b.get("form", "Delay the next 1 event by 5s").get("textbox", "delay").fill("400ms")
	began := time.Now()
	arm("Delay the next 1 event by 400ms")
	late := events(1)
	require.Len(t, late, 1)
	assert.GreaterOrEqual(t, late[0].at.Sub(began), 400*time.Millisecond)

	var registered struct{ SharedKey string }
	require.NoError(t, json.Unmarshal([]byte(p.call("GET", "/head-events/1", "")), &registered))
	arm("Sign the next 3 events wrongly")
	for i, r := range events(4) {
		assert.Equal(t, i == 3, heads.VerifySignature([]byte(r.body), r.signature, registered.SharedKey) == nil, i)
	}

	arm("Make the next 1 event 48h old")
	old := events(2)
	require.Len(t, old, 2)
	assert.WithinDuration(t, time.Now().Add(-48*time.Hour), old[0].event.Timestamp.Time, time.Minute)
	assert.WithinDuration(t, time.Now(), old[1].event.Timestamp.Time, time.Minute)

	b.get("combobox", "event").choose("end_conversation")
	arm("Lose the next 3 events")
	b.region("Armed").shows("Lose the next 3 events of end_conversation.").press("Remove fault 8")
	b.region("Armed").shows("Nothing goes wrong now.")
}

// The presets of requests, as a client sees them.
func TestPresetsOfRequestsDoWhatTheySay(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.at("faults"))
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	alias := 0
	// update sends an update and returns its status, which is 0 for a cut connection, and
	// whether it took effect.
	update := func() (status int, took bool, header http.Header) {
		alias++
		name := fmt.Sprint("alias ", alias)
		req, err := http.NewRequest("PUT", p.BaseURL+"/head/update", strings.NewReader(fmt.Sprintf(`{"id":%q,"alias":%q}`, ada, name)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+p.Token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := hc.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			status, header = resp.StatusCode, resp.Header
		}
		var head struct{ Fields struct{ Alias string } }
		p.json("heads/"+ada, &head)
		return status, head.Fields.Alias == name, header
	}
	check := func(times, wantStatus int, wantEffect bool) {
		for range times {
			status, took, _ := update()
			assert.Equal(t, []any{wantStatus, wantEffect}, []any{status, took})
		}
		status, took, _ := update()
		assert.Equal(t, []any{200, true}, []any{status, took}, "no more")
		b.region("Armed").shows("Nothing goes wrong now.")
	}
	arm := func(preset, says string) {
		b.get("form", preset).press("Arm")
		b.region("Armed").shows(says)
	}
	b.get("form", "Answer 503 to the next 3 requests").get("textbox", "requests").fill("1")
	arm("Answer 503 to the next 1 request", "Answer the next request with 503.")
	b.goTo("heads/" + ada + "/conversation")
	for _, state := range []string{"on", "off"} {
		b.get("switch", "enableEvents").click()
		b.main("enableEvents " + state)
	}
	b.part("Faults")
	b.get("navigation", "Parts of the head").get("link", "Faults 1")
	b.region("Armed").shows("Answer the next request with 503.")
	check(1, 503, false)

	arm("Answer 429 with Retry-After 2s to the next 3 requests", "Answer the next 3 requests with 429 and with Retry-After 2s.")
	status, took, header := update()
	assert.Equal(t, []any{429, false, "2"}, []any{status, took, header.Get("Retry-After")})
	check(2, 429, false)

	b.get("form", "Answer 5s late to the next 3 requests").get("textbox", "latency").fill("150ms")
	arm("Answer 150ms late to the next 3 requests", "Answer the next 3 requests 150ms late.")
	began := time.Now()
	check(3, 200, true)
	assert.GreaterOrEqual(t, time.Since(began), 450*time.Millisecond)

	arm("Close the connection before the effect of the next 1 request", "Close the connection of the next request before the effect.")
	check(1, 0, false)
	arm("Close the connection after the effect of the next 1 request", "Close the connection of the next request after the effect.")
	check(1, 0, true)
	arm("Answer 500 although it took effect to the next 1 request", "Answer the next request with 500 although it took effect.")
	check(1, 500, true)
}

// The full forms have every key of the control API, and its refusals in its own words.
func TestEveryKeyOfAFaultCanBeSet(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.at("faults"))
	b.region("Armed")
	b.script(`document.querySelectorAll("summary").forEach((s) => s.click())`)
	form := b.get("form", "Fault of requests")
	form.get("textbox", "status").fill("99")
	form.press("Arm")
	form.get("alert", "").shows("status 99 can't end an answer").inspect("every key of a fault, and a refusal")
	form.fills(map[string]string{"status": "503", "times": "2", "method": "PUT", "route": "/head/update", "retryAfter": "1s",
		"latency": "1ms", "share": "0.5", "body": "busy", "cut": "before"})
	form.get("checkbox", "afterEffect").click()
	form.get("checkbox", "cutBody").click()
	form.press("Arm")
	b.region("Armed").shows("Answer the next 2 requests PUT /head/update (50 % of them) with 503 although it took effect and with another body and with Retry-After 1s and 1ms late, and close the connection of them before the effect, and cut them in the middle of the answer.")
	form = b.get("form", "Fault of deliveries")
	form.fills(map[string]string{"webhookId": "1", "event": "end_conversation", "times": "1", "delay": "1s", "encoding": "base64", "age": "2h"})
	for _, name := range []string{"drop", "duplicate", "reorder", "corruptSignature"} {
		form.get("checkbox", name).click()
	}
	form.press("Arm")
	b.region("Armed").shows("Lose the next event of end_conversation to webhook 1, and deliver it twice")
	assert.JSONEq(t, `{"requests":[{"n":1,"method":"PUT","route":"/head/update","times":2,"status":503,"body":"busy","retryAfter":"1s","latency":"1ms",
		"cut":"before","cutBody":true,"afterEffect":true,"share":0.5}],"deliveries":[{"n":2,"webhookId":1,"event":"end_conversation","times":1,"drop":true,
		"duplicate":true,"reorder":true,"delay":"1s","corruptSignature":true,"encoding":"base64","age":"2h0m0s"}]}`, p.control("GET", "faults", ""))
	b.get("navigation", "Everything").get("link", "Faults 2")
	b.press("Clear faults")
	b.region("Armed").shows("Nothing goes wrong now.")
}
