package main

import "testing"

func TestAProgramThatHasLeftItsGroupEndsWithTheScenario(t *testing.T) {
	t.Parallel()
	const leave = "setsid sh -c 'echo $$ > pid; exec sleep 1000' < /dev/null > /dev/null 2>&1 &"
	for name, row := range map[string]string{
		"that knows its parent": leave,
		"of an ended parent":    "(" + leave + ");",
		"without environment":   "(env -i " + leave + ");",
	} {
		t.Run(name, func(t *testing.T) {
			c := newTerminal(t)
			c.scenarios("url: "+runningShop(t), ` [{name: a, steps: [{run: "`+row+` while [ ! -s pid ]; do sleep 0.01; done"}]}]`)
			c.ok("test", "s.yaml")
			c.gone("pid")
		})
	}
}

func TestAKilledBackEndTakesWhatHasLeftItsGroup(t *testing.T) {
	c := newTerminal(t)
	c.write("server.py", "import http.server, os, subprocess\n"+
		"child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"+
		"open('pid', 'w').write(str(child.pid))\n"+
		"http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), http.server.BaseHTTPRequestHandler).serve_forever()\n")
	c.scenarios("start: [python3, server.py]", `
  - name: a
    steps:
      - run: kill -0 $(cat pid)
      - backend: kill
      - run: case "$(cat /proc/$(cat pid)/stat)" in *') Z '*) ;; *) exit 1;; esac
`)
	c.ok("test", "s.yaml")
}
