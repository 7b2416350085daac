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
	w.press("Close")
	w.count(".panel", 0)
}

func (w *walk) switches() {
	t := w.tab.t
	w.head("Bea")
	w.get("switch", "videoStreaming").click()
	w.get("alert", "").shows(`the head's visual is in mode "two_loops"`).inspect("refused switch")
	w.head("Ada")
	assert.Equal(t, "#/heads/"+ada+"/conversation", w.tab.address())
	w.main("videoStreaming off", "splitter on", "legacy")
	w.get("switch", "videoStreaming").click()
	w.main("videoStreaming on", "streaming")
	w.press("Enable splitter")
	w.main("videoStreaming off", "splitter on")
	w.do(browser.GrantPermissions([]browser.PermissionType{browser.PermissionTypeClipboardReadWrite, browser.PermissionTypeClipboardSanitizedWrite}))
	w.press("Copy id")
	w.main("copied")
	assert.Equal(t, ada, eval[string](w.tab, "navigator.clipboard.readText()"))
}

func (w *walk) conversation() {
	t := w.tab.t
	w.main("enableEvents is off, so no event is delivered.")
	w.press("Turn delivery on")
	w.main("enableEvents on")
	form := w.get("form", "What the visitor does")
	form.press("Be idle")
	form.get("alert", "").shows("there is no session yet").inspect("refused step")
	w.say("When are you open?")
	list := w.get("list", "Transcript")
	list.shows("When are you open?", "start_conversation to 1 webhook", "No model answers here.")
	list.shows("✕ webhook 1: 500", "✕ webhook 1, attempt 2: 503", "✓ webhook 1, attempt 3: 200")
	assert.Contains(t, w.tab.address(), "session=", "a message without a session starts one")

	w.get("combobox", "As the model").choose("opening_hours")
	tool := w.get("form", "opening_hours")
	tool.get("textbox", "day").fill("Monday")
	tool.press("Call tool")
	list.shows("✓ opening_hours From nine to five.")

	timeline := w.region("Timeline").shows("1 message, 1 event, 3 delivery attempts (2 failed), 1 tool call.")
	for with, panel := range map[string][2]string{
		"message": {"Step", "When are you open?"}, "event": {"Step", "to 1 webhook"}, "attempt 3": {"Delivery", "none follows"}, "tool call": {"Tool call", "session_metadata"},
	} {
		timeline.beginning("button", with).click()
		w.region(panel[0]).shows(panel[1]).inspect("panel of " + with)
		w.closePanel()
	}
	list.press("✕ webhook 1, attempt 2: 503")
	w.region("Delivery").shows("signature right")
	w.closePanel()
	form.press("Time out")
	list.shows("The session timed out.")
	form.press("Close window")
	form.get("alert", "").shows("the session is closed")
	w.press("Start session")
	w.count(".transcript li", 1)
	form.press("Be idle")
	list.shows("inactivity_warning to 1 webhook")
}

func (w *walk) deliveries() {
	t := w.tab.t
	w.part("Deliveries")
	w.count("tbody tr", 6)
	w.get("combobox", "outcome").choose("failed")
	w.count("tbody tr", 2)
	w.get("combobox", "event").choose("end_conversation")
	w.main("There is none that matches.").inspect("no delivery matches")
	assert.Contains(t, w.tab.address(), "outcome=failed")
	w.get("link", "Show all").click()
	w.count("tbody tr", 6)
	w.get("combobox", "event").choose("inactivity_warning")
	w.count("tbody tr", 1)
	w.get("link", "inactivity_warning").click()
	panel := w.region("Delivery").shows("signature right", "X-Signature-256", `"head_id"`)
	panel.press("Copy as curl")
	panel.shows("copied")
	assert.Contains(t, eval[string](w.tab, "navigator.clipboard.readText()"), "curl -sS")
	panel.press("Copy as Go test")
	w.holds("the Go test", `navigator.clipboard.readText().then((text) => text.includes("func TestDelivery(t *testing.T)"))`)
	panel.press("Resend")
	w.closePanel()
	w.count("tbody tr", 2)

	w.press("Add a webhook")
	dialog := w.get("dialog", "Add a webhook")
	dialog.get("textbox", "webhookUrl").fill("http://elsewhere.example.test")
	dialog.press("Add")
	dialog.get("alert", "").shows("must use HTTPS")
	assert.Equal(t, "http://elsewhere.example.test", dialog.get("textbox", "webhookUrl").value(), "the draft stays")
	inspect(w.tab, "dialog with a refused webhook")
	dialog.get("textbox", "webhookUrl").fill("https://elsewhere.example.test/events")
	dialog.get("checkbox", "startConversation").click()
	dialog.press("Add")
	hooks := w.region("Webhooks of the head").shows("https://elsewhere.example.test", "end_conversation, inactivity_warning, timeout_conversation")
	w.script(`document.querySelector(".webhooks li:last-child button").click()`)
	w.get("dialog", "Delete webhook 2?").inspect("dialog that asks to delete").press("Delete")
	w.until("no webhook 2", func() bool { return !strings.Contains(hooks.text(), "elsewhere") })
}

func (w *walk) tools() {
	w.part("Tools")
	w.get("navigation", "Parts of the head").get("link", "Tools 1")
	tool := w.get("form", "opening_hours").shows("string: Day of the week.")
	tool.fills(map[string]string{"day": "Monday", "count": "2"})
	tool.press("Call tool")
	tool.shows("✓ From nine to five.", `"day": "Monday"`, `"count": 2`, "session_metadata").inspect("tool that was called")
}

func (w *walk) configuration() {
	t := w.tab.t
	w.part("Configuration")
	form := w.get("form", "Fields of the head").shows("Text that the head greets with.")
	form.fills(map[string]string{"greetings": "Welcome!", "ttsVoice": "string"})
	form.shows("2 fields changed: ttsVoice, greetings")
	form.press("Save")
	form.get("alert", "").shows("ttsVoice")
	assert.Equal(t, "true", form.get("textbox", "ttsVoice").on(`function() { return this.getAttribute("aria-invalid") }`), "the refusal is beside its field")
	assert.Equal(t, "Welcome!", form.get("textbox", "greetings").value(), "the draft stays")
	inspect(w.tab, "refused field")
	assert.NotContains(t, w.call("GET", "/head/"+ada, ""), "Welcome!")
	w.call("PUT", "/head/update", `{"id":"`+ada+`","alias":"another"}`)
	w.until("the other field", func() bool { return form.get("textbox", "alias").value() == "another" })
	form.shows("2 fields changed: ttsVoice, greetings")
	form.get("textbox", "ttsVoice").fill("another-voice")
	form.press("Save")
	form.shows("Saved ttsVoice, greetings.")
	head := w.call("GET", "/head/"+ada, "")
	assert.Contains(t, head, `"Welcome!"`)
	assert.Contains(t, head, `"another-voice"`)
	form.get("textbox", "greetings").fill("Bye.")
	form.press("Undo")
	form.shows("Undone.")
	assert.Equal(t, "Welcome!", form.get("textbox", "greetings").value())

	w.script(`[...document.querySelectorAll("summary")].find((s) => s.textContent === "Send JSON").click()`)
	w.get("textbox", "JSON").fill(`{"greetings":5}`)
	send := w.get("button", "Send")
	send.click()
	w.get("alert", "").shows("greetings must be a string")
	assert.Equal(t, `{"greetings":5}`, w.get("textbox", "JSON").value(), "the draft stays")
	inspect(w.tab, "refused JSON")
	w.get("textbox", "JSON").fill(`{"greetings":"Welcome back!","publicId":"li-1"}`)
	send.click()
	w.main("Sent. Requests shows what it changed, and what was ignored.")
}

func (w *walk) requests() {
	w.part("Requests")
	w.main().beginning("link", "PUT /head/update").click()
	w.region("Request").shows("Changes of the head", "Welcome!", "Welcome back!", "ignored: \"li-1\"").inspect("panel of a request")
	w.closePanel()
}

func (w *walk) seed() {
	t := w.tab.t
	w.goTo("seed")
	dir := t.TempDir()
	w.do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir).WithBrowserContextID(""))
	file := filepath.Join(dir, "seed.json")
	exported := func() (text string) {
		w.press("Export seed")
		w.until("the file", func() bool {
			raw, err := os.ReadFile(file)
			text = string(raw)
			return err == nil && json.Valid(raw)
		})
		require.NoError(t, os.Remove(file))
		return text
	}
	assert.NotContains(t, exported(), "canary")
	w.get("checkbox", "With keys").click()
	assert.Contains(t, exported(), "canary")
	imported := func(seed string) {
		w.do(dom.SetFileInputFiles([]string{seedFile(t, seed)}).WithBackendNodeID(w.main().beginning("button", "Import seed").id))
	}
	imported(`{"heads":[{"name":"Cleo"}],"registrations":[{"headId":"nobody","webhookUrl":"https://x.example.test"}]}`)
	w.get("alert", "").shows("nothing was added").inspect("refused seed")
	imported(`{"heads":[{"name":"Cleo"}]}`)
	w.main("Added 1 head, 0 visuals, 0 webhooks.")
	w.press("Reset")
	dialog := w.get("dialog", "Reset?").shows("All changes, sessions, deliveries, requests and faults are lost.").inspect("dialog that asks to reset")
	dialog.press("Cancel")
	w.count("dialog", 0)
	w.press("Reset")
	w.get("dialog", "Reset?").press("Reset")
	w.goTo("deliveries")
	w.main("No event has been delivered yet.")
	assert.NotContains(t, w.control("GET", "state", ""), "Cleo")
}

func TestEmptyConsoleNamesTheFirstStep(t *testing.T) {
	b := open(t, start(t, "-seed-file", seedFile(t, `{}`)).ConsoleURL)
	b.main("There is no head yet").get("link", "Import a seed").inspect("no head")
	b.goTo("deliveries")
	b.main("No event has been delivered yet.").inspect("no delivery")
	b.goTo("requests")
	b.main("No operation has been called yet.", "curl").get("button", "Copy line").inspect("no request")
	b.goTo("")
	b.press("Add a head")
	b.get("heading", "Ada")
	b.main("This head has no webhook.", "Start a session, or write a message below.").inspect("no session")
	b.part("Deliveries")
	b.main("Add a webhook first.").inspect("no webhook")
	b.part("Tools")
	b.main("This head has no tool.", "/conversation-settings").get("button", "Copy line").inspect("no tool")
	b.part("Faults")
	b.region("Armed").shows("Nothing goes wrong now.")
}

// A narrow page shows the list of the heads or one head, and leads from each to the other.
func TestNarrowPageShowsTheListOrAHead(t *testing.T) {
	b := visit(t, start(t, "-seed-file", scene(t, receiver(t))).ConsoleURL)
	b.view(420, "light")
	b.get("heading", "Heads")
	list := b.main("2 heads")
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
	b.main("There is no head yet").get("button", "Add a head").inspect("no head, 420")
	b.get("navigation", "Everything").get("link", "All requests").click()
	b.get("heading", "All requests")
}

func TestEventForNobodySaysWhy(t *testing.T) {
	p := start(t, "-strict-order", "-seed-file", scene(t, receiver(t)))
	b := open(t, p.at("heads/"+ada+"/conversation"))
	b.say("Hello")
	list := b.get("list", "Transcript").shows("start_conversation to no webhook: delivery is off")
	b.get("switch", "enableEvents").click()
	b.main("enableEvents on")
	b.press("Be idle")
	list.shows("inactivity_warning to no webhook: made before delivery was enabled")
	b.part("Deliveries")
	b.region("Webhooks of the head").shows("made before delivery was enabled; the real service may not deliver to it")
	p.control("DELETE", "webhooks/1", "")
	b.part("Conversation")
	b.main("This head has no webhook.")
}

// An address can be sent, and Back leads to the one before.
func TestAddressHoldsTheWholeState(t *testing.T) {
	b := open(t, talk(t, 2, nil).at("heads/"+ada+"/deliveries?event=end_conversation&open=d2"))
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
		b.main(says).get("link", "‹ Back to the heads").inspect("#/" + place)
	}
	b.goTo("heads/" + ada + "/conversation?session=nobody")
	b.get("alert", "").shows("There is no session “nobody” of this head.").get("link", "Show the newest").click()
	b.get("list", "Transcript").shows("When are you open?")
	for place, says := range map[string]string{"deliveries?open=d99": `the journal holds no delivery "99"`, "requests?open=r99": `no request "99"`} {
		b.goTo(place)
		b.get("alert", "").shows(says).inspect("#/" + place)
	}
	b.goTo("heads/" + ada + "/conversation?open=h99")
	b.region("Step").shows("There is no step “h99” in this session.")
	b.goTo("deliveries?before=x")
	b.get("alert", "").shows("before")
}
