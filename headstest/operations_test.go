package headstest_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

func TestEveryRouteIsInTheDescription(t *testing.T) {
	text, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(text, &description))
	var described []string
	for path, methods := range description.Paths {
		if strings.HasPrefix(path, "/_emulator/") {
			continue
		}
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(described)
	assert.Equal(t, described, headstest.Routes())
	assert.Equal(t, described, headstest.Patterns())
	assert.Len(t, described, 11+3, "the contract's, and those seen in the field")
}

func TestEveryOperationNeedsTheBearerToken(t *testing.T) {
	a := newAPI(t, headstest.WithToken("right"))
	routes := []struct{ method, path string }{
		{"PUT", "/head/update"}, {"GET", "/head/x"}, {"GET", "/head_visual/x"},
		{"PUT", "/head/x/video-streaming?videoStreaming=true"}, {"PUT", "/head/x/conversation-settings"},
		{"POST", "/head-events"}, {"GET", "/head-events?headId=x"}, {"GET", "/head-events/1"},
		{"PATCH", "/head-events/1"}, {"DELETE", "/head-events/1"}, {"PUT", "/head/x/enable-events?enableEvents=true"},
		{"GET", "/head/x/enable-events"}, {"GET", "/head/x/conversation-settings"}, {"PUT", "/head/x/splitter?splitter=true"},
	}
	credentials := map[string][]string{
		"none": nil, "wrong": {"Bearer wrong"}, "empty": {"Bearer "}, "bare": {"right"}, "basic": {"Basic right"},
		"longer": {"Bearer right " + "x"}, "two": {"Bearer right", "Bearer right"},
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		req := a.request("GET", "/head-events?headId=x", "")
		req.Header.Set("Authorization", scheme+" right")
		assert.NotEqual(t, 401, a.send(req).status, scheme)
	}
	for _, route := range routes {
		for name, values := range credentials {
			t.Run(route.method+route.path+" "+name, func(t *testing.T) {
				req := a.request(route.method, route.path, "")
				req.Header["Authorization"] = values
				ans := a.send(req)
				ans.refused(t, 401, "Bearer")
				assert.Equal(t, "Bearer", ans.header.Get("WWW-Authenticate"))
			})
		}
	}
}

// The service may have operations that the emulator does not have, so the answer names the
// emulator, for any path and also without a token.
func TestUnknownOperationIsRefusedWithTheNearestOne(t *testing.T) {
	a, id := withHead(t)
	rows := []struct{ request, nearest string }{
		{"POST /head/create", "PUT /head/update"},
		{"GET /head/all", "GET /head/{id}"},
		{"GET /head/list", "GET /head/{id}"},
		{"POST /head/list", "GET /head/{id}"},
		{"PUT /head/assign-visual", "GET /head/{id}"},
		{"PUT /head/" + id + "/assign-visual", "GET /head/{id}"},
		{"PUT /head/" + id + "/streaming", "PUT /head/{headId}/video-streaming"},
		{"PUT /head/" + id + "/conversationSettings", "PUT /head/{headId}/conversation-settings"},
		{"GET /head/" + id + "/conversation_settings", "GET /head/{headId}/conversation-settings"},
		{"GET /heads/" + id, "GET /head/{id}"},
		{"GET /Head/" + id, "GET /head/{id}"},
		{"POST /auth/token", ""},
		{"GET /head-visual/" + id, "GET /head_visual/{headVisualId}"},
		{"POST /head_visual/create", "GET /head_visual/{headVisualId}"},
		{"GET /head_visual", "GET /head_visual/{headVisualId}"},
		{"GET /head-events/all", "GET /head-events"},
		{"POST /head-events/create", ""},
		{"GET /", ""}, {"GET /head", "GET /head/{id}"}, {"GET /head/", ""}, {"GET /head/" + id + "/", ""}, {"GET //head/" + id, ""},
		{"GET /head/" + id + "/x", "GET /head/{id}"}, {"GET /head/./" + id, ""}, {"GET /head/" + id + "/../" + id, ""}, {"GET /head-events/", ""},
	}
	for _, row := range rows {
		for _, token := range []string{"Bearer " + a.Token, "Bearer wrong", ""} {
			t.Run(row.request+" "+token, func(t *testing.T) {
				method, path, _ := strings.Cut(row.request, " ")
				req := a.request(method, path, "")
				req.Header.Set("Authorization", token)
				a.send(req).refused(t, 404, row.request+" is not an operation of this emulator; the nearest one is "+row.nearest)
			})
		}
	}
	a.do("GET", "/head/all", "").refused(t, 404, `there is no head "all"`)
	a.do("GET", "/head-events/all", "").refused(t, 404, `there is no webhook "all"`)
	a.do("GET", "/head_visual/all", "").refused(t, 404, `there is no head visual "all"`)
	assert.NotContains(t, a.do("POST", "/head/create", "").body, "there is no")
	a.do("GET", "/heads"+strings.Repeat("x", 100_000), "").refused(t, 404, "the nearest one is")
}

// A path with an unknown id is an operation.
func TestUnknownIDsAreNotFound(t *testing.T) {
	a := newAPI(t)
	for path, says := range map[string]string{
		"/head/" + seedHead: "there is no head", "/head/li-28379": "there is no head", "/head/x": "there is no head",
		"/head_visual/" + seedHead: "there is no head visual", "/head-events/7": "there is no webhook",
	} {
		ans := a.do("GET", path, "")
		ans.refused(t, 404, says)
		assert.NotContains(t, ans.body, "operation", path)
	}
	for _, path := range []string{"/head/" + seedHead + "/enable-events?enableEvents=true", "/head/all/enable-events?enableEvents=true"} {
		a.do("PUT", path, "").refused(t, 404, "there is no head")
	}
	id := a.AddHead(headstest.Head{ID: "lobby", HeadVisualID: "lobby-visual"})
	a.ok("GET", "/head/"+id, "")
	a.ok("GET", "/head_visual/lobby-visual", "")
	a.do("DELETE", "/head/"+id, "").refused(t, 405, "DELETE")
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	a, id := withHead(t)
	rows := []struct{ method, path, allow string }{
		{"POST", "/head/update", "PUT"}, {"GET", "/head/update", "PUT"}, {"DELETE", "/head/" + id, "GET, HEAD"}, {"PUT", "/head/" + seedHead, "GET, HEAD"},
		{"PUT", "/head_visual/x", "GET, HEAD"}, {"POST", "/head/" + id + "/video-streaming", "PUT"},
		{"DELETE", "/head/" + id + "/enable-events", "GET, HEAD, PUT"}, {"POST", "/head/" + id + "/splitter", "PUT"},
		{"PATCH", "/head/" + id + "/conversation-settings", "GET, HEAD, PUT"},
		{"DELETE", "/head-events", "GET, HEAD, POST"}, {"PUT", "/head-events/1", "DELETE, GET, HEAD, PATCH"},
	}
	for _, row := range rows {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			ans := a.do(row.method, row.path, "")
			ans.refused(t, 405, row.method+" is not a method of "+strings.SplitN(row.path, "?", 2)[0])
			assert.Equal(t, row.allow, ans.header.Get("Allow"))
			req := a.request(row.method, row.path, "")
			req.Header.Del("Authorization")
			a.send(req).refused(t, 401, "Bearer")
		})
	}
}

func TestBodiesThatAreNoJSONObjectAreRefused(t *testing.T) {
	a, id := withHead(t)
	hook, _ := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test"}`)
	routes := []struct{ method, path string }{
		{"PUT", "/head/update"}, {"PUT", "/head/" + id + "/conversation-settings"},
		{"POST", "/head-events"}, {"PATCH", fmt.Sprint("/head-events/", hook)},
	}
	rows := []struct {
		name, body, contentType string
		status                  int
		says                    string
	}{
		{"empty", "", "application/json", 400, "empty"},
		{"empty without type", "", "", 400, "empty"},
		{"blank", "  ", "application/json", 400, "not JSON"},
		{"list", "[]", "application/json", 400, "not a JSON object"},
		{"null", "null", "application/json", 400, "not a JSON object"},
		{"text", `"x"`, "application/json", 400, "not a JSON object"},
		{"broken", `{"id":`, "application/json", 400, "not JSON"},
		{"two values", `{} {}`, "application/json", 400, "not JSON"},
		{"not UTF-8", "{\"id\":\"\xff\"}", "application/json", 400, "UTF-8"},
		{"too large", `{"id":"` + strings.Repeat("x", 1<<20) + `"}`, "application/json", 413, "larger"},
		{"no content type", `{"id":"x","name":"y"}`, "", 415, "application/json"},
		{"form", `{"id":"x","name":"y"}`, "application/x-www-form-urlencoded", 415, "application/json"},
		{"text type", `{"id":"x","name":"y"}`, "text/plain", 415, "application/json"},
	}
	for _, route := range routes {
		for _, row := range rows {
			t.Run(route.method+" "+row.name, func(t *testing.T) {
				req := a.request(route.method, route.path, row.body)
				req.Header.Set("Content-Type", row.contentType)
				a.send(req).refused(t, row.status, row.says)
			})
		}
	}
}

func TestJSONContentTypeMayHaveParameters(t *testing.T) {
	a, id := withHead(t)
	req := a.request("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)
	req.Header.Set("Content-Type", "Application/JSON; charset=utf-8")
	require.Equal(t, 200, a.send(req).status)
	assert.Equal(t, "Bea", a.head(id)["name"])
}

func TestUndocumentedAnswers(t *testing.T) {
	rows := []struct {
		name  string
		style headstest.Responses
		check func(t *testing.T, body, id string)
	}{
		{"empty", headstest.ResponsesEmpty, func(t *testing.T, body, _ string) { assert.Empty(t, body) }},
		{"bool", headstest.ResponsesBool, func(t *testing.T, body, _ string) { assert.Equal(t, "true", body) }},
		{"record", headstest.ResponsesRecord, func(t *testing.T, body, id string) { assert.Equal(t, id, fmt.Sprint(object(t, body)["id"])) }},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			a, id := withHead(t, headstest.WithResponses(row.style))
			created := object(t, a.ok("POST", "/head-events", `{"headId":"`+id+`","webhookUrl":"https://hook.example.test"}`).body)
			assert.NotEmpty(t, created["sharedKey"], "a new registration always shows its key")
			assert.Equal(t, row.style == headstest.ResponsesRecord, created["id"] != nil)
			answers := []answer{
				a.ok("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`),
				a.ok("PUT", "/head/"+id+"/video-streaming?videoStreaming=true", ""),
				a.ok("PUT", "/head/"+id+"/conversation-settings", `{"conversationSettings":{"tools":[]}}`),
				a.ok("PUT", "/head/"+id+"/enable-events?enableEvents=true", ""),
			}
			for _, ans := range answers {
				assert.Equal(t, 200, ans.status)
				row.check(t, ans.body, id)
			}
			row.check(t, a.ok("PATCH", "/head-events/1", `{"endConversation":true}`).body, "1")
			row.check(t, a.ok("DELETE", "/head-events/1", "").body, "1")
		})
	}
}

func TestRequestsAreInTheJournalWhenAnswered(t *testing.T) {
	a, id := withHead(t)
	a.ok("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)
	a.do("GET", "/head-events?headId=nobody", "")
	got := a.Requests()
	require.Len(t, got, 2)
	assert.Equal(t, []any{"PUT", "/head/update", 200, "Bearer " + a.Token}, []any{got[0].Method, got[0].Path, got[0].Status, got[0].Header.Get("Authorization")})
	assert.JSONEq(t, `{"id":"`+id+`","name":"Bea"}`, string(got[0].Body))
	assert.False(t, got[0].At.IsZero())
	assert.Equal(t, []any{"headId=nobody", 404}, []any{got[1].Query, got[1].Status})
}

func TestJournalOfRequestsIsBounded(t *testing.T) {
	a := newAPI(t, headstest.WithJournalSize(3))
	for i := range 10 {
		a.do("GET", fmt.Sprint("/head/", i), "")
	}
	got := a.Requests()
	require.Len(t, got, 3)
	assert.Equal(t, "/head/7", got[0].Path)
	assert.Equal(t, "/head/9", got[2].Path)
}

func TestJournalOfRequestsIsBoundedInBytes(t *testing.T) {
	e := newEmulator(t)
	body := strings.Repeat("x", 1<<20)
	for range 40 {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/head/update", strings.NewReader(body)))
	}
	assert.Len(t, e.Requests(), 32)
}

func TestRequestsAreLogged(t *testing.T) {
	var log lockedBuilder
	a := newAPI(t, headstest.WithToken("canary-token"), headstest.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	a.do("GET", "/head/nobody?api_key=canary-query", "")
	assert.Contains(t, log.String(), "method=GET path=/head/nobody status=404")
	assert.NotContains(t, log.String(), "canary")
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
