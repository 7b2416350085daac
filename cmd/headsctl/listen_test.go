package main

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
)

type listening struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	first  string // line
	stderr bytes.Buffer
	lines  chan string // of stdout, behind the first one; closed with it
	rest   []string    // the lines that end has read
}

var announced = regexp.MustCompile(`^(?:listening on |\{"type":"listening","url":")(https?://[^",]+)`)

// listen starts headsctl listen on a free port.
func (c *terminal) listen(args ...string) *listening {
	c.t.Helper()
	l := &listening{t: c.t, lines: make(chan string, 10_000)}
	l.cmd = c.command(c.t.Context(), append([]string{"listen", "--addr", "127.0.0.1:0"}, args...)...)
	l.cmd.Stderr = &l.stderr
	out := bufio.NewScanner(need(l.cmd.StdoutPipe())(c.t))
	out.Buffer(nil, 4<<20)
	require.NoError(c.t, l.cmd.Start())
	c.t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	require.True(c.t, out.Scan(), "it listens")
	l.first = out.Text()
	require.Regexp(c.t, announced, l.first)
	l.url = announced.FindStringSubmatch(l.first)[1]
	go func() {
		defer close(l.lines)
		for out.Scan() {
			l.lines <- out.Text()
		}
	}()
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

// post sends a body as the service does, and asserts the status of the answer.
func (l *listening) post(status int, path, body string, header ...string) (answer string) {
	l.t.Helper()
	r := need(http.NewRequest(http.MethodPost, l.url+path, strings.NewReader(body)))(l.t)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return l.answered(status, need(http.DefaultClient.Do(r))(l.t), "%s %.40s %v", path, body, header)
}

// answered asserts the status of an answer, and returns its body.
func (l *listening) answered(status int, response *http.Response, about ...any) string {
	l.t.Helper()
	defer func() { _ = response.Body.Close() }()
	assert.Equal(l.t, status, response.StatusCode, about...)
	return string(need(io.ReadAll(response.Body))(l.t))
}

func (l *listening) send(request string) *http.Response {
	l.t.Helper()
	connection := need(net.Dial("tcp", strings.TrimPrefix(l.url, "http://")))(l.t)
	l.t.Cleanup(func() { _ = connection.Close() })
	need(io.WriteString(connection, request))(l.t)
	return need(http.ReadResponse(bufio.NewReader(connection), nil))(l.t)
}

// eventOf is the body of an event, in the form of the contract.
func eventOf(eventType, head, session string) string {
	return fmt.Sprintf(`{"timestamp": "2026-08-31 06:56:30","head_id":%q,"session_id":%q,"public_head_id":"li-28379","public_org_id":"MyOrg-1234","event_type":%q}`,
		head, session, eventType)
}

// signed are the headers of an event.
func signed(body, key string) []string {
	return []string{heads.SignatureHeader, heads.Sign([]byte(body), key)}
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
	b.Server = serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		seen := seenRequest{r.RequestURI, r.Header, string(body)}
		b.seen = append(b.seen, seen)
		answer(w, seen)
	})
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
		if line := parse[object](c.t, text); line["type"] == kind {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestListenForwardsTheSameBytes(t *testing.T) {
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
	response := l.send(fmt.Sprintf("POST /a%%2Fb/./c?x=%%41&&y HTTP/1.1\r\nHost: tunnel.example.com\r\nx-signature-256: %s\r\nUser-Agent: heads/1\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nAuthorization: Bearer canary\r\nCookie: a=canary\r\nX-Forwarded-For: 192.0.2.1\r\n"+
		"Accept-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", signature, len(body), body))
	assert.Equal(t, "short and stout", l.answered(http.StatusTeapot, response))
	assert.Equal(t, []string{"text/x-answer", ""}, []string{response.Header.Get("Content-Type"), response.Header.Get("X-Private")})

	require.Len(t, b.requests(), 1)
	got := b.requests()[0]
	got.header.Del("Content-Length")
	assert.Equal(t, seenRequest{"/base/a%2Fb/./c?x=%41&&y", http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"heads/1"}, "X-Signature-256": {signature},
	}, body}, got)

	assert.Regexp(t, `^\d\d:\d\d:\d\d event start_conversation h1 s signature right → 418 in \d+ms$`, l.line("event"))
	entries := c.recorded("r.jsonl", "event")
	require.Len(t, entries, 1)
	assert.Equal(t, body, entries[0]["body"])
	assert.Equal(t, "/a%2Fb/./c?x=[redacted]&&[redacted]", entries[0]["path"])
	assert.Equal(t, object{"Content-Type": "application/json; charset=utf-8", "User-Agent": "heads/1", "X-Signature-256": signature}, entries[0]["headers"])
	assert.Subset(t, entries[0]["answer"], object{"body": "short and stout", "by": "back end"})
	assert.NotContains(t, c.read("r.jsonl"), "canary")
	assert.Equal(t, 0, l.end(os.Interrupt))
}

func TestListenPassesToolCallsThrough(t *testing.T) {
	b := newBackEnd(t, replying)
	c := newTerminal(t).with("HEADS_SHARED_KEY=the key") // which signs no tool call
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--ack")
	call := callOf(`"order":"7"`, "h1", "s1")
	assert.JSONEq(t, `{"message":"It shipped."}`, l.post(200, "/tools/canary-path-token-0000/order_status?k=canary", call))
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
	b, c := newBackEnd(t, accept), newTerminal(t)
	c.write("keys", "old key\n\n  new key \n")
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--key-file", "keys")
	body := eventOf("start_conversation", "h1", "s1")
	signature := signed(body, "new key")
	l.post(401, "/events", body+"\n", signature...)
	assert.Regexp(t, `signature wrong → 401 in \d+ms \(The signature would match with key 2 of 2: remove the line end after the body\.\)$`, l.line("event"))
	l.post(401, "/events", body)
	assert.Contains(t, l.line("event"), "it is empty")
	l.post(401, "/events", body, append(signature, signature...)...) // it can't be told which counts
	assert.Empty(t, b.requests())
	assert.Empty(t, c.recorded("r.jsonl", "event"))
	for _, key := range []string{"old key", "new key"} {
		l.post(204, "/events", body, signed(body, key)...)
		assert.NotContains(t, l.line("signature right"), key)
	}
}

func TestListenAsksTheServiceForKeys(t *testing.T) {
	seed := legacyHeads(1)
	seed["registrations"] = []object{{"headId": seed["heads"].([]object)[0]["id"], "webhookUrl": "https://a.example.com/events", "endConversation": true}}
	c := emulator(t, seed)
	hooks := c.hooks(c.ids[0])
	l := c.listen("--service-keys")
	body := eventOf("end_conversation", c.ids[0], "s1")
	l.post(200, "/", body, signed(body, hooks[0]["sharedKey"].(string))...)
	assert.Contains(t, l.line("event"), "signature right")
	l.post(401, "/", body, signed(body, "another")...)
	l = c.at("http://127.0.0.1:1", "x").with("HEADS_SHARED_KEY=mine").listen("--service-keys")
	l.post(503, "/", body, signed(body, "another")...) // so that the service sends it again
	assert.Contains(t, l.line("event"), "the keys can't be read")
	l.post(200, "/", body, signed(body, "mine")...)
}

// The service tries again after an error, so listen does not. Without a key it verifies
// nothing.
func TestListenForwardsADeliveryOnce(t *testing.T) {
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		switch r.path {
		case "/hangs-up":
			panic(http.ErrAbortHandler)
		case "/redirects":
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
	}{{"/refuses", 503, ""}, {"/redirects", 307, ""}, {"/hangs-up", 502, "the connection ended before the answer"}} {
		l.post(row.status, row.path, eventOf("end_conversation", "h1", fmt.Sprint("s", i)), heads.SignatureHeader, "nonsense")
		assert.Regexp(t, fmt.Sprintf("signature unverified → %d .*%s", row.status, row.note), l.line("event"))
		require.Len(t, b.requests(), i+1, row.path)
		assert.Equal(t, "nonsense", b.requests()[i].header.Get(heads.SignatureHeader))
	}
	b.Close()
	l.post(502, "/refuses", eventOf("end_conversation", "h1", "s4"))
	assert.Contains(t, l.line("event"), "(no connection)")
	answers := c.recorded("r.jsonl", "event")
	require.Len(t, answers, 4)
	assert.Equal(t, "listen", answers[3]["answer"].(object)["by"])
}

func TestListenGivesABackEndTheTimeThatTheServiceHas(t *testing.T) {
	silent := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	l := newTerminal(t).listen("--forward", silent.URL)
	started := time.Now()
	l.post(504, "/events", eventOf("end_conversation", "h1", "s1"))
	assert.Less(t, time.Since(started), 5*time.Second, "the service waits 5 s")
	assert.Contains(t, l.line("event"), "(no answer in 4.5s)")
}

func TestListenRefusesWhatItDoesNotKnow(t *testing.T) {
	b, c := newBackEnd(t, accept), newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--json")
	for body, want := range map[string]int{
		"": 404, "null": 404, "[]": 404, `{"event_type":"x"}`: 404, `{"head_id":"x"}`: 404, `{"event_type":"","head_id":"x"}`: 404,
		eventOf("end_conversation", "h", "s") + "x":                   404,
		eventOf("end_conversation", "h", strings.Repeat("s", 1<<20)):  413,
		eventOf("end_conversation", "h", strings.Repeat("s", 999999)): 204,
	} {
		l.post(want, "/x", body)
	}
	assert.Len(t, b.requests(), 1)
	assert.Len(t, c.recorded("r.jsonl", "event"), 1)
	text := newTerminal(t).listen()
	for _, l := range []*listening{l, text} {
		l.answered(404, need(http.Get(l.url+"/y?k=canary"))(t))
	}
	assert.Subset(t, parse[object](t, l.line("/y")), object{"type": "other", "path": "/y?k=[redacted]", "status": 404.0})
	assert.Regexp(t, `^\d\d:\d\d:\d\d other GET /y\?k=\[redacted\] → 404$`, text.line("other"))
}

func TestAckKeepsEventsUntilTheBackEndIsThere(t *testing.T) {
	var up atomic.Bool
	refused := make(chan string, 1000)
	b := newBackEnd(t, func(w http.ResponseWriter, r seenRequest) {
		if !up.Load() {
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
			require.Equal(t, `{"message":"received"}`, l.post(200, "/events", body))
			sent[head] = append(sent[head], body)
		}
	}
	for range 20 { // more than the waits that are given
		assert.Contains(t, <-refused, `"session_id":"s0"`, "the others of its head wait behind the first")
	}
	assert.Empty(t, c.recorded("r.jsonl", "outcome"))
	up.Store(true)
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
		got[head] = slices.Compact(append(got[head], r.body)) // without what was sent again
	}
	assert.Equal(t, sent, got, "each in the order of its head")
	for _, outcome := range c.recorded("r.jsonl", "outcome") {
		assert.Subset(t, outcome, object{"delivered": true, "status": 200.0})
		assert.GreaterOrEqual(t, outcome["attempts"], 1.0)
	}
	assert.Len(t, c.recorded("r.jsonl", "outcome"), 24)
}

func TestAckTellsWhatIsUndelivered(t *testing.T) {
	b := newBackEnd(t, func(w http.ResponseWriter, _ seenRequest) { w.WriteHeader(http.StatusBadRequest) })
	c := newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl", "--ack", "--retry", "1h")
	for _, session := range []string{"s1", "s2"} {
		l.post(200, "/events", eventOf("end_conversation", "h1", session))
	}
	assert.Regexp(t, `→ 400 in \d+ms \(attempt 1; next in 1h0m0s\)$`, l.line("attempt"))
	assert.Equal(t, 0, l.end(syscall.SIGTERM))
	assert.Equal(t, "2 events acknowledged and undelivered; send them with headsctl replay r.jsonl --to URL --only undelivered\n", l.stderr.String())
	outcomes := c.recorded("r.jsonl", "outcome")
	require.Len(t, outcomes, 2)
	assert.Subset(t, outcomes[0], object{"delivered": false, "status": 400.0})
}

// Whatever was answered is in the file, however the program ends.
func TestAKilledListenHasRecordedWhatItAnswered(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"ack": {"--ack"}, "pass on": nil} {
		t.Run(name, func(t *testing.T) {
			c := newTerminal(t)
			l := c.listen(append([]string{"--forward", newBackEnd(t, accept).URL, "--record", "r.jsonl"}, args...)...)
			answered := make(chan string, 10_000)
			var senders sync.WaitGroup
			for sender := range 8 {
				senders.Go(func() {
					for i := 0; ; i++ {
						session := fmt.Sprintf("s-%d-%d", sender, i)
						response, err := http.Post(l.url+"/events", "application/json", strings.NewReader(eventOf("end_conversation", fmt.Sprint("h", sender), session)))
						if err != nil {
							return // it was killed
						}
						_ = response.Body.Close()
						answered <- session
					}
				})
			}
			sessions := map[any]bool{}
			for len(sessions) < 200 {
				sessions[<-answered] = true
			}
			l.end(os.Kill)
			senders.Wait()
			close(answered)
			for session := range answered {
				sessions[session] = true
			}
			for line := range strings.Lines(c.read("r.jsonl")) {
				if strings.HasSuffix(line, "\n") {
					delete(sessions, parse[object](t, line)["session_id"])
				}
			}
			assert.Empty(t, sessions, "answered and not recorded")
		})
	}
}

// It answers by itself, as there is no back end.
func TestListenAppendsToARecordingAndToNothingElse(t *testing.T) {
	c := newTerminal(t)
	l := c.listen("--record", "r.jsonl", "--json")
	assert.Equal(t, `{"message":"received"}`, l.post(200, "/tools/order", callOf(`"a":1`, "h1", "s1")))
	assert.Equal(t, c.recorded("r.jsonl", "tool_call")[0]["id"], parse[object](t, l.line("tool_call"))["id"])
	assert.Equal(t, 0, l.end(os.Interrupt))
	c.write("r.jsonl", c.read("r.jsonl")+`{"type":"event","id":"cut`)
	l = c.listen("--record", "r.jsonl")
	l.post(200, "/", eventOf("end_conversation", "h1", "s2"))
	assert.Equal(t, 0, l.end(os.Interrupt))
	assert.Len(t, c.recorded("r.jsonl", "tool_call"), 1)
	assert.Len(t, c.recorded("r.jsonl", "event"), 1, "what was cut is gone")
	assert.Len(t, c.recorded("r.jsonl", "recording"), 1)

	for _, text := range []string{"buy milk\n", `{"type":"event"}` + "\n", `{"type":"recording","version":2}` + "\n", `{"type":"recor`} {
		c.write("other", text)
		c.fails(2, "it was not changed", "listen", "--addr", "127.0.0.1:0", "--record", "other")
		assert.Equal(t, text, c.read("other"))
	}
	c.fails(2, "is not a recording", "listen", "--addr", "127.0.0.1:0", "--record", ".")
	c.fails(2, "no such file or directory", "listen", "--addr", "127.0.0.1:0", "--record", "no/r.jsonl")
}

func TestListenShowsAndRecordsNoSecret(t *testing.T) {
	b := newBackEnd(t, accept)
	c := newTerminal(t).with("HEADS_SHARED_KEY=canary-shared-key", "HEADS_TOKEN=canary-token", "HEADS_BASE_URL=http://127.0.0.1:1")
	for mode, status := range map[string]int{"--debug": 204, "--json": 204, "--ack": 200} {
		l := c.listen("--forward", b.URL+"/canary-Path-token-1", "--record", "r.jsonl", mode)
		body := eventOf("end_conversation", "h1", "s1")
		l.post(status, "/canary-path-token-0/e?token=canary-query&canary-flag", body,
			append(signed(body, "canary-shared-key"), "Authorization", "Bearer canary", "Cookie", "a=canary", "X-Api-Key", "canary")...)
		l.post(401, "/canary-path-token-0/e?token=canary-query", body, heads.SignatureHeader, "x")
		l.post(404, "/CANARYpathtokens/e?token=canary-query", "x")
		l.post(204, "/canary%2Dpath%2Dtoken%2D%30", callOf("\"a\":1", "h1", "s1"))
		require.Equal(t, 0, l.end(os.Interrupt))
		require.GreaterOrEqual(t, len(l.rest), 4)
		assert.NotContains(t, strings.ToLower(l.first+strings.Join(l.rest, "\n")+l.stderr.String()), "canary")
	}
	assert.NotContains(t, strings.ToLower(c.read("r.jsonl")), "canary")
	assert.Len(t, c.recorded("r.jsonl", "event"), 3)
	for _, r := range b.requests() {
		assert.Contains(t, r.path, "canary", "the back end has the whole path")
	}
}

func TestListenServesHTTPS(t *testing.T) {
	c := newTerminal(t)
	other := httptest.NewTLSServer(nil) // has a certificate, its key and a client
	defer other.Close()
	key := need(x509.MarshalPKCS8PrivateKey(other.TLS.Certificates[0].PrivateKey))(t)
	c.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})))
	c.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	l := c.listen("--tls-cert", "cert.pem", "--tls-key", "key.pem")
	require.True(t, strings.HasPrefix(l.url, "https://127.0.0.1:"), l.url)
	l.answered(200, need(other.Client().Post(l.url, "application/json", strings.NewReader(eventOf("end_conversation", "h1", "s1"))))(t))
	c.fails(2, "--tls-cert and --tls-key can't be used", "listen", "--tls-cert", "key.pem", "--tls-key", "key.pem")
}

func TestListenRefusesWrongUsage(t *testing.T) {
	c := newTerminal(t)
	busy := serving(t, nil)
	for text, args := range map[string][]string{
		"wants --record and --forward": {"--ack", "--record", "r.jsonl"}, "--retry \"1s,x\"": {"--retry", "1s,x"}, "--retry \"0s\"": {"--retry", "0s"},
		"go together": {"--tls-cert", "c.pem"}, "is not an http or https URL": {"--forward", "127.0.0.1:8080"},
		"has a query": {"--forward", "http://127.0.0.1/?k=canary"}, "holds a user name": {"--forward", "http://u:canary@127.0.0.1/"},
		"nowhere can't be read": {"--key-file", "nowhere"}, "HEADS_BASE_URL is not set": {"--service-keys"}, "--expose-to-network": {"--addr", "0.0.0.0:0"},
		"no address": {"--addr", "x:y"},
	} {
		r := c.with("HEADS_TOKEN=x").fails(2, text, append([]string{"listen"}, args...)...)
		assert.Empty(t, r.stdout)
		assert.NotContains(t, r.stderr, "canary")
	}
	c.fails(1, "address already in use", "listen", "--addr", busy.Listener.Addr().String(), "--record", "r.jsonl")
	assert.NoFileExists(t, filepath.Join(c.dir, "r.jsonl"))
}

func TestListenRefusesBrowsersAndPathsWithoutASlash(t *testing.T) {
	b, c := newBackEnd(t, replying), newTerminal(t)
	l := c.listen("--forward", b.URL, "--record", "r.jsonl")
	event := eventOf("start_conversation", "h", "s")
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", ""}, {"Sec-Fetch-Site", "same-origin"}} {
		l.post(http.StatusForbidden, "/events", event, header...)
	}
	for line, want := range map[string]int{"POST http://a.example": 400, "POST *": 400, "OPTIONS *": 400, "POST /events": 200} {
		l.answered(want, l.send(fmt.Sprintf("%s HTTP/1.1\r\nHost: any.tunnel.example\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", line, len(event), event)), line)
	}
	assert.Len(t, b.requests(), 1)
	assert.Equal(t, 0, l.end(os.Interrupt))
	assert.Equal(t, 2, strings.Count(c.read("r.jsonl"), "\n"))
}

func TestAStuckTerminalHoldsBackNoAnswer(t *testing.T) {
	cmd := newTerminal(t).command(t.Context(), "listen", "--addr", "127.0.0.1:0")
	out := need(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	first := need(bufio.NewReaderSize(out, 16).ReadString('\n'))(t) // and no more
	l := &listening{t: t, url: strings.TrimSpace(strings.TrimPrefix(first, "listening on "))}
	for range maxUnprinted + 1000 {
		l.post(http.StatusOK, "/e", eventOf("start_conversation", strings.Repeat("h", 200), "s"))
	}
}
