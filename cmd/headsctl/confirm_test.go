package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestApplyAsksBeforeItWrites(t *testing.T) {
	c := demo(t)
	for _, answer := range []string{"n\r", "\r", "Y\r", "yess\r", "\x04"} {
		s := c.show(120, "apply", "-f", "heads.yaml").wait("changes to 3 heads? [y/N]").press(answer)
		assert.Equal(t, 1, s.end(), "%q", answer)
		assert.Regexp(t, `(?s)~ greetings: .*Apply \d+ changes to 3 heads\? \[y/N\] `, plain(s))
	}
	assert.Equal(t, 130, c.show(120, "apply", "-f", "heads.yaml").wait("[y/N]").press("\x03").end())
	assert.Contains(t, c.ok("plan", "-f", "heads.yaml"), "3 pending", "nothing has changed")
	s := c.show(120, "apply", "-f", "heads.yaml").wait("[y/N]").press("y\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	assert.Contains(t, plain(s), "3 changed, 0 unchanged")
	s = c.show(120, "apply", "-f", "heads.yaml")
	assert.Equal(t, 0, s.end(), "%s", s)
	assert.Contains(t, plain(s), "0 changed, 3 unchanged", "there is nothing to ask")
}

func TestAProtectedEnvironmentWantsItsName(t *testing.T) {
	w := newWorld(t, 2)
	w.file()
	for _, row := range []struct {
		answer string
		code   int
		args   []string
	}{
		{"y", 1, nil}, {"yes", 1, []string{"--yes"}}, {"", 1, nil}, {"Production", 1, nil}, {"staging", 1, nil}, {"production please", 1, nil},
		{"production", 0, []string{"--yes"}},
	} {
		s := w.show(200, append([]string{"apply", "-f", "heads.yaml", "--env", "production", "--journal", "none"}, row.args...)...)
		s.wait("Type production to apply 6 changes to 2 heads: ")
		before := w.production.hooks(w.production.ids[0])
		s.press(row.answer + "\r")
		assert.Equal(t, row.code, s.end(), "%q %s", row.answer, s)
		if row.code == 1 {
			assert.Equal(t, before, w.production.hooks(w.production.ids[0]), "nothing changed after %q", row.answer)
		}
	}
	assert.Equal(t, "https://app.example.com/heads/events", w.production.hooks(w.production.ids[0])[0]["webhookUrl"])
	assert.Contains(t, w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production"), "0 changed, 2 unchanged")

	s := w.show(200, "convert", "-f", "heads.yaml", "--env", "production", "Head 2", "--journal", "none")
	s.wait("Type production to apply 1 changes to 1 heads: ").press("production\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	assert.Contains(t, plain(s), "changed "+w.production.ids[1]+" Head 2 ")
	s = w.show(200, "convert", "-f", "heads.yaml", "--env", "staging", "Head 1", "--journal", "none")
	s.wait("Apply 1 changes to 1 heads? [y/N]").press("y\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	w.ok("convert", "-f", "heads.yaml", "--env", "production", "--dry-run")
}
