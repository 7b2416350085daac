package headstest_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

func TestEveryOperationNeedsTheBearerToken(t *testing.T) {
	a := newAPI(t, headstest.WithToken("right"))
	credentials := map[string][]string{
		"none": nil, "wrong": {"Bearer wrong"}, "empty": {"Bearer "}, "bare": {"right"}, "basic": {"Basic right"},
		"longer": {"Bearer right " + "x"}, "two": {"Bearer right", "Bearer right"},
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		req := a.request("GET", "/head-events?headId=x", "")
		req.Header.Set("Authorization", scheme+" right")
		assert.NotEqual(t, 401, a.send(req).status, scheme)
	}
	for _, route := range headstest.Routes() {
		method, path, _ := strings.Cut(parameter.ReplaceAllString(route, "x"), " ")
		for name, values := range credentials {
			req := a.request(method, path, "")
			req.Header["Authorization"] = values
			ans := a.send(req)
			ans.refused(t, 401, "Bearer")
			assert.Equal(t, "Bearer", ans.header.Get("WWW-Authenticate"), "%s with %s", route, name)
		}
	}
}

// The service may have operations that the emulator does not have, so the answer names the
// emulator, for any path and also without a token.
func TestUnknownOperationIsRefusedWithTheNearestOne(t *testing.T) {
	a, id := withHead(t)
	for _, row := range []struct{ request, nearest string }{
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
	} {
		for _, token := range []string{"Bearer " + a.Token, "Bearer wrong", ""} {
			method, path, _ := strings.Cut(row.request, " ")
			req := a.request(method, path, "")
			req.Header.Set("Authorization", token)
			a.send(req).refused(t, 404, row.request+" is not an operation of this emulator; the nearest one is "+row.nearest)
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
	for _, row := range []struct{ method, path, body string }{
		{"PUT", "/head/update", `{"id":"` + seedHead + `","name":"x"}`},
		{"PUT", streaming("nobody", true), ""},
		{"PUT", "/head/nobody/conversation-settings", `{"conversationSettings":{}}`},
		{"PUT", "/head/all/enable-events?enableEvents=true", ""},
		{"GET", "/head/nobody/enable-events", ""},
		{"GET", "/head/nobody/conversation-settings", ""},
		{"PUT", "/head/nobody/splitter?splitter=true", ""},
		{"POST", "/head-events", `{"headId":"nobody","webhookUrl":"https://hook.example.test"}`},
		{"GET", "/head-events?headId=nobody", ""},
	} {
		a.do(row.method, row.path, row.body).refused(t, 404, "there is no head")
	}
	id := a.AddHead(headstest.Head{ID: "lobby", HeadVisualID: "lobby-visual"})
	a.ok("GET", "/head/"+id, "")
	a.ok("GET", "/head_visual/lobby-visual", "")
	a.do("DELETE", "/head/"+id, "").refused(t, 405, "DELETE")
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	a, id := withHead(t)
	for _, row := range []struct{ method, path, allow string }{
		{"POST", "/head/update", "PUT"}, {"GET", "/head/update", "PUT"}, {"DELETE", "/head/" + id, "GET, HEAD"}, {"PUT", "/head/" + seedHead, "GET, HEAD"},
		{"PUT", "/head_visual/x", "GET, HEAD"}, {"POST", "/head/" + id + "/video-streaming", "PUT"},
		{"DELETE", "/head/" + id + "/enable-events", "GET, HEAD, PUT"}, {"POST", "/head/" + id + "/splitter", "PUT"},
		{"PATCH", "/head/" + id + "/conversation-settings", "GET, HEAD, PUT"},
		{"DELETE", "/head-events", "GET, HEAD, POST"}, {"PUT", "/head-events/1", "DELETE, GET, HEAD, PATCH"},
	} {
		req := a.request(row.method, row.path, "")
		ans := a.send(req)
		ans.refused(t, 405, row.method+" is not a method of "+row.path)
		assert.Equal(t, row.allow, ans.header.Get("Allow"), row.path)
		req.Header.Del("Authorization")
		a.send(req).refused(t, 401, "Bearer")
	}
}

func TestBodiesThatAreNoJSONObjectAreRefused(t *testing.T) {
	t.Parallel() // closing the connection of a refused body takes half a second
	a, id := withHead(t)
	hook, _ := a.register(`{"headId":"` + id + `","webhookUrl":"https://hook.example.test"}`)
	for _, row := range []struct {
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
		{"list with a charset", "[]", "Application/JSON; charset=utf-8", 400, "not a JSON object"},
		{"form", `{"id":"x","name":"y"}`, "application/x-www-form-urlencoded", 415, "application/json"},
		{"text type", `{"id":"x","name":"y"}`, "text/plain", 415, "application/json"},
	} {
		for _, route := range []string{"PUT /head/update", "PUT /head/" + id + "/conversation-settings", "POST /head-events", fmt.Sprint("PATCH /head-events/", hook)} {
			t.Run(route+" "+row.name, func(t *testing.T) {
				method, path, _ := strings.Cut(route, " ")
				req := a.request(method, path, row.body)
				req.Header.Set("Content-Type", row.contentType)
				a.send(req).refused(t, row.status, row.says)
			})
		}
	}
}

func TestUndocumentedAnswers(t *testing.T) {
	for style, want := range map[headstest.Responses]string{headstest.ResponsesEmpty: "", headstest.ResponsesBool: "true", headstest.ResponsesRecord: "the record"} {
		a, id := withHead(t, headstest.WithResponses(style))
		created := object(t, a.ok("POST", "/head-events", `{"headId":"`+id+`","webhookUrl":"https://hook.example.test"}`).body)
		assert.NotEmpty(t, created["sharedKey"], "a new registration always shows its key")
		assert.Equal(t, style == headstest.ResponsesRecord, created["id"] != nil)
		for _, call := range []struct{ method, path, body, id string }{
			{"PUT", "/head/update", `{"id":"` + id + `","name":"Bea"}`, id},
			{"PUT", streaming(id, true), "", id},
			{"PUT", "/head/" + id + "/conversation-settings", `{"conversationSettings":{"tools":[]}}`, id},
			{"PUT", "/head/" + id + "/enable-events?enableEvents=true", "", id},
			{"PATCH", "/head-events/1", `{"endConversation":true}`, "1"},
			{"DELETE", "/head-events/1", "", "1"},
		} {
			ans := a.do(call.method, call.path, call.body)
			if style == headstest.ResponsesRecord {
				want, ans.body = call.id, fmt.Sprint(object(t, ans.body)["id"])
			}
			assert.Equal(t, []any{200, want}, []any{ans.status, ans.body})
		}
	}
}

func TestRequestsAreInTheJournalWhenAnswered(t *testing.T) {
	var log lockedBuilder
	a, id := withHead(t, headstest.WithToken("canary-token"), log.option())
	a.ok("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`)
	a.do("GET", "/head-events?headId=nobody&api_key=canary", "")
	assert.Contains(t, log.String(), "method=GET path=/head-events status=404")
	assert.NotContains(t, log.String(), "canary")
	got := a.Requests()
	require.Len(t, got, 2)
	assert.Equal(t, []any{"PUT", "/head/update", 200, "Bearer " + a.Token}, []any{got[0].Method, got[0].Path, got[0].Status, got[0].Header.Get("Authorization")})
	assert.JSONEq(t, `{"id":"`+id+`","name":"Bea"}`, string(got[0].Body))
	assert.False(t, got[0].At.IsZero())
	assert.Equal(t, []any{"headId=nobody&api_key=canary", 404}, []any{got[1].Query, got[1].Status})
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

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// option makes an emulator log to l.
func (l *lockedBuilder) option() headstest.Option {
	return headstest.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
