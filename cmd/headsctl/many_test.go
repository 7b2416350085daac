package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/fleet"
)

func TestConvertPrintsALineAHeadAndTheTotals(t *testing.T) {
	t.Parallel()
	c := demo(t)
	r := c.run("convert", "-f", "ids.csv", "--yes", "--report", "r.json", "--report", "r.csv", "--report", "r.html")
	assert.Equal(t, 1, r.code, "some are blocked")
	assert.Regexp(t, "^the journal .* does not know 5 streaming heads: .*\n$", r.stderr)
	out := lines(r.stdout)
	require.Len(t, out, 26)
	assert.Equal(t, "15 changed, 5 unchanged, 5 blocked, 0 failed, 0 skipped (a blocked head gets nothing of its entry)", out[25])
	assert.Regexp(t, `(?m)^changed `+c.ids[0]+` Lobby https://stream\.example\.test/MyOrg-\d+/li-\d+$`, r.stdout)
	assert.Regexp(t, `(?m)^unchanged `+c.ids[12]+` Welcome Screen$`, r.stdout)
	assert.Regexp(t, `(?m)^blocked `+c.ids[17]+` Mascot visual: visual .* must be created$`, r.stdout)
	assert.Regexp(t, `(?m)^blocked `+c.ids[20]+` Audio Guide provider: provider "polly"`, r.stdout)

	report := parse[struct{ Moves, Results []object }](t, c.read("r.json"))
	assert.Len(t, report.Moves, 15)
	assert.Len(t, report.Results, 25)
	rows, err := csv.NewReader(strings.NewReader(c.read("r.csv"))).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 26)
	assert.Equal(t, 25, strings.Count(c.read("r.html"), "<tr data-outcome="))

	again := c.run("convert", "-f", "ids.csv", "--yes", "--report", "again.json")
	assert.Contains(t, again.stdout, "\n0 changed, 20 unchanged, 5 blocked, 0 failed, 0 skipped (a blocked head gets nothing of its entry)\n")
	assert.Len(t, parse[struct{ Moves []object }](t, c.read("again.json")).Moves, 15, "the journal remembers the old ones")
	journals, err := filepath.Glob(filepath.Join(c.state, "headsctl", "*"))
	require.NoError(t, err)
	require.Len(t, journals, 1, "one for the base URL")
	info, err := os.Stat(journals[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestConvertGivesAVoiceAndGoesBack(t *testing.T) {
	t.Parallel()
	c := demo(t)
	r := c.run("convert", c.ids[20], "--voice", "elevenlabs/a/b_eleven_turbo_v2_5", "--yes", "--journal", "none")
	assert.Equal(t, 0, r.code, r.stdout+r.stderr)
	head := parse[object](t, c.ok("get", c.ids[20], "-o", "json"))
	assert.Equal(t, []any{"elevenlabs", "a/b_eleven_turbo_v2_5", true}, []any{head["ttsProvider"], head["ttsVoice"], head["videoStreaming"]})
	assert.Contains(t, c.ok("convert", c.ids[20], "--undo", "--yes", "--journal", "j"), "changed "+c.ids[20]+" Audio Guide https://chat.example.test/")
	assert.NoDirExists(t, filepath.Join(c.state, "headsctl"))
	assert.FileExists(t, filepath.Join(c.dir, "j"))
	assert.Contains(t, c.ok("convert", c.ids[20], "--undo", "--yes"), "0 changed, 1 unchanged")
}

func TestPlanPrintsEveryChangeAndChangesNothing(t *testing.T) {
	t.Parallel()
	c := demo(t)
	out := c.ok("plan", "-f", "heads.yaml")
	for _, line := range []string{
		"pending " + c.ids[0] + " Lobby\n", "\n  ~ greetings: Welcome! I am the Lobby. → Good to see you!\n", "\n  ~ streaming: false → true\n",
		"\n  + webhook https://crm.example.com/heads/events: end_conversation, start_conversation\n", "\n  + tool opening_hours: ",
		"\n3 pending, 0 unchanged, 0 blocked, 0 failed, 0 skipped\n",
	} {
		assert.Contains(t, out, line)
	}
	assert.Equal(t, 3, c.run("plan", "-f", "heads.yaml", "--exit-code").code)
	only := c.ok("plan", "-f", "heads.yaml", "--only", strings.ToUpper(c.ids[1]))
	assert.Contains(t, only, "\n1 pending, 0 unchanged")
	assert.NoDirExists(t, filepath.Join(c.state, "headsctl"), "a plan keeps no journal")

	c.ok("apply", "-f", "heads.yaml", "--yes")
	assert.Equal(t, 0, c.run("plan", "-f", "heads.yaml", "--exit-code").code)
	assert.Contains(t, c.ok("apply", "-f", "heads.yaml", "--yes"), "0 changed, 3 unchanged")
	c.write("blocked.yaml", "heads:\n  - {id: "+c.ids[17]+", streaming: true}\n  - {id: "+c.ids[3]+", streaming: true}\n")
	assert.Equal(t, 3, c.run("plan", "-f", "blocked.yaml", "--exit-code").code, "there is work to do, whatever is blocked")
	assert.Equal(t, 1, c.run("plan", "-f", "blocked.yaml").code)
	c.write("blocked.yaml", "heads:\n  - {id: "+c.ids[17]+", streaming: true}\n  - {id: "+c.ids[0]+", streaming: true}\n")
	assert.Equal(t, 1, c.run("plan", "-f", "blocked.yaml", "--exit-code").code, "nothing but what is blocked")
	c.write("unread.yaml", "heads:\n  - {id: "+someID+"}\n  - {id: "+c.ids[3]+", streaming: true}\n")
	assert.Equal(t, 1, c.run("plan", "-f", "unread.yaml", "--exit-code").code, "nobody knows what apply would do")
}

func TestManyHeadsAsJSON(t *testing.T) {
	t.Parallel()
	c := demo(t)
	r := c.run("convert", "-f", "ids.csv", "--yes", "--json", "--report", "r.json")
	out := lines(r.stdout)
	require.Len(t, out, 26)
	keys := map[string]object{}
	for _, result := range parse[struct{ Results []object }](t, c.read("r.json")).Results {
		keys[result["head_id"].(string)] = result
	}
	for _, line := range out[:25] {
		result := parse[object](t, line)
		assert.Equal(t, "result", result["type"])
		delete(result, "type")
		assert.Equal(t, keys[result["head_id"].(string)], result, "as in the report")
	}
	assert.JSONEq(t, `{"type":"summary","counts":{"changed":15,"unchanged":5,"blocked":5,"failed":0,"skipped":0},"note":"a blocked head gets nothing of its entry"}`, out[25])
	r = c.run("plan", "-f", "heads.yaml", "--json")
	assert.Contains(t, lines(r.stdout)[3], `{"type":"summary","counts":{`)
}

func TestFaultySpecsSendNothing(t *testing.T) {
	t.Parallel()
	c := demo(t)
	c.write("bad.yaml", `heads:
  - id: li-123
    set: {greeting: x}
  - id: `+c.ids[0]+`
    label: Lobby
    set: {semanticThreshold: much}
`)
	r := c.run("apply", "-f", "bad.yaml", "--yes", "--debug")
	assert.Equal(t, 2, r.code)
	assert.Empty(t, r.stdout)
	assert.NotContains(t, r.stderr, "debug:")
	assert.Contains(t, r.stderr, "greetings", "the nearest name")
	assert.Contains(t, r.stderr, "Lobby")
	assert.GreaterOrEqual(t, strings.Count(r.stderr, "\n"), 3, "all faults, one line each\n%s", r.stderr)
}

func TestRunsAreCutShortAfterFailures(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(6), "-rate-limit", "0.001")
	r := c.run("convert", "--yes", "-j", "1", "--stop-after", "1", "--report", "r.json", c.ids[0], c.ids[1], c.ids[2])
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "2 skipped\n")
	assert.Contains(t, r.stdout, "\nskipped ")
	assert.Contains(t, r.stderr, "when the service is well again, run: headsctl convert --yes -j 1")
	assert.Len(t, parse[struct{ Results []object }](t, c.read("r.json")).Results, 3, "written whatever happens")
}

func TestRateLimitsRequests(t *testing.T) {
	t.Parallel()
	c := demo(t)
	r := c.run("doctor", c.ids[0], c.ids[1], "--rate", "20", "--debug")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "waited ")
}

func TestSIGTERMEndsRunningHeadsCleanly(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(50), "-latency", "20ms")
	args := append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)
	cmd := c.command(t.Context(), args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	text := &strings.Builder{}
	one := make([]byte, 1)
	for !strings.Contains(text.String(), "\n") { // the first head has ended
		_, err := stdout.Read(one)
		require.NoError(t, err)
		text.Write(one)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	text.Write(rest)
	assert.Equal(t, 130, exitCode(t, cmd.Wait()))
	out := lines(text.String())
	assert.Regexp(t, `^\d+ changed, 0 unchanged, 0 blocked, 0 failed, \d+ skipped$`, out[len(out)-1])
	assert.Contains(t, stderr.String(), "to go on, run: headsctl convert --yes --report r.json "+c.ids[0])
	report := parse[struct{ Results []object }](t, c.read("r.json"))
	assert.Len(t, report.Results, 50)
	for _, r := range report.Results {
		assert.Contains(t, []any{"changed", "skipped"}, r["outcome"])
	}
	again := c.run(args...)
	assert.Equal(t, 0, again.code)
	assert.Len(t, parse[struct{ Moves []object }](t, c.read("r.json")).Moves, 50)
}

func TestExportIsAppliedToBareHeads(t *testing.T) {
	t.Parallel()
	c := demo(t)
	var bare []object
	for i, id := range c.ids {
		visual := "11111111-0000-4000-8000-000000000000"
		if i >= 17 && i < 20 {
			visual = "22222222-0000-4000-8000-000000000000"
		}
		bare = append(bare, object{"id": id, "headVisualId": visual})
	}
	c.ok("set", c.ids[0], "greetings=a: b # c\n  - d\n\tend ", "customWords:={\"file\":\"x.txt\",\"yes\":\"1e3\"}", "semanticThreshold:=1e-7",
		`pluginOperationalModeConfig:={"a":{"file":"x"},"b":[1,2.5,null,true,"null"]}`, "promptConfig.system_prompt=One\n\n  two\nthree\n")
	c.write("tool.yaml", toolFile)
	c.write("about.txt", "Tells where an order is.\n")
	c.ok("tools", "put", c.ids[0], "-f", "tool.yaml")
	c.ok("webhooks", "ensure", c.ids[0], "--url", "https://a.example.com/0123456789abcdef0123?k=v", "--event", "end_conversation")
	r := c.run("export", "-f", "ids.csv")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, c.ids[22], "the broken tool is left out")
	assert.Contains(t, r.stdout, "https://a.example.com/0123456789abcdef0123?k=v", "whole")
	assert.NotContains(t, r.stdout, "voiceflowApiKey")
	c.write("export.yaml", r.stdout)
	plan := c.run("plan", "-f", "export.yaml")
	assert.Contains(t, plan.stdout, "\n0 pending, 25 unchanged, 0 blocked, 0 failed, 0 skipped\n")

	fresh := emulator(t, object{"heads": bare, "visuals": []object{
		{"id": "11111111-0000-4000-8000-000000000000", "mode": "default"}, {"id": "22222222-0000-4000-8000-000000000000", "mode": "two_loops"},
	}})
	fresh.write("export.yaml", r.stdout)
	applied := fresh.run("apply", "-f", "export.yaml", "--yes")
	require.Equal(t, 0, applied.code, applied.stdout+applied.stderr)
	fresh.write("ids.csv", c.read("ids.csv"))
	assert.Equal(t, r.stdout, fresh.ok("export", "-f", "ids.csv"))
}

func TestIdsComeFromAFileOrStdin(t *testing.T) {
	t.Parallel()
	c := demo(t)
	file := "\xef\xbb\xbfhead_id,name\r\n\r\n# a comment\r\n" + c.ids[0] + ",Reception\r\n" + strings.ToUpper(c.ids[0]) + "\r\n " + c.ids[1] + " \r\n"
	r := c.runWith(file, "export", "-f", "-")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "label: Reception")
	assert.Equal(t, 2, strings.Count(r.stdout, "  - id: "))
	r = c.runWith(file+"li-1\nid\n", "convert", "-f", "-", "--yes", "--debug")
	assert.Equal(t, 2, r.code)
	assert.Equal(t, []string{
		`error: stdin:7: "li-1" is not the id of a head; give the UUID in the head's id field`,
		`error: stdin:8: "id" is not the id of a head; give the UUID in the head's id field`,
	}, lines(r.stderr), "all together, and nothing was sent")
	assert.Contains(t, c.runWith(file, "convert", "-f", "-", "--dry-run").stdout, "2 pending")
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func plain(s *screen) string {
	return strings.ReplaceAll(ansi.ReplaceAllString(s.String(), ""), "\r", "")
}

func TestApplyAsksBeforeItWrites(t *testing.T) {
	t.Parallel()
	c := demo(t)
	for _, answer := range []string{"n", "", "Y", "yess", "\x04"} {
		s := c.show(120, "apply", "-f", "heads.yaml")
		s.wait("changes to 3 heads? [y/N]")
		assert.Regexp(t, `Apply \d+ changes to 3 heads\? \[y/N\] `, plain(s))
		assert.Contains(t, plain(s), "~ greetings: ")
		s.press(answer)
		if answer != "\x04" {
			s.press("\r")
		}
		assert.Equal(t, 1, s.end(), "%q", answer)
	}
	assert.Contains(t, c.ok("plan", "-f", "heads.yaml"), "3 pending", "nothing has changed")
	s := c.show(120, "apply", "-f", "heads.yaml")
	s.wait("[y/N]")
	s.press("\x03")
	assert.Equal(t, 130, s.end())
	for _, answer := range []string{"y", "yes"} {
		s := c.show(120, "apply", "-f", "heads.yaml")
		if answer == "y" {
			s.wait("[y/N]")
			s.press(answer + "\r")
		}
		assert.Equal(t, 0, s.end(), "%s", s)
		want := map[string]string{"y": "3 changed, 0 unchanged", "yes": "0 changed, 3 unchanged"}[answer] // the second has nothing to ask
		assert.Contains(t, plain(s), want)
	}
}

func TestOneRunAtATimeHasAJournal(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(1))
	path := filepath.Join(c.dir, "j")
	journal, err := fleet.OpenJournal(path)
	require.NoError(t, err)
	convert := []string{"convert", c.ids[0], "--yes", "--journal", path}
	c.fails(2, "wait for the other run to end", convert...)
	require.NoError(t, journal.Close())
	c.ok(convert...)
	c.write("j", c.read("j")+`{"head_id":`)
	r := c.run(convert...)
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "the last line of the journal "+path+" was cut off and has been removed (11 bytes)")
}

func TestTablesAreCutToTheTerminal(t *testing.T) {
	t.Parallel()
	c := demo(t)
	c.ok("set", c.ids[0], "name="+strings.Repeat("多い ", 30))
	c.write("tool.yaml", toolFile)
	c.write("about.txt", strings.Repeat("Tells where an order is. ", 10))
	c.ok("tools", "put", c.ids[0], "-f", "tool.yaml")
	c.ok("delivery", "on", c.ids[23]) // a note on stderr is no table
	for _, args := range [][]string{
		{"get", c.ids[0]}, {"webhooks", "list", c.ids[23]}, {"tools", "list", c.ids[0]}, {"tools", "check", c.ids[0]}, {"doctor", "-f", "ids.csv"},
	} {
		s := c.show(40, args...)
		s.end()
		for _, line := range lines(plain(s)) {
			assert.LessOrEqual(t, runewidth.StringWidth(line), 40, "%v: %q", args, line)
		}
	}
	wide := c.ok("tools", "list", c.ids[0])
	assert.Contains(t, wide, strings.TrimSpace(strings.Repeat("Tells where an order is. ", 10)), "not cut without a terminal")
}

func TestColourIsForTerminalsWithoutNoColor(t *testing.T) {
	t.Parallel()
	c := demo(t)
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	s := c.show(100, "plan", "-f", "heads.yaml")
	s.end()
	assert.Regexp(t, colour, s.String())
	s = c.with("NO_COLOR=1").show(100, "plan", "-f", "heads.yaml")
	s.end()
	assert.NotRegexp(t, colour, s.String())
	assert.Contains(t, plain(s), "pending "+c.ids[0], "the word says it too")
	assert.NotRegexp(t, colour, c.ok("plan", "-f", "heads.yaml"))
}

func TestConvertOnATerminalShowsABar(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(50), "-latency", "10ms")
	s := c.show(100, append([]string{"convert", "--yes"}, c.ids...)...)
	s.wait("left")
	s.wait("50 changed, 0 unchanged, 0 blocked, 0 failed, 0 skipped")
	assert.Equal(t, 0, s.end())
	assert.Regexp(t, `applying \d+/50 .*\d+ failed, \d+\.\d/s, .* left`, plain(s))
	for i, id := range c.ids {
		assert.Equal(t, 1, strings.Count(plain(s), fmt.Sprintf("changed %s Head %d https://stream", id, i+1)))
	}
}

func TestCtrlCOnceEndsRunningHeads(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(50), "-latency", "20ms")
	s := c.show(200, append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)...)
	s.wait("changed")
	s.press("\x03")
	assert.Equal(t, 130, s.end())
	assert.Contains(t, plain(s), " skipped\n")
	assert.Contains(t, plain(s), "to go on, run: headsctl convert --yes --report r.json")
	done := strings.Count(c.read("r.json"), `"outcome": "changed"`)
	assert.Positive(t, done)
	assert.Less(t, done, 50)
	assert.Contains(t, c.ok(append([]string{"convert", "--yes"}, c.ids...)...), fmt.Sprintf("\n%d changed, %d unchanged", 50-done, done))
}

func TestCtrlCEndsAProgramThatReadsItsInput(t *testing.T) {
	t.Parallel()
	cmd := newTerminal(t).at("http://127.0.0.1:1", "token").command(t.Context(), "plan", "-f", "-")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = stdin.Write(make([]byte, 1<<18)) // more than a pipe holds, so that some of it was read
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, exitCode(t, cmd.Wait()))
}

func TestCtrlCTwiceEndsAtOnce(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(50), "-latency", "300ms")
	s := c.show(200, append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)...)
	s.wait("left")
	s.press("\x03")
	s.wait("press Ctrl-C again")
	s.press("\x03")
	assert.Equal(t, 130, s.end())
	assert.NoFileExists(t, filepath.Join(c.dir, "r.json"))
	assert.NotContains(t, plain(s), " skipped\n")
}

func TestConvertFinishesWhenNobodyReadsItsOutput(t *testing.T) {
	t.Parallel()
	c := demo(t)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	cmd := c.command(t.Context(), "convert", "-f", "ids.csv", "--yes", "--report", "r.json")
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = writer, &stderr
	code := exitCode(t, cmd.Run())
	require.NoError(t, writer.Close())
	assert.Equal(t, 1, code)
	assert.Regexp(t, "(?m)^error: .*write .*: .+\n$", stderr.String())
	assert.Len(t, parse[struct{ Moves []object }](t, c.read("r.json")).Moves, 15, "the report is written whatever happens")
	assert.Contains(t, c.run("convert", "-f", "ids.csv", "--dry-run").stdout, "0 pending, 20 unchanged, 5 blocked")
}

func TestStdoutHoldsDataAlone(t *testing.T) {
	t.Parallel()
	c := demo(t)
	// stdin and stderr are a terminal, stdout is not.
	out := filepath.Join(c.dir, "out")
	s := c.showCommand(100, exec.Command("sh", "-c", headsctl+" convert -f ids.csv > "+out))
	s.wait("[y/N]")
	s.press("y\r")
	assert.Equal(t, 1, s.end())
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	for _, line := range lines(string(text)) {
		assert.Regexp(t, `^(changed|unchanged|blocked) [0-9a-f-]{36} |^15 changed, 5 unchanged, 5 blocked, 0 failed, 0 skipped \(a blocked head gets nothing of its entry\)$`, line)
	}
	assert.Len(t, lines(string(text)), 26)
}

func TestHostileYAMLIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	c := demo(t)
	bomb := "a0: &a0 [x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	c.write("bomb.yaml", bomb)
	c.write("deep.yaml", strings.Repeat("[", 100_000))
	for _, args := range [][]string{{"plan"}, {"apply", "--yes"}, {"tools", "put", c.ids[0]}} {
		assert.Empty(t, c.fails(2, "bomb.yaml:5:14: aliases stand for more than 1000 values in all", append(args, "--debug", "-f", "bomb.yaml")...).stdout)
		c.fails(2, "deep.yaml:1:65: values are nested more than 64 levels deep", append(args, "-f", "deep.yaml")...)
		c.fails(2, "the text has more than 8388608 bytes", append(args, "-f", "/dev/zero")...)
	}
	m := c.mcp("--allow-writes")
	for _, tool := range []string{"heads_plan", "heads_apply"} {
		assert.Contains(t, m.fails(tool, object{"spec": bomb}), "spec:5:14: aliases stand for more than 1000 values in all")
		assert.Contains(t, m.fails(tool, object{"spec": strings.Repeat("[", 100_000)}), "spec:1:65: values are nested")
	}
}

// The order of keys is that of the document, and so are the digits.
func TestExportKeepsTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	settings := func(more string) json.RawMessage { return json.RawMessage(more) }
	full := object{
		"id": someID, "operationMode": "oc", "semanticThreshold": settings("0.10000000000000000001"),
		"customWords":                 settings(`{"zebra":"z","apple":"a","mango":"m"}`),
		"pluginOperationalModeConfig": settings(`{"z":12345678901234567890,"a":{"x":1,"b":[{"k":9007199254740993,"c":0.10}]},"m":null}`),
	}
	tool := `{"conversationSettings":{"tools":[{"url":"https://a.example.com/t","x_more":{"z":1.10,"a":2},"name":"t","parameters":[{"type":"string","x_z":1,"name":"p","description":"P."}],"description":"D."}]}}`
	c := emulator(t, object{"heads": []object{full}})
	c.ok("call", "PUT", "/head/"+someID+"/conversation-settings", "--data", tool)
	exported := c.ok("export", someID)
	for _, keys := range [][]string{
		{"zebra:", "apple:", "mango:"}, {"pluginOperationalModeConfig:", "z: 12345678901234567890", "x: 1", "b:", "k: 9007199254740993", "c: 0.10", "m: null"},
		{"url: https://a.example.com/t", "x_more:", "z: 1.10", "name: t", "parameters:", "type: string", "x_z: 1", "name: p", "description: D."},
		{"semanticThreshold: 0.10000000000000000001"},
	} {
		at := 0
		for _, key := range keys {
			next := strings.Index(exported[at:], key)
			require.GreaterOrEqual(t, next, 0, "%s after %q\n%s", key, exported[:at], exported)
			at += next
		}
	}
	fresh := emulator(t, object{"heads": []object{{"id": someID}}})
	fresh.write("export.yaml", exported)
	fresh.ok("apply", "-f", "export.yaml", "--yes")
	assert.Equal(t, exported, fresh.ok("export", someID))
	assert.Contains(t, fresh.ok("plan", "-f", "export.yaml"), "0 pending, 1 unchanged")
	fresh.write("near.yaml", strings.Replace(exported, "9007199254740993", "9007199254740992", 1))
	assert.Contains(t, fresh.ok("plan", "-f", "near.yaml"), "~ pluginOperationalModeConfig: ")
}

func TestATruncatedJournalIsTold(t *testing.T) {
	t.Parallel()
	c := emulator(t, legacyHeads(2))
	convert := append([]string{"convert", "--yes", "--journal", "journal.jsonl"}, c.ids...)
	require.Equal(t, "", c.run(convert...).stderr)
	whole := c.read("journal.jsonl")
	header, _, _ := strings.Cut(whole, "\n")
	assert.Contains(t, header, `"base_url":"`+c.url+`"`)
	assert.Empty(t, c.run(convert...).stderr, "all is known")
	for name, content := range map[string]string{"header": header + "\n", "nothing": ""} {
		c.write("journal.jsonl", content)
		r := c.run(convert...)
		assert.Equal(t, 0, r.code, name)
		assert.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
		assert.Contains(t, r.stderr, "the journal journal.jsonl does not know 2 streaming heads: ", name)
	}
}

func TestTheJournalOfAnotherServiceIsRefused(t *testing.T) {
	t.Parallel()
	one, other := emulator(t, legacyHeads(1)), emulator(t, legacyHeads(1))
	one.ok("convert", "--yes", "--journal", "journal.jsonl", one.ids[0])
	path := filepath.Join(one.dir, "journal.jsonl")
	for _, args := range [][]string{{"--yes"}, {"--dry-run"}} {
		r := other.fails(2, one.url+", not to "+other.url, append([]string{"convert", "--debug", "--journal", path, other.ids[0]}, args...)...)
		assert.Empty(t, r.stdout)
	}
}
