package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
