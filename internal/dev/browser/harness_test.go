package browser

import (
	"context"
	"encoding/json"
	"errors"
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
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "heads-emulator")
	build := exec.Command("go", "build", "-o", binary, "./cmd/heads-emulator")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintln(os.Stderr, string(out), err)
		return 1
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("host-resolver-rules", "MAP "+reboundName+" 127.0.0.1"),
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	browser, stop := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // chromedp does not know every event of a new Chromium
	defer stop()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, "chromium can't be started:", err)
		return 1
	}
	allocator = browser
	return m.Run()
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
	p.t.Helper()
	req, err := http.NewRequest(method, p.BaseURL+path, strings.NewReader(body))
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.Token)
	if body != "" || method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasSuffix(path, "video-streaming?videoStreaming=true") {
		req.Header.Del("Content-Type")
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
	p.t.Helper()
	return p.call(method, "/_emulator/"+path, body)
}

// receiver answers signed deliveries with the given statuses and then with 200. It
// answers tool calls with 200.
func receiver(t testing.TB, statuses ...int) string {
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		status := http.StatusOK
		if r.Header.Get("X-Signature-256") != "" && len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"message":"From nine to five."}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
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

// visit opens any page.
func visit(t testing.TB, address string) *tab {
	ctx, cancel := chromedp.NewContext(allocator)
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	u, err := url.Parse(address)
	require.NoError(t, err)
	p := &tab{t: t, ctx: ctx, host: u.Host}
	chromedp.ListenTarget(ctx, p.listen)
	p.do(network.Enable(), runtime.Enable(), log.Enable(), dom.Enable(), accessibility.Enable(), chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		assert.Empty(t, p.faults)
		p.mu.Unlock()
		stop()
		cancel()
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

func (p *tab) do(actions ...chromedp.Action) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Run(p.ctx, actions...))
}

// eval evaluates an expression, and waits if it is a promise.
func eval[T any](p *tab, expression string) (v T) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Run(p.ctx, chromedp.Evaluate(expression, &v, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
		return e.WithAwaitPromise(true)
	})), expression)
	return v
}

// until checks after each frame until a condition holds.
func (p *tab) until(what string, holds func() bool) {
	p.t.Helper()
	for began := time.Now(); !holds(); {
		if time.Since(began) > patience {
			p.shot("failed")
			require.Fail(p.t, "not seen: "+what, "%s", eval[string](p, "document.body.innerText"))
		}
		var frame float64 // fails while a page gives way to another
		_ = chromedp.Run(p.ctx, chromedp.Evaluate("new Promise((seen) => requestAnimationFrame(seen))", &frame,
			func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	}
}

// element is an element with a role and a name.
type element struct {
	p  *tab
	id cdp.BackendNodeID
}

var errNone = errors.New("there is none")

// query returns the element with a role and a name, within an element or on the page.
func (p *tab) query(within cdp.BackendNodeID, role, name string) (found []*accessibility.Node, err error) {
	err = chromedp.Run(p.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		query := accessibility.QueryAXTree().WithRole(role)
		if name != "" {
			query = query.WithAccessibleName(name)
		}
		if within == 0 {
			root, err := dom.GetDocument().WithDepth(0).Do(ctx)
			if err != nil {
				return err
			}
			query = query.WithNodeID(root.NodeID)
		} else {
			query = query.WithBackendNodeID(within)
		}
		found, err = query.Do(ctx)
		return err
	}))
	return found, err
}

func (p *tab) find(within cdp.BackendNodeID, role, name string) element {
	p.t.Helper()
	var e element
	p.until(role+" "+name, func() bool {
		nodes, err := p.query(within, role, name)
		for _, n := range nodes {
			if !n.Ignored && err == nil {
				e = element{p, n.BackendDOMNodeID}
				return true
			}
		}
		return false
	})
	return e
}

func (p *tab) get(role, name string) element { p.t.Helper(); return p.find(0, role, name) }

func (p *tab) region(name string) element { p.t.Helper(); return p.find(0, "region", name) }

func (e element) get(role, name string) element { e.p.t.Helper(); return e.p.find(e.id, role, name) }

// beginning returns the element with a role whose name begins with a text.
func (e element) beginning(role, with string) element {
	e.p.t.Helper()
	var found element
	e.p.until(role+" that begins with "+with, func() bool {
		nodes, err := e.p.query(e.id, role, "")
		for _, n := range nodes {
			var name string
			if err == nil && n.Name != nil && json.Unmarshal(n.Name.Value, &name) == nil && strings.HasPrefix(name, with) {
				found = element{e.p, n.BackendDOMNodeID}
				return true
			}
		}
		return false
	})
	return found
}

// on calls a function with the element as this.
func (e element) on(function string) string {
	e.p.t.Helper()
	var value string
	require.NoError(e.p.t, chromedp.Run(e.p.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		node, err := dom.ResolveNode().WithBackendNodeID(e.id).Do(ctx)
		if err != nil {
			return err
		}
		result, thrown, err := runtime.CallFunctionOn(function).WithObjectID(node.ObjectID).WithReturnByValue(true).Do(ctx)
		if err != nil {
			return err
		}
		if thrown != nil {
			return thrown
		}
		if len(result.Value) > 0 && result.Value[0] == '"' {
			return json.Unmarshal(result.Value, &value)
		}
		return nil
	})))
	return value
}

func (e element) text() string {
	e.p.t.Helper()
	return e.on("function() { return this.innerText ?? this.textContent }")
}

// value returns what is in a field.
func (e element) value() string { e.p.t.Helper(); return e.on("function() { return this.value }") }

// shows waits until the element shows a text.
func (e element) shows(text string) element {
	e.p.t.Helper()
	e.p.until(text, func() bool { return strings.Contains(e.text(), text) })
	return e
}

// click presses the middle of the element with the mouse.
func (e element) click() {
	e.p.t.Helper()
	require.NoError(e.p.t, chromedp.Run(e.p.ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		if err := dom.ScrollIntoViewIfNeeded().WithBackendNodeID(e.id).Do(ctx); err != nil {
			return err
		}
		quads, err := dom.GetContentQuads().WithBackendNodeID(e.id).Do(ctx)
		if err != nil {
			return err
		}
		if len(quads) == 0 {
			return errNone
		}
		q := quads[0]
		x, y := (q[0]+q[2]+q[4]+q[6])/4, (q[1]+q[3]+q[5]+q[7])/4
		for _, kind := range []input.MouseType{input.MousePressed, input.MouseReleased} {
			if err := input.DispatchMouseEvent(kind, x, y).WithButton(input.Left).WithClickCount(1).Do(ctx); err != nil {
				return err
			}
		}
		return nil
	})))
}

func (e element) fill(text string) {
	e.p.t.Helper()
	e.p.do(dom.Focus().WithBackendNodeID(e.id))
	e.on("function() { this.select?.() }")
	e.p.do(input.InsertText(text))
}

func (e element) choose(value string) {
	e.p.t.Helper()
	e.on(fmt.Sprintf("function() { this.value = %q; this.dispatchEvent(new Event('change', {bubbles: true})) }", value))
}

// goTo changes the address of the page, as a pasted one does.
func (p *tab) goTo(place string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf("(location.hash = %q, true)", "/"+place))
}

// part opens a part of the head.
func (p *tab) part(name string) {
	p.t.Helper()
	p.get("navigation", "Parts of the head").beginning("link", name).click()
	p.until(name+" is open", func() bool {
		return strings.HasPrefix(eval[string](p, `document.querySelector(".parts [aria-current]")?.textContent ?? ""`), name)
	})
}

// head opens a head of the list, also on a narrow page.
func (p *tab) head(name string) {
	p.t.Helper()
	if eval[bool](p, `getComputedStyle(document.querySelector(".back")).display !== "none" && !location.hash.match(/^#?\/?$/)`) {
		p.get("link", "‹ Heads").click()
	}
	p.get("navigation", "Heads").get("link", name).click()
	p.get("heading", name)
}

// count waits until so many elements match a selector.
func (p *tab) count(selector string, want int) {
	p.t.Helper()
	p.until(fmt.Sprint(want, " ", selector), func() bool {
		return eval[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", selector)) == want
	})
}

func (p *tab) address() string { p.t.Helper(); return eval[string](p, "location.hash") }

// focused returns the name of the focused element, or its text.
func (p *tab) focused() string {
	p.t.Helper()
	return eval[string](p, `(() => { const e = document.activeElement; return e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || "" })()`)
}

// closeDown says that the program goes down, so connections fail.
func (p *tab) closeDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
}

func (p *tab) status(text string) { p.t.Helper(); p.get("status", "Connection").shows(text) }

// inspect looks for barriers in the state of a page. TestAxe, with the tag axe, gives it
// the rules of axe-core.
var inspect = func(*tab, string) {}

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
	p.t.Helper()
	p.do(emulation.SetDeviceMetricsOverride(width, 900, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}
