package browser

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var pictures = flag.String("pictures", "", "folder to write the pictures of docs/emulator.md and README.md to")

// maxPicture is how large each picture in docs may be.
const maxPicture = 200_000

// parts are the places of the console in the state after talk.
var parts = []string{
	"", "heads/" + ada + "/conversation", "heads/" + ada + "/conversation?open=d2", "heads/" + ada + "/conversation?open=h4", "heads/" + ada + "/configuration",
	"heads/" + ada + "/deliveries", "heads/" + ada + "/deliveries?open=d2", "heads/" + ada + "/tools", "heads/" + ada + "/requests?open=r5",
	"heads/" + ada + "/faults", "heads/" + bea + "/conversation", "heads/" + bea + "/tools", "deliveries", "requests", "faults", "seed", "nothing",
}

// settled waits until the page shows what its address says.
func (p *tab) settled() {
	p.holds("the page", `(() => {
		const main = document.querySelector("main"), open = location.hash.includes("open=");
		const drawn = document.querySelector(".side li") && document.querySelector(".list h1, main h1") && !main.querySelector(".part:empty");
		return Boolean(drawn && (!open || document.querySelector(".panel h2")) && document.getAnimations().length === 0);
	})()`)
}

// contrasts computes the WCAG contrast of every visible text and returns those below
// 4.5.
const contrasts = `(() => {
  const rgb = (text) => (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    const shape = e.parentElement?.querySelector?.(":scope > circle, :scope > rect, :scope > path");
    if (e instanceof SVGTextElement && e.closest(".mark")) return rgb(getComputedStyle(shape).fill);
    for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; }
    return [255, 255, 255];
  };
  const low = [];
  let count = 0;
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest("noscript, .sr") || e.getClientRects().length === 0) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(rgb(e instanceof SVGElement ? style.fill : style.color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    count++;
    if (ratio < 4.5) low.push(ratio.toFixed(2) + " " + e.tagName + " " + e.textContent.trim().slice(0, 40));
  }
  return count < 6 ? ["only " + count + " texts"] : low;
})()`

// Every part is readable in both schemes and scrolls in its own box at most.
func TestEveryPartLooksRight(t *testing.T) {
	p := talk(t, 12, []int{500, 503}, "-retry", "300ms,600ms")
	p.control("POST", "faults/deliveries", `{"event":"end_conversation","times":2,"status":503}`)
	p.control("POST", "faults/requests", `{"method":"GET","route":"/head/{id}","status":503,"times":2,"retryAfter":"2s"}`)
	b := open(t, p.ConsoleURL)
	for _, place := range parts {
		b.goTo(place)
		for _, width := range []int64{1400, 760, 420} {
			for _, scheme := range []string{"light", "dark"} {
				b.view(width, scheme)
				b.holds("the width", fmt.Sprintf("innerWidth === %d", width))
				b.settled()
				where := fmt.Sprintf("%s, %s, %d", place, scheme, width)
				inspect(b, where)
				assert.Empty(t, eval[[]string](b, contrasts), where)
				assert.Empty(t, eval[[]string](b, sideways), where)
				assert.Empty(t, eval[[]string](b, cutOff), where)
				if *pictures != "" {
					name := strings.NewReplacer("heads/"+ada, "ada", "heads/"+bea, "bea", "/", "-", "?open=", "-").Replace(place)
					b.shot(fmt.Sprintf("%s-%s-%d", name, scheme, width))
				}
			}
		}
	}
}

// sideways returns what scrolls sideways, of all that may not.
const sideways = `[...document.querySelectorAll("html, body, main, .side, .side ul, .panel, .transcript")]
	.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.cloneNode().outerHTML + e.scrollWidth)`

// cutOff returns the controls that lie outside of the window or of a box that can't be scrolled to
// them.
const cutOff = `[...document.querySelectorAll("button, input, select, textarea, main a")].filter((e) => {
	const r = e.getBoundingClientRect();
	return r.width > 0 && (r.left < 0 || r.right > innerWidth + 1) && !e.closest(".table, .drawing");
}).map((e) => e.outerHTML.slice(0, 80))`

// With many heads the transcript, the form and the timeline are in view without scrolling.
func TestConversationIsInViewWithFiftyHeads(t *testing.T) {
	p := start(t, "-retry", "none", "-seed-file", crowd(t, receiver(t), 50))
	p.call("PUT", "/head/"+ada+"/enable-events?enableEvents=true", "")
	for range 9 {
		p.call("POST", "/head-events", `{"headId":"`+ada+`","webhookUrl":"http://127.0.0.1:1","startConversation":true}`)
	}
	b := open(t, p.at("heads/"+ada+"/conversation"))
	b.view(1400, "light")
	b.say("Hello")
	b.region("Timeline").shows("1 message, 1 event, 10 delivery attempts (9 failed), 0 tool calls.")
	inView := func() {
		assert.Empty(t, eval[[]string](b, `[".transcript", "form[aria-label='What the visitor does']", ".model, .conversation > .line:nth-of-type(2)", ".timeline"].filter((s) => {
			const e = document.querySelector(s), r = e.getBoundingClientRect();
			return r.top < 0 || r.bottom > innerHeight || r.height < 20;
		})`))
		assert.Equal(t, 0, eval[int](b, `document.querySelector("main").scrollTop`))
		assert.LessOrEqual(t, eval[float64](b, `document.querySelector(".drawing").getBoundingClientRect().height`), 240.0)
		assert.Greater(t, eval[float64](b, `document.querySelector(".transcript").getBoundingClientRect().height`), 150.0)
		assert.True(t, eval[bool](b, `[...document.querySelectorAll(".drawing text")].every((e) => e.getBoundingClientRect().bottom <= document.querySelector(".drawing").getBoundingClientRect().bottom)`), "all lanes")
	}
	inView()
	// The longer the session, the nearer the attempts of its first instant.
	joined := `[...document.querySelectorAll(".mark")].map((m) => m.getAttribute("aria-label")).find((name) => /^([6-9]|10) attempts$/.test(name)) ?? ""`
	name := ""
	for idle := 1; name == ""; idle++ {
		b.press("Be idle")
		b.region("Timeline").shows(fmt.Sprintf("1 message, %d events, %d delivery attempts (9 failed), 0 tool calls.", 1+idle, 10+idle))
		name = eval[string](b, joined)
	}
	inView()
	b.region("Timeline").get("button", name).click()
	list := b.region("Step").shows(name)
	inView()
	inspect(b, "ten attempts of one instant, with their list")
	list.beginning("link", "✕ webhook").click()
	b.region("Delivery").shows("connect: connection refused", "signature right")
	b.do(chromedp.NavigateBack())
	b.region("Step").shows(name)
	b.press("Close")
	b.focusIs(name)
	b.get("combobox", "As the model").choose("opening_hours")
	b.get("form", "opening_hours").inspect("form of a tool in the conversation")
	inView()
	assert.True(t, eval[bool](b, `document.querySelector(".side [aria-current]").getBoundingClientRect().bottom <= innerHeight`))
	b.goTo("heads/33333333-3333-4333-8333-000000000047/tools")
	b.holds("the chosen row in view", `(() => { const r = document.querySelector(".side li [aria-current]")?.getBoundingClientRect(); return Boolean(r) && r.top > 0 && r.bottom < document.querySelector(".others").getBoundingClientRect().top; })()`)
}

// Marks of one instant stand side by side, and none hides another.
func TestMarksHideNoOther(t *testing.T) {
	p := start(t, "-retry", "1ms,1ms", "-seed-file", scene(t, receiver(t, 500, 503)))
	p.call("PUT", "/head/"+ada+"/enable-events?enableEvents=true", "")
	b := open(t, p.at("heads/"+ada+"/conversation"))
	session := p.session(ada)
	p.control("POST", "sessions/"+session+"/message", `{"text":"one"}`)
	p.control("GET", "deliveries?wait=30s&final=true", "")
	p.control("POST", "sessions/"+session+"/tool-calls", `{"tool":"opening_hours"}`)
	b.region("Timeline").shows("1 message, 1 event, 3 delivery attempts (2 failed), 1 tool call.")
	for _, width := range []int64{1400, 1900, 760, 420} {
		b.view(width, "light")
		b.holds(fmt.Sprint("marks over the whole width of ", width), `(() => {
			const box = document.querySelector(".drawing"), edge = box.getBoundingClientRect().left, wide = Math.max(box.clientWidth, 480);
			const marks = [...box.querySelectorAll(".mark")].map((m) => m.firstElementChild.getBoundingClientRect());
			const apart = marks.every((a, i) => marks.every((b, j) => i === j || a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top));
			return apart && marks.length === 6 && Math.max(...marks.map((m) => m.right)) - edge > wide - 60 && Math.min(...marks.map((m) => m.left)) - edge < 130;
		})()`)
	}
}

func TestEveryControlHasAName(t *testing.T) {
	b := open(t, talk(t, 2, []int{500, 503}, "-retry", "1ms,1ms").ConsoleURL)
	controls := 0
	for _, place := range parts {
		b.goTo(place)
		b.settled()
		for _, role := range []string{"button", "link", "textbox", "searchbox", "checkbox", "switch", "combobox", "form", "region", "navigation"} {
			nodes, err := b.query(0, role, "")
			require.NoError(t, err)
			for _, n := range nodes {
				if !n.Ignored {
					controls++
					assert.NotEmpty(t, nameOf(n), "%s: %s %d", place, role, n.BackendDOMNodeID)
				}
			}
		}
	}
	assert.Greater(t, controls, 400)
}

func TestFirstPaintIsFast(t *testing.T) {
	p := start(t, "-seed-file", crowd(t, receiver(t), 25))
	b := open(t, p.ConsoleURL)
	best := 1e9
	for range 5 {
		b.do(chromedp.Reload())
		b.status("live")
		b.count(".side li", 25)
		best = min(best, eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	}
	t.Logf("first paint with 25 heads: %.0f ms", best)
	assert.Less(t, best, 200.0)
}

func TestPicturesOfTheDocsAreSmall(t *testing.T) {
	if *pictures != "" {
		takePictures(t)
	}
	for _, name := range []string{"console.png", "timeline.png"} {
		taken, err := os.ReadFile("../../../docs/" + name)
		require.NoError(t, err)
		assert.Less(t, len(taken), maxPicture, name)
	}
}

func takePictures(t *testing.T) {
	b := open(t, talk(t, 24, []int{500, 503}, "-retry", "300ms,600ms").at("heads/"+ada+"/conversation?open=d2"))
	write := func(name, selector string, margin int) {
		b.settled()
		b.region("Timeline").shows("1 tool call.")
		clip := eval[page.Viewport](b, fmt.Sprintf(`(({x, y, width, height}) => ({x: x - %[2]d, y: y - %[2]d, width: width + 2 * %[2]d, height: height + 2 * %[2]d, scale: 1}))(
			document.querySelector(%[1]q).getBoundingClientRect())`, selector, margin))
		var taken []byte
		b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			taken, err = page.CaptureScreenshot().WithClip(&clip).Do(ctx)
			return err
		}))
		picture, err := png.Decode(bytes.NewReader(taken))
		require.NoError(t, err)
		file, err := os.Create(filepath.Join(*pictures, name))
		require.NoError(t, err)
		require.NoError(t, png.Encode(file, paletted(picture)))
		require.NoError(t, file.Close())
	}
	b.do(emulation.SetDeviceMetricsOverride(1400, 840, 1, false))
	b.region("Delivery").shows("signature right")
	write("console.png", "html", 0)
	b.goTo("heads/" + ada + "/conversation")
	b.count(".panel", 0)
	b.do(emulation.SetDeviceMetricsOverride(1060, 820, 2, false))
	write("timeline.png", ".timeline", 8)
}

// paletted returns a picture with its 256 most frequent colours, which takes a third of the bytes.
func paletted(from image.Image) *image.Paletted {
	counts := map[color.Color]int{}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			counts[from.At(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	to := image.NewPaletted(from.Bounds(), most[:min(len(most), 256)])
	draw.Draw(to, to.Rect, from, from.Bounds().Min, draw.Src)
	return to
}
