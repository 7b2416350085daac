package scenario

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
	"github.com/headsapi/heads-go/headstest"
)

func parse(t *testing.T, text string) *yamltext.Value {
	t.Helper()
	v, err := yamltext.Parse([]byte(text))
	require.NoError(t, err)
	return v
}

func TestValuesAreCompared(t *testing.T) {
	for same, rows := range map[bool][][2]string{
		true: {
			{`a`, `"a"`}, {`1`, `1.0`}, {`1.5e3`, `1500`}, {`null`, `null`}, {`true`, `true`}, {`{a: 1}`, `{"a":1,"b":2}`}, {`[1, {a: 2}]`, `[1,{"a":2,"b":3}]`},
			{`{contains: b}`, `"abc"`}, {`{contains: {a: 1}}`, `[0,{"a":1,"b":2}]`}, {`{matches: "^a.c$"}`, `"abc"`}, {`{a: {absent: true}}`, `{"b":1}`},
			{`{equals: {a: [1]}}`, `{"a":[1]}`}, {`{equals: {contains: 1}}`, `{"contains":1}`}, // a key of an operator's name
		},
		false: {
			{`"1"`, `1`}, {`1`, `"1"`}, {`1e999999999`, `1`}, {`123456789012345678901`, `123456789012345678902`}, {`null`, `false`}, {`{a: 1}`, `{"b":2}`}, {`{a: 1}`, `[1]`},
			{`{a: null}`, `{"b":2}`}, {`[1]`, `[1,2]`}, {`[1, 2]`, `[2,1]`}, {`{contains: x}`, `"abc"`}, {`{contains: "1"}`, `11`}, {`{matches: "1"}`, `1`},
			{`{not: {contains: b}}`, `"abc"`}, {`{a: {absent: true}}`, `{"a":null}`}, {`{equals: {a: 1}}`, `{"a":1,"b":2}`}, {`{equals: [{a: 1}]}`, `[{"a":1,"b":2}]`},
			{`{contains: a, not: {contains: b}}`, `"ab"`}, // operators hold together
		},
	} {
		for _, row := range rows {
			got, err := decodeJSON([]byte(row[1]))
			require.NoError(t, err)
			assert.Equal(t, same, compare(parse(t, row[0]), got, true, "") == nil, row)
		}
	}
}

func TestAMismatchNamesItsPlace(t *testing.T) {
	assert.Equal(t, &mismatch{`json $.a[1]["c d"].e`, "2", "3"}, comparePaths(parse(t, `{"$.a[1][\"c d\"]": {e: 2}}`), []byte(`{"a":[0,{"c d":{"e":3}}]}`), "json"))
	assert.Equal(t, &mismatch{"json $.x", "1", "nothing"}, comparePaths(parse(t, `{$.x: 1}`), []byte(`{}`), "json"))
	assert.Contains(t, comparePaths(parse(t, `{$.x: 1}`), []byte("<html>"), "json").actual, "not JSON: <html>")
}

func TestABodyLosesOneNewlineAndIsJSONForMaps(t *testing.T) {
	for _, row := range [][2]string{{`"a"`, "a\r\n"}, {`{a: 1}`, "{\"a\":1}\n"}, {`{not: {a: 1}}`, `{"a":2}`}, {`{contains: a}`, `{"a":2}`}} {
		assert.Nil(t, compareText(parse(t, row[0]), row[1], "body"), row)
	}
	assert.NotNil(t, compareText(parse(t, `"a"`), "a\n\n", "body"))
}

func TestPathsThatCantBeRead(t *testing.T) {
	for _, text := range []string{"", "a", "$a", "$.", "$..a", "$[a]", "$[-1]", "$[", `$["a]`, `$["\q"]`, "$.a b", "$[99999999]"} {
		_, err := parsePath(text)
		assert.Error(t, err, text)
	}
	p, err := parsePath(`$.a-b[0]["c\"d"][12]`)
	require.NoError(t, err)
	assert.Equal(t, path{"a-b", 0, `c"d`, 12}, p)
}

func TestVariablesKeepTheKindOfWhatWasSaved(t *testing.T) {
	vars := variables{"id": parse(t, "7"), "list": parse(t, "[1, a]")}
	vars.set("name", "Ann")
	v, err := vars.expand(parse(t, `{"${name}": "${id}", text: "no ${id} ${list}", b: ["$${id}", "${name}"]}`))
	require.NoError(t, err)
	document, err := v.AppendJSON(nil)
	require.NoError(t, err)
	assert.Equal(t, `{"Ann":7,"text":"no 7 [1,\"a\"]","b":["${id}","Ann"]}`, string(document))
	_, err = vars.expand(parse(t, "\n  - \"${nam}\""))
	assert.EqualError(t, err, "2:5: ${nam} is not set or not yet saved here; did you mean ${name}?; save it in an earlier step, or write ${env:NAME} for a variable of the environment")
}

func TestRequestsAreCompared(t *testing.T) {
	const get, put = "GET /head/1", "PUT /head/update"
	for name, row := range map[string]struct {
		wanted, others, want string
		sent                 []string
	}{
		"in any order":            {`["PUT /head/update", "GET /head/{id}"]`, "none", "", []string{get, put}},
		"a path":                  {`[GET /head/1]`, "", "", []string{get}},
		"another path":            {`[GET /head/2]`, "", "there are fewer requests than expected", []string{get}},
		"too often":               {`["GET /head/{id}"]`, "", "GET /head/1 was sent more often than expected", []string{get, get}},
		"twice in the list":       {`["GET /head/{id}", "GET /head/{id}"]`, "none", "", []string{get, get}},
		"count":                   {`[{request: "GET /head/{id}", count: 2}]`, "none", "", []string{get, get}},
		"count of none":           {`[{request: "GET /head/{id}", count: 0}]`, "", "GET /head/1 was sent more often than expected", []string{get}},
		"others":                  {`[]`, "", "", []string{get, put}},
		"others that read":        {`[]`, "reads", "", []string{get}},
		"others that write":       {`[]`, "reads", "PUT /head/update was not expected", []string{get, put}},
		"no others":               {`[]`, "none", "GET /head/1 was not expected", []string{get}},
		"the exact one is left":   {`["PUT /head/update", {request: PUT /head/update, body: {n: 0}}]`, "none", "", []string{put, put}},
		"another body":            {`[{request: PUT /head/update, body: {n: 1}}]`, "", "there are fewer requests than expected", []string{put}},
		"another status":          {`[{request: PUT /head/update, status: 503}]`, "", "there are fewer requests than expected", []string{put}},
		"a route of other length": {`["GET /head/{id}/conversation-settings"]`, "", "there are fewer requests than expected", []string{get}},
	} {
		var wanted []wantedRequest
		for _, item := range parse(t, row.wanted).Items {
			wanted = append(wanted, readWantedRequest(item))
		}
		var sent []headstest.Request
		for i, line := range row.sent {
			method, path, _ := strings.Cut(line, " ")
			sent = append(sent, headstest.Request{ID: i + 1, Method: method, Path: path, Status: 200, Body: []byte(`{"n":` + strconv.Itoa(i) + `}`)})
		}
		text := ""
		if v := compareRequests(wanted, row.others, sent); v.problem != nil {
			text = v.problem.text
		}
		assert.Equal(t, row.want, text, name)
	}
}

// slow answers after four seconds.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(4 * time.Second):
		return httptest.NewRecorder().Result(), nil
	case <-r.Context().Done():
		return nil, &url.Error{Op: "Post", URL: "u", Err: r.Context().Err()}
	}
}

func TestTheTimeToAnswerBeginsBehindTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		o := &outbound{transport: slow{}, gate: g, strays: func(*url.URL) bool { return false }, eventTimeout: 5 * time.Second, toolTimeout: 3 * time.Second}
		send := func(header string) error {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:1/", nil)
			r.Header.Set(header, "x")
			response, err := o.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		}
		g.close()
		began := time.Now()
		time.AfterFunc(time.Minute, g.open)
		require.NoError(t, send(signature))
		took := time.Since(began)
		assert.Equal(t, 64*time.Second, took)
		assert.Equal(t, time.Minute, g.held(began, took))
		assert.Equal(t, 30*time.Second, g.held(began.Add(30*time.Second), took))
		assert.EqualError(t, send("X-Tool"), "no answer within 3s")
	})
}

func TestNobodyElseIsCalled(t *testing.T) {
	s := &Scenario{reader: &Reader{CallbackHosts: map[string]string{"Allowed.example": "", "port.example:443": ""}}, backend: &backendSpec{url: "https://shop.example.com/base"}}
	for address, may := range map[string]bool{
		"http://127.0.0.1:9/x": true, "http://localhost/x": true, "https://[::1]:1/": true,
		"https://shop.example.com/base": true, "https://shop.example.com/base/x": true,
		"https://shop.example.com/based": false, "https://shop.example.com/": false, "http://shop.example.com/base/x": false,
		"https://other.example.com/base/x": false, "https://shop.example.com:444/base/x": false, "https://localhost.example.com/": false, ":": false,
		"https://shop.example.com/base/../admin": false, "https://shop.example.com/base/..%2fadmin": false, `https://shop.example.com/base/..\admin`: false,
		"https://shop.example.com/base/%2e%2e/admin": false, "https://shop.example.com/base/x/../y": true, "https://shop.example.com/base//": true,
		"https://allowed.EXAMPLE:9/x": true, "https://port.example/x": true, "https://port.example:444/x": false,
	} {
		assert.Equal(t, may, s.mayCall(address), address)
	}
	assert.Equal(t, map[string]string{"Allowed.example": "", "port.example:443": "", "shop.example.com:443": ""}, s.callbackHosts())
	o := &outbound{gate: newGate(), strays: s.strays}
	for _, address := range []string{"https://shop.example.com/admin", "https://SHOP.example.com:443/base/../admin"} {
		_, err := o.RoundTrip(httptest.NewRequest(http.MethodPost, address, nil))
		assert.ErrorIs(t, err, errNobodyElse, address)
	}
}

func TestPortsLieBelowThoseOfOutgoingConnections(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := reservePort()
		require.NoError(t, err)
		defer p.release()
		assert.Less(t, p.number, 32768)
		assert.False(t, seen[p.number], "a port is reserved once")
		seen[p.number] = true
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	assert.False(t, isFree(l.Addr().(*net.TCPAddr).Port))
}

func TestTheLastLinesAreKept(t *testing.T) {
	var out tail
	for i := range 20 {
		_, _ = io.WriteString(&out, "line "+strconv.Itoa(i)+"\nha")
		_, _ = io.WriteString(&out, "lf ")
	}
	last := out.last()
	assert.Len(t, last, maxLines)
	assert.Equal(t, []string{"half line 19", "half"}, last[maxLines-2:])
	_, _ = io.WriteString(&out, strings.Repeat("x", 1<<20))
	assert.LessOrEqual(t, len(out.rest), maxLine)
}

func TestTheEventsOfOneSessionAreCompared(t *testing.T) {
	answers := make(chan int, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(<-answers) }))
	defer receiver.Close()
	e := headstest.NewEmulator(headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule(0, 0))
	defer e.Close()
	id := e.AddHead(headstest.Head{EnableEvents: true})
	_, _, err := e.AddWebhook(id, receiver.URL, "start_conversation", "end_conversation")
	require.NoError(t, err)
	w := &world{emulator: e, gate: newGate()}
	s := &session{Session: e.StartSession(id), taken: map[string]int{}}
	compareWith := func(items string) verdict {
		var wanted []wantedEvent
		for _, item := range parse(t, items).Items {
			wanted = append(wanted, readWantedEvent(item))
		}
		return w.compareEvents(s, "", wanted)
	}
	assert.Nil(t, compareWith("[]").problem)
	require.NoError(t, s.UserMessage("Hello"))
	assert.False(t, compareWith("[start_conversation]").final, "its delivery has not ended")
	assert.NotNil(t, compareWith("[]").problem, "a delivery has not ended")
	answers <- 503
	_, err = e.WaitDelivery(t.Context(), func(d headstest.Delivery) bool { return d.Attempt == 1 })
	require.NoError(t, err)
	assert.Nil(t, compareWith("[{event: start_conversation, outcome: retrying, answers: [503]}]").problem)
	assert.False(t, compareWith("[start_conversation]").final)
	answers <- 200
	_, err = e.WaitDelivery(t.Context(), func(d headstest.Delivery) bool { return d.Final })
	require.NoError(t, err)
	assert.Nil(t, compareWith("[start_conversation]").problem)
	assert.Nil(t, compareWith("[{event: start_conversation, answers: [503, 200]}]").problem)
	for items, want := range map[string]string{
		"[{event: start_conversation, answers: [200]}]":    "event 1: the attempts were answered otherwise",
		"[{event: start_conversation, outcome: failed}]":   "event 1: the delivery has another outcome",
		"[{event: start_conversation, outcome: retrying}]": "event 1: the delivery has another outcome",
		"[end_conversation]":                               "event 1: another event was delivered",
		"[start_conversation, end_conversation]":           "there are fewer events than expected",
		"[]":                                               "there are more events than expected",
		"[{event: start_conversation, within: 1ns}]":       "event 1: an attempt took ",
	} {
		v := compareWith(items)
		require.NotNil(t, v.problem, items)
		assert.True(t, v.final, items)
		assert.Contains(t, v.problem.text, want, items)
	}
}
