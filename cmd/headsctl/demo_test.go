package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDemoHasTheSameHeadsOnEveryRun(t *testing.T) {
	first, second := demo(t), demo(t)
	assert.Len(t, first.ids, 25)
	assert.Equal(t, first.ids, second.ids)
	assert.NotEqual(t, first.token, second.token)
	assert.Contains(t, first.ends(1, "convert", "-f", "ids.csv", "--dry-run").stdout, "15 pending, 5 unchanged, 5 blocked, 0 failed, 0 skipped (a blocked head gets nothing of its entry)\n")
	assert.NotEmpty(t, names(t, filepath.Join(first.dir, "site")))
}

func TestDemoEndsWith0(t *testing.T) {
	s := newTerminal(t).show(80, "demo", "--dir", "d").wait("Ctrl-C ends").press("\x03")
	assert.Equal(t, 0, s.end())
	assert.Contains(t, s.String(), "export HEADS_TOKEN=")
	assert.Regexp(t, `# Watch it in a browser: http://127\.0\.0\.1:\d+/_emulator/`, s.String())
	assert.Equal(t, 5, strings.Count(s.String(), "\r\nheadsctl "), "five commands to try\n%s", s)
}
