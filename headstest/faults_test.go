package headstest_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestFaultsMatchByMethodAndRoute(t *testing.T) {
	a, id := withHead(t)
	for _, row := range []struct {
		method, route, request string
		matches                bool
	}{
		{"", "", "GET /head/ID", true},
		{"GET", "", "GET /head/ID", true},
		{"get", "", "GET /head/ID", true},
		{"PUT", "", "GET /head/ID", false},
		{"", "/head/{id}", "GET /head/ID", true},
		{"", "/head/{headId}", "GET /head/ID", true},
		{"", "/head/ID", "GET /head/ID", true},
		{"", "/head/other", "GET /head/ID", false},
		{"", "/head/{id}", "PUT /head/update", false},
		{"PUT", "/head/update", "PUT /head/update", true},
		{"", "/head/{headId}/video-streaming", "PUT /head/ID/video-streaming?videoStreaming=true", true},
		{"", "/head/{id}/enable-events", "PUT /head/ID/video-streaming?videoStreaming=true", false},
		{"", "/head/ID/video-streaming", "PUT /head/ID/video-streaming?videoStreaming=true", true},
		{"", "/head_visual/{x}", "GET /head_visual/V", true},
		{"POST", "/head-events", "GET /head-events?headId=ID", false},
		{"GET", "/head-events", "GET /head-events?headId=ID", true},
		{"", "/head-events", "GET /head-events/1", false},
		{"", "/head-events/{webhookId}", "GET /head-events/1", true},
		{"", "/head/{id}", "GET /nowhere", false},
	} {
		remove := a.Inject(headstest.Fault{Method: row.method, Route: strings.ReplaceAll(row.route, "ID", id), Status: 502})
		method, path, _ := strings.Cut(strings.ReplaceAll(row.request, "ID", id), " ")
		assert.Equal(t, row.matches, a.do(method, path, "").status == 502, row)
		remove()
	}
}

func TestFaultsHappenSoManyTimes(t *testing.T) {
	a, _ := withHead(t)
	a.Inject(headstest.Fault{Status: 500, Times: 2})
	a.Inject(headstest.Fault{Status: 503, Times: 1})
	assert.Equal(t, "500 500 503 200 200", a.statuses(5), "in the order of injection")
	remove := a.Inject(headstest.Fault{Status: 502})
	assert.Equal(t, "502 502 502", a.statuses(3))
	remove()
	remove()
	assert.Equal(t, "200", a.statuses(1))
}

func TestFaultStatusComesWithoutEffectOrAfterIt(t *testing.T) {
	for _, after := range []bool{false, true} {
		a, id := withHead(t)
		a.Inject(headstest.Fault{Route: "/head/update", Status: 500, Times: 1, Body: `{"message":"broken"}`, After: after})
		ans := a.do("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)
		assert.Equal(t, []any{500, `{"message":"broken"}`, "application/json"}, []any{ans.status, ans.body, ans.header.Get("Content-Type")})
		assert.Equal(t, after, a.head(id)["name"] == "Bea")
		assert.Equal(t, 500, a.Requests()[0].Status)
	}
}

func TestFaultBodies(t *testing.T) {
	a, id := withHead(t)
	const plain = "text/plain; charset=utf-8"
	for _, row := range []struct {
		fault                         headstest.Fault
		status                        int
		body, contentType, retryAfter string
	}{
		{headstest.Fault{Status: 200}, 200, "", "", ""},
		{headstest.Fault{Body: "Bad gateway"}, 200, "Bad gateway", plain, ""},
		{headstest.Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}, 429, "", "", "2"},
	} {
		row.fault.Times = 1
		a.Inject(row.fault)
		ans := a.do("GET", "/head/"+id, "")
		assert.Equal(t, []any{row.status, row.body, row.contentType, row.retryAfter}, []any{ans.status, ans.body, ans.header.Get("Content-Type"), ans.header.Get("Retry-After")})
	}
}

func TestFaultComesBeforeTheCredentialIsChecked(t *testing.T) {
	a := newAPI(t)
	a.Inject(headstest.Fault{Status: 503, Times: 1})
	req := a.request("GET", "/head/x", "")
	req.Header.Del("Authorization")
	assert.Equal(t, 503, a.send(req).status)
	assert.Equal(t, 401, a.send(req).status)
}

func TestCutConnections(t *testing.T) {
	for fault, effect := range map[headstest.Fault]bool{
		{Cut: headstest.CutBefore}:              false,
		{Cut: headstest.CutAfter}:               true,
		{Cut: headstest.CutAfter, Status: 500}:  true,
		{Cut: headstest.CutBefore, After: true}: false,
		{CutBody: true}:                         true, // in the middle of nothing
	} {
		a, id := withHead(t)
		fault.Times, fault.Route = 1, "/head/update"
		a.Inject(fault)
		require.ErrorIs(t, a.rename(id, time.Minute), io.EOF)
		assert.Equal(t, effect, a.head(id)["name"] == "Bea", "%+v", fault)
		assert.Zero(t, a.Requests()[0].Status)
	}
}

func TestCutBodyBreaksOffHalfWay(t *testing.T) {
	a, id := withHead(t, headstest.WithResponses(headstest.ResponsesRecord))
	for _, hc := range map[string]*http.Client{"socket": a.hc, "memory": {Transport: a.Transport()}} {
		a.Inject(headstest.Fault{CutBody: true, Times: 1})
		resp := need(hc.Do(a.request("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)))(t)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, 200, resp.StatusCode)
		assert.Len(t, body, int(resp.ContentLength/2))
		assert.Equal(t, "Bea", a.head(id)["name"])
	}
}

func TestLatencyIsWaitedBeforeOrAfterTheEffect(t *testing.T) {
	for fault, effect := range map[headstest.Fault]bool{ // if the caller gives up during the wait
		{}:                         false,
		{Status: 500}:              false,
		{Status: 500, After: true}: true,
		{After: true}:              true,
		{Cut: headstest.CutAfter}:  true,
		{Cut: headstest.CutBefore}: false,
	} {
		t.Run(fmt.Sprintf("%+v", fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, id := inMemory(t).with(headstest.Head{})
				fault.Latency, fault.Times = time.Minute, 2
				a.Inject(fault)
				start := time.Now()
				_ = a.rename("another", time.Hour)
				assert.Equal(t, time.Minute, time.Since(start))
				require.ErrorIs(t, a.rename(id, time.Second), context.DeadlineExceeded)
				assert.Equal(t, time.Minute+time.Second, time.Since(start))
				assert.Equal(t, effect, a.head(id)["name"] == "Bea")
			})
		})
	}
}

func TestCloseEndsDelayedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inMemory(t)
		a.Inject(headstest.Fault{Latency: time.Hour})
		time.AfterFunc(time.Second, a.Emulator.Close)
		start := time.Now()
		assert.ErrorIs(t, a.rename("x", 2*time.Hour), io.EOF)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestCancelledRequestOverASocketHasNoEffect(t *testing.T) {
	a, id := withHead(t)
	a.Inject(headstest.Fault{Route: "/head/update", Latency: time.Hour, Times: 1})
	require.ErrorIs(t, a.rename(id, 50*time.Millisecond), context.DeadlineExceeded)
	require.Eventually(t, func() bool { return len(a.Requests()) == 1 }, 5*time.Second, time.Millisecond)
	assert.Equal(t, "Ada", a.head(id)["name"])
}

func TestFaultsThatCanNeverHappenAreRefused(t *testing.T) {
	e := newEmulator(t)
	for name, f := range map[string]headstest.Fault{
		"unknown route":             {Route: "/nowhere", Status: 500},
		"misspelt route":            {Route: "/head/{id}/videostreaming", Status: 500},
		"route without its slash":   {Route: "head/update", Status: 500},
		"route with a query":        {Route: "/head-events?headId=x", Status: 500},
		"method that a route lacks": {Method: "POST", Route: "/head/update", Status: 500},
		"unknown method":            {Method: "GTE", Status: 500},
		"unfinished parameter":      {Route: "/head/{id", Status: 500},
		"status below 200":          {Status: 199},
		"status above 599":          {Status: 600},
		"negative status":           {Status: -1},
		"share above 1":             {Share: 1.01},
		"share below 0":             {Share: -0.1},
		"share that is no number":   {Share: math.NaN()},
	} {
		assert.Error(t, f.Validate(), name)
		assert.Panics(t, func() { e.Inject(f) }, name)
	}
	for _, f := range []headstest.Fault{{}, {Method: "delete"}, {Route: "/head/{anything}"}, {Route: "/head/some-id/splitter"}, {Method: "GET", Route: "/head_visual/loops"}, {Share: 1}} {
		assert.NoError(t, f.Validate())
	}
	assert.ErrorContains(t, headstest.DeliveryFault{Event: "start"}.Validate(), `no event "start"`)
	assert.Panics(t, func() { e.InjectDelivery(headstest.DeliveryFault{Event: "start"}) })
	assert.ErrorContains(t, headstest.DeliveryFault{Status: 99}.Validate(), "status 99 can't end an answer")
	assert.ErrorContains(t, headstest.DeliveryFault{Status: 503, Drop: true}.Validate(), "in a fault of their own")
	assert.NoError(t, headstest.DeliveryFault{WebhookID: 1, Event: "end_conversation", Times: 2, Status: 503}.Validate())
	assert.Empty(t, e.Snapshot().Faults)
	assert.Empty(t, e.Snapshot().DeliveryFaults)
}

// statuses returns the statuses of n reads of a head.
func (a *api) statuses(n int) string {
	a.t.Helper()
	got := make([]string, n)
	for i := range got {
		got[i] = fmt.Sprint(a.do("GET", "/head/"+a.Heads()[0], "").status)
	}
	return strings.Join(got, " ")
}

func TestShareOfTheRequestsFails(t *testing.T) {
	run := func(seed uint64, share float64) string {
		a, _ := inMemory(t, headstest.WithSeed(seed)).with(headstest.Head{})
		a.Inject(headstest.Fault{Status: 503, Share: share})
		return a.statuses(1000)
	}
	fifth := run(1, 0.2)
	assert.InDelta(t, 200, strings.Count(fifth, "503"), 50)
	assert.Equal(t, fifth, run(1, 0.2), "the same with the same seed")
	assert.NotEqual(t, fifth, run(2, 0.2))
	assert.Equal(t, 1000, strings.Count(run(1, 0), "503"), "0 is all")
	assert.Equal(t, 1000, strings.Count(run(1, 1), "503"))
}

func TestFaultsWithAShareLetOtherFaultsMatch(t *testing.T) {
	a, _ := inMemory(t, headstest.WithSeed(1)).with(headstest.Head{})
	a.Inject(headstest.Fault{Status: 503, Share: 0.5, Times: 3})
	a.Inject(headstest.Fault{Status: 500, Times: 20})
	got := a.statuses(30)
	assert.Equal(t, []int{3, 20}, []int{strings.Count(got, "503"), strings.Count(got, "500")}, "times are those that have happened")
	assert.NotContains(t, got, "503 503 503")
	assert.Regexp(t, `^(50[03] ){23}(200 ?){7}$`, got)
}

func TestDeliveryFaults(t *testing.T) {
	const steps = "message inactive close"
	plain := []string{"start_conversation", "inactivity_warning", "end_conversation"}
	for _, row := range []struct {
		name  string
		fault headstest.DeliveryFault
		types []string
		check func(t *testing.T, s *scene, start time.Time)
	}{
		{"nothing", headstest.DeliveryFault{}, plain, nil},
		{"drop one", headstest.DeliveryFault{Times: 1, Drop: true}, plain[1:], func(t *testing.T, s *scene, _ time.Time) {
			d := s.Deliveries()[0]
			assert.Equal(t, []any{0, true, heads.EventStartConversation}, []any{d.Attempt, d.Final, d.Event.Type})
			assert.ErrorIs(t, d.Err, headstest.ErrDropped)
		}},
		{"drop all", headstest.DeliveryFault{Drop: true}, []string{}, nil},
		{"drop by event", headstest.DeliveryFault{Event: "inactivity_warning", Drop: true}, []string{plain[0], plain[2]}, nil},
		{"drop of another registration", headstest.DeliveryFault{WebhookID: 99, Drop: true}, plain, nil},
		{"drop of this registration", headstest.DeliveryFault{WebhookID: 1, Drop: true}, []string{}, nil},
		{"duplicate", headstest.DeliveryFault{Times: 1, Duplicate: true}, []string{plain[0], plain[0], plain[1], plain[2]}, func(t *testing.T, s *scene, _ time.Time) {
			assert.Equal(t, s.all()[0].body, s.all()[1].body)
			assert.Equal(t, s.all()[0].signature, s.all()[1].signature)
		}},
		{"reorder", headstest.DeliveryFault{Times: 1, Reorder: true}, []string{plain[1], plain[0], plain[2]}, nil},
		{"reorder and duplicate", headstest.DeliveryFault{Times: 1, Reorder: true, Duplicate: true}, []string{plain[1], plain[0], plain[0], plain[2]}, nil},
		{"delay", headstest.DeliveryFault{Times: 1, Delay: time.Minute}, plain, func(t *testing.T, s *scene, start time.Time) {
			assert.Equal(t, time.Minute, s.all()[0].at.Sub(start))
			assert.Equal(t, time.Minute, s.all()[2].at.Sub(start))
		}},
		{"corrupt signature", headstest.DeliveryFault{Times: 1, CorruptSignature: true}, plain, func(t *testing.T, s *scene, _ time.Time) {
			first := s.all()[0]
			assert.NotEqual(t, hexHMAC(first.body, s.key), first.signature)
			assert.Regexp(t, "^[0-9a-f]{64}$", first.signature)
			assert.Equal(t, hexHMAC(s.all()[1].body, s.key), s.all()[1].signature)
		}},
		{"other encoding", headstest.DeliveryFault{Times: 1, Encoding: headstest.SignatureBase64}, plain, func(t *testing.T, s *scene, _ time.Time) {
			sum := need(base64.StdEncoding.DecodeString(s.all()[0].signature))(t)
			assert.Equal(t, hexHMAC(s.all()[0].body, s.key), hex.EncodeToString(sum))
		}},
		{"old timestamp", headstest.DeliveryFault{Times: 1, Age: 48 * time.Hour}, plain, func(t *testing.T, s *scene, start time.Time) {
			assert.Contains(t, string(s.all()[0].body), start.UTC().Add(-48*time.Hour).Format("2006-01-02 15:04:05"))
			assert.Equal(t, hexHMAC(s.all()[0].body, s.key), s.all()[0].signature, "signed all the same")
		}},
		{"status", headstest.DeliveryFault{Times: 2, Status: 503}, plain, func(t *testing.T, s *scene, _ time.Time) {
			var attempts []string
			for _, d := range s.Deliveries()[:3] {
				attempts = append(attempts, fmt.Sprint(d.Event.Type, d.Attempt, d.Status, d.Final, string(d.Reply)))
			}
			const fault = "A fault answered this attempt. Nothing was sent."
			assert.Equal(t, []string{"start_conversation1 503 false" + fault, "start_conversation2 503 false" + fault, "start_conversation3 200 true"}, attempts)
		}},
		{"status 200", headstest.DeliveryFault{Times: 1, Status: 200}, plain[1:], nil},
		{"status for another event", headstest.DeliveryFault{Event: "timeout_conversation", Status: 503}, plain, nil},
		{"future timestamp", headstest.DeliveryFault{Times: 1, Age: -time.Hour}, plain, func(t *testing.T, s *scene, start time.Time) {
			assert.Contains(t, string(s.all()[0].body), start.UTC().Add(time.Hour).Format("2006-01-02 15:04:05"))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			play(t, &receiver{}, nil, func(s *scene) {
				start := time.Now()
				s.InjectDelivery(row.fault)
				s.converse(steps)
				assert.Equal(t, row.types, s.types())
				if row.check != nil {
					row.check(t, s, start)
				}
			})
		})
	}
}
