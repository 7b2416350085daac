package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

func TestPlanPrintsEveryChangeAndChangesNothing(t *testing.T) {
	c := demo(t)
	out := c.ok("plan", "-f", "heads.yaml")
	for _, line := range []string{
		"pending " + c.ids[0] + " Lobby\n", "\n  ~ greetings: Welcome! I am the Lobby. → Good to see you!\n", "\n  ~ streaming: false → true\n",
		"\n  + webhook https://crm.example.com/heads/events: end_conversation, start_conversation\n", "\n  + tool opening_hours: ",
		"\n3 pending, 0 unchanged, 0 blocked, 0 failed, 0 skipped\n",
	} {
		assert.Contains(t, out, line)
	}
	c.ends(3, "plan", "-f", "heads.yaml", "--exit-code")
	assert.Regexp(t, `(?s)`+c.ids[0]+`.*`+c.ids[1]+`.*\n2 pending, 0 unchanged`, c.ok("plan", "-f", "heads.yaml", "--only", strings.ToUpper(c.ids[1]), "--only", c.ids[0]))
	c.fails(2, "has no head of this id", "plan", "-f", "heads.yaml", "--only", c.ids[0], "--only", "nobody")
	assert.NoDirExists(t, filepath.Join(c.state, "headsctl"), "a plan keeps no journal")
	c.ok("apply", "-f", "heads.yaml", "--yes")
	c.ok("plan", "-f", "heads.yaml", "--exit-code")
	assert.Contains(t, c.ok("apply", "-f", "heads.yaml", "--yes"), "0 changed, 3 unchanged")
	ends := func(code int, first, second string, flags ...string) {
		c.write("plan.yaml", "heads:\n  - {id: "+first+", streaming: true}\n  - {id: "+second+", streaming: true}\n")
		c.ends(code, append([]string{"plan", "-f", "plan.yaml"}, flags...)...)
	}
	ends(3, c.ids[17], c.ids[3], "--exit-code") // there is work to do, whatever is blocked
	ends(1, c.ids[17], c.ids[3])
	ends(1, c.ids[17], c.ids[0], "--exit-code") // nothing but what is blocked
	ends(1, someID, c.ids[3], "--exit-code")    // nobody knows what apply would do
}

func TestFaultySpecsSendNothing(t *testing.T) {
	c := demo(t)
	c.write("bad.yaml", `heads:
  - id: li-123
    set: {greeting: x}
  - id: `+c.ids[0]+`
    label: Lobby
    set: {semanticThreshold: much}
`)
	r := c.ends(2, "apply", "-f", "bad.yaml", "--yes", "--debug")
	assert.Empty(t, r.stdout)
	assert.NotContains(t, r.stderr, "debug:")
	for _, fault := range []string{`bad.yaml:3:11: unknown key "greeting" (did you mean greetings?)`, "bad.yaml:6:30: this is a text; want a number", `heads[0] (label "", id "li-123") `} {
		assert.Contains(t, r.stderr, fault, "also of what is behind the schema")
	}
	assert.Equal(t, 3, strings.Count(r.stderr, "\n"), "all faults, one line each\n%s", r.stderr)
}

func TestHostileYAMLIsRefusedBeforeAnythingIsSent(t *testing.T) {
	c := demo(t)
	bomb := "a: &a x\nb: [" + strings.Repeat("*a,", 1_001) + "]\n"
	c.write("bomb.yaml", bomb, "large.yaml", strings.Repeat("# comment\n", 500_000))
	for _, args := range [][]string{{"plan", "-f"}, {"apply", "--yes", "-f"}, {"tools", "put", c.ids[0], "-f"}, {"test"}} {
		assert.Empty(t, c.fails(2, "bomb.yaml:2:3005: aliases stand for more than 1000 values in all", append(args, "bomb.yaml", "--debug")...).stdout)
		c.fails(2, "has more than 4194304 bytes", append(args, "large.yaml")...)
	}
	c.fails(2, "the text has more than 4194304 bytes", "plan", "-f", "/dev/zero")
	m := c.mcp("--allow-writes")
	for _, tool := range []string{"heads_plan", "heads_apply"} {
		assert.Contains(t, m.fails(tool, object{"spec": bomb}), "spec:2:3005: aliases stand for more than 1000 values in all")
	}
}

func TestARefusedTokenIsToldOnce(t *testing.T) {
	c := demo(t).with("HEADS_TOKEN=another")
	for _, args := range [][]string{{"doctor", "-f", "ids.csv", "-j", "1"}, {"export", "-f", "ids.csv", "-j", "1"}, {"convert", "-f", "ids.csv", "-j", "1", "--dry-run"}, append([]string{"delivery", "on"}, c.ids[:5]...)} {
		r := c.ends(1, append(args, "--debug")...)
		assert.Equal(t, 1, strings.Count(r.stderr, "debug: "), "%s: requests\n%s", args, r.stderr)
		assert.Equal(t, 1, strings.Count(r.stderr, "get a new access token"), "%s\n%s", args, r.stderr)
	}
}

func TestAFaultOfTheDefaultsIsToldOnceWithItsPlace(t *testing.T) {
	c := newTerminal(t).with("HEADS_BASE_URL=http://127.0.0.1:1", "HEADS_TOKEN=token")
	c.write("heads.yaml", `defaults:
  set: {greetings: "<text>"}
  webhooks: [{url: "http://example.com/events", events: [start_conversation]}]
heads:
  - id: 11111111-0000-4000-8000-000000000001
  - id: 11111111-0000-4000-8000-000000000002
  - {id: 11111111-0000-4000-8000-000000000003, set: {greetings: "<own>"}}
`)
	for _, command := range [][]string{{"plan"}, {"apply", "--yes"}} {
		out := c.ends(2, append(command, "-f", "heads.yaml")...).stderr
		for _, place := range []string{"heads.yaml:2:20: ", "heads.yaml:3:20: ", "heads[2]"} {
			assert.Equal(t, 1, strings.Count(out, place), out)
		}
		assert.NotContains(t, out, "heads[0]")
	}
}

func TestOfManyFaultsOfSpecsAHundredAreTold(t *testing.T) {
	c := newTerminal(t).with("HEADS_BASE_URL=http://127.0.0.1:1", "HEADS_TOKEN=token")
	var fields strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&fields, "greetingz%d: x, ", n)
	}
	c.write("heads.yaml", "heads: [{id: "+someID+", set: {"+fields.String()+"}}]\n")
	r := c.ends(2, "plan", "-f", "heads.yaml")
	assert.Equal(t, yamltext.MaxFaults+1, strings.Count(r.stderr, "\n"))
	assert.Contains(t, r.stderr, "there are 19900 more faults; mend these first")
}
