package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDemoHasTheSameHeadsOnEveryRun(t *testing.T) {
	first, second := demo(t), demo(t)
	assert.Len(t, first.ids, 25)
	assert.Equal(t, first.ids, second.ids)
	assert.NotEqual(t, first.token, second.token)
	plan := first.run("convert", "-f", "ids.csv", "--dry-run")
	assert.Equal(t, 1, plan.code)
	assert.Contains(t, plan.stdout, "15 pending, 5 unchanged, 5 blocked, 0 failed, 0 skipped (a blocked head gets nothing of its entry)\n")
	found, err := filepath.Glob(filepath.Join(first.dir, "site", "*"))
	require.NoError(t, err)
	assert.NotEmpty(t, found)
	r := first.run("plan", "-f", "heads.yaml", "--exit-code")
	assert.Equal(t, 3, r.code)
}

func TestDemoEndsWith0(t *testing.T) {
	s := newTerminal(t).show(80, "demo", "--dir", "d")
	s.wait("Ctrl-C ends")
	s.press("\x03")
	assert.Equal(t, 0, s.end())
	assert.Contains(t, s.String(), "export HEADS_TOKEN=")
	assert.Regexp(t, `# Watch it in a browser: http://127\.0\.0\.1:\d+/_emulator/`, s.String())
	assert.Equal(t, 5, strings.Count(s.String(), "\r\nheadsctl "), "five commands to try\n%s", s)
}
