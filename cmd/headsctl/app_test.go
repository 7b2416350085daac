package main

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSIGTERMEndsRunningHeadsCleanly(t *testing.T) {
	c := emulator(t, legacyHeads(50), "-latency", "20ms")
	args := append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)
	cmd := c.command(t.Context(), args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	out := bufio.NewScanner(stdout)
	require.True(t, out.Scan(), "the first head has ended")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	last := ""
	for out.Scan() {
		last = out.Text()
	}
	assert.Equal(t, 130, exitCode(t, cmd.Wait()))
	assert.Regexp(t, `^\d+ changed, 0 unchanged, 0 blocked, 0 failed, \d+ skipped$`, last)
	assert.Contains(t, stderr.String(), "to go on, run: headsctl convert --yes --report r.json "+c.ids[0])
	report := parse[struct{ Results []object }](t, c.read("r.json"))
	assert.Len(t, report.Results, 50)
	for _, r := range report.Results {
		assert.Contains(t, []any{"changed", "skipped"}, r["outcome"])
	}
	c.ok(args...)
	assert.Len(t, parse[struct{ Moves []object }](t, c.read("r.json")).Moves, 50)
}

func TestCtrlCOnceEndsRunningHeads(t *testing.T) {
	c := emulator(t, legacyHeads(50), "-latency", "20ms")
	s := c.show(200, append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)...).wait("changed").press("\x03")
	assert.Equal(t, 130, s.end())
	assert.Contains(t, plain(s), " skipped\n")
	assert.Contains(t, plain(s), "to go on, run: headsctl convert --yes --report r.json")
	done := strings.Count(c.read("r.json"), `"outcome": "changed"`)
	assert.Positive(t, done)
	assert.Less(t, done, 50)
	assert.Contains(t, c.ok(append([]string{"convert", "--yes"}, c.ids...)...), fmt.Sprintf("\n%d changed, %d unchanged", 50-done, done))
}

func TestCtrlCTwiceEndsAtOnce(t *testing.T) {
	c := emulator(t, legacyHeads(50), "-latency", "300ms")
	s := c.show(200, append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)...)
	s.wait("left").press("\x03").wait("press Ctrl-C again").press("\x03")
	assert.Equal(t, 130, s.end())
	assert.NoFileExists(t, filepath.Join(c.dir, "r.json"))
	assert.NotContains(t, plain(s), " skipped\n")
}

func TestAFullDiskIsAFailure(t *testing.T) {
	c := demo(t)
	for _, args := range [][]string{{"version"}, {"plan", "-f", "heads.yaml", "--exit-code"}} { // 1 goes before 3
		cmd := c.command(t.Context(), args...)
		cmd.Stdout = openFull(t)
		assert.Equal(t, 1, exitCode(t, cmd.Run()), args)
	}
}
