package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	ada = "11111111-1111-4111-8111-111111111111"
	bea = "22222222-2222-4222-8222-222222222222"
)

// scene has two heads. The first has a tool and a receiver.
func scene(t testing.TB, address string) string {
	text := fmt.Sprintf(`{
		"visuals": [{"id": "expressive", "mode": "two_loops"}],
		"heads": [
			{"id": %q, "name": "Ada", "operationMode": "oc", "greetings": "Hello.", "voiceflowApiKey": "canary"},
			{"id": %q, "name": "Bea", "headVisualId": "expressive"}],
		"tools": [{"headId": %[1]q, "name": "opening_hours", "description": "Tells the hours.", "url": %[3]q,
			"parameters": [{"name": "day", "type": "string", "description": "Day of the week."}, {"name": "count", "type": "number"}]}],
		"registrations": [{"headId": %[1]q, "webhookUrl": %[3]q, "startConversation": true, "endConversation": true,
			"timeoutConversation": true, "inactivityWarning": true}]}`, ada, bea, address)
	name := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestWalkByRoleAndName(t *testing.T) {
	p := start(t, "-retry", "100ms,200ms", "-seed-file", scene(t, receiver(t, 500, 503)))
	b := open(t, p.BaseURL+"/")
	assert.Equal(t, p.ConsoleURL, eval[string](b, "location.href"), "a browser is led to the console")
	heads, head := b.region("Heads"), b.region("Head")
	heads.shows("two_loops").shows(ada).get("button", "Copy id")

	// A refusal, with the message of the service.
	heads.get("link", "Bea").click()
	head.shows("Bea")
	head.get("button", "Enable streaming").click()
	head.get("alert", "").shows(`the head's visual is in mode "two_loops"`)
	assert.Contains(t, eval[string](b, "location.search"), "head="+bea)

	// The head.
	heads.get("link", "Ada").click()
	head.shows(ada).shows("legacy").shows("Hello.")
	head.get("button", "Enable streaming").click()
	head.shows("streaming").shows("https://stream.example.test/")
	head.get("button", "Enable splitter").click()
	head.shows("legacy")
	head.get("button", "Turn delivery on").click()
	heads.shows("on")
	assert.NotContains(t, b.region("Head").text()+eval[string](b, "document.documentElement.outerHTML"), "api_key=")
	head.get("button", "Reveal").click()
	head.shows("api_key=")
	head.get("textbox", "Fields").fill(`{"greetings":"Welcome!","publicId":"li-1"}`)
	head.get("button", "Edit fields").click()
	head.shows("Welcome!")
	head.get("textbox", "Fields").fill(`{"greetings":5}`)
	head.get("button", "Edit fields").click()
	head.get("alert", "").shows("greetings must be a string")

	// What the request did.
	requests := b.region("Requests")
	b.until("three updates", func() bool {
		rows, err := b.query(requests.id, "button", "PUT /head/update")
		return err == nil && len(rows) == 2
	})
	b.do(chromedp.Evaluate(`[...document.querySelectorAll("#requests tbody button")].at(1).click()`, nil))
	b.region("Request").shows("Welcome!").shows("Hello.").shows("ignored").shows("li-1").shows("Changes of the head")

	// A session with retries and a tool call.
	session := b.region("Session")
	session.get("button", "Start session").click()
	session.shows("The user opened the session.")
	session.get("textbox", "Message").fill("When are you open?")
	session.get("button", "Send").click()
	session.shows("User: When are you open?")
	tool := session.get("form", "opening_hours")
	tool.get("textbox", "day").fill("Monday")
	tool.get("textbox", "count").fill("2")
	tool.get("button", "Call tool").click()
	tool.shows("From nine to five.").shows(`"day": "Monday"`).shows(`"count": 2`).shows("session_metadata")
	deliveries := b.region("Deliveries")
	deliveries.shows("✓ 200").shows("✕ 500").shows("✕ 503")
	assert.Contains(t, eval[string](b, "location.search"), "session=")

	// The timeline.
	timeline := b.region("Timeline")
	timeline.shows("1 message, 1 event, 3 delivery attempts (2 failed), 1 tool call.")
	for with, detail := range map[string]string{"message": "When are you open?", "event": "Registrations", "attempt 3": "none follows", "tool call": "opening_hours"} {
		timeline.beginning("button", with).click()
		timeline.shows(detail)
	}

	// A delivery.
	b.do(chromedp.Evaluate(`document.querySelector("#deliveries tbody button").click()`, nil))
	delivery := b.region("Delivery").shows("signature right").shows("X-Signature-256").shows("head_id")
	b.do(browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}))
	delivery.get("button", "Copy as curl").click()
	delivery.shows("copied")
	assert.Contains(t, eval[string](b, "navigator.clipboard.readText()"), "curl -sS")
	delivery.get("button", "Copy as Go test").click()
	b.until("the Go test", func() bool {
		return strings.Contains(eval[string](b, "navigator.clipboard.readText()"), "func TestDelivery(t *testing.T)")
	})
	delivery.get("button", "Resend").click()
	b.until("a fourth attempt", func() bool { return eval[int](b, `document.querySelectorAll("#deliveries tbody tr").length`) == 4 })
	assert.Contains(t, b.region("Delivery").text(), "signature right", "it stays open")

	// The filters.
	deliveries.get("combobox", "Filter by outcome").choose("failed")
	b.until("the failed ones", func() bool { return eval[int](b, `document.querySelectorAll("#deliveries tbody tr").length`) == 2 })
	deliveries.get("combobox", "Filter by event").choose("end_conversation")
	b.until("none", func() bool { return eval[int](b, `document.querySelectorAll("#deliveries tbody tr").length`) == 0 })
	deliveries.get("combobox", "Filter by head").choose(ada)
	assert.Contains(t, eval[string](b, "location.search"), "outcome=failed")
	b.do(chromedp.NavigateBack(), chromedp.NavigateBack(), chromedp.NavigateBack())
	b.until("all of them", func() bool { return eval[int](b, `document.querySelectorAll("#deliveries tbody tr").length`) == 4 })

	session.get("button", "Inactive").click()
	session.shows("The user was inactive")
	session.get("button", "Time out").click()
	session.shows("The session timed out.")
	session.get("button", "Close").click()
	session.get("alert", "").shows("the session is closed")

	// Faults.
	faults := b.region("Faults")
	form := faults.get("form", "Fault of requests")
	form.get("textbox", "status").fill("99")
	form.get("button", "Add fault").click()
	form.get("alert", "").shows("status 99")
	form.get("textbox", "status").fill("503")
	form.get("textbox", "times").fill("1")
	form.get("checkbox", "afterEffect").click()
	form.get("button", "Add fault").click()
	faults.shows("status 503")
	form = faults.get("form", "Fault of deliveries")
	form.get("checkbox", "drop").click()
	form.get("textbox", "event").fill("end_conversation")
	form.get("button", "Add fault").click()
	faults.shows("drop true")
	faults.get("button", "Clear faults").click()
	faults.shows("There are no faults.")

	// The seed.
	seed := b.region("Seed")
	dir := t.TempDir()
	b.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir).WithBrowserContextID(""))
	exported := func() string {
		seed.get("button", "Export seed").click()
		var text []byte
		b.until("the file", func() bool {
			var err error
			text, err = os.ReadFile(filepath.Join(dir, "seed.json"))
			return err == nil && json.Valid(text)
		})
		require.NoError(t, os.Remove(filepath.Join(dir, "seed.json")))
		return string(text)
	}
	assert.NotContains(t, exported(), "canary")
	seed.get("checkbox", "With keys").click()
	assert.Contains(t, exported(), "canary")
	half := filepath.Join(dir, "half.json")
	require.NoError(t, os.WriteFile(half, []byte(`{"heads":[{"name":"Cleo"}],"registrations":[{"headId":"nobody","webhookUrl":"https://x.example.test"}]}`), 0o600))
	b.upload(half)
	seed.get("alert", "").shows("nothing was added")
	assert.NotContains(t, heads.text(), "Cleo")
	require.NoError(t, os.WriteFile(half, []byte(`{"heads":[{"name":"Cleo"}]}`), 0o600))
	b.upload(half)
	heads.get("link", "Cleo")
	seed.get("button", "Reset").click()
	b.get("dialog", "Reset restores the initial state. It removes all changes, sessions, deliveries, requests and faults.").get("button", "Cancel").click()
	seed.get("button", "Reset").click()
	b.find(0, "dialog", "").get("button", "Reset").click()
	b.until("the start", func() bool {
		return !strings.Contains(heads.text(), "Cleo") && !strings.Contains(deliveries.text(), "✓")
	})
}

// Each switch is a group of buttons that keep their names. The pressed one is the state.
func TestSwitchesShowTheState(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.ConsoleURL)
	head := b.region("Head").shows(ada)
	rows := []struct {
		group, on, off string
		change         func(on bool)
	}{
		{"Streaming mode", "Enable streaming", "Disable streaming", func(on bool) {
			p.call("PUT", fmt.Sprintf("/head/%s/video-streaming?videoStreaming=%t", ada, on), "")
		}},
		{"Text splitting", "Enable splitter", "", func(on bool) { p.call("PUT", fmt.Sprintf("/head/%s/splitter?splitter=%t", ada, on), "") }},
		{"Delivery of events", "Turn delivery on", "Turn delivery off", func(on bool) {
			p.call("PUT", fmt.Sprintf("/head/%s/enable-events?enableEvents=%t", ada, on), "")
		}},
	}
	for _, row := range rows {
		group := head.get("group", row.group)
		shows := func(on bool) {
			t.Helper()
			b.until(fmt.Sprintf("%s %t", row.group, on), func() bool { return group.get("button", row.on).pressed() == on })
			if row.off != "" {
				assert.Equal(t, !on, group.get("button", row.off).pressed(), "%s: one of two", row.group)
			}
		}
		row.change(false)
		shows(false)
		group.get("button", row.on).click()
		shows(true)
		row.change(false)
		shows(false)
		row.change(true)
		shows(true)
		if row.off != "" {
			group.get("button", row.off).click()
			shows(false)
		}
	}
}

// pressed reports whether a button is pressed, as a screen reader says it.
func (e element) pressed() bool {
	e.p.t.Helper()
	return e.on("function() { return this.getAttribute('aria-pressed') }") == "true"
}

func TestDeliveriesFollowTheChosenHead(t *testing.T) {
	hook := receiver(t)
	p := start(t, "-seed-file", scene(t, hook))
	p.call("POST", "/head-events", `{"headId":"`+bea+`","webhookUrl":"`+hook+`","endConversation":true}`)
	b := open(t, p.ConsoleURL)
	deliveries, heads := b.region("Deliveries"), b.region("Heads")
	rows := func(n int) {
		t.Helper()
		b.until(fmt.Sprint(n, " deliveries"), func() bool { return eval[int](b, `document.querySelectorAll("#deliveries tbody tr").length`) == n })
	}
	deliveries.shows("No event has been delivered yet")
	assert.Equal(t, "this head", eval[string](b, `document.querySelector("[data-filter=headId]").selectedOptions[0].text`))
	end := func(head string, times int) {
		p.call("PUT", "/head/"+head+"/enable-events?enableEvents=true", "")
		for range times {
			var session struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(p.control("POST", "sessions", `{"headId":"`+head+`"}`)), &session))
			p.control("POST", "sessions/"+session.ID+"/close", "")
			p.control("GET", "deliveries?wait=30s&final=true&sessionId="+session.ID, "")
		}
	}
	end(ada, 2)
	rows(2)
	end(bea, 1)
	heads.get("link", "Bea").click()
	rows(1)
	end(ada, 1)
	end(bea, 1)
	rows(2)
	deliveries.get("combobox", "Filter by head").choose("any")
	rows(5)
	heads.get("link", "Ada").click()
	assert.Contains(t, eval[string](b, "location.search"), "headId=any", "a choice is kept")
	rows(5)
	deliveries.get("combobox", "Filter by head").choose(bea)
	rows(2)
	deliveries.get("combobox", "Filter by head").choose("")
	rows(3)
	deliveries.get("combobox", "Filter by outcome").choose("failed")
	deliveries.shows("No delivery matches the filters.")
}

func TestEventWithoutAReceiverSaysWhy(t *testing.T) {
	p := start(t, "-strict-order", "-seed-file", scene(t, receiver(t)))
	b := open(t, p.ConsoleURL)
	head, session := b.region("Head"), b.region("Session")
	head.shows("made before delivery was enabled; the real service may not deliver to it")
	session.get("button", "Start session").click()
	session.shows("The user opened the session.")
	session.get("textbox", "Message").fill("Hello")
	session.get("button", "Send").click()
	session.shows("Event start_conversation, for no registration: delivery is off.")
	b.region("Timeline").shows("1 message, 1 event, 0 delivery attempts (0 failed), 0 tool calls.")
	b.region("Timeline").beginning("button", "event").click()
	b.region("Timeline").shows("no registration: delivery is off")
	head.get("button", "Turn delivery on").click()
	b.region("Heads").shows("on")
	session.get("button", "Inactive").click()
	session.shows("Event inactivity_warning, for no registration: made before delivery was enabled.")
	p.call("DELETE", "/head-events/1", "")
	b.until("no registration", func() bool { return !strings.Contains(head.text(), "made before") })
}

// The marks of a short session lie as far apart as those of a long one.
func TestTimelineFillsItsWidth(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.ConsoleURL)
	var session struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(p.control("POST", "sessions", `{"headId":"`+ada+`"}`)), &session))
	p.control("POST", "sessions/"+session.ID+"/message", `{"text":"one"}`)
	p.control("POST", "sessions/"+session.ID+"/tool-calls", `{"tool":"opening_hours"}`)
	b.region("Timeline").shows("1 message, 1 event, 0 delivery attempts (0 failed), 1 tool call.")
	for _, width := range []int64{1280, 1900, 700, 400} {
		b.view(width, "light")
		b.until(fmt.Sprint("marks over the whole width of ", width), func() bool {
			return eval[bool](b, timelineFills)
		})
	}
}

func (p *tab) upload(name string) {
	p.t.Helper()
	field := p.region("Seed").beginning("button", "Import seed")
	p.do(dom.SetFileInputFiles([]string{name}).WithBackendNodeID(field.id))
}

func TestRevealIsTheOnlyButtonOfItsName(t *testing.T) {
	b := open(t, start(t).ConsoleURL)
	b.get("button", "Reveal")
	found, err := b.query(0, "button", "Reveal")
	require.NoError(t, err)
	assert.Len(t, found, 1)
}

// Whatever anyone sends is shown as text, everywhere.
func TestHostileTextStaysText(t *testing.T) {
	const evil = `<script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\"><a href=\"javascript:window.hacked=1\">`
	hook := receiver(t)
	p := start(t)
	p.control("POST", "seed", `{"heads":[{"id":"`+bea+`","name":"`+evil+`","operationMode":"oc","enableEvents":true,"greetings":"`+evil+`","ttsVoice":"`+evil+`",
		"phrases":["`+evil+`"],"fileUrl":"javascript:window.hacked=1","headVisualVideoUrl":"data:text/html,`+evil+`","publicUrl":"javascript:window.hacked=1",
		"customWords":{"`+evil+`":"`+evil+`"},"extra":{"`+evil+`":"`+evil+`"}}],
		"tools":[{"headId":"`+bea+`","name":"`+evil+`","description":"`+evil+`","url":"`+hook+`","parameters":[{"name":"`+evil+`","type":"`+evil+`","description":"`+evil+`"}]}],
		"registrations":[{"headId":"`+bea+`","webhookUrl":"`+hook+`/`+`","startConversation":true}]}`)
	b := open(t, p.ConsoleURL+"?head="+bea+"&event="+strings.ReplaceAll("<script>window.hacked=1</script>", "<", "%3C"))
	b.region("Head").shows("<script>window.hacked=1</script>")
	session := b.region("Session")
	session.get("button", "Start session").click()
	session.shows("opened the session")
	session.get("textbox", "Message").fill(`<script>window.hacked=1</script>`)
	session.get("button", "Send").click()
	session.shows("User: <script>")
	session.get("button", "Call tool").click()
	session.shows("From nine to five.")
	b.region("Timeline").beginning("button", "message").click()
	b.region("Timeline").beginning("button", "tool call").click()
	p.call("PUT", "/head/update", `{"id":"`+bea+`","greetings":"`+evil+` again"}`)
	b.region("Requests").get("button", "PUT /head/update").click()
	b.region("Request").shows("<script>")
	b.region("Head").get("textbox", "Fields").fill(`{"greetings":5,"<script>window.hacked=1</script>":"string"}`)
	b.region("Head").get("button", "Edit fields").click()
	b.region("Head").get("alert", "").shows("<script>")
	assert.Equal(t, "undefined", eval[string](b, "typeof window.hacked"))
	assert.Equal(t, 0, eval[int](b, `document.querySelectorAll("main script, main img, a[href^='javascript:'], a[href^='data:']").length`))
}

func TestPageReadsEverythingAgainAfterARestart(t *testing.T) {
	p := start(t)
	b := open(t, p.ConsoleURL)
	p.call("GET", "/head/"+p.Heads[0], "")
	b.region("Requests").shows("GET /head/")
	b.mu.Lock()
	b.down = true
	b.mu.Unlock()
	p.kill()
	b.status("reconnecting")
	addr := strings.TrimPrefix(p.BaseURL, "http://")
	p.args = []string{"-seed-file", scene(t, receiver(t))}
	p.launch(addr)
	b.status("live")
	b.region("Heads").get("link", "Bea")
	b.until("no request of before", func() bool { return !strings.Contains(b.region("Requests").text(), "GET /head/") })
	p.call("GET", "/head/"+ada, "")
	b.region("Requests").shows("GET /head/" + ada)
}

func TestEverythingWorksByKeyboard(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.ConsoleURL)
	b.region("Session").get("form", "opening_hours")
	focus := func(name string) {
		t.Helper()
		for range 250 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if strings.HasPrefix(eval[string](b, `(() => { const e = document.activeElement; return e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || "" })()`), name) {
				return
			}
		}
		require.Fail(t, "the keyboard does not reach "+name)
	}
	press := func(name, key string) { t.Helper(); focus(name); b.do(chromedp.KeyEvent(key)) }
	press("Bea", kb.Enter)
	b.region("Head").shows(bea)
	press("Ada", kb.Enter)
	press("Turn delivery on", " ")
	b.region("Heads").shows("on")
	press("Start session", kb.Enter)
	b.region("Session").shows("opened the session")
	focus("Message")
	b.do(chromedp.KeyEvent("Hello"), chromedp.KeyEvent(kb.Enter))
	b.region("Timeline").beginning("button", "attempt 1")
	press("attempt 1", kb.Enter)
	b.region("Timeline").shows("Next attempt in")
	press("start_conversation", kb.Enter)
	b.region("Delivery").shows("signature right")
	press("Resend", " ")
	b.until("a second attempt", func() bool { return eval[int](b, `document.querySelectorAll("#deliveries tbody tr").length`) == 2 })
	press("Reset", kb.Enter)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("the dialog is closed", func() bool { return !eval[bool](b, `document.querySelector("dialog").open`) })
}

func TestEmptyConsoleNamesTheFirstStep(t *testing.T) {
	name := filepath.Join(t.TempDir(), "seed.json")
	require.NoError(t, os.WriteFile(name, []byte(`{}`), 0o600))
	p := start(t, "-seed-file", name)
	b := open(t, p.ConsoleURL)
	b.region("Heads").shows("There is no head yet").shows("curl").get("button", "Copy line")
	b.region("Deliveries").shows("No event has been delivered yet").get("button", "Copy line")
	b.region("Requests").shows("heads.NewFromEnv()")
}
