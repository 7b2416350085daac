//go:build axe

package browser

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// finding is a rule of axe-core with the elements that it is about.
type finding struct {
	ID, Help string
	Nodes    []axeNode
}

type axeNode struct{ HTML, FailureSummary string }

// ofAMark reports whether the element is a mark of the timeline.
func (n axeNode) ofAMark() bool { return strings.Contains(n.HTML, `class="mark`) }

// findings is what axe-core says of a page.
type findings struct {
	Passes     int // rules
	Violations []finding
	Incomplete []finding // rules that axe-core can't decide
}

// inspector adds up what axe-core finds in the states of the pages.
type inspector struct {
	rules          string
	passed, failed int
}

// inspect runs the default rules on a page. What they can't decide may be the
// contrast, which another test computes, and the names of the timeline's marks, which
// are longer than their texts.
func (i *inspector) inspect(b *tab, state string) {
	if !eval[bool](b, "typeof axe === 'object'") {
		b.script(i.rules)
	}
	found := eval[findings](b, `axe.run(document).then((r) => ({passes: r.passes.length, violations: r.violations, incomplete: r.incomplete}))`)
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
	b.t.Logf("%s: %d passed, %d failed", state, found.Passes, len(wrong))
	assert.Greater(b.t, found.Passes, 10, "%s: axe-core has checked too little", state)
	for _, f := range wrong {
		for _, n := range f.Nodes {
			b.t.Errorf("%s: %s: %s\n%s\n%s", state, f.ID, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// The pages of the emulator and the inbox pass the rules of axe-core in every state that
// these tests reach. AXE names the rules, which are no part of the project:
//
//	AXE=/tmp/node_modules/axe-core/axe.min.js go test -tags axe -run TestAxe .
func TestAxe(t *testing.T) {
	rules, err := os.ReadFile(os.Getenv("AXE"))
	require.NoError(t, err, "AXE names the file axe.min.js")
	i := &inspector{rules: string(rules)}
	inspect = i.inspect
	defer func() { inspect = func(*tab, string) {} }()
	t.Run("parts", TestEveryPartLooksRight)
	t.Run("walk", TestWalkByRoleAndName)
	t.Run("narrow", TestNarrowPageShowsTheListOrAHead)
	t.Run("empty", TestEmptyConsoleNamesTheFirstStep)
	t.Run("addresses", TestAddressHoldsTheWholeState)
	t.Run("fifty heads", TestConversationIsInViewWithFiftyHeads)
	t.Run("faults", TestEveryKeyOfAFaultCanBeSet)
	t.Run("restart", TestPageReadsEverythingAgainAfterARestart)
	t.Run("inbox", TestOperatorsPage)
	t.Run("inbox changes", TestOperatorRedrivesAndDeletes)
	t.Run("inbox groups", TestOperatorRedrivesAGroup)
	t.Logf("total: %d passed, %d failed", i.passed, i.failed)
}
