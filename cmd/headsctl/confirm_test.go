package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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

func TestAProtectedEnvironmentWantsItsName(t *testing.T) {
	t.Parallel()
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
		before := w.hooks(w.production, 0)
		s.press(row.answer + "\r")
		assert.Equal(t, row.code, s.end(), "%q %s", row.answer, s)
		if row.code == 1 {
			assert.Equal(t, before, w.hooks(w.production, 0), "nothing changed after %q", row.answer)
		}
	}
	assert.Contains(t, w.hooks(w.production, 0), "https://app.example.com/heads/events")
	assert.Contains(t, w.ok("apply", "-f", "heads.yaml", "--env", "production", "--confirm", "production"), "0 changed, 2 unchanged")

	s := w.show(200, "convert", "-f", "heads.yaml", "--env", "production", "Head 2", "--journal", "none")
	s.wait("Type production to apply 1 changes to 1 heads: ")
	s.press("production\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	assert.Contains(t, plain(s), "changed "+w.production.ids[1]+" Head 2 ")
	s = w.show(200, "convert", "-f", "heads.yaml", "--env", "staging", "Head 1", "--journal", "none")
	s.wait("Apply 1 changes to 1 heads? [y/N]")
	s.press("y\r")
	assert.Equal(t, 0, s.end(), "%s", s)
	w.ok("convert", "-f", "heads.yaml", "--env", "production", "--dry-run")
}
