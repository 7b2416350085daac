package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/joshdk/go-junit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

const exampleScenarios = "../../examples/scenarios"

// shopIn copies the example in Python, with parts of its program replaced.
func shopIn(t *testing.T, c *terminal, replace ...string) {
	t.Helper()
	for _, name := range []string{"shop", "shop.test.yaml"} {
		text := contents(t, filepath.Join(exampleScenarios, "pyshop", name))
		if name == "shop" && len(replace) > 0 {
			require.Contains(t, text, replace[0])
			text = strings.NewReplacer(replace...).Replace(text)
		}
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o755))
	}
}

func TestTheExampleShopsPassTheSameScenarios(t *testing.T) {
	inGo := filepath.Join(exampleScenarios, "goshop")
	c := newTerminal(t)
	shopIn(t, c)
	assert.Equal(t, contents(t, filepath.Join(inGo, "shop.test.yaml")), c.read("shop.test.yaml"))
	c.passes(8, ".")
	require.NoError(t, os.Remove(filepath.Join(c.dir, "shop")))
	out, err := exec.Command("go", "build", "-C", inGo, "-o", filepath.Join(c.dir, "shop"), ".").CombinedOutput()
	require.NoError(t, err, string(out))
	c.passes(8, ".")
}

const updateOfAHead = `event = json.loads(body)
        import urllib.request
        urllib.request.urlopen(urllib.request.Request(os.environ["HEADS_BASE_URL"] + "/head/update", method="PUT",
            data=json.dumps({"id": event["head_id"], "greetings": "x"}).encode(),
            headers={"Authorization": "Bearer " + os.environ["HEADS_TOKEN"], "Content-Type": "application/json"}))`

const writeToDisk = `            self.journal.write(json.dumps(record).encode() + b"\n")
            self.journal.flush()
            os.fsync(self.journal.fileno())
`

func TestEachBugIsFoundAtItsLine(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ right, wrong, only, want string }{
		"verifies nothing":      {"if not is_signed(", "if False and not is_signed(", "wrong signature", "45:9: step 3, events: event 1: the delivery has another outcome"},
		"handles it twice":      {`if record.get("digest") in self.seen:`, "if False:", "comes twice", "39:9: step 4, http: json $.events is not as expected"},
		"forgets when killed":   {writeToDisk, "", "survives a crash", "63:9: step 5, http: status is not as expected"},
		"answers tools late":    {"order = str(", "import time; time.sleep(2.2); order = str(", "asks where", "24:9: step 1, call: the tool has not answered within 2s"},
		"result for message":    {`{"message": ORDERS`, `{"result": ORDERS`, "asks where", `24:9: step 1, call: the reply is not in the contract's form: expected {"message": "…"}, the reply has "result"`},
		"wrong status of tool":  {`self.reply(200, {"message": ORDERS`, `self.reply(201, {"message": ORDERS`, "asks where", "24:9: step 1, call: the reply is not in the contract's form: expected status 200, the reply has status 201"},
		"wrong status of event": {`self.reply(200, {"message": "received"})`, `self.reply(500, {})`, "survives a crash", "60:9: step 2, events: event 1: the delivery has another outcome"},
		"loses the session id":  {`call["session_metadata"]["session_id"]`, `call["session_metadata"]["user_id"]`, "noted in its session", "31:9: step 3, http: status is not as expected"},
		"wrong order":           {`session["events"].append(`, `session["events"].insert(0, `, "keep their order", "54:9: step 5, http: json $.events[0] is not as expected"},
		"calls the service":     {"event = json.loads(body)", updateOfAHead, "changes nothing", "82:9: step 5, requests: PUT /head/update was not expected"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTerminal(t)
			shopIn(t, c, row.right, row.wrong)
			r := c.ends(1, "test", "shop.test.yaml", "--only", row.only)
			assert.Empty(t, r.stderr)
			assert.Contains(t, r.stdout, "\n  shop.test.yaml:"+row.want)
			assert.Contains(t, r.stdout, "\n0 passed, 1 failed, 0 skipped\n")
		})
	}
}

// runningShop is the URL of a back end that runs already.
func runningShop(t testing.TB) string {
	t.Helper()
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if tool, ok := strings.CutPrefix(r.URL.Path, "/tools/"); ok {
			_, _ = fmt.Fprintf(w, `{"message":"%s","id":7,"tags":["a","b"],"none":null}`, tool)
		} else if r.URL.Path == "/echo" {
			w.WriteHeader(http.StatusAccepted)
			body, _ := io.ReadAll(r.Body)
			_ = json.NewEncoder(w).Encode(object{"method": r.Method, "body": string(body), "x": r.Header.Get("X-Test")})
		} else if r.URL.Path != "/events" {
			w.WriteHeader(http.StatusNotFound)
		}
	}).URL
}

const lobby = `
heads:
  - label: Lobby
    webhooks: [{url: "${BACKEND}/events", events: [start_conversation, end_conversation]}]
    tools:
      - {name: order_status, description: Tells where an order is., url: "${BACKEND}/tools/order_status", parameters: [{name: order, type: string, description: Its number.}]}
`

// scenarios writes s.yaml, with a head that calls a back end.
func (c *terminal) scenarios(backEnd, list string) {
	c.t.Helper()
	c.write("s.yaml", "backend: {"+backEnd+"}\n"+lobby+"scenarios:"+list)
}

func (c *terminal) passes(n int, args ...string) {
	c.t.Helper()
	assert.Contains(c.t, c.ok(append([]string{"test"}, args...)...), fmt.Sprintf("\n%d passed, 0 failed, 0 skipped\n", n))
}

func TestFiftyScenariosOnARunningBackEndPass(t *testing.T) {
	c := newTerminal(t)
	c.scenarios("url: "+runningShop(t), `
  - name: visitor
    steps:
      - say: Hello
      - {call: order_status, with: {order: "7"}, expect: {message: order_status}}
      - user: close
      - events: [start_conversation, end_conversation]`)
	c.passes(50, "s.yaml", "--repeat", "50")
}

func TestKillAndRestartNeverFailByThemselves(t *testing.T) {
	c := newTerminal(t)
	shopIn(t, c)
	c.passes(12, ".", "--only", "shop is down", "--repeat", "12")
}

func TestEveryKindOfStep(t *testing.T) {
	c := newTerminal(t).with("GREETING=hello")
	c.scenarios("url: "+runningShop(t)+", ready: /echo", `
  - name: all
    steps:
      - {call: order_status, with: {order: "7"}, expect: {status: 200, json: {$.id: 7, $.tags: [a, {matches: "^b$"}], "$.none": null, $.other: {absent: true}}, body: {message: order_status}}, save: {id: $.id, tag: "$.tags[1]"}}
      - {call: order_status, with: {nmuber: "7"}, unchecked: true}
      - http: POST /echo
        body: {id: "${id}", text: "a ${tag} $${id}"}
        headers: {X-Test: "${env:GREETING}"}
        expect: {status: 202, json: {$.method: POST, $.body: "{\"id\":7,\"text\":\"a b $${id}\"}", $.x: hello}}
      - {http: PUT /echo, body: "plain", expect: {json: {$.body: plain}, body: {contains: PUT}}}
      - {http: GET /nowhere, expect: {status: 404}}
      - {run: [sh, -c, "echo $HEADS_HEAD_ID; exit 3"], expect: {exit: 3, stdout: "${HEAD_ID}"}}
      - {run: "echo '{\"a\": [1, 2]}' >&2", expect: {stderr: {a: {contains: 2}}, stdout: {not: {contains: x}}}}
      - fault: {request: "PUT /head/{id}/video-streaming", status: 503, retry_after: 1s}
      - run: >-
          curl -sS -o /dev/null -w '%{http_code}' -X PUT -H "Authorization: Bearer $HEADS_TOKEN" "$HEADS_BASE_URL/head/$HEADS_HEAD_ID/video-streaming?videoStreaming=true"
        expect: {stdout: "503"}
      - requests: [{request: "PUT /head/${HEAD_ID}/video-streaming", status: 503, query: {videoStreaming: "true"}}]
        others: none
      - state: {$.videoStreaming: false, $.operationMode: oc, $.enableEvents: true}
        head: Lobby
      - fault: {request: any, status: 500, times: all}
      - fault: clear
      - wait: 10ms
      - {say: Hello, session: Ann}
      - {user: close, session: Ann}
      - {events: [start_conversation, end_conversation], session: Ann, within: 4s, stays: 20ms}
`)
	// ready is answered 202, which is 2xx
	c.passes(1, "s.yaml")
}

func TestArgumentsThatNoToolDeclaresFail(t *testing.T) {
	c := newTerminal(t)
	c.scenarios("url: "+runningShop(t), "\n  - {name: a, steps: [{call: order_status, with: {odrer: x}}]}\n  - {name: b, steps: [{call: order_stats}]}\n")
	r := c.ends(1, "test", "s.yaml")
	assert.Contains(t, r.stdout, `s.yaml:9:23: step 1, call: the tool order_status declares no parameter "odrer" (did you mean order?)`)
	assert.Contains(t, r.stdout, `s.yaml:10:23: step 1, call: the head has no tool "order_stats" (did you mean order_status?)`)
}

func TestABackEndThatDoesNotGetReadyTellsItsLastLines(t *testing.T) {
	c := newTerminal(t)
	for start, want := range map[string][]string{
		"start: \"echo the disk is full; exit 3\"":                              {": it has ended with exit status 3; see its last lines", "the disk is full"},
		"start: \"echo still warming up; exec sleep 100\", ready_within: 200ms": {" within 200ms", "still warming up"},
	} {
		c.scenarios(start, " [{name: a, steps: [{say: Hello}]}]")
		out := c.ends(1, "test", "s.yaml").stdout
		assert.Contains(t, out, "s.yaml:1:10: the back end does not get ready"+want[0])
		assert.Contains(t, out, "\n    "+want[1]+"\n")
	}
}

func TestAllFaultsOfAllFilesComeBeforeAnythingStarts(t *testing.T) {
	c := newTerminal(t)
	started := filepath.Join(c.dir, "started")
	good := "backend: {start: \"touch " + started + "; exec sleep 100\"}\n" + lobby + "scenarios:\n  - name: a\n    steps:\n"
	c.write("ok.yaml", good+"      - say: Hello\n")
	want := map[string]string{}
	add := func(name, text string, faults ...string) {
		c.write(name+".yaml", text)
		for _, fault := range faults {
			want[name+".yaml:"+fault] = name + ".yaml"
		}
	}
	step := func(name, step string, faults ...string) { add(name, good+"      - "+step+"\n", faults...) }
	step("action", "sya: Hello", `11:9: unknown key "sya" (did you mean say?); write one action in each step: say,`)
	step("two", "{say: a, wait: 1s}", `11:18: wait does not go with say; write one action in each step`)
	step("modifier", "{say: a, sesion: b}", `11:18: unknown key "sesion" (did you mean session?)`)
	step("event", "{say: a}\n      - events: [end_conversations]", `12:18: "end_conversations" is unknown (did you mean end_conversation?)`)
	step("early", "events: [start_conversation]", "11:9: there is no session yet")
	step("session", "{say: a, session: Ann}\n      - {events: [], session: An}", `12:31: no step has opened a session "An" (did you mean Ann?)`)
	step("head", "{say: a, head: Loby}", `11:24: there is no head "Loby" (did you mean Lobby?)`)
	step("route", "requests: [PUT /head/updaet]", `11:20: "PUT /head/updaet" is no operation of the service; the nearest one is PUT /head/update`)
	step("saved", "http: \"GET /x/${id}\"", "11:15: ${id} is not set or not yet saved here")
	step("variable", "say: \"${HEAD_IDD}\"", "11:14: ${HEAD_IDD} is not set or not yet saved here; did you mean ${HEAD_ID}?")
	step("unset", "say: \"${env:NO_SUCH_THING}\"", `11:14: ${env:NO_SUCH_THING} is not set in the environment`)
	step("shell", "say: \"${env:HEADS_TOKEN}\"", "11:14: ${env:HEADS_TOKEN} is refused")
	step("open", "say: \"${PORT\"", "11:14: a ${ has no }")
	step("duration", "wait: 2", `11:15: 2 is not a duration; write one such as 250ms`)
	step("re2", "{http: GET /x, expect: {body: {matches: \"(\"}}}", "11:49: error parsing regexp")
	step("path", "{http: GET /x, expect: {json: {a.b: 1}}}", `11:40: "a.b" is not a path; write one such as $.orders[0].status`)
	step("fault", "fault: {event: start_conversation, dulpicate: true}", `11:44: unknown key "dulpicate" (did you mean duplicate?)`)
	step("program", "run: [no-such-program]", `11:15: there is no program "no-such-program" in PATH`)
	step("line", "http: /x", `11:15: "/x" is not a method and a path`)
	step("retrying", "{say: a}\n      - events: [{event: start_conversation, outcome: retrying}, end_conversation]", "12:55: retrying can only be the last item")
	step("operator", "{http: GET /x, expect: {body: {contains: a, b: c}}}", `11:53: unknown key "b"; beside contains, matches, not, absent or equals there is no other key`)
	add("twice", good+"      - say: a\n  - {name: a, steps: [{say: a}]}\n", `12:12: the name "a" is that of line 9 too`)
	add("elsewhere", strings.Replace(good, "${BACKEND}/events", "https://crm.example.com/events", 1)+"      - say: a\n",
		"5:22: the webhook at https://crm.example.com is neither on this machine nor below the url of the back end")
	add("refused", strings.Replace(good, "[start_conversation, end_conversation]", "[]", 1)+"      - say: a\n", "5:")
	add("blocked", strings.Replace(good, "  - label: Lobby\n", "  - label: Lobby\n    voice: {provider: polly, id: Joanna}\n    streaming: true\n", 1)+"      - say: a\n", "4:5: apply would end with: ")
	add("key", strings.Replace(good, "label:", "lable:", 1)+"      - say: a\n", `4:5: unknown key "lable" (did you mean label?)`)
	add("flow", strings.Replace(good, `"${BACKEND}/events"`, `${BACKEND}/events`, 1)+"      - say: a\n", `4:3: did not find`)
	add("start", strings.Replace(good, "start: ", "starts: ", 1)+"      - say: a\n", `1:11: unknown key "starts" (did you mean start?)`)
	add("both", "backend: {start: x, url: y, token: z}\n"+lobby+"scenarios: [{name: a, steps: [{events: [{}]}]}]\n",
		"1:21: url does not go with start; write backend: {start: …}", "8:41: event is missing; use one of start_conversation")
	add("token", "backend: {start: x, token: z, ready: x}\n"+lobby+"scenarios: [{name: a}]\n",
		"1:21: token does not go with start; leave one of them out", `1:38: "x" is not a path; write one such as /health`, "8:13: there are no steps; add a list with the key steps")
	add("neither", "backend: {ready: /x}\n"+lobby+"scenarios: [{name: a, steps: [{fault: {request: any, event: any}}, {state: {$.a: 2026-08-31}}]}]\n",
		"1:10: write backend: {start: …}", "8:54: event does not go with request; leave one of them out", "8:82: 2026-08-31 is a date in YAML")
	add("missing", "backend: {start: [./shop]}\n"+lobby+"scenarios: [{name: a, steps: [{say: a}]}]\n", "1:19: the program ./shop can't be run: no such file or directory")
	add("running", "backend: {url: \"http://127.0.0.1:1\"}\n"+lobby+"scenarios: [{name: a, steps: [{backend: kill}]}]\n", "8:31: a back end that runs already (url) can't be killed")

	r := c.ends(2, append([]string{"test", "ok.yaml"}, slices.Collect(maps.Values(want))...)...)
	assert.Empty(t, r.stdout)
	assert.NoFileExists(t, started)
	for fault := range want {
		assert.Contains(t, r.stderr, "error: "+fault)
	}
	assert.Contains(t, r.stderr, `inside { } and [ ], write a text with a variable in quotes: "${NAME}"`)
	for line := range strings.Lines(r.stderr) {
		assert.Regexp(t, `^error: [a-z0-9]+\.yaml:\d+:\d+: `, line)
	}
}

func TestNothingOfTheShellReachesTheBackEndAndNothingTheService(t *testing.T) {
	var asked atomic.Int64
	service := serving(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	c := newTerminal(t).at(service.URL, "real-token").with("HEADS_SHARED_KEY=real-key", "HEADS_CHAT_URL=https://real.example.com", "HEADS_ODD=real-odd", "OTHER=kept")
	shopIn(t, c, "#!/usr/bin/env python3\n", "#!/usr/bin/env python3\nimport os; print(dict(os.environ), file=open(os.environ['SEEN'], 'w'))\n")
	c.write("s.yaml", strings.Replace(c.read("shop.test.yaml"), "env: {", "env: {SEEN: \""+c.dir+"/seen\", ", 1))
	c.ok("test", "s.yaml", "--only", "asks where")
	seen := c.read("seen")
	assert.NotContains(t, seen, "real")
	assert.NotContains(t, seen, service.URL)
	assert.Contains(t, seen, "'OTHER': 'kept'")
	for _, name := range []string{"PORT", "HEADS_BASE_URL", "HEADS_TOKEN", "HEADS_SHARED_KEY", "HEADS_HEAD_ID", "HEADS_CHAT_URL", "HEADS_STREAM_URL"} {
		assert.Contains(t, seen, "'"+name+"': ")
	}
	assert.Zero(t, asked.Load())
}

// forking is a back end with a child that would go on without it. It writes both ids.
const forking = `start: "trap '' TERM; sleep 1000 & echo $! > child; echo $$ > leader; exec python3 -m http.server -b 127.0.0.1 $PORT"`

// gone asserts that the processes whose ids are in files run no longer. One that nobody has
// waited for does not.
func (c *terminal) gone(names ...string) {
	for _, name := range names {
		pid := strings.TrimSpace(c.read(name))
		require.NotEmpty(c.t, pid)
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil {
			assert.Regexp(c.t, `\) [ZX] `, string(stat), name)
		}
	}
}

func TestNoProcessIsLeftAfterAFailure(t *testing.T) {
	c := newTerminal(t)
	c.scenarios(forking, " [{name: a, steps: [{http: GET /nowhere, within: 100ms}]}]\n")
	c.ends(1, "test", "s.yaml")
	c.gone("leader", "child")
}

func TestNoProcessIsLeftAfterCtrlC(t *testing.T) {
	t.Parallel()
	for name, presses := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			c := newTerminal(t)
			c.scenarios(forking, " [{name: a, steps: [{run: touch up}, {wait: 50s}]}, {name: b, steps: [{wait: 50s}]}]\n")
			cmd := c.command(t.Context(), "test", "s.yaml", "-j", "1")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(c.dir, "up")); return err == nil }, 20*time.Second, 10*time.Millisecond)
			for range presses {
				require.NoError(t, cmd.Process.Signal(os.Interrupt))
			}
			assert.Equal(t, 130, exitCode(t, cmd.Wait()), stderr.String())
			if presses == 1 { // touch may not have ended
				for _, part := range []string{"failed s.yaml:8 a", `: step (1, run|2, wait): interrupted\n`, "skipped s.yaml:8 b", `\n0 passed, 1 failed, 1 skipped\n`} {
					assert.Regexp(t, part, stdout.String())
				}
			}
			c.gone("leader", "child")
		})
	}
}

func TestScenariosOfOneAddressTakeTurns(t *testing.T) {
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	service := need(heads.New("http://"+address, "known-token"))(t)
	errs := make(chan error, 100)
	shop := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := service.Heads.Get(r.Context(), r.URL.Query().Get("head"))
		errs <- err
	})
	c := newTerminal(t)
	c.scenarios(fmt.Sprintf("url: %q, service: %q, token: known-token", shop.URL, address),
		" [{name: a, steps: [{http: \"POST /?head=${HEAD_ID}\"}, {requests: [\"GET /head/{id}\"], others: none}]}]")
	c.passes(6, "s.yaml", "--repeat", "6")
	for range 6 {
		assert.NoError(t, <-errs)
	}
}

func TestScenariosAreListedAndChosen(t *testing.T) {
	c := newTerminal(t)
	shopIn(t, c)
	c.write("deep/er/b.test.yml", "backend: {url: \"http://127.0.0.1:1\"}\n"+lobby+"scenarios: [{name: b, steps: [{say: a}]}]\n", "deep/other.yaml", "not a scenario")
	assert.True(t, strings.HasPrefix(c.ok("test", ".", "shop.test.yaml", "--dry-run", "--only", "b"), "deep/er/b.test.yml:8 b\n"))
	assert.Equal(t, "shop.test.yaml:22 a user asks where an order is\n", c.ok("test", ".", "--dry-run", "--only", ":22 "))
	c.fails(2, "--only no-such: no scenario has this", "test", ".", "--only", "no-such")
	c.write("faulty.yaml", "7", "empty/x", "")
	assert.Regexp(t, `(?s)nowhere can't be read.*faulty\.yaml:1:1: this is a number`, c.ends(2, "test", "nowhere", "faulty.yaml").stderr)
	c.fails(2, "empty: there is no *.test.yaml", "test", "empty")
	c.fails(2, ".xml, .json or .html", "test", ".", "--report", "r.txt")
	c.fails(2, "wants files of scenarios", "test")
}

func TestTheSameSeedMakesTheSameIDs(t *testing.T) {
	c := newTerminal(t)
	c.scenarios("url: "+runningShop(t), " [{name: a, steps: [{say: a}, {run: \"echo ${HEAD_ID} ${SESSION_ID} $HEADS_TOKEN $HEADS_SHARED_KEY >> out\"}]}]\n")
	c.ok("test", "s.yaml", "--seed", "7")
	c.ok("test", "s.yaml", "--seed", "7", "--repeat", "2", "-j", "1")
	c.ok("test", "s.yaml")
	out := lines(c.read("out"))
	assert.Equal(t, out[0], out[1], "the first repeat is as without")
	assert.NotEqual(t, out[1], out[2])
	assert.NotEqual(t, out[0], out[3])
	assert.Regexp(t, `^[0-9a-f-]{36} [0-9a-f-]{36} \w{32} \w{32}$`, out[0])
}

func TestResultsInJSONAndReports(t *testing.T) {
	c := newTerminal(t).with("KEY_OF_SHOP=very-secret-key", "SHOP_TOKEN=very-secret-token")
	c.scenarios("url: "+runningShop(t)+", shared_key: {env: KEY_OF_SHOP}", `
  - {name: good & <well>, steps: [{say: a}]}
  - {name: bad, steps: [{say: a}, {events: [start_conversation]}, {run: "echo very-secret-key ${env:SHOP_TOKEN}", expect: {stdout: x}, within: 2s}]}
`)
	r := c.ends(1, "test", "s.yaml", "--json", "-j", "1", "--seed", "5", "--report", "r.xml", "--report", "r.json", "--report", "r.html")
	out := lines(r.stdout)
	require.Len(t, out, 3)
	good, bad, summary := parse[object](t, out[0]), parse[object](t, out[1]), parse[object](t, out[2])
	delete(good, "duration_ms")
	assert.Equal(t, object{"type": "result", "file": "s.yaml", "line": 9.0, "name": "good & <well>", "outcome": "passed"}, good)
	assert.Subset(t, bad, object{"outcome": "failed", "step": object{"number": 3.0, "action": "run", "line": 10.0, "column": 67.0}, "requests": []any{}, "output": []any{},
		"problem": "stdout is not as expected within 2s", "expected": `"x"`, "actual": `"[redacted] [redacted]"`})
	assert.Len(t, bad["deliveries"], 1)
	assert.Subset(t, summary, object{"counts": object{"passed": 1.0, "failed": 1.0, "skipped": 0.0}, "seed": 5.0})

	suites := need(junit.IngestFile(filepath.Join(c.dir, "r.xml")))(t)
	require.Len(t, suites, 1)
	assert.Equal(t, []any{"s.yaml", 2, 1}, []any{suites[0].Name, suites[0].Totals.Tests, suites[0].Totals.Failed})
	failed := suites[0].Tests[1]
	assert.Equal(t, []any{junit.StatusFailed, "bad", "s", "stdout is not as expected within 2s"}, []any{failed.Status, failed.Name, failed.Classname, failed.Message})
	assert.Equal(t, []string{"s.yaml", "10"}, []string{failed.Properties["file"], failed.Properties["line"]})
	assert.Contains(t, failed.Error.Error(), "s.yaml:10:67: step 3, run: stdout is not as expected")
	assert.Contains(t, failed.Error.Error(), "again: headsctl test s.yaml --only 's.yaml:10 ' --seed 5")

	report := parse[object](t, c.read("r.json"))
	assert.Len(t, report["results"], 2)
	assert.Equal(t, summary["counts"], report["counts"])
	assert.Contains(t, c.read("r.html"), "good &amp; &lt;well&gt;")
	assert.NotContains(t, r.stdout+c.read("r.xml")+c.read("r.json")+c.read("r.html"), "very-secret")
}

func TestHeadsComeFromAFileAnEnvironmentOrASeed(t *testing.T) {
	const desk = "1c42cf85-0000-4000-8000-000000000000"
	c := newTerminal(t)
	c.write("heads.yaml", `heads:
  - id: `+someID+`
    label: Lobby
    set: {greetings: "Visit https://app.example.com"}
    webhooks: [{url: "https://app.example.com/events", events: [start_conversation]}]
  - {id: `+desk+`, label: Desk, webhooks: [{url: "https://other.example.com/e", events: [start_conversation]}]}
`)
	c.write("environments.yaml", `environments:
  staging: {base_url: {env: NOT_SET}, token: {env: HEADS_NOT_SET}, values: {app: "https://staging.example.com"}}
  production: {base_url: {env: NOT_SET}, token: {env: HEADS_NOT_SET}, values: {app: "https://app.example.com"}}
heads:
  - id: {staging: `+someID+`, production: `+desk+`}
    label: Lobby
    set: {greetings: "Visit ${app}"}
    webhooks: [{url: "${app}/events", events: [start_conversation]}]
`)
	c.write("seed.json", `{"heads":[{"id":"`+someID+`","name":"Lobby","operationMode":"oc","enableEvents":true,"greetings":"Visit http://127"}],`+
		`"registrations":[{"headId":"`+someID+`","webhookUrl":"${BACKEND}/events","startConversation":true}]}`)
	c.write("faulty.json", strings.Replace(c.read("seed.json"), "operationMode", "opMode", 1))
	shop := runningShop(t)
	for source, fault := range map[string]string{
		`heads: {file: ../heads.yaml, replace: {"https://app.example.com": "${BACKEND}"}, only: [Lobby]}`:           "",
		`heads: {file: ../heads.yaml, replace: {"https://app.example.com": "${BACKEND}"}}`:                          "2:8: the webhook at https://other.example.com is neither",
		`heads: {file: ../heads.yaml, env: staging}`:                                                                "2:15:",
		`heads: {file: ../environments.yaml, env: staging, replace: {"https://staging.example.com": "${BACKEND}"}}`: "",
		`heads: {file: ../environments.yaml, replace: {"https://staging.example.com": "${BACKEND}"}}`:               "2:15: environments.yaml has environments; add env, one of staging, production",
		`heads: {file: ../environments.yaml, env: stagign, replace: {"https://staging.example.com": "${BACKEND}"}}`: "(did you mean staging?)",
		`seed: ../seed.json`:   "",
		`seed: ../faulty.json`: "2:7: the seed ../faulty.json: heads[0]",
	} {
		c.write("test/s.yaml", fmt.Sprintf("backend: {url: %q}\n%s\n", shop, source)+`scenarios:
  - name: a
    steps:
      - {state: {$.id: `+someID+`, $.greetings: {matches: "^Visit http://127"}}, head: Lobby}
      - {say: Hello, head: Lobby}
      - events: [start_conversation]
`)
		if fault == "" {
			c.ok("test", "test/s.yaml")
		} else {
			c.fails(2, fault, "test", "test/s.yaml")
		}
	}
}

var (
	saved     = regexp.MustCompile("(?s)[Ss]ave it as\\s`([a-z.]+)`:\n\n```(?:python|yaml)\n(.*?)```")
	shellRuns = regexp.MustCompile("(?s)```sh\n(.*?)```\n.*?```text\n(.*?)```")
	changing  = regexp.MustCompile(`(?m)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9.]+(µs|ms|s)$`)
)

// The outputs are compared, ids and times apart.
func TestThePageOfScenariosRuns(t *testing.T) {
	page, c := contents(t, "../../docs/scenarios.md"), newTerminal(t)
	files := saved.FindAllStringSubmatch(page, -1)
	require.Len(t, files, 2)
	for _, file := range files {
		c.write(file[1], file[2])
	}
	plain := func(text string) string { return changing.ReplaceAllString(text, "…") }
	runs := shellRuns.FindAllStringSubmatch(page, -1)
	require.Len(t, runs, 2)
	for _, run := range runs {
		assert.Equal(t, plain(run[2]), plain(c.shell(run[1])))
	}
}

// warmingUp is a back end that listens at once and answers 503 for a second.
const warmingUp = `import os, time
from http.server import BaseHTTPRequestHandler, HTTPServer
began = time.monotonic()
class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200 if time.monotonic() - began > 1 else 503)
        self.end_headers()
    do_POST = do_GET
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
`

func TestWhatFellDueWhileTheBackEndGetsReadyIsSentThen(t *testing.T) {
	c := newTerminal(t)
	c.write("shop.py", warmingUp, "s.yaml", "backend: {start: [python3, shop.py], ready: /}\nservice: {retry: [700ms, 20s]}\n"+lobby+`scenarios:
  - name: a
    steps:
      - backend: kill
      - say: Hello
      - events: [{event: start_conversation, outcome: retrying, answers: [0]}]
      - backend: start
      - events: [{event: start_conversation, answers: [0, 200], within: 500ms}]
      - backend: restart
      - user: close
      - events: [{event: end_conversation, answers: [200]}]
`)
	c.ok("test", "s.yaml")
}

func TestWhatAnswersSayIsNoCommandOfAShell(t *testing.T) {
	shop := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"id":"$(touch stolen); touch stolen","path":"/nowhere"}`)
	})
	c := newTerminal(t).with("GREETING=hello")
	c.scenarios("url: "+shop.URL, `
  - name: a
    steps:
      - {http: GET /, save: {id: $.id, PATH: $.path}}
      - {run: 'echo "$id ${HEAD_ID} ${PORT} ${BACKEND} ${env:GREETING}"', expect: {stdout: "$(touch stolen); touch stolen ${HEAD_ID} ${PORT} ${BACKEND} hello"}}
      - {run: [echo, "${id}"], expect: {stdout: "${id}"}}
      - {say: Hello}
      - {run: 'echo ${SESSION_ID}', expect: {stdout: "${SESSION_ID}"}}
`)
	c.ok("test", "s.yaml")
	c.write("s.yaml", strings.Replace(c.read("s.yaml"), `echo "$id `, `echo "${id} `, 1))
	c.fails(2, "s.yaml:12:15: ${id} is from an answer, in which the shell would read commands; write the words as a list", "test", "s.yaml")
	assert.NoFileExists(t, filepath.Join(c.dir, "stolen"))
}

func TestAHeadsFileOfAScenarioShowsNothingOfOtherFiles(t *testing.T) {
	c := newTerminal(t)
	c.write("s.yaml", "backend: {url: \"http://127.0.0.1:1\"}\nheads: {file: secret}\nscenarios: [{name: a, steps: [{say: Hello}]}]\n")
	for _, text := range []string{"canary", "canary: canary\n", "- canary\n", "root:canary:0\nb: : canary", "'canary", "canary: 1\ncanary: 2\n", "&canary a: *canary", "\x00canary", "%canary", "a: !canary b\n"} {
		c.write("secret", text)
		r := c.ends(2, "test", "s.yaml")
		assert.Contains(t, r.stderr, "s.yaml:2:15: secret")
		assert.NotContains(t, r.stdout+r.stderr, "canary", text)
	}
}

func TestAllowHostLetsAScenarioCallARealHost(t *testing.T) {
	c := newTerminal(t)
	shop := runningShop(t)
	c.write("s.yaml", fmt.Sprintf("backend: {url: %q}\n%s", shop, strings.ReplaceAll(lobby, "${BACKEND}", "https://Shop.example"))+
		`scenarios: [{name: a, steps: [{call: order_status, with: {order: "7"}, expect: {message: order_status}}, {say: Hello}, {events: [start_conversation]}]}]`)
	for _, args := range [][]string{{"test", "s.yaml"}, {"test", "s.yaml", "--allow-host", "other.example"}} {
		r := c.ends(2, args...)
		assert.Contains(t, r.stderr, "s.yaml:7:74: the tool at https://Shop.example is neither on this machine nor below the url of the back end")
		assert.Contains(t, r.stderr, "or allow its host with --allow-host")
	}
	c.ok("test", "s.yaml", "--allow-host", "shop.EXAMPLE="+shop)
	c.ok("test", "s.yaml", "--allow-host", "*="+shop)
	c.fails(2, `--allow-host: "https://shop.example" is not a host`, "test", "s.yaml", "--allow-host", "https://shop.example")
	for _, again := range []string{"A.example=http://127.0.0.1:1", "a.example=http://127.0.0.1:1"} {
		c.fails(2, "given twice", "test", "s.yaml", "--allow-host", "a.example", "--allow-host", again)
	}
}
