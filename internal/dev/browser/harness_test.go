package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reboundName is a name that resolves to this machine in the browser.
const reboundName = "rebound.example.test"

// patience is how long a test waits for what it expects to see.
const patience = 30 * time.Second

var (
	binary    string          // the program
	allocator context.Context // the browser's
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "console")
	must(err)
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "heads-emulator")
	build := exec.Command("go", "build", "-o", binary, "./cmd/heads-emulator")
	build.Dir, build.Stderr = "../../..", os.Stderr
	must(build.Run())
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WindowSize(1280, 900), chromedp.Flag("host-resolver-rules", "MAP "+reboundName+" 127.0.0.1"),
	}
	for _, flag := range []string{"quic", "background-networking", "component-update", "sync", "dev-shm-usage"} {
		options = append(options, chromedp.Flag("disable-"+flag, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	browser, stop := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // chromedp does not know every event of a new Chromium
	defer stop()
	must(chromedp.Run(browser))
	allocator = browser
	return m.Run()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// program is the emulator as a process.
type program struct {
	t              testing.TB
	process        *exec.Cmd
	BaseURL, Token string
	ConsoleURL     string
	Heads          []string
	args           []string
}

func start(t testing.TB, args ...string) *program {
	p := &program{t: t, args: args}
	p.launch("127.0.0.1:0")
	t.Cleanup(p.kill)
	return p
}

func (p *program) launch(addr string) {
	p.process = exec.Command(binary, append([]string{"-addr", addr, "-json"}, p.args...)...)
	out, err := p.process.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, p.process.Start())
	require.NoError(p.t, json.NewDecoder(out).Decode(p))
}

func (p *program) kill() {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
}

// call makes a request and returns the body of a successful answer.
func (p *program) call(method, path, body string) string {
	req, err := http.NewRequest(method, p.BaseURL+path, strings.NewReader(body))
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.Token)
	if method != http.MethodGet && !strings.HasSuffix(path, "video-streaming?videoStreaming=true") {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	require.Less(p.t, resp.StatusCode, 300, "%s %s: %s", method, path, text)
	return string(text)
}

func (p *program) control(method, path, body string) string {
	return p.call(method, "/_emulator/"+path, body)
}

func (p *program) json(path string, v any) {
	require.NoError(p.t, json.Unmarshal([]byte(p.control("GET", path, "")), v))
}

// server returns the address of a server.
func server(t testing.TB, h http.HandlerFunc) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// receiver answers signed deliveries with the given statuses and then with 200. It
// answers tool calls with 200.
func receiver(t testing.TB, statuses ...int) string {
	var mu sync.Mutex
	return server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		status := http.StatusOK
		if r.Header.Get("X-Signature-256") != "" && len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"message":"From nine to five."}`)
	})
}

// tab is a page of the browser. It collects errors while it is open and asserts at
// the end that there were none.
type tab struct {
	t      testing.TB
	ctx    context.Context //nolint:containedctx // a tab of chromedp is a context
	host   string
	mu     sync.Mutex
	faults []string
	down   bool // the program is down, so connections may fail
}

// open opens the emulator's console.
func open(t testing.TB, address string) *tab {
	p := visit(t, address)
	p.status("live")
	return p
}

// newTab returns a tab without a page, whose errors are not collected.
func newTab(t testing.TB) *tab {
	ctx, cancel := chromedp.NewContext(allocator)
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { stop(); cancel() })
	return &tab{t: t, ctx: ctx}
}

// visit opens any page.
func visit(t testing.TB, address string) *tab {
	p := newTab(t)
	u, err := url.Parse(address)
	require.NoError(t, err)
	p.host = u.Host
	chromedp.ListenTarget(p.ctx, p.listen)
	p.do(network.Enable(), runtime.Enable(), log.Enable(), dom.Enable(), accessibility.Enable(), chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.Empty(t, p.faults)
	})
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != p.host && u.Scheme != "blob" && u.Scheme != "data" {
			p.faults = append(p.faults, "a request to another host: "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		p.faults = append(p.faults, "an exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			p.faults = append(p.faults, fmt.Sprintf("a console %s", e.Type))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && !p.down {
			p.faults = append(p.faults, "an error in the log: "+e.Entry.Text)
		}
	}
}

func (p *tab) do(actions ...chromedp.Action) { require.NoError(p.t, chromedp.Run(p.ctx, actions...)) }

// script runs JavaScript for what it does.
func (p *tab) script(text string) { p.do(chromedp.Evaluate(text, nil)) }

func awaited(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// eval evaluates an expression, and waits if it is a promise.
func eval[T any](p *tab, expression string) (v T) {
	require.NoError(p.t, chromedp.Run(p.ctx, chromedp.Evaluate(expression, &v, awaited)), expression)
	return v
}

// until checks after each frame until a condition holds.
func (p *tab) until(what string, holds func() bool) {
	for began := time.Now(); !holds(); {
		if time.Since(began) > patience {
			p.shot("failed")
			require.Fail(p.t, "not seen: "+what, "%s", eval[string](p, "document.body.innerText"))
		}
		var frame float64 // fails while a page gives way to another
		_ = chromedp.Run(p.ctx, chromedp.Evaluate("new Promise((seen) => requestAnimationFrame(seen))", &frame, awaited))
	}
}

// holds waits until an expression is true.
func (p *tab) holds(what, expression string) {
	p.until(what, func() bool { return eval[bool](p, expression) })
}

// element is an element with a role and a name.
type element struct {
	p  *tab
	id cdp.BackendNodeID
}

// query returns the elements with a role and a name, within an element or on the page.
func (p *tab) query(within cdp.BackendNodeID, role, name string) (found []*accessibility.Node, err error) {
	err = chromedp.Run(p.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		query := accessibility.QueryAXTree().WithRole(role).WithAccessibleName(name).WithBackendNodeID(within)
		if within == 0 {
			root, err := dom.GetDocument().WithDepth(0).Do(ctx)
			if err != nil {
				return err
			}
			query = query.WithNodeID(root.NodeID)
		}
		found, err = query.Do(ctx)
		return err
	}))
	return found, err
}

// find waits for the first element with a role and a name that begins with a text.
func (p *tab) find(within cdp.BackendNodeID, role, name, beginning string) (e element) {
	p.until(role+" "+name+beginning, func() bool {
		nodes, err := p.query(within, role, name)
		for _, n := range nodes {
			if err == nil && !n.Ignored && strings.HasPrefix(nameOf(n), beginning) {
				e = element{p, n.BackendDOMNodeID}
				return true
			}
		}
		return false
	})
	return e
}

func nameOf(n *accessibility.Node) (name string) {
	if n.Name != nil {
		_ = json.Unmarshal(n.Name.Value, &name)
	}
	return strings.TrimSpace(name)
}

func (p *tab) get(role, name string) element { return p.find(0, role, name, "") }
func (p *tab) region(name string) element    { return p.get("region", name) }

// main returns the main part of the page when it shows the texts.
func (p *tab) main(texts ...string) element     { return p.get("main", "").shows(texts...) }
func (e element) get(role, name string) element { return e.p.find(e.id, role, name, "") }

// beginning returns the element with a role whose name begins with a text.
func (e element) beginning(role, with string) element { return e.p.find(e.id, role, "", with) }

// press clicks on the button.
func (e element) press(button string) { e.get("button", button).click() }
func (p *tab) press(button string)    { p.get("button", button).click() }

// on calls a function with the element as this.
func (e element) on(function string) (value string) {
	e.p.do(chromedp.ActionFunc(func(ctx context.Context) error {
		node, err := dom.ResolveNode().WithBackendNodeID(e.id).Do(ctx)
		if err != nil {
			return err
		}
		var raw []byte
		err = chromedp.CallFunctionOn(function, &raw, func(call *runtime.CallFunctionOnParams) *runtime.CallFunctionOnParams {
			return call.WithObjectID(node.ObjectID)
		}).Do(ctx)
		_ = json.Unmarshal(raw, &value) // many functions return no text
		return err
	}))
	return value
}

func (e element) text() string {
	return e.on("function() { return this.innerText ?? this.textContent }")
}

// value returns what is in a field.
func (e element) value() string { return e.on("function() { return this.value }") }

// shows waits until the element shows the texts.
func (e element) shows(texts ...string) element {
	for _, text := range texts {
		e.p.until(text, func() bool { return strings.Contains(e.text(), text) })
	}
	return e
}

// click presses the middle of the element with the mouse.
func (e element) click() {
	e.p.do(dom.ScrollIntoViewIfNeeded().WithBackendNodeID(e.id), chromedp.ActionFunc(func(ctx context.Context) error {
		quads, err := dom.GetContentQuads().WithBackendNodeID(e.id).Do(ctx)
		if err != nil || len(quads) == 0 {
			return fmt.Errorf("%d shapes: %w", len(quads), err)
		}
		q := quads[0]
		return chromedp.MouseClickXY((q[0]+q[2]+q[4]+q[6])/4, (q[1]+q[3]+q[5]+q[7])/4).Do(ctx)
	}))
}

func (e element) fill(text string) {
	e.p.do(dom.Focus().WithBackendNodeID(e.id))
	e.on("function() { this.select?.() }")
	e.p.do(input.InsertText(text))
}

// fills fills the fields of the names.
func (e element) fills(texts map[string]string) {
	for name, text := range texts {
		e.get("textbox", name).fill(text)
	}
}

func (e element) choose(value string) {
	e.on(fmt.Sprintf("function() { this.value = %q; this.dispatchEvent(new Event('change', {bubbles: true})) }", value))
}

// goTo changes the address of the page, as a pasted one does.
func (p *tab) goTo(place string) { p.script(fmt.Sprintf("location.hash = %q", "/"+place)) }

// part opens a part of the head.
func (p *tab) part(name string) {
	p.get("navigation", "Parts of the head").beginning("link", name).click()
	p.holds(name+" is open", fmt.Sprintf(`(document.querySelector(".parts [aria-current]")?.textContent ?? "").startsWith(%q)`, name))
}

// head opens a head of the list, also on a narrow page.
func (p *tab) head(name string) {
	if eval[bool](p, `getComputedStyle(document.querySelector(".back")).display !== "none" && !location.hash.match(/^#?\/?$/)`) {
		p.get("link", "‹ Heads").click()
	}
	p.get("navigation", "Heads").get("link", name).click()
	p.get("heading", name)
}

// say sends a message as the visitor.
func (p *tab) say(text string) {
	p.get("textbox", "Message").fill(text)
	p.press("Send")
}

// count waits until so many elements match a selector.
func (p *tab) count(selector string, want int) {
	p.holds(fmt.Sprint(want, " ", selector), fmt.Sprintf("document.querySelectorAll(%q).length === %d", selector, want))
}

func (p *tab) address() string { return eval[string](p, "location.hash") }

// focused returns the name of the focused element, or its text.
func (p *tab) focused() string {
	return eval[string](p, `(() => { const e = document.activeElement; return e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || "" })()`)
}

func (p *tab) status(text string) { p.get("status", "Connection").shows(text) }

// inspect looks for barriers in the state of a page. TestAxe, with the tag axe, gives it
// the rules of axe-core.
var inspect = func(*tab, string) {}

// inspect looks for barriers in the state in which the element shows itself.
func (e element) inspect(state string) element {
	inspect(e.p, state)
	return e
}

// shot saves a picture of the page in a folder that git ignores.
func (p *tab) shot(name string) {
	var picture []byte
	if err := chromedp.Run(p.ctx, chromedp.FullScreenshot(&picture, 100)); err != nil {
		return
	}
	_ = os.MkdirAll("shots", 0o755)
	_ = os.WriteFile(filepath.Join("shots", name+".png"), picture, 0o600)
}

// view sets the width and the colour scheme.
func (p *tab) view(width int64, scheme string) {
	p.do(emulation.SetDeviceMetricsOverride(width, 900, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}
