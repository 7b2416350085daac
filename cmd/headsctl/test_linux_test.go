package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runs reports whether the process whose number is in a file runs.
func runs(t *testing.T, file string) bool {
	t.Helper()
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestAProgramThatHasLeftItsGroupEndsWithTheScenario(t *testing.T) {
	t.Parallel()
	const leave = "setsid sh -c 'echo $$ > %s; exec sleep 1000' < /dev/null > /dev/null 2>&1 &"
	for name, row := range map[string]string{
		"that knows its parent": leave,
		"of an ended parent":    "(" + leave + ");",
		"without environment":   "(env -i " + leave + ");",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTerminal(t)
			c.write("s.yaml", fmt.Sprintf(`backend: {url: %q}
%s
scenarios:
  - name: a
    steps:
      - run: "%s while [ ! -s pid ]; do sleep 0.01; done"
`, runningShop(t).URL, lobby, fmt.Sprintf(row, "pid")))
			c.ok("test", "s.yaml")
			assert.False(t, runs(t, filepath.Join(c.dir, "pid")))
		})
	}
}

func TestAKilledBackEndTakesWhatHasLeftItsGroup(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	c.write("server.py", "import http.server, os, subprocess\n"+
		"child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"+
		"open('pid', 'w').write(str(child.pid))\n"+
		"http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), http.server.BaseHTTPRequestHandler).serve_forever()\n")
	c.write("s.yaml", `backend: {start: [python3, server.py]}
`+lobby+`
scenarios:
  - name: a
    steps:
      - run: kill -0 $(cat pid)
      - backend: kill
      - run: case "$(cat /proc/$(cat pid)/stat)" in *') Z '*) ;; *) exit 1;; esac
`)
	c.ok("test", "s.yaml")
}
