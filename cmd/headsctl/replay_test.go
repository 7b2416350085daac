package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

type recorded struct {
	id, path, kind, name, head, session, body, signature string
	status                                               int
	acked                                                bool
	reply                                                string // of a tool, in JSON
}

func (r recorded) String() string {
	headers := object{"Content-Type": "application/json"}
	line := object{
		"type": r.kind, "id": r.id, "at": "2026-08-31T06:56:30Z", "path": r.path, "headers": headers,
		"body": r.body, "head_id": r.head, "session_id": r.session, "acked": r.acked, strings.TrimSuffix(r.kind, "_call"): r.name,
		"answer": object{"status": r.status, "content_type": "application/json", "body": r.reply, "duration_ms": 1, "by": "back end"},
	}
	if r.signature != "" {
		headers["X-Signature-256"], headers["User-Agent"], line["signature"] = r.signature, "heads/1", "right"
	}
	text, _ := json.Marshal(line)
	return string(text) + "\n"
}

const recordingHeader = `{"type":"recording","version":1,"at":"2026-08-31T06:56:00Z"}` + "\n"

// recordedEvent is an event that was signed with the key "k".
func recordedEvent(id, eventType, head, session string, status int) recorded {
	body := " " + eventOf(eventType, head, session) + "\n"
	return recorded{id: id, path: "/events", kind: "event", name: eventType, head: head, session: session, body: body, signature: heads.Sign([]byte(body), "k"), status: status}
}

func recordedCall(id, tool, head, session, reply string) recorded {
	return recorded{id: id, path: "/tools/" + tool, kind: "tool_call", name: tool, head: head, session: session,
		body: callOf(`"order":"7"`, head, session), status: 200, reply: reply}
}

// recording writes a recording, r.jsonl.
func (c *terminal) recording(lines ...recorded) {
	text := recordingHeader
	for _, line := range lines {
		text += line.String()
	}
	c.write("r.jsonl", text)
}

// replying is a back end that accepts everything and answers as tools do.
func replying(w http.ResponseWriter, _ seenRequest) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"message":"It shipped."}`)
}

func TestReplaySendsTheSameBytesInOrder(t *testing.T) {
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		if strings.Contains(r.body, "timeout_conversation") {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			replying(w, r)
		}
	})
	c := newTerminal(t).with("HEADS_PATH_TOKEN=the token/1")
	entries := []recorded{
		recordedEvent("a", "start_conversation", "h1", "s1", 503), recordedCall("b", "order_status", "h1", "s1", `{"message":"x"}`),
		recordedEvent("c", "timeout_conversation", "h2", "s2", 200),
	}
	entries[1].path = "/tools/[redacted]/order_status?k=[redacted]&%41"
	c.recording(entries...)
	r := c.ends(1, "replay", "r.jsonl", "--to", b.URL+"/base/")
	assert.Equal(t, `accepted event start_conversation h1 s1 → 200 (recorded 503)
accepted tool order_status h1 s1 → 200 (recorded 200)
refused event timeout_conversation h2 s2 → 503 (recorded 200)
2 accepted, 1 refused
`, r.stdout)
	require.Len(t, b.requests(), 3)
	for i, want := range entries {
		got := b.requests()[i]
		assert.Equal(t, want.body, got.body)
		got.header.Del("Content-Length")
		header := http.Header{"Content-Type": {"application/json"}}
		if want.signature != "" {
			header["X-Signature-256"], header["User-Agent"] = []string{want.signature}, []string{"heads/1"}
		}
		assert.Equal(t, header, got.header)
	}
	assert.Equal(t, "/base/events", b.requests()[0].path)
	assert.Equal(t, "/base/tools/the%20token%2F1/order_status?k=the+token%2F1&%41", b.requests()[1].path)
	r = c.ends(0, "replay", "r.jsonl", "--to", b.URL, "--json", "--only", "h1")
	out := lines(r.stdout)
	require.Len(t, out, 3)
	line := parse[object](t, out[0])
	delete(line, "duration_ms")
	assert.Equal(t, object{"type": "result", "kind": "event", "id": "a", "name": "start_conversation", "head_id": "h1", "session_id": "s1",
		"outcome": "accepted", "status": 200.0, "recorded_status": 503.0}, line)
	assert.JSONEq(t, `{"type":"summary","counts":{"accepted":2,"refused":0}}`, out[2])
	assert.NotContains(t, r.stdout+r.stderr, "the token")
}

func TestReplaySendsWhatIsNamed(t *testing.T) {
	b, c := newBackEnd(t, replying), newTerminal(t)
	acked, kept := recordedEvent("d", "end_conversation", "h2", "s3", 200), recordedEvent("e", "end_conversation", "h2", "s4", 200)
	acked.acked, kept.acked = true, true
	redelivered, lost := recordedEvent("f", "inactivity_warning", "h3", "s5", 503), recordedEvent("h", "inactivity_warning", "h3", "s6", 500)
	again, lostAgain := redelivered, lost
	again.id, again.status, lostAgain.id = "g", 200, "i"
	c.write("r.jsonl", recordingHeader+recordedEvent("a", "start_conversation", "h1", "s1", 200).String()+recordedCall("b", "order_status", "h1", "s2", `{"message":"x"}`).String()+
		acked.String()+kept.String()+`{"type":"outcome","entry":"d","delivered":true,"attempts":1,"status":200,"at":"2026-08-31T06:56:30Z"}`+"\n"+
		redelivered.String()+again.String()+lost.String()+lostAgain.String())
	for only, want := range map[string]string{
		"start_conversation": "a", "order_status": "b", "h2": "de", "s1": "a", "s3 order_status": "bd", "undelivered": "eh", "undelivered s1": "aeh", "": "abdefghi",
	} {
		args, sent := []string{"replay", "r.jsonl", "--to", b.URL, "--json"}, ""
		for _, word := range strings.Fields(only) {
			args = append(args, "--only", word)
		}
		for line := range strings.Lines(c.ok(args...)) {
			if id, ok := parse[object](t, line)["id"].(string); ok {
				sent += id
			}
		}
		assert.Equal(t, want, sent, only)
	}
	before := len(b.requests())
	c.fails(2, "has nothing of --only s9", "replay", "r.jsonl", "--to", b.URL, "--only", "s9")
	assert.Len(t, b.requests(), before)
}

func TestReplayRefusesToolRepliesThatBreakTheContract(t *testing.T) {
	replies := make(chan [3]string, 1)
	b := newBackEnd(t, func(w http.ResponseWriter, _ seenRequest) {
		reply := <-replies
		w.Header().Set("Content-Type", reply[0])
		_, _ = io.WriteString(w, reply[1])
	})
	c := newTerminal(t)
	c.recording(recordedCall("a", "order_status", "h1", "s1", `{"message":"x"}`))
	for _, reply := range [][3]string{
		{"text/plain", `{"message":"x"}`, "content type"}, {"application/json", `[]`, "not a JSON object"},
		{"application/json", `{"result":"x"}`, "no message"}, {"application/json", `{"message":7}`, "not a string"},
	} {
		replies <- reply
		assert.Regexp(t, `^refused tool order_status h1 s1 → 200 \(recorded 200; .*`+reply[2], c.ends(1, "replay", "r.jsonl", "--to", b.URL).stdout)
	}
	b.Close()
	assert.Contains(t, c.ends(1, "replay", "r.jsonl", "--to", b.URL).stdout, "refused tool order_status h1 s1 → no connection (recorded 200)\n")
}

func TestReplayNamesAndLeavesOutBadLines(t *testing.T) {
	b, c := newBackEnd(t, replying), newTerminal(t)
	good := recordedEvent("a", "start_conversation", "h1", "s1", 200).String()
	c.write("r.jsonl", recordingHeader+good+good+"{]\n"+`{"type":"other"}`+"\n"+`{"type":"event","id":"b","headers":{"Cookie":"canary"}}`+"\n"+
		`{"type":"outcome","entry":"zzz"}`+"\n"+`{"type":"event","id":7}`+"\n")
	r := c.ends(0, "replay", "r.jsonl", "--to", b.URL)
	for _, want := range []string{
		"r.jsonl:3: the line has the id of line 2", "r.jsonl:4: the line is not a JSON object", `r.jsonl:5: the line has the type "other"`,
		"r.jsonl:6: the line has no at", "r.jsonl:6: the line has the path", "r.jsonl:6: the line wants one of body", "r.jsonl:6: the line has no event",
		`r.jsonl:6: the line has the header "Cookie"`, "r.jsonl:6: the line has the answer's status 0", `r.jsonl:7: the line has the entry "zzz"`,
		"r.jsonl:8: the line has a member of another type: id is a JSON number",
	} {
		assert.Contains(t, "\n"+r.stderr, "\n"+want)
	}
	assert.NotContains(t, r.stderr, "canary")
	assert.Len(t, b.requests(), 1)

	c.write("many.jsonl", recordingHeader+good+strings.Repeat("{]\n", 50), "cut.jsonl", recordingHeader+good+good[:len(good)/2],
		"whole.jsonl", recordingHeader+strings.TrimSpace(good))
	r = c.run("replay", "many.jsonl", "--to", b.URL)
	assert.Equal(t, 20, strings.Count(r.stderr, "it is left out"))
	assert.Contains(t, r.stderr, "many.jsonl:23: 30 faults more\n")
	assert.Contains(t, c.ends(0, "replay", "cut.jsonl", "--to", b.URL).stderr, "cut.jsonl:3: the last line was not written to its end and is ignored\n")
	assert.Len(t, b.requests(), 3)
	assert.Contains(t, c.ok("replay", "whole.jsonl", "--to", b.URL), "1 accepted, 0 refused")

	c.write("empty.jsonl", recordingHeader+strings.Replace(good, `"/events"`, `"@192.0.2.1/"`, 1), "notes.txt", "buy milk\n",
		"secret.jsonl", recordingHeader+strings.Replace(good, `"/events"`, `"/[redacted]/e"`, 1))
	r = c.ends(2, "replay", "empty.jsonl", "--to", b.URL)
	assert.Equal(t, "empty.jsonl:2: the line has the path \"@192.0.2.1/\"; a path begins with /; it is left out\nerror: empty.jsonl holds no event and no tool call\n", r.stderr)
	for text, args := range map[string][]string{
		"--resign-unverified wants --resign": {"whole.jsonl", "--resign-unverified"}, "set HEADS_PATH_TOKEN": {"secret.jsonl"},
		"notes.txt:1: the line is not a rec": {"notes.txt"}, "nowhere can't be read": {"nowhere"}, "did you mean 1x": {"whole.jsonl", "--speed", "2x"},
		"add --yes": {"whole.jsonl", "--to", "http://192.0.2.1"}, "no shared key": {"whole.jsonl", "--resign"},
		"is not an http or https URL": {"whole.jsonl", "--to", "localhost"}, "wants --to": {"whole.jsonl", "--to", ""},
		"headsctl replay wants a recording, not": {},
	} {
		if !slices.Contains(args, "--to") {
			args = append(args, "--to", b.URL)
		}
		c.fails(2, text, append([]string{"replay"}, args...)...)
	}
	assert.Len(t, b.requests(), 4)
}

func TestResignSignsOnlyWhatWasVerified(t *testing.T) {
	b := newBackEnd(t, replying)
	c := newTerminal(t).with("HEADS_SHARED_KEY=k")
	unverified := strings.Replace(recordedEvent("b", "end_conversation", "h1", "s1", 200).String(), `"signature":"right"`, `"signature":"unverified"`, 1)
	c.write("r.jsonl", recordingHeader+recordedEvent("a", "start_conversation", "h1", "s1", 200).String()+unverified+
		strings.NewReplacer(`"signature":"unverified"`, `"signature":""`, `"id":"b"`, `"id":"c"`).Replace(unverified))
	r := c.ends(2, "replay", "r.jsonl", "--to", b.URL, "--resign")
	for _, line := range []string{"3", "4"} {
		assert.Contains(t, r.stderr, "r.jsonl:"+line+": the event was not verified when it was recorded, so anyone may have sent it; leave it out with --only, or add --resign-unverified")
	}
	assert.Empty(t, b.requests())
	c.ok("replay", "r.jsonl", "--to", b.URL, "--resign", "--only", "start_conversation")
	c.ok("replay", "r.jsonl", "--to", b.URL, "--resign", "--resign-unverified")
	assert.Len(t, b.requests(), 4)
}

func TestRecordedNamesAreTextInAScenario(t *testing.T) {
	c := newTerminal(t).with("CANARY=canary")
	call := recordedCall("a", "${env:CANARY}", "h1", "s1", `{"message":"${env:CANARY}"}`)
	call.body = callOf(`"${env:CANARY}":"${env:CANARY}"`, "h1", "s1")
	c.recording(call)
	out := c.ok("replay", "r.jsonl", "--to", "http://127.0.0.1:1", "--as-test")
	assert.NotContains(t, strings.ReplaceAll(out, "$${env:CANARY}", ""), "${env")
	assert.Equal(t, 9, strings.Count(out, "$${env:CANARY}"), out) // tool: name, description, url; parameter: name, description; call, with: 2, message
}

// The receiver checks signatures and ages, and remembers events.
func TestResignDefeatsAgeAndMemory(t *testing.T) {
	var handled atomic.Int64
	server := serving(t, need(heads.NewEventHandler(heads.SharedKeys("k"), func(context.Context, *heads.Event) error {
		handled.Add(1)
		return nil
	}))(t).ServeHTTP)
	c := newTerminal(t).with("HEADS_SHARED_KEY=k")
	event := recordedEvent("a", "inactivity_warning", "h1", "s1", 200)
	again, other := event, event
	again.id, other.id = "c", "b"
	other.body = strings.Replace(other.body, "06:56:30", "06:56:31", 1) // another warning in the same session
	c.recording(event, other, again)
	r := c.ends(1, "replay", "r.jsonl", "--to", server.URL)
	assert.Contains(t, r.stdout, "0 accepted, 3 refused", "they are too old")
	assert.Contains(t, r.stderr, "3 events are over 24 h old")
	assert.Zero(t, handled.Load())
	assert.Empty(t, c.ends(0, "replay", "r.jsonl", "--to", server.URL, "--resign").stderr)
	assert.EqualValues(t, 2, handled.Load(), "the redelivery stays one, the second warning does not become one")
	c.ok("replay", "r.jsonl", "--to", server.URL, "--resign")
}

func TestReplayKeepsTheRecordedPace(t *testing.T) {
	c := newTerminal(t)
	later := strings.Replace(recordedEvent("b", "end_conversation", "h1", "s1", 200).String(), "06:56:30Z", "06:56:33Z", 1)
	c.write("r.jsonl", recordingHeader+recordedEvent("a", "start_conversation", "h1", "s1", 200).String()+later)
	started := time.Now()
	c.ok("replay", "r.jsonl", "--to", newBackEnd(t, replying).URL, "--speed", "10x")
	assert.GreaterOrEqual(t, time.Since(started), 300*time.Millisecond)
}

func TestARecordingBecomesAScenario(t *testing.T) {
	c := newTerminal(t)
	failing, token := recordedCall("h", "order_status", "h2", "s2", ""), recordedEvent("j", "start_conversation", "h2", "s3", 500)
	failing.status, token.path = 500, "/[redacted]"
	c.recording(recordedEvent("a", "start_conversation", someID, "s1", 503), recordedEvent("b", "start_conversation", someID, "s1", 200), // again
		recordedCall("c", "order_status", someID, "s1", `{"message":"${1} shipped."}`), recordedEvent("d", "inactivity_warning", someID, "s1", 200),
		recordedEvent("e", "timeout_conversation", someID, "s1", 200), recordedEvent("f", "end_conversation", someID, "s1", 500),
		recordedCall("g", "order_status", "h2", "s2", `{"result":1}`), failing, recordedEvent("i", "moved_on", "h2", "s2", 200), token)
	r := c.ends(0, "replay", "r.jsonl", "--to", "http://127.0.0.1:8080/base", "--as-test")
	assert.Equal(t, "1 request is not in the scenario: events of types that no user causes, and calls of tools whose names are redacted\n"+
		"set PATH_TOKEN to what is redacted in the paths, for headsctl test\n", r.stderr)
	assert.YAMLEq(t, `
backend: {url: "http://127.0.0.1:8080/base", shared_key: {env: HEADS_SHARED_KEY}}
heads:
  - id: `+someID+`
    label: head-1
    webhooks: [{url: "${BACKEND}/events", events: [start_conversation, inactivity_warning, timeout_conversation, end_conversation]}]
    tools:
      - {name: order_status, description: Recorded calls of order_status., url: "${BACKEND}/tools/order_status",
         parameters: [{name: order, type: string, description: Recorded argument order.}]}
  - label: head-2
    webhooks: [{url: "${BACKEND}/${env:PATH_TOKEN}", events: [start_conversation]}]
    tools:
      - {name: order_status, description: Recorded calls of order_status., url: "${BACKEND}/tools/order_status",
         parameters: [{name: order, type: string, description: Recorded argument order.}]}
scenarios:
  - name: as recorded in r.jsonl
    steps:
      - {say: Hello, head: head-1, session: session-1}
      - {events: [start_conversation]}
      - {call: order_status, head: head-1, session: session-1, with: {order: "7"}, expect: {message: "$${1} shipped."}}
      - {user: inactive, head: head-1, session: session-1}
      - {events: [inactivity_warning]}
      - {user: timeout, head: head-1, session: session-1}
      - {events: [timeout_conversation, {event: end_conversation, outcome: failed}]}
      - {call: order_status, head: head-2, session: session-2, with: {order: "7"}, expect: {problem: {matches: .}}}
      - {call: order_status, head: head-2, session: session-2, with: {order: "7"}, expect: {status: 500}}
      - {say: Hello, head: head-2, session: session-3}
      - {events: [{event: start_conversation, outcome: failed}]}
`, r.stdout)
}

// What the service sends is recorded, becomes a scenario that the back end passes, and
// that a bug in it fails.
func TestARecordedSessionIsAScenarioThatABugFails(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	var reply atomic.Value
	reply.Store(`{"message":"Order 7 has shipped."}`)
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		if strings.Contains(r.body, `"inactivity_warning"`) && refuse.Swap(false) {
			w.WriteHeader(http.StatusServiceUnavailable) // the service delivers it again
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply.Load().(string))
	})
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl")
	e := headstest.NewEmulator(headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule(1))
	defer e.Close()
	head := e.AddHead(headstest.Head{OperationMode: heads.OperationModeOC, EnableEvents: true})
	_, _, err := e.AddWebhook(head, l.url+"/events", heads.EventStartConversation, heads.EventInactivityWarning, heads.EventTimeoutConversation, heads.EventEndConversation)
	require.NoError(t, err)
	require.NoError(t, e.AddTool(head, json.RawMessage(`{"name":"order_status","description":"Tells where an order is.","url":"`+l.url+`/tools/order_status",`+
		`"parameters":[{"name":"order","type":"string","description":"Its number."}]}`)))
	s := e.StartSession(head)
	require.NoError(t, s.UserMessage("Hi"))
	l.line("start_conversation")
	need(s.CallTool(t.Context(), "order_status", object{"order": "7"}))(t)
	require.NoError(t, s.Inactive())
	l.line("→ 503")
	l.line("inactivity_warning")
	require.NoError(t, s.Timeout())
	l.line("end_conversation")
	require.Equal(t, 0, l.end(os.Interrupt))

	c.write("r.test.yaml", c.ok("replay", "r.jsonl", "--to", b.URL, "--as-test"))
	assert.Len(t, c.recorded("r.jsonl", "event"), 5, "a redelivery among them")
	c = c.with("HEADS_SHARED_KEY=key-of-the-scenario")
	refuse.Store(true)
	assert.Contains(t, c.ok("test", "r.test.yaml"), "1 passed, 0 failed")
	reply.Store(`{"message":"There is no order 7."}`)
	assert.Contains(t, c.ends(1, "test", "r.test.yaml").stdout, "There is no order 7.")
}
