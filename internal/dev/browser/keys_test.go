package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tabTo moves the focus with the tabulator to an element whose name begins so.
func (p *tab) tabTo(name string) {
	p.t.Helper()
	for range 250 {
		p.do(chromedp.KeyEvent(kb.Tab))
		if strings.HasPrefix(p.focused(), name) {
			return
		}
	}
	require.Fail(p.t, "the keyboard does not reach "+name)
}

func (p *tab) press(name, key string) {
	p.t.Helper()
	p.tabTo(name)
	p.do(chromedp.KeyEvent(key))
}

// focusIs waits until the focused element has a name that begins so.
func (p *tab) focusIs(name string) {
	p.t.Helper()
	p.until("the focus at "+name, func() bool { return strings.HasPrefix(p.focused(), name) })
}

func TestEverythingWorksByKeyboard(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.ConsoleURL)
	b.get("heading", "Ada")
	b.press("Bea", kb.Enter)
	b.get("heading", "Bea")
	b.press("Ada", kb.Enter)
	b.get("heading", "Ada")
	b.press("enableEvents", " ")
	b.get("main", "").shows("enableEvents on")
	b.press("Start session", kb.Enter)
	b.get("list", "Transcript").shows("opened the session")
	b.tabTo("Message")
	b.do(chromedp.KeyEvent("Hello"), chromedp.KeyEvent(kb.Enter))
	b.get("list", "Transcript").shows("✓ webhook 1: 200")
	for _, opener := range []string{"✓ webhook 1: 200", "attempt 1", "event start_conversation"} {
		b.press(opener, kb.Enter)
		b.count(".panel", 1)
		b.until("the focus in the panel", func() bool { return eval[bool](b, `document.activeElement.classList.contains("panel")`) })
		b.do(chromedp.KeyEvent(kb.Escape))
		b.count(".panel", 0)
		b.focusIs(opener)
	}
	b.press("Deliveries", kb.Enter)
	b.press("start_conversation", kb.Enter)
	b.region("Delivery").shows("signature right")
	b.press("Resend", " ")
	b.count("tbody tr", 2)
	b.press("Close", kb.Enter)
	b.focusIs("start_conversation")
	b.press("Add a webhook", kb.Enter)
	b.focusIs("webhookUrl")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.count("dialog", 0)
	b.focusIs("Add a webhook")
	b.press("Seed and reset", kb.Enter)
	b.press("Reset", kb.Enter)
	b.get("dialog", "Reset?")
	b.press("Cancel", kb.Enter)
	b.count("dialog", 0)
	b.focusIs("Reset")
}

func TestSingleKeysDoWhatTheDialogSays(t *testing.T) {
	p := start(t, "-seed-file", scene(t, receiver(t)))
	b := open(t, p.ConsoleURL)
	b.get("heading", "Ada")
	key := func(k string) { t.Helper(); b.do(chromedp.KeyEvent(k)) }
	key("j")
	b.get("heading", "Bea")
	key("j") // there is no next one
	key("3")
	b.until("the part", func() bool { return b.address() == "#/heads/"+bea+"/deliveries" })
	key("k")
	b.until("the other head", func() bool { return b.address() == "#/heads/"+ada+"/deliveries" })
	key("/")
	b.focusIs("Search heads")
	key("bea 3")
	b.get("navigation", "Heads").shows("0 of 2")
	assert.Equal(t, "#/heads/"+ada+"/deliveries", b.address(), "a key in a field is a letter")
	b.get("searchbox", "Search heads").fill("expressive legacy")
	b.get("navigation", "Heads").shows("0 of 2")
	b.get("searchbox", "Search heads").fill("be leg")
	b.get("navigation", "Heads").shows("1 of 2")
	b.do(chromedp.Evaluate(`document.querySelector("[type=search]").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	b.get("heading", "Bea")
	b.do(chromedp.Evaluate(`document.activeElement.blur()`, nil))
	key("s")
	b.get("list", "Transcript").shows("opened the session")
	key("m")
	b.focusIs("Message")
	b.do(chromedp.Evaluate(`document.activeElement.blur()`, nil))
	key("?")
	b.get("dialog", "Keys").shows("search the heads").get("checkbox", "Use these keys").click()
	key(kb.Escape)
	b.count("dialog", 0)
	key("1")
	key("k")
	b.do(chromedp.Reload())
	b.status("live")
	b.get("heading", "Bea")
	key("k")
	key("4")
	assert.Contains(t, b.address(), bea+"/conversation", "they are off, also after a reload")
	b.get("button", "Keys").click()
	b.get("dialog", "Keys").get("checkbox", "Use these keys").click()
	b.get("button", "Close").click()
	b.count("dialog", 0)
	key("4")
	b.get("main", "").shows("This head has no tool.")
}
