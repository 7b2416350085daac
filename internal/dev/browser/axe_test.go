//go:build axe

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accessibilityRules is where axe-core is, which is no part of the project:
//
//	AXE=/tmp/node_modules/axe-core/axe.min.js go test -tags axe -run TestAxe .
func accessibilityRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("AXE"))
	require.NoError(t, err, "AXE names the file axe.min.js")
	return string(text)
}

// finding is a rule of axe-core with the elements that it is about.
type finding struct {
	ID    string
	Help  string
	Nodes []axeNode
}

type axeNode struct {
	HTML           string
	FailureSummary string
}

// ofAMark reports whether the element is a mark of the timeline.
func (n axeNode) ofAMark() bool { return strings.Contains(n.HTML, `class="mark`) }

// findings is what axe-core says of a page.
type findings struct {
	Passes     int // rules
	Violations []finding
	Incomplete []finding // rules that axe-core can't decide
}

const runAxe = `axe.run(document).then((r) => ({passes: r.passes.length, violations: r.violations, incomplete: r.incomplete}))`

// inspector collects what axe-core finds in the states of the console.
type inspector struct {
	t              *testing.T
	rules          string
	passed, failed int
}

// inspect runs the default rules on a page. What they can't decide may be the
// contrast, which another test computes, and the names of the timeline's marks, which
// are longer than their texts.
func (i *inspector) inspect(b *tab, state string) {
	i.t.Helper()
	if !eval[bool](b, "typeof axe === 'object'") {
		b.do(chromedp.Evaluate(i.rules, nil))
	}
	found := eval[findings](b, runAxe)
	wrong := found.Violations
	for _, f := range found.Incomplete {
		if f.ID == "label-content-name-mismatch" {
			f.Nodes = slices.DeleteFunc(f.Nodes, axeNode.ofAMark)
		}
		if f.ID != "color-contrast" && len(f.Nodes) > 0 {
			wrong = append(wrong, f)
		}
	}
	i.passed, i.failed = i.passed+found.Passes, i.failed+len(wrong)
	i.t.Logf("%s: %d passed, %d failed", state, found.Passes, len(wrong))
	assert.Greater(i.t, found.Passes, 10, "%s: axe-core has checked too little", state)
	for _, f := range wrong {
		for _, n := range f.Nodes {
			i.t.Errorf("%s: %s: %s\n%s\n%s", state, f.ID, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// The console passes the rules of axe-core in each of its states.
func TestAxe(t *testing.T) {
	i := &inspector{t: t, rules: accessibilityRules(t)}
	i.emptyConsole()
	i.busyConsole()
	t.Logf("total: %d passed, %d failed", i.passed, i.failed)
}

func (i *inspector) emptyConsole() {
	name := filepath.Join(i.t.TempDir(), "seed.json")
	require.NoError(i.t, os.WriteFile(name, []byte(`{}`), 0o600))
	b := open(i.t, start(i.t, "-seed-file", name).ConsoleURL)
	b.region("Heads").shows("There is no head yet")
	i.inspect(b, "empty")
}

func (i *inspector) busyConsole() {
	hook := receiver(i.t, 500, 503)
	p := start(i.t, "-retry", "300ms,600ms", "-seed-file", scene(i.t, hook))
	b := open(i.t, p.ConsoleURL)
	b.region("Head").shows(ada)
	i.inspect(b, "first look")

	busy(i.t, b, p, hook)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 480, 400} {
			b.view(width, scheme)
			b.until("the width", func() bool { return eval[int64](b, "innerWidth") == width })
			i.inspect(b, fmt.Sprintf("retries, tool call and details, %s, %d", scheme, width))
		}
	}
	b.view(1280, "light")
	b.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true })`, nil))
	i.inspect(b, "every details open")

	seed := b.region("Seed")
	seed.get("button", "Reset").click()
	dialog := b.find(0, "dialog", "")
	i.inspect(b, "reset dialog")
	dialog.get("button", "Cancel").click()

	head := b.region("Head")
	head.get("textbox", "Fields").fill(`{"greetings":5}`)
	i.inspect(b, "field editor")
	head.get("button", "Edit fields").click()
	head.get("alert", "").shows("greetings must be a string")
	i.inspect(b, "refusal")

	form := b.region("Faults").get("form", "Fault of requests")
	form.get("textbox", "status").fill("503")
	form.get("button", "Add fault").click()
	b.region("Faults").shows("status 503")
	i.inspect(b, "a fault armed")

	b.mu.Lock()
	b.down = true
	b.mu.Unlock()
	p.kill()
	b.status("reconnecting")
	i.inspect(b, "reconnecting")
}
