package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestASignalEndsRunningHeadsCleanly(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*screen){
		"Ctrl-C":  func(s *screen) { s.press("\x03") },
		"SIGTERM": func(s *screen) { assert.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := emulator(t, legacyHeads(50), "-latency", "20ms")
			args := append([]string{"convert", "--yes", "--report", "r.json"}, c.ids...)
			s := c.show(200, args...).wait("changed")
			end(s)
			assert.Equal(t, 130, s.end())
			report := parse[struct{ Results []object }](t, c.read("r.json"))
			assert.Len(t, report.Results, 50)
			outcomes := map[any]int{}
			for _, r := range report.Results {
				outcomes[r["outcome"]]++
			}
			done, skipped := outcomes["changed"], outcomes["skipped"]
			assert.Positive(t, done)
			assert.Positive(t, skipped)
			assert.Regexp(t, fmt.Sprintf(`(?m)^%d changed, 0 unchanged, 0 blocked, 0 failed, %d skipped$`, done, skipped), plain(s))
			assert.Contains(t, plain(s), "to go on, run: headsctl convert --yes --report r.json "+c.ids[0])
			assert.Contains(t, c.ok(args...), fmt.Sprintf("\n%d changed, %d unchanged", skipped, done))
			assert.Len(t, parse[struct{ Moves []object }](t, c.read("r.json")).Moves, 50)
		})
	}
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
		cmd.Stdout = need(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
		assert.Equal(t, 1, exitCode(t, cmd.Run()), args)
	}
}
