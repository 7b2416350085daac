package headstest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// deliverTo delivers one event to a URL and returns the only attempt.
func deliverTo(t *testing.T, target string, opts ...headstest.Option) (headstest.Delivery, string) {
	t.Helper()
	e := newEmulator(t, append(opts, headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule())...)
	head := e.AddHead(headstest.Head{EnableEvents: true})
	_, key := addWebhook(t, e, head, target, heads.EventStartConversation)
	require.NoError(t, e.StartSession(head).UserMessage("Hello"))
	d := need(e.WaitDelivery(t.Context(), nil))(t)
	return d, key
}

// asked is a transport that counts the requests for each host.
type asked map[string]int

func (a asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a[r.URL.Scheme+"://"+r.URL.Host+" "+r.Host]++
	return status(200), nil
}

func TestCallbackHostsAreLoopbackAndThoseThatAreNamed(t *testing.T) {
	t.Parallel()
	hosts := map[string]string{
		"Plain.example": "", "port.example:8443": "", "default.example:443": "", "moved.example": "http://127.0.0.1:8080",
		"moved.example:9000": "https://[::1]:9001", "[2001:db8::1]": "",
	}
	const nobody = ""
	for target, want := range map[string]string{
		"http://127.0.0.1:1/x":            "http://127.0.0.1:1 127.0.0.1:1",
		"http://127.8.9.10/x":             "http://127.8.9.10 127.8.9.10",
		"http://[::1]:1/x":                "http://[::1]:1 [::1]:1",
		"http://[::ffff:127.0.0.1]:1/x":   "http://[::ffff:127.0.0.1]:1 [::ffff:127.0.0.1]:1",
		"http://LocalHost:1/x":            "http://localhost:1 LocalHost:1",
		"https://0.0.0.0/x":               nobody,
		"https://[::]/x":                  nobody,
		"https://[::ffff:10.0.0.1]/x":     nobody,
		"https://localhost.example/x":     nobody,
		"https://a.localhost/x":           nobody,
		"https://localhost./x":            nobody,
		"https://127.1/x":                 nobody,
		"https://plain.EXAMPLE/x":         "https://plain.example plain.EXAMPLE",
		"https://plain.example:9/x":       "https://plain.example:9 plain.example:9",
		"https://www.plain.example/x":     nobody,
		"https://port.example:8443/x":     "https://port.example:8443 port.example:8443",
		"https://port.example/x":          nobody,
		"https://default.example/x":       "https://default.example default.example",
		"https://MOVED.example/x":         "http://127.0.0.1:8080 MOVED.example",
		"https://moved.example:9000/x":    "https://[::1]:9001 moved.example:9000",
		"https://[2001:db8::1]:8443/x":    "https://[2001:db8::1]:8443 [2001:db8::1]:8443",
		"https://[2001:db8::2]/x":         nobody,
		"https://plain.example@other.x/x": nobody,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			got := asked{}
			d, _ := deliverTo(t, target, headstest.WithCallbackHosts(hosts), sendingTo(got))
			if want != nobody {
				assert.Equal(t, asked{want: 1}, got)
				assert.NoError(t, d.Err)
				return
			}
			u := need(url.Parse(target))(t)
			assert.Empty(t, got)
			assert.EqualError(t, d.Err, "nothing is sent to "+u.Hostname()+": it is not this machine; allow it with -allow-host")
		})
	}
}

func TestAStarStandsForAllOtherCallbackHosts(t *testing.T) {
	t.Parallel()
	got := asked{}
	client := sendingTo(got)
	for _, target := range []string{"https://named.example/x", "https://other.example/x", "http://127.0.0.1:1/x"} {
		deliverTo(t, target, client, headstest.WithCallbackHosts(map[string]string{"*": "http://127.0.0.1:8080", "named.example": ""}))
	}
	deliverTo(t, "https://www.example.com/x", client) // without the option, all are allowed
	assert.Equal(t, asked{"https://named.example named.example": 1, "http://127.0.0.1:8080 other.example": 1, "http://127.0.0.1:1 127.0.0.1:1": 1,
		"https://www.example.com www.example.com": 1}, got)
}

func TestCallbackHostsThatCantBeUsedPanic(t *testing.T) {
	t.Parallel()
	for _, hosts := range []map[string]string{
		{"": ""}, {"https://a.example": ""}, {"a.example/x": ""}, {"u@a.example": ""}, {"a.example:": ""}, {":80": ""}, {"a b": ""}, {"a.example:x": ""},
		{"*.example": "x"}, {"a.example": "127.0.0.1:80"}, {"a.example": "http://127.0.0.1/x"}, {"a.example": "http://"}, {"a.example": "ftp://127.0.0.1"},
		{"a.example": "http://u:p@127.0.0.1"}, {"a.example": "http://127.0.0.1?x"}, {"a.example": "", "A.example": ""},
	} {
		assert.Panics(t, func() { headstest.WithCallbackHosts(hosts) }, "%v", hosts)
	}
}

func TestNoRefusedCallbackHostIsLookedUp(t *testing.T) {
	var queries atomic.Int64
	preferGo, lookUp := net.DefaultResolver.PreferGo, net.DefaultResolver.Dial
	defer func() { net.DefaultResolver.PreferGo, net.DefaultResolver.Dial = preferGo, lookUp }()
	net.DefaultResolver.PreferGo = true
	net.DefaultResolver.Dial = func(context.Context, string, string) (net.Conn, error) {
		queries.Add(1)
		return nil, io.ErrUnexpectedEOF
	}

	d, _ := deliverTo(t, "https://staging.museum.example/events", headstest.WithCallbackHosts(nil))
	assert.EqualError(t, d.Err, "nothing is sent to staging.museum.example: it is not this machine; allow it with -allow-host")
	assert.Zero(t, d.Status)

	redirecting := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://staging.museum.example/other", http.StatusTemporaryRedirect)
	})
	for _, target := range []string{redirecting, strings.Replace(redirecting, "127.0.0.1", "LOCALHOST", 1)} {
		d, _ = deliverTo(t, target+"/events", headstest.WithCallbackHosts(nil))
		assert.NoError(t, d.Err)
		assert.Equal(t, http.StatusTemporaryRedirect, d.Status, "a redirect is an answer")
	}
	assert.Zero(t, queries.Load())
}

func TestAnEventForAMovedHostArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	type seen struct{ host, path, signature, body string }
	got := make(chan seen, 2)
	hosts := headstest.WithCallbackHosts(map[string]string{"museum.example": serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Host, r.URL.String(), r.Header.Get(heads.SignatureHeader), string(body)}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message":"it is open"}`)
	})})
	d, key := deliverTo(t, "https://museum.example/h/token/events?a=b", hosts)
	require.NoError(t, d.Err)
	event := <-got
	assert.Equal(t, []string{"museum.example", "/h/token/events?a=b"}, []string{event.host, event.path})
	assert.NoError(t, heads.VerifySignature([]byte(event.body), event.signature, key))

	e := newEmulator(t, hosts)
	call := need(e.CallTool(t.Context(), withTool(e, "https://museum.example/tools/hours"), "weather", nil))(t)
	assert.Equal(t, "it is open", call.Message)
	assert.Equal(t, "/tools/hours", (<-got).path)
}
