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
	for range 250 {
		p.do(chromedp.KeyEvent(kb.Tab))
		if strings.HasPrefix(p.focused(), name) {
			return
		}
	}
	require.Fail(p.t, "the keyboard does not reach "+name)
}

func (p *tab) strike(name, key string) {
	p.tabTo(name)
	p.do(chromedp.KeyEvent(key))
}

// focusIs waits until the focused element has a name that begins so.
func (p *tab) focusIs(name string) {
	p.until("the focus at "+name, func() bool { return strings.HasPrefix(p.focused(), name) })
}

func TestEverythingWorksByKeyboard(t *testing.T) {
	b := open(t, start(t, "-seed-file", scene(t, receiver(t))).ConsoleURL)
	b.get("heading", "Ada")
	b.strike("Bea", kb.Enter)
	b.get("heading", "Bea")
	b.strike("Ada", kb.Enter)
	b.get("heading", "Ada")
	b.strike("enableEvents", " ")
	b.main("enableEvents on")
	b.strike("Start session", kb.Enter)
	b.get("list", "Transcript").shows("opened the session")
	b.tabTo("Message")
	b.do(chromedp.KeyEvent("Hello"), chromedp.KeyEvent(kb.Enter))
	b.get("list", "Transcript").shows("✓ webhook 1: 200")
	for _, opener := range []string{"✓ webhook 1: 200", "attempt 1", "event start_conversation"} {
		b.strike(opener, kb.Enter)
		b.count(".panel", 1)
		b.until("the focus in the panel", func() bool { return eval[bool](b, `document.activeElement.classList.contains("panel")`) })
		b.do(chromedp.KeyEvent(kb.Escape))
		b.count(".panel", 0)
		b.focusIs(opener)
	}
	b.strike("Deliveries", kb.Enter)
	b.strike("start_conversation", kb.Enter)
	b.region("Delivery").shows("signature right")
	b.strike("Resend", " ")
	b.count("tbody tr", 2)
	b.strike("Close", kb.Enter)
	b.focusIs("start_conversation")
	b.strike("Add a webhook", kb.Enter)
	b.focusIs("webhookUrl")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.count("dialog", 0)
	b.focusIs("Add a webhook")
	b.strike("Seed and reset", kb.Enter)
	b.strike("Reset", kb.Enter)
	b.get("dialog", "Reset?")
	b.strike("Cancel", kb.Enter)
	b.count("dialog", 0)
	b.focusIs("Reset")
}

func TestSingleKeysDoWhatTheDialogSays(t *testing.T) {
	b := open(t, start(t, "-seed-file", scene(t, receiver(t))).ConsoleURL)
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
	b.script(`document.activeElement.blur()`)
	key("s")
	b.get("list", "Transcript").shows("opened the session")
	key("m")
	b.focusIs("Message")
	b.script(`document.activeElement.blur()`)
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
	b.press("Keys")
	b.get("dialog", "Keys").get("checkbox", "Use these keys").click()
	b.press("Close")
	b.count("dialog", 0)
	key("4")
	b.main("This head has no tool.")
}
