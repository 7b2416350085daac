package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

// listening is a listen that runs as a process.
type listening struct {
	first  string // line
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
	lines  chan string // of stdout, behind the first one; closed with it
	rest   []string    // the lines that end has read
}

// listen starts headsctl listen on a free port.
func (c *terminal) listen(args ...string) *listening {
	c.t.Helper()
	l := &listening{t: c.t, stderr: new(bytes.Buffer), lines: make(chan string, 10_000)}
	l.cmd = c.command(c.t.Context(), append([]string{"listen", "--addr", "127.0.0.1:0"}, args...)...)
	l.cmd.Stderr = l.stderr
	stdout, err := l.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, l.cmd.Start())
	out := bufio.NewReader(stdout)
	first, err := out.ReadString('\n')
	require.NoError(c.t, err, "it listens")
	first = strings.TrimSuffix(first, "\n")
	l.first = first
	if strings.HasPrefix(first, "{") {
		var line struct{ Type, URL string }
		require.NoError(c.t, json.Unmarshal([]byte(first), &line))
		assert.Equal(c.t, "listening", line.Type)
		l.url = line.URL
	} else {
		l.url, _, _ = strings.Cut(strings.TrimPrefix(first, "listening on "), ",")
	}
	go func() {
		defer close(l.lines)
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				return
			}
			l.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	c.t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	return l
}

// line returns the next line that holds a text.
func (l *listening) line(text string) string {
	l.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case line, ok := <-l.lines:
			require.True(l.t, ok, "no line with %q", text)
			if strings.Contains(line, text) {
				return line
			}
		case <-deadline.C:
			require.Fail(l.t, "no line with "+text)
		}
	}
}

// end sends a signal and returns the exit code, when stdout has ended.
func (l *listening) end(signal os.Signal) int {
	l.t.Helper()
	require.NoError(l.t, l.cmd.Process.Signal(signal))
	for line := range l.lines {
		l.rest = append(l.rest, line)
	}
	return exitCode(l.t, l.cmd.Wait())
}

// post sends a body as the service does.
func (l *listening) post(path, body string, header ...string) (status int, answer string) {
	l.t.Helper()
	r, err := http.NewRequest(http.MethodPost, l.url+path, strings.NewReader(body))
	require.NoError(l.t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(l.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(l.t, err)
	return response.StatusCode, string(text)
}

// eventOf is the body of an event, in the form of the contract.
func eventOf(eventType, head, session string) string {
	return fmt.Sprintf(`{"timestamp": "2026-08-31 06:56:30","head_id":%q,"session_id":%q,"public_head_id":"li-28379","public_org_id":"MyOrg-1234","event_type":%q}`,
		head, session, eventType)
}

func callOf(arguments, head, session string) string {
	return fmt.Sprintf(`{%s,"session_metadata":{"session_id":%q,"head_id":%q}}`, arguments, session, head)
}

// backEnd keeps what it was sent.
type backEnd struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seenRequest
}

type seenRequest struct {
	path   string // with the query
	header http.Header
	body   string
}

// newBackEnd answers as a function does, which is called by one request at a time.
func newBackEnd(t testing.TB, answer func(w http.ResponseWriter, r seenRequest)) *backEnd {
	b := new(backEnd)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		seen := seenRequest{r.RequestURI, r.Header, string(body)}
		b.seen = append(b.seen, seen)
		answer(w, seen)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backEnd) requests() []seenRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

func accept(w http.ResponseWriter, _ seenRequest) { w.WriteHeader(http.StatusNoContent) }

// recorded returns the lines of a recording of some type.
func (c *terminal) recorded(name, kind string) []object {
	c.t.Helper()
	var lines []object
	for text := range strings.Lines(c.read(name)) {
		line := parse[object](c.t, text)
		if line["type"] == kind {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestListenForwardsTheSameBytes(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Content-Type", "text/x-answer")
		w.Header().Set("X-Private", "of the back end")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	})
	c := newTerminal(t).with("HEADS_SHARED_KEY=the key")
	l := c.listen("--forward", b.URL+"/base", "--record", "r.jsonl")
	body := "\n{ \"event_type\" : \"Start_Conversation\",\t\"head_id\":\"h\\u0031\", \"session_id\":\"s\", \"extra\": [1e3, 1.50] }\r\n"
	signature := heads.Sign([]byte(body), "the key")
	connection, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = fmt.Fprintf(connection, "POST /a%%2Fb/./c?x=%%41&&y HTTP/1.1\r\nHost: tunnel.example.com\r\nx-signature-256: %s\r\nUser-Agent: heads/1\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nAuthorization: Bearer canary\r\nCookie: a=canary\r\nX-Forwarded-For: 192.0.2.1\r\n"+
		"Accept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", signature, len(body), body)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusTeapot, response.StatusCode)
	assert.Equal(t, "text/x-answer", response.Header.Get("Content-Type"))
	assert.Empty(t, response.Header.Get("X-Private"))
	assert.Equal(t, "short and stout", string(answer))

	require.Len(t, b.requests(), 1)
	got := b.requests()[0]
	assert.Equal(t, "/base/a%2Fb/./c?x=%41&&y", got.path)
	assert.Equal(t, body, got.body)
	got.header.Del("Content-Length")
	assert.Equal(t, http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"heads/1"}, "X-Signature-256": {signature},
	}, got.header)

	assert.Regexp(t, `^\d\d:\d\d:\d\d event start_conversation h1 s signature right → 418 in \d+ms$`, l.line("event"))
	entries := c.recorded("r.jsonl", "event")
	require.Len(t, entries, 1)
	assert.Equal(t, body, entries[0]["body"])
	assert.Equal(t, "/a%2Fb/./c?x=[redacted]&&[redacted]", entries[0]["path"])
	assert.Equal(t, object{"Content-Type": "application/json; charset=utf-8", "User-Agent": "heads/1", "X-Signature-256": signature}, entries[0]["headers"])
	recorded := entries[0]["answer"].(object)
	assert.Equal(t, "short and stout", recorded["body"])
	assert.Equal(t, "back end", recorded["by"])
	assert.NotContains(t, c.read("r.jsonl"), "canary")
	assert.Equal(t, 0, l.end(os.Interrupt))
}

func TestListenPassesToolCallsThrough(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message":"It shipped."}`)
	})
	c := newTerminal(t).with("HEADS_SHARED_KEY=the key") // which signs no tool call
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--ack")
	call := callOf(`"order":"7"`, "h1", "s1")
	status, answer := l.post("/tools/canary-path-token-0000/order_status?k=canary", call)
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"message":"It shipped."}`, answer)
	require.Len(t, b.requests(), 1)
	assert.Equal(t, call, b.requests()[0].body)
	assert.Equal(t, "/tools/canary-path-token-0000/order_status?k=canary", b.requests()[0].path)
	assert.Regexp(t, ` tool order_status h1 s1 → 200 in \d+ms$`, l.line("tool"))
	entry := c.recorded("r.jsonl", "tool_call")[0]
	assert.Equal(t, "/tools/[redacted]/order_status?k=[redacted]", entry["path"])
	assert.Equal(t, "order_status", entry["tool"])
	assert.NotContains(t, entry, "signature")
}

func TestListenStopsAWrongSignature(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, accept)
	c := newTerminal(t)
	c.write("keys", "old key\n\n  new key \n")
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--key-file", "keys")
	body := eventOf("start_conversation", "h1", "s1")
	status, _ := l.post("/events", body+"\n", heads.SignatureHeader, heads.Sign([]byte(body), "new key"))
	assert.Equal(t, 401, status)
	assert.Regexp(t, `signature wrong → 401 in \d+ms \(The signature would match with key 2 of 2: remove the line end after the body\.\)$`, l.line("event"))
	status, _ = l.post("/events", body)
	assert.Equal(t, 401, status)
	assert.Contains(t, l.line("event"), "it is empty")
	status, _ = l.post("/events", body, heads.SignatureHeader, heads.Sign([]byte(body), "new key"), heads.SignatureHeader, heads.Sign([]byte(body), "new key"))
	assert.Equal(t, 401, status, "of two signatures it can't be told which counts")
	assert.Empty(t, b.requests())
	assert.Empty(t, c.recorded("r.jsonl", "event"))
	for _, key := range []string{"old key", "new key"} {
		status, _ = l.post("/events", body, heads.SignatureHeader, heads.Sign([]byte(body), key))
		assert.Equal(t, 204, status)
		assert.NotContains(t, l.line("signature right"), key)
	}
}

func TestListenWithoutAKeyPassesOnUnverified(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, accept)
	l := newTerminal(t).listen("--forward", b.URL)
	status, _ := l.post("/events", eventOf("end_conversation", "h1", "s1"), heads.SignatureHeader, "nonsense")
	assert.Equal(t, 204, status)
	assert.Contains(t, l.line("event"), "signature unverified → 204")
	assert.Equal(t, "nonsense", b.requests()[0].header.Get(heads.SignatureHeader))
}

func TestListenAsksTheServiceForKeys(t *testing.T) {
	t.Parallel()
	c := emulator(t, object{"heads": legacyHeads(1)["heads"],
		"registrations": []object{{"headId": legacyHeads(1)["heads"].([]object)[0]["id"], "webhookUrl": "https://a.example.com/events", "endConversation": true}}})
	hooks := parse[[]object](t, c.ok("webhooks", "list", c.ids[0], "-o", "json", "--show-secrets"))
	l := c.listen("--service-keys")
	body := eventOf("end_conversation", c.ids[0], "s1")
	status, _ := l.post("/", body, heads.SignatureHeader, heads.Sign([]byte(body), hooks[0]["sharedKey"].(string)))
	assert.Equal(t, 200, status)
	assert.Contains(t, l.line("event"), "signature right")
	status, _ = l.post("/", body, heads.SignatureHeader, heads.Sign([]byte(body), "another"))
	assert.Equal(t, 401, status)

	l = c.at("http://127.0.0.1:1", "x").with("HEADS_SHARED_KEY=mine").listen("--service-keys")
	status, _ = l.post("/", body, heads.SignatureHeader, heads.Sign([]byte(body), "another"))
	assert.Equal(t, 503, status, "so that the service sends it again")
	assert.Contains(t, l.line("event"), "the keys can't be read")
	status, _ = l.post("/", body, heads.SignatureHeader, heads.Sign([]byte(body), "mine"))
	assert.Equal(t, 200, status)
}

// The service tries again after an error, so listen does not.
func TestListenForwardsADeliveryOnce(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		switch {
		case strings.HasSuffix(r.path, "/hangs-up"):
			connection, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = connection.Close()
			}
		case strings.HasSuffix(r.path, "/redirects"):
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl")
	for i, row := range []struct {
		path   string
		status int
		note   string
	}{
		{"/refuses", 503, ""},
		{"/redirects", 307, ""},
		{"/hangs-up", 502, "the connection ended before the answer"},
	} {
		status, _ := l.post(row.path, eventOf("end_conversation", "h1", fmt.Sprint("s", i)))
		assert.Equal(t, row.status, status, row.path)
		assert.Contains(t, l.line("event"), row.note)
		require.Len(t, b.requests(), i+1, row.path)
	}
	b.Close()
	status, _ := l.post("/refuses", eventOf("end_conversation", "h1", "s4"))
	assert.Equal(t, 502, status)
	assert.Contains(t, l.line("event"), "(no connection)")
	answers := c.recorded("r.jsonl", "event")
	require.Len(t, answers, 4)
	assert.Equal(t, "listen", answers[3]["answer"].(object)["by"])
}

func TestListenGivesABackEndTheTimeThatTheServiceHas(t *testing.T) {
	t.Parallel()
	socket, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	require.NoError(t, err)
	defer func() { _ = socket.Close() }()
	l := newTerminal(t).listen("--forward", "http://"+socket.Addr().String())
	started := time.Now()
	status, _ := l.post("/events", eventOf("end_conversation", "h1", "s1"))
	assert.Equal(t, 504, status)
	assert.Less(t, time.Since(started), 5*time.Second, "the service waits 5 s")
	assert.Contains(t, l.line("event"), "(no answer in 4.5s)")
}

func TestListenRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, accept)
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--json")
	response, err := http.Get(l.url + "/x?k=canary")
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Equal(t, 404, response.StatusCode)
	for body, want := range map[string]int{
		"": 404, "null": 404, "[]": 404, `{"event_type":"x"}`: 404, `{"head_id":"x"}`: 404, `{"event_type":"","head_id":"x"}`: 404,
		eventOf("end_conversation", "h", "s") + "x":                   404,
		eventOf("end_conversation", "h", strings.Repeat("s", 1<<20)):  413,
		eventOf("end_conversation", "h", strings.Repeat("s", 999999)): 204,
	} {
		status, _ := l.post("/x", body)
		assert.Equal(t, want, status, "%.40s", body)
	}
	assert.Len(t, b.requests(), 1)
	assert.Len(t, c.recorded("r.jsonl", "event"), 1)
	line := parse[object](t, l.line(`"type":"other"`))
	assert.Equal(t, "/x?k=[redacted]", line["path"])
	assert.InDelta(t, 404, line["status"], 0)

	text := newTerminal(t).listen()
	response, err = http.Get(text.url + "/x?k=canary")
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Regexp(t, `^\d\d:\d\d:\d\d other GET /x\?k=\[redacted\] → 404$`, text.line("other"))
}

func TestListenWithoutABackEndAnswersItself(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	l := c.listen("--record", "r.jsonl", "--json")
	status, answer := l.post("/tools/order", callOf(`"a":1`, "h1", "s1"))
	assert.Equal(t, 200, status)
	assert.Equal(t, `{"message":"received"}`, answer)
	line := parse[object](t, l.line("tool_call"))
	assert.Equal(t, c.recorded("r.jsonl", "tool_call")[0]["id"], line["id"])
	for _, key := range []string{"at", "tool", "head_id", "session_id", "path", "status", "duration_ms"} {
		assert.Contains(t, line, key)
	}
}

// An event that --ack has answered is not lost while the back end is down.
func TestAckKeepsEventsUntilTheBackEndIsThere(t *testing.T) {
	t.Parallel()
	down := true
	var mu sync.Mutex
	refused := make(chan string, 1000)
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			refused <- r.body
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--ack", "--retry", "5ms,10ms")
	sent := map[string][]string{}
	for i := range 8 {
		for _, head := range []string{"h1", "h2", "h3"} {
			body := eventOf("inactivity_warning", head, fmt.Sprint("s", i))
			status, answer := l.post("/events", body)
			require.Equal(t, 200, status)
			require.Equal(t, `{"message":"received"}`, answer)
			sent[head] = append(sent[head], body)
		}
	}
	for range 20 { // more than the waits that are given
		assert.Contains(t, <-refused, `"session_id":"s0"`, "the others of its head wait behind the first")
	}
	assert.Empty(t, c.recorded("r.jsonl", "outcome"))
	mu.Lock()
	down = false
	mu.Unlock()
	for delivered := 0; delivered < 24; {
		if strings.Contains(l.line("attempt"), "→ 200 ") {
			delivered++
		}
	}
	assert.Equal(t, 0, l.end(os.Interrupt))
	assert.Empty(t, l.stderr.String())
	got := map[string][]string{}
	for _, r := range b.requests() {
		head := parse[object](t, r.body)["head_id"].(string)
		if n := len(got[head]); n == 0 || got[head][n-1] != r.body {
			got[head] = append(got[head], r.body)
		}
	}
	assert.Equal(t, sent, got, "each in the order of its head")
	for _, outcome := range c.recorded("r.jsonl", "outcome") {
		assert.Equal(t, true, outcome["delivered"])
		assert.InDelta(t, 200, outcome["status"], 0)
		assert.GreaterOrEqual(t, outcome["attempts"], 1.0)
	}
	assert.Len(t, c.recorded("r.jsonl", "outcome"), 24)
}

func TestAckTellsWhatIsUndelivered(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, func(w http.ResponseWriter, _ seenRequest) { w.WriteHeader(http.StatusBadRequest) })
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--ack", "--retry", "1h")
	for _, session := range []string{"s1", "s2"} {
		status, _ := l.post("/events", eventOf("end_conversation", "h1", session))
		require.Equal(t, 200, status)
	}
	assert.Regexp(t, `→ 400 in \d+ms \(attempt 1; next in 1h0m0s\)$`, l.line("attempt"))
	assert.Equal(t, 0, l.end(syscall.SIGTERM))
	assert.Equal(t, "2 events acknowledged and undelivered; send them with headsctl replay r.jsonl --to URL --only undelivered\n", l.stderr.String())
	outcomes := c.recorded("r.jsonl", "outcome")
	require.Len(t, outcomes, 2)
	assert.Equal(t, false, outcomes[0]["delivered"])
	assert.InDelta(t, 400, outcomes[0]["status"], 0)
}

// Whatever was answered is in the file, however the program ends.
func TestAKilledListenHasRecordedWhatItAnswered(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"ack": {"--ack"}, "pass on": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackEnd(t, accept)
			c := newTerminal(t)
			l := c.listen(append([]string{"--forward", b.URL, "--record", "r.jsonl"}, args...)...)
			answered := make(chan string, 10_000)
			var senders sync.WaitGroup
			for sender := range 8 {
				senders.Go(func() {
					for i := 0; ; i++ {
						session := fmt.Sprintf("s-%d-%d", sender, i)
						response, err := http.Post(l.url+"/events", "application/json",
							strings.NewReader(eventOf("end_conversation", fmt.Sprint("h", sender), session)))
						if err != nil {
							return // it was killed
						}
						_ = response.Body.Close()
						answered <- session
					}
				})
			}
			var sessions []string
			for len(sessions) < 200 {
				sessions = append(sessions, <-answered)
			}
			l.end(os.Kill)
			senders.Wait()
			close(answered)
			for session := range answered {
				sessions = append(sessions, session)
			}
			recorded := map[string]bool{}
			for line := range strings.Lines(c.read("r.jsonl")) {
				var entry struct {
					SessionID string `json:"session_id"`
				}
				if strings.HasSuffix(line, "\n") {
					require.NoError(t, json.Unmarshal([]byte(line), &entry))
				}
				recorded[entry.SessionID] = true
			}
			for _, session := range sessions {
				assert.True(t, recorded[session], session)
			}
			t.Logf("%d answered, %d recorded", len(sessions), len(recorded))
		})
	}
}

func TestListenAppendsToARecordingAndToNothingElse(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	l := c.listen("--record", "r.jsonl")
	l.post("/", eventOf("end_conversation", "h1", "s1"))
	assert.Equal(t, 0, l.end(os.Interrupt))
	info, err := os.Stat(filepath.Join(c.dir, "r.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	c.write("r.jsonl", c.read("r.jsonl")+`{"type":"event","id":"cut`)
	l = c.listen("--record", "r.jsonl")
	l.post("/", eventOf("end_conversation", "h1", "s2"))
	assert.Equal(t, 0, l.end(os.Interrupt))
	assert.Len(t, c.recorded("r.jsonl", "event"), 2, "what was cut is gone")
	assert.Len(t, c.recorded("r.jsonl", "recording"), 1)

	for name, text := range map[string]string{
		"notes.txt": "buy milk\n", "other.jsonl": `{"type":"event"}` + "\n", "next.jsonl": `{"type":"recording","version":2}` + "\n", "cut.jsonl": `{"type":"recor`,
	} {
		c.write(name, text)
		c.fails(2, "it was not changed", "listen", "--addr", "127.0.0.1:0", "--record", name)
		assert.Equal(t, text, c.read(name), name)
	}
	c.fails(2, "is not a recording", "listen", "--addr", "127.0.0.1:0", "--record", ".")
	c.fails(2, "no such file or directory", "listen", "--addr", "127.0.0.1:0", "--record", "no/r.jsonl")
}

func TestListenShowsAndRecordsNoSecret(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, accept)
	c := newTerminal(t).with("HEADS_SHARED_KEY=canary-shared-key", "HEADS_TOKEN=canary-token", "HEADS_BASE_URL=http://127.0.0.1:1")
	for _, args := range [][]string{{}, {"--json"}, {"--ack"}} {
		l := c.listen(append([]string{"--forward", b.URL + "/canary-Path-token-1", "--record", "r.jsonl"}, args...)...)
		body := eventOf("end_conversation", "h1", "s1")
		l.post("/canary-path-token-0/e?token=canary-query&canary-flag", body, heads.SignatureHeader, heads.Sign([]byte(body), "canary-shared-key"),
			"Authorization", "Bearer canary", "Cookie", "a=canary", "X-Api-Key", "canary")
		l.post("/canary-path-token-0/e?token=canary-query", body, heads.SignatureHeader, "x")
		l.post("/CANARYpathtokens/e?token=canary-query", "x")
		l.post("/canary%2Dpath%2Dtoken%2D%30", callOf("\"a\":1", "h1", "s1"))
		require.Equal(t, 0, l.end(os.Interrupt))
		require.GreaterOrEqual(t, len(l.rest), 4)
		assert.NotContains(t, strings.ToLower(strings.Join(l.rest, "\n")), "canary")
		assert.NotContains(t, strings.ToLower(l.stderr.String()), "canary")
	}
	assert.NotContains(t, strings.ToLower(c.read("r.jsonl")), "canary")
	assert.Len(t, c.recorded("r.jsonl", "event"), 3)
	for _, r := range b.requests() {
		assert.Contains(t, r.path, "canary", "the back end has the whole path")
	}
}

func TestListenServesHTTPS(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.write("cert.pem", string(certificate))
	c.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	l := c.listen("--tls-cert", "cert.pem", "--tls-key", "key.pem")
	require.True(t, strings.HasPrefix(l.url, "https://127.0.0.1:"), l.url)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := client.Post(l.url, "application/json", strings.NewReader(eventOf("end_conversation", "h1", "s1")))
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Equal(t, 200, response.StatusCode)
	c.fails(2, "--tls-cert and --tls-key can't be used", "listen", "--tls-cert", "key.pem", "--tls-key", "key.pem")
}

func TestListenRefusesWrongUsage(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = busy.Close() }()
	for text, args := range map[string][]string{
		"wants --record and --forward": {"--ack", "--record", "r.jsonl"},
		"--retry \"1s,x\"":             {"--retry", "1s,x"},
		"--retry \"0s\"":               {"--retry", "0s"},
		"go together":                  {"--tls-cert", "c.pem"},
		"is not an http or https URL":  {"--forward", "127.0.0.1:8080"},
		"has a query":                  {"--forward", "http://127.0.0.1/?k=canary"},
		"holds a user name":            {"--forward", "http://u:canary@127.0.0.1/"},
		"nowhere can't be read":        {"--key-file", "nowhere"},
		"HEADS_BASE_URL is not set":    {"--service-keys"},
		"--expose-to-network":          {"--addr", "0.0.0.0:0"},
		"no address":                   {"--addr", "x:y"},
	} {
		r := c.with("HEADS_TOKEN=x").fails(2, text, append([]string{"listen"}, args...)...)
		assert.Empty(t, r.stdout)
		assert.NotContains(t, r.stderr, "canary")
	}
	c.fails(1, "address already in use", "listen", "--addr", busy.Addr().String(), "--record", "r.jsonl")
	assert.NoFileExists(t, filepath.Join(c.dir, "r.jsonl"))
}

func TestListenAnswersWhileTheTerminalStandsStill(t *testing.T) {
	t.Parallel()
	stdout, printed, err := os.Pipe() // which nobody reads behind the first line
	require.NoError(t, err)
	defer func() { _ = stdout.Close() }()
	cmd := newTerminal(t).command(t.Context(), "listen", "--addr", "127.0.0.1:0", "--json")
	cmd.Stdout = printed
	require.NoError(t, cmd.Start())
	require.NoError(t, printed.Close())
	first := make([]byte, 200)
	n, err := stdout.Read(first)
	require.NoError(t, err)
	l := &listening{t: t, url: parse[object](t, string(first[:n]))["url"].(string)}
	for range 100 {
		status, _ := l.post("/", eventOf("end_conversation", "h1", strings.Repeat("s", 10_000)))
		require.Equal(t, 200, status)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

func TestListenRefusesBrowsersAndPathsWithoutASlash(t *testing.T) {
	t.Parallel()
	b := newBackEnd(t, replying)
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl")
	event := eventOf("start_conversation", "h", "s")
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", ""}, {"Sec-Fetch-Site", "same-origin"}} {
		status, _ := l.post("/events", event, header...)
		assert.Equal(t, http.StatusForbidden, status, header)
	}
	for line, want := range map[string]string{"POST http://a.example": "400", "POST *": "400", "OPTIONS *": "400", "POST /events": "200"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: any.tunnel.example\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", line, len(event), event)
		require.NoError(t, err)
		answer, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, answer, " "+want+" ", line)
		_ = conn.Close()
	}
	assert.Len(t, b.requests(), 1)
	assert.Equal(t, 0, l.end(os.Interrupt))
	assert.Equal(t, 2, strings.Count(c.read("r.jsonl"), "\n"))
}

func TestAStuckTerminalHoldsBackNoAnswer(t *testing.T) {
	t.Parallel()
	c := newTerminal(t)
	cmd := c.command(t.Context(), "listen", "--addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	first, err := bufio.NewReaderSize(out, 16).ReadString('\n') // and no more
	require.NoError(t, err)
	l := &listening{t: t, url: strings.TrimSpace(strings.TrimPrefix(first, "listening on "))}
	body := eventOf("start_conversation", strings.Repeat("h", 200), "s")
	for range maxUnprinted + 1000 {
		status, _ := l.post("/e", body)
		require.Equal(t, http.StatusOK, status)
	}
}
