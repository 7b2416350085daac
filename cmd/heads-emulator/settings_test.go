package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlagsAreRefused(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		says string
	}{
		{"unknown flag", []string{"-port", "1"}, "-port"},
		{"argument without a flag", []string{"canary"}, "without a flag"},
		{"three dashes", []string{"---token=canary"}, "one or two dashes"},
		{"token with a space", []string{"-token", "a canary"}, "without a space"},
		{"token with a line break", []string{"-token", "canary\n"}, "visible ASCII"},
		{"token beyond ASCII", []string{"-token", "canary\u00e9"}, "visible ASCII"},
		{"seed below zero", []string{"-seed", "-1"}, "-seed"},
		{"seed with more behind", []string{"-seed", "1 2"}, "-seed"},
		{"unknown style", []string{"-responses", "full"}, "empty, record or bool"},
		{"wait without unit", []string{"-retry", "1,2"}, "-retry"},
		{"wait below zero", []string{"-retry", "1s,-2s"}, "-retry"},
		{"unknown form of timestamps", []string{"-timestamps", "unix"}, "plain or iso"},
		{"rate below zero", []string{"-rate-limit", "-1"}, "-rate-limit"},
		{"rate that is no number", []string{"-rate-limit", "NaN"}, "-rate-limit"},
		{"no burst", []string{"-rate-limit", "1", "-burst", "0"}, "-burst"},
		{"burst without a rate", []string{"-burst", "5"}, "-rate-limit"},
		{"latency below zero", []string{"-latency", "-1s"}, "-latency"},
		{"no backlog", []string{"-backlog", "0"}, "-backlog"},
		{"no time for a delivery", []string{"-delivery-timeout", "0s"}, "-delivery-timeout"},
		{"no time for a tool", []string{"-tool-timeout", "-1s"}, "-tool-timeout"},
		{"unknown encoding", []string{"-signature", "HEX"}, "hex or base64"},
		{"empty name of a provider", []string{"-streaming-providers", "azure,,polly"}, "-streaming-providers"},
		{"no voice", []string{"-non-streaming-voices", ""}, "-non-streaming-voices"},
		{"base that is a host", []string{"-chat-url", "chat.example.test"}, "-chat-url"},
		{"base of another scheme", []string{"-stream-url", "ftp://chat.example.test"}, "-stream-url"},
		{"base with a query", []string{"-stream-url", "https://a.example.test?k=canary"}, "-stream-url"},
		{"base with a password", []string{"-stream-url", "https://canary@a.example.test"}, "-stream-url"},
		{"origin that is a host", []string{"-allow-origin", "localhost:3000"}, "a scheme and a host"},
		{"origin with a path", []string{"-allow-origin", "http://localhost:3000/"}, "a scheme and a host"},
		{"any origin", []string{"-allow-origin", "*"}, "a scheme and a host"},
		{"host that is a URL", []string{"-allow-host", "http://a.example"}, "is not a host"},
		{"host moved to no URL", []string{"-allow-host", "a.example=127.0.0.1:80"}, "give a scheme and a host"},
		{"host moved to nothing", []string{"-allow-host", "a.example="}, "want a URL behind ="},
		{"host twice", []string{"-allow-host", "a.example", "-allow-host", "a.example=http://127.0.0.1:80"}, "given twice"},
		{"host twice in another case", []string{"-allow-host", "a.example", "-allow-host", "A.example"}, "given twice"},
		{"address without port", []string{"-addr", "127.0.0.1"}, "-addr"},
		{"seed file that is not there", []string{"-seed-file", filepath.Join(t.TempDir(), "none")}, "-seed-file"},
		{"seed file that is no seed", []string{"-addr", "127.0.0.1:0", "-seed-file", writeFile(t, `{"heads":[1]}`)}, "heads[0] must be a JSON object"},
		{"seed that is refused", []string{"-addr", "127.0.0.1:0", "-seed-file", writeFile(t, `{"tools":[{"headId":"x"}]}`)}, "the seed file: tools[0]"},
		{"token that can be worked out, for the network", []string{"-seed", "1", "-addr", "0.0.0.0:0", "-expose-to-network"}, "-token"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out, log bytes.Buffer
			err := startAndStop(t, &out, &log, row.args...)
			require.ErrorContains(t, err, row.says)
			assert.NotContains(t, err.Error()+log.String(), "canary", "what may be a token is not shown")
			assert.Empty(t, out.String())
		})
	}
}

func TestRetryFlagSetsTheWaits(t *testing.T) {
	for given, want := range map[string][]time.Duration{"none": nil, "0s": {0}, "500ms, 1m,2h ": {500 * time.Millisecond, time.Minute, 2 * time.Hour}} {
		s, err := parse([]string{"-retry", given}, io.Discard)
		require.NoError(t, err)
		assert.Equal(t, want, s.retries)
	}
	s, err := parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, s.retries)
}

func TestResponsesFlagSetsTheStyle(t *testing.T) {
	for style, want := range map[string]string{"empty": "^$", "bool": "^true$", "record": `"name":"Bea"`} {
		p := start(t, "-responses", style)
		ans := p.api("PUT", "/head/update", `{"id":"`+p.Heads[0]+`","name":"Bea"}`)
		ans.ok(t, nil)
		assert.Regexp(t, want, ans.body)
	}
}

func TestStrictOrderFlagStopsDeliveryToEarlyRegistrations(t *testing.T) {
	for _, strict := range []bool{false, true} {
		p := start(t, fmt.Sprintf("-strict-order=%t", strict))
		url := receiver(t, accept)
		p.api("POST", "/head-events", `{"headId":"`+p.Heads[0]+`","webhookUrl":"`+url+`","startConversation":true}`).ok(t, nil)
		p.hook(url)
		p.session("message")
		p.deliveries("webhookId=2")
		if strict {
			assert.JSONEq(t, `[]`, p.control("GET", "deliveries?webhookId=1", "").body)
		} else {
			assert.Len(t, p.deliveries("webhookId=1"), 1)
		}
	}
}

// A proxy would get what is sent to another machine. Package http reads its variables
// once, so this is a process.
func TestNothingIsSentBeyondThisMachineWithoutAllowHost(t *testing.T) {
	var proxied atomic.Int64
	proxy := receiver(t, func(http.ResponseWriter, *http.Request) { proxied.Add(1) })
	var arrived sync.Map // URL by Host
	here := receiver(t, func(_ http.ResponseWriter, r *http.Request) { arrived.Store(r.Host, r.URL.String()) })
	port := here[strings.LastIndexByte(here, ':'):]
	p, _, _ := startProcess(t, []string{"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy}, "-retry", "none", "-allow-host", "Moved.example="+here)
	for i, row := range []struct{ address, host, err string }{
		{"https://staging.museum.example/events", "", "nothing is sent to staging.museum.example: it is not this machine; allow it with -allow-host"},
		{"https://0.0.0.0" + port + "/events", "", "nothing is sent to 0.0.0.0: it is not this machine; allow it with -allow-host"},
		{"http://LOCALHOST" + port + "/events?a=b", "LOCALHOST" + port, ""},
		{"http://[::ffff:127.0.0.1]" + port + "/events?a=b", "[::ffff:127.0.0.1]" + port, ""},
		{"https://MOVED.example/events?a=b", "MOVED.example", ""},
	} {
		p.hook(row.address)
		p.session("message")
		d := p.deliveries(fmt.Sprintf("webhookId=%d", i+1))[0]
		if row.host == "" {
			assert.Equal(t, row.err, d.Error)
			continue
		}
		assert.Equal(t, 200, d.Status, "%s: %s", row.address, d.Error)
		url, _ := arrived.Load(row.host)
		assert.Equal(t, "/events?a=b", url, row.address)
	}
	assert.Zero(t, proxied.Load())
}

func TestFlagsSetTheFormOfDeliveries(t *testing.T) {
	for flags, want := range map[string]string{
		"":                  `"timestamp":"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"`,
		"-timestamps plain": `"timestamp":"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"`,
		"-timestamps iso":   `"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`,
		"-signature hex":    `^[0-9a-f]{64} `,
		"-signature base64": `^[A-Za-z0-9+/]{43}= `,
	} {
		p := start(t, strings.Fields(flags)...)
		p.hook(receiver(t, accept))
		p.session("message")
		d := p.deliveries("")[0]
		assert.Regexp(t, want, d.Headers["X-Signature-256"]+" "+d.Body, flags)
	}
}

func TestRateLimitAndLatencyFlagsLimitTheOperationsAlone(t *testing.T) {
	p := start(t, "-rate-limit", "0.001", "-burst", "2", "-latency", "20ms")
	began := time.Now()
	for range 2 {
		p.api("GET", "/head/"+p.Heads[0], "").ok(t, nil)
	}
	assert.GreaterOrEqual(t, time.Since(began), 40*time.Millisecond)
	ans := p.api("GET", "/head/"+p.Heads[0], "")
	ans.refused(t, 429, "too many")
	assert.NotEmpty(t, ans.header.Get("Retry-After"))
	for range 5 {
		p.control("GET", "health", "").ok(t, nil)
	}
}

func TestAccessURLFlagsSetTheBases(t *testing.T) {
	for _, stale := range []bool{false, true} {
		p := start(t, "-chat-url", "https://chat.example.org/c/", "-stream-url", "http://localhost:8080", fmt.Sprintf("-stale-addresses=%t", stale))
		assert.Contains(t, p.api("GET", "/head/"+p.Heads[0], "").body, `"publicUrl":"https://chat.example.org/c/MyOrg-`)
		p.api("PUT", "/head/"+p.Heads[0]+"/video-streaming?videoStreaming=true", "").ok(t, nil)
		base := map[bool]string{true: "https://chat.example.org/c", false: "http://localhost:8080"}[stale]
		assert.Contains(t, p.api("GET", "/head/"+p.Heads[0], "").body, `"publicUrl":"`+base+`/MyOrg-`)
	}
}

func TestVoiceFlagsSayWhichCanStream(t *testing.T) {
	for _, row := range []struct {
		name, provider, voice string
		args                  []string
		streams               bool
	}{
		{"a provider by default", "elevenlabs", "v", nil, true},
		{"another provider by default", "polly", "v", nil, false},
		{"a provider that is named", "polly", "v", []string{"-streaming-providers", "azure, polly"}, true},
		{"a provider that is not named", "elevenlabs", "v", []string{"-streaming-providers", "azure,polly"}, false},
		{"no provider", "azure", "v", []string{"-streaming-providers", "none"}, false},
		{"a voice that can't", "azure", "v", []string{"-non-streaming-voices", "w,v"}, false},
		{"another voice", "azure", "x", []string{"-non-streaming-voices", "w,v"}, true},
	} {
		p := start(t, row.args...)
		p.api("PUT", "/head/update", `{"id":"`+p.Heads[0]+`","ttsProvider":"`+row.provider+`","ttsVoice":"`+row.voice+`"}`).ok(t, nil)
		ans := p.api("PUT", "/head/"+p.Heads[0]+"/video-streaming?videoStreaming=true", "")
		assert.Equal(t, row.streams, ans.status < 300, "%s: %s", row.name, ans.body)
	}
}

func TestTimeoutFlagsLimitReceivers(t *testing.T) {
	p := start(t, "-delivery-timeout", "30ms", "-tool-timeout", "20ms", "-retry", "none")
	slow := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	p.hook(slow)
	began := time.Now()
	p.session("message")
	assert.Contains(t, p.deliveries("")[0].Error, "deadline exceeded")
	assert.Less(t, time.Since(began), 5*time.Second, "the default")
	p.api("PUT", "/head/"+p.Heads[0]+"/conversation-settings", `{"conversationSettings":{"tools":[{"name":"hours","url":"`+slow+`"}]}}`).ok(t, nil)
	assert.Contains(t, p.control("POST", "tool-calls", `{"headId":"`+p.Heads[0]+`","tool":"hours"}`).body, "deadline exceeded")
	assert.Less(t, time.Since(began), 30*time.Second, "the default")
}

func TestBacklogFlagLimitsTheEventsThatWait(t *testing.T) {
	p := start(t, "-backlog", "1")
	held := make(chan struct{})
	arrived := make(chan struct{}, 1)
	p.hook(receiver(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-held
	}))
	defer close(held)
	p.session("message")
	<-arrived
	p.session("inactive inactive")
	assert.Contains(t, p.deliveries("")[0].Error, "too many events wait")
}
