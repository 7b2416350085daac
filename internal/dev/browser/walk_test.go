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

// A person finds everything by its role and its name, on a wide page and on a narrow one.
func TestWalkByRoleAndName(t *testing.T) {
	for _, width := range []int64{1400, 420} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(width, scheme), func(t *testing.T) {
				p := start(t, "-retry", "100ms,200ms", "-seed-file", scene(t, receiver(t, 500, 503)))
				w := &walk{program: p, tab: open(t, p.BaseURL+"/")}
				assert.Equal(t, p.ConsoleURL, eval[string](w.tab, "location.href"), "a browser is led to the console")
				w.view(width, scheme)
				w.switches()
				w.conversation()
				w.deliveries()
				w.tools()
				w.configuration()
				w.requests()
				w.seed()
				assert.LessOrEqual(t, eval[int64](w.tab, "document.documentElement.scrollWidth"), width)
			})
		}
	}
}

type walk struct {
	*program
	*tab
}

func (w *walk) closePanel() {
	w.tab.t.Helper()
	w.get("button", "Close").click()
	w.count(".panel", 0)
}

func (w *walk) switches() {
	t := w.tab.t
	w.head("Bea")
	w.get("switch", "videoStreaming").click()
	w.get("alert", "").shows(`the head's visual is in mode "two_loops"`)
	inspect(w.tab, "refused switch")
	w.head("Ada")
	assert.Equal(t, "#/heads/"+ada+"/conversation", w.tab.address())
	w.get("main", "").shows("videoStreaming off").shows("splitter on").shows("legacy")
	w.get("switch", "videoStreaming").click()
	w.get("main", "").shows("videoStreaming on").shows("streaming")
	w.get("button", "Enable splitter").click()
	w.get("main", "").shows("videoStreaming off").shows("splitter on")
	w.do(browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}))
	w.get("button", "Copy id").click()
	w.get("main", "").shows("copied")
	assert.Equal(t, ada, eval[string](w.tab, "navigator.clipboard.readText()"))
}

func (w *walk) conversation() {
	t := w.tab.t
	w.get("main", "").shows("enableEvents is off, so no event is delivered.")
	w.get("button", "Turn delivery on").click()
	w.get("main", "").shows("enableEvents on")
	form := w.get("form", "What the visitor does")
	form.get("button", "Be idle").click()
	form.get("alert", "").shows("there is no session yet")
	inspect(w.tab, "refused step")
	form.get("textbox", "Message").fill("When are you open?")
	form.get("button", "Send").click()
	list := w.get("list", "Transcript")
	list.shows("When are you open?").shows("start_conversation to 1 webhook").shows("No model answers here.")
	list.shows("✕ webhook 1: 500").shows("✕ webhook 1, attempt 2: 503").shows("✓ webhook 1, attempt 3: 200")
	assert.Contains(t, w.tab.address(), "session=", "a message without a session starts one")

	w.get("combobox", "As the model").choose("opening_hours")
	tool := w.get("form", "opening_hours")
	tool.get("textbox", "day").fill("Monday")
	tool.get("button", "Call tool").click()
	list.shows("✓ opening_hours From nine to five.")

	timeline := w.region("Timeline")
	timeline.shows("1 message, 1 event, 3 delivery attempts (2 failed), 1 tool call.")
	for with, panel := range map[string][2]string{
		"message": {"Step", "When are you open?"}, "event": {"Step", "to 1 webhook"}, "attempt 3": {"Delivery", "none follows"}, "tool call": {"Tool call", "session_metadata"},
	} {
		timeline.beginning("button", with).click()
		w.region(panel[0]).shows(panel[1])
		inspect(w.tab, "panel of "+with)
		w.closePanel()
	}
	list.get("button", "✕ webhook 1, attempt 2: 503").click()
	w.region("Delivery").shows("signature right")
	w.closePanel()
	form.get("button", "Time out").click()
	list.shows("The session timed out.")
	form.get("button", "Close window").click()
	form.get("alert", "").shows("the session is closed")
	w.get("button", "Start session").click()
	w.count(".transcript li", 1)
	form.get("button", "Be idle").click()
	list.shows("inactivity_warning to 1 webhook")
}

func (w *walk) deliveries() {
	t := w.tab.t
	w.part("Deliveries")
	w.count("tbody tr", 6)
	w.get("combobox", "outcome").choose("failed")
	w.count("tbody tr", 2)
	w.get("combobox", "event").choose("end_conversation")
	w.get("main", "").shows("There is none that matches.")
	inspect(w.tab, "no delivery matches")
	assert.Contains(t, w.tab.address(), "outcome=failed")
	w.get("link", "Show all").click()
	w.count("tbody tr", 6)
	w.get("combobox", "event").choose("inactivity_warning")
	w.count("tbody tr", 1)
	w.get("link", "inactivity_warning").click()
	panel := w.region("Delivery").shows("signature right").shows("X-Signature-256").shows(`"head_id"`)
	panel.get("button", "Copy as curl").click()
	panel.shows("copied")
	assert.Contains(t, eval[string](w.tab, "navigator.clipboard.readText()"), "curl -sS")
	panel.get("button", "Copy as Go test").click()
	w.until("the Go test", func() bool {
		return strings.Contains(eval[string](w.tab, "navigator.clipboard.readText()"), "func TestDelivery(t *testing.T)")
	})
	panel.get("button", "Resend").click()
	w.closePanel()
	w.count("tbody tr", 2)

	w.get("button", "Add a webhook").click()
	dialog := w.get("dialog", "Add a webhook")
	dialog.get("textbox", "webhookUrl").fill("http://elsewhere.example.test")
	dialog.get("button", "Add").click()
	dialog.get("alert", "").shows("must use HTTPS")
	assert.Equal(t, "http://elsewhere.example.test", dialog.get("textbox", "webhookUrl").value(), "the draft stays")
	inspect(w.tab, "dialog with a refused webhook")
	dialog.get("textbox", "webhookUrl").fill("https://elsewhere.example.test/events")
	dialog.get("checkbox", "startConversation").click()
	dialog.get("button", "Add").click()
	hooks := w.region("Webhooks of the head").shows("https://elsewhere.example.test").shows("end_conversation, inactivity_warning, timeout_conversation")
	w.do(chromedp.Evaluate(`document.querySelector(".webhooks li:last-child button").click()`, nil))
	dialog = w.get("dialog", "Delete webhook 2?")
	inspect(w.tab, "dialog that asks to delete")
	dialog.get("button", "Delete").click()
	w.until("no webhook 2", func() bool { return !strings.Contains(hooks.text(), "elsewhere") })
}

func (w *walk) tools() {
	w.part("Tools")
	w.get("navigation", "Parts of the head").get("link", "Tools 1")
	tool := w.get("form", "opening_hours").shows("string: Day of the week.")
	tool.get("textbox", "day").fill("Monday")
	tool.get("textbox", "count").fill("2")
	tool.get("button", "Call tool").click()
	tool.shows("✓ From nine to five.").shows(`"day": "Monday"`).shows(`"count": 2`).shows("session_metadata")
	inspect(w.tab, "tool that was called")
}

func (w *walk) configuration() {
	t := w.tab.t
	w.part("Configuration")
	form := w.get("form", "Fields of the head").shows("Text that the head greets with.")
	form.get("textbox", "greetings").fill("Welcome!")
	form.get("textbox", "ttsVoice").fill("string")
	form.shows("2 fields changed: ttsVoice, greetings")
	form.get("button", "Save").click()
	form.get("alert", "").shows("ttsVoice")
	assert.Equal(t, "true", form.get("textbox", "ttsVoice").on(`function() { return this.getAttribute("aria-invalid") }`), "the refusal is beside its field")
	assert.Equal(t, "Welcome!", form.get("textbox", "greetings").value(), "the draft stays")
	inspect(w.tab, "refused field")
	assert.NotContains(t, w.call("GET", "/head/"+ada, ""), "Welcome!")
	w.call("PUT", "/head/update", `{"id":"`+ada+`","alias":"another"}`)
	w.until("the other field", func() bool { return form.get("textbox", "alias").value() == "another" })
	form.shows("2 fields changed: ttsVoice, greetings")
	form.get("textbox", "ttsVoice").fill("another-voice")
	form.get("button", "Save").click()
	form.shows("Saved ttsVoice, greetings.")
	head := w.call("GET", "/head/"+ada, "")
	assert.Contains(t, head, `"Welcome!"`)
	assert.Contains(t, head, `"another-voice"`)
	form.get("textbox", "greetings").fill("Bye.")
	form.get("button", "Undo").click()
	form.shows("Undone.")
	assert.Equal(t, "Welcome!", form.get("textbox", "greetings").value())

	assert.NotContains(t, eval[string](w.tab, "document.documentElement.outerHTML"), "api_key=")
	w.get("button", "Reveal").click()
	w.get("main", "").shows("api_key=")
	w.do(chromedp.Evaluate(`[...document.querySelectorAll("summary")].find((s) => s.textContent === "Send JSON").click()`, nil))
	w.get("textbox", "JSON").fill(`{"greetings":5}`)
	send := w.get("button", "Send")
	send.click()
	w.get("alert", "").shows("greetings must be a string")
	assert.Equal(t, `{"greetings":5}`, w.get("textbox", "JSON").value(), "the draft stays")
	inspect(w.tab, "refused JSON")
	w.get("textbox", "JSON").fill(`{"greetings":"Welcome back!","publicId":"li-1"}`)
	send.click()
	w.get("main", "").shows("Sent. Requests shows what it changed, and what was ignored.")
}

func (w *walk) requests() {
	w.part("Requests")
	w.beginning("link", "PUT /head/update").click()
	w.region("Request").shows("Changes of the head").shows("Welcome!").shows("Welcome back!").shows("ignored: \"li-1\"")
	inspect(w.tab, "panel of a request")
	w.closePanel()
}

// beginning returns the first element of the page's main part whose name begins so.
func (w *walk) beginning(role, with string) element { return w.get("main", "").beginning(role, with) }

func (w *walk) seed() {
	t := w.tab.t
	w.goTo("seed")
	dir := t.TempDir()
	w.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir).WithBrowserContextID(""))
	exported := func() string {
		w.get("button", "Export seed").click()
		var text []byte
		w.until("the file", func() bool {
			var err error
			text, err = os.ReadFile(filepath.Join(dir, "seed.json"))
			return err == nil && json.Valid(text)
		})
		require.NoError(t, os.Remove(filepath.Join(dir, "seed.json")))
		return string(text)
	}
	assert.NotContains(t, exported(), "canary")
	w.get("checkbox", "With keys").click()
	assert.Contains(t, exported(), "canary")
	name := filepath.Join(dir, "half.json")
	imported := func(seed string) {
		require.NoError(t, os.WriteFile(name, []byte(seed), 0o600))
		w.do(dom.SetFileInputFiles([]string{name}).WithBackendNodeID(w.get("main", "").beginning("button", "Import seed").id))
	}
	imported(`{"heads":[{"name":"Cleo"}],"registrations":[{"headId":"nobody","webhookUrl":"https://x.example.test"}]}`)
	w.get("alert", "").shows("nothing was added")
	inspect(w.tab, "refused seed")
	imported(`{"heads":[{"name":"Cleo"}]}`)
	w.get("main", "").shows("Added 1 head, 0 visuals, 0 webhooks.")
	w.get("button", "Reset").click()
	dialog := w.get("dialog", "Reset?").shows("All changes, sessions, deliveries, requests and faults are lost.")
	inspect(w.tab, "dialog that asks to reset")
	dialog.get("button", "Cancel").click()
	w.count("dialog", 0)
	w.get("button", "Reset").click()
	w.get("dialog", "Reset?").get("button", "Reset").click()
	w.goTo("deliveries")
	w.get("main", "").shows("No event has been delivered yet.")
	assert.NotContains(t, w.control("GET", "state", ""), "Cleo")
}

func TestEmptyConsoleNamesTheFirstStep(t *testing.T) {
	p := start(t, "-seed-file", seedFile(t, `{}`))
	b := open(t, p.ConsoleURL)
	b.get("main", "").shows("There is no head yet").get("link", "Import a seed")
	inspect(b, "no head")
	b.goTo("deliveries")
	b.get("main", "").shows("No event has been delivered yet.")
	inspect(b, "no delivery")
	b.goTo("requests")
	b.get("main", "").shows("No operation has been called yet.").shows("curl").get("button", "Copy line")
	inspect(b, "no request")
	b.goTo("")
	b.get("button", "Add a head").click()
	b.get("heading", "Ada")
	b.get("main", "").shows("This head has no webhook.").shows("Start a session, or write a message below.")
	inspect(b, "no session")
	b.part("Deliveries")
	b.get("main", "").shows("Add a webhook first.")
	inspect(b, "no webhook")
	b.part("Tools")
	b.get("main", "").shows("This head has no tool.").shows("/conversation-settings").get("button", "Copy line")
	inspect(b, "no tool")
	b.part("Faults")
	b.region("Armed").shows("Nothing goes wrong now.")
}

// A narrow page shows the list of the heads or one head, and leads from each to the other.
func TestNarrowPageShowsTheListOrAHead(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := visit(t, p.ConsoleURL)
	b.view(420, "light")
	b.get("heading", "Heads")
	list := b.get("main", "").shows("2 heads")
	assert.Equal(t, "Heads emulator", eval[string](b, "document.title"))
	list.get("link", "Bea").click()
	b.get("heading", "Bea")
	b.count("[role=main]", 0)
	b.get("link", "‹ Heads").click()
	b.focusIs("Bea")
	b.do(chromedp.NavigateBack())
	b.get("heading", "Bea")
	b.focusIs("Bea")
	b.goTo("")
	b.get("navigation", "Everything").get("link", "Seed and reset").click()
	b.get("heading", "Seed and reset")

	b = visit(t, start(t, "-seed-file", seedFile(t, `{}`)).ConsoleURL)
	b.view(420, "light")
	b.get("main", "").shows("There is no head yet").get("button", "Add a head")
	inspect(b, "no head, 420")
	b.get("navigation", "Everything").get("link", "All requests").click()
	b.get("heading", "All requests")
}

func TestEventForNobodySaysWhy(t *testing.T) {
	p := start(t, "-strict-order", "-seed-file", scene(t, receiver(t)))
	b := open(t, p.at("heads/"+ada+"/conversation"))
	send := func(text string) {
		b.get("textbox", "Message").fill(text)
		b.get("button", "Send").click()
	}
	send("Hello")
	list := b.get("list", "Transcript").shows("start_conversation to no webhook: delivery is off")
	b.get("switch", "enableEvents").click()
	b.get("main", "").shows("enableEvents on")
	b.get("button", "Be idle").click()
	list.shows("inactivity_warning to no webhook: made before delivery was enabled")
	b.part("Deliveries")
	b.region("Webhooks of the head").shows("made before delivery was enabled; the real service may not deliver to it")
	p.control("DELETE", "webhooks/1", "")
	b.part("Conversation")
	b.get("main", "").shows("This head has no webhook.")
}

// An address can be sent, and Back leads to the one before.
func TestAddressHoldsTheWholeState(t *testing.T) {
	hook := receiver(t)
	p := start(t, "-seed-file", scene(t, hook))
	p.talk(hook)
	b := open(t, p.at("heads/"+ada+"/deliveries?event=end_conversation&open=d2"))
	b.region("Delivery").shows("end_conversation")
	b.count("tbody tr", 1)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.count(".panel", 0)
	b.focusIs("end_conversation") // its row
	b.head("Bea")
	assert.Equal(t, "#/heads/"+bea+"/deliveries", b.address(), "another head keeps the part")
	b.part("Requests")
	b.do(chromedp.NavigateBack())
	b.region("Webhooks of the head")
	b.do(chromedp.NavigateBack())
	b.get("heading", "Ada")
	b.count("tbody tr", 1)
	b.do(chromedp.NavigateBack())
	b.region("Delivery")

	for place, says := range map[string]string{
		"heads/nobody/tools": "There is no head “nobody”.", "nothing": "There is nothing at #/nothing.", "heads/" + ada + "/nothing": "There is nothing at",
		"heads/%E0%A4%A/tools": "There is nothing at",
	} {
		b.goTo(place)
		b.get("main", "").shows(says).get("link", "‹ Back to the heads")
		inspect(b, "#/"+place)
	}
	b.goTo("heads/" + ada + "/conversation?session=nobody")
	b.get("alert", "").shows("There is no session “nobody” of this head.").get("link", "Show the newest").click()
	b.get("list", "Transcript").shows("When are you open?")
	for place, says := range map[string]string{"deliveries?open=d99": `the journal holds no delivery "99"`, "requests?open=r99": `no request "99"`} {
		b.goTo(place)
		b.get("alert", "").shows(says)
		inspect(b, "#/"+place)
	}
	b.goTo("heads/" + ada + "/conversation?open=h99")
	b.region("Step").shows("There is no step “h99” in this session.")
	b.goTo("deliveries?before=x")
	b.get("alert", "").shows("before")
}
