package headstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// withTool adds a head in mode oc with one tool at a URL.
func withTool(e *headstest.Emulator, url string) string {
	return e.AddHead(headstest.Head{OperationMode: heads.OperationModeOC, Fields: map[string]any{
		"publicId": "li-1", "orgPublicId": "Org-1", "orgId": "org",
		"conversationSettings": map[string]any{"tools": []any{"odd", map[string]any{"name": "weather", "url": url}}},
	}})
}

func TestToolCallIsFlatWithMetadata(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(`{"message":"Sunny, 20 °C","Message":"not this one","more":1}`))
	}))
	defer srv.Close()
	a := newAPI(t, headstest.WithDeliveryClient(srv.Client()))
	id := withTool(a.Emulator, srv.URL+"/weather")
	session := a.StartSession(id)
	call := need(session.CallTool(t.Context(), "weather", map[string]any{"city": "Kyiv", "days": 3, "nested": map[string]any{"a": []int{1}}}))(t)
	assert.Equal(t, []any{"Sunny, 20 °C", "", 200, srv.URL + "/weather", body}, []any{call.Message, call.Problem, call.Status, call.URL, call.Body})
	assert.Equal(t, []string{"POST", "application/json", ""}, []string{got.Method, got.Header.Get("Content-Type"), got.Header.Get("Authorization")})

	sent := object(t, string(body))
	metadata := sent["session_metadata"].(map[string]any)
	delete(sent, "session_metadata")
	assert.Equal(t, map[string]any{"city": "Kyiv", "days": 3.0, "nested": map[string]any{"a": []any{1.0}}}, sent)
	assert.Subset(t, metadata, map[string]any{
		"session_id": session.ID(), "head_id": id, "org_id": "org", "public_head_id": "li-1", "public_org_id": "Org-1", "username": "anonymous",
	})
	assert.NotEmpty(t, metadata["user_id"])
	assert.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`, metadata["timestamp"])
	request := metadata["request_metadata"].(map[string]any)
	hash := request["technical"].(map[string]any)["session_hash"]
	assert.Regexp(t, "^[0-9a-f]{32}$", hash)
	device := map[string]any{"device_type": "desktop", "browser_family": "headstest"}
	assert.Equal(t, map[string]any{
		"essential": map[string]any{"origin_domain": "www.example.test", "language_pref": "en-US", "device_info": device},
		"technical": map[string]any{"request_secure": true, "session_hash": hash},
	}, request)
}

func TestReplyOfAToolIsChecked(t *testing.T) {
	for _, row := range []struct {
		name, contentType, body string
		status                  int
		message, problem        string
	}{
		{"good", "application/json", `{"message":"Hi"}`, 200, "Hi", ""},
		{"empty message", "application/json", `{"message":""}`, 200, "", ""},
		{"created", "application/json", `{"message":"Hi"}`, 201, "", "expected status 200, the reply has status 201"},
		{"error", "application/json", `{"message":"Hi"}`, 500, "", "expected status 200, the reply has status 500"},
		{"redirect", "application/json", `{"message":"Hi"}`, 302, "", "expected status 200, the reply has status 302"},
		{"text", "text/plain", `{"message":"Hi"}`, 200, "", `expected the content type application/json, the reply has "text/plain"`},
		{"no type", "", `{"message":"Hi"}`, 200, "", "expected the content type application/json, the reply has none"},
		{"not JSON", "application/json", `Hi`, 200, "", `expected {"message": "…"}, the reply is not JSON`},
		{"two values", "application/json", `{"message":"Hi"} {}`, 200, "", `expected {"message": "…"}, the reply is not JSON`},
		{"empty", "application/json", ``, 200, "", `expected {"message": "…"}, the reply is empty`},
		{"list", "application/json", `[{"message":"Hi"}]`, 200, "", `expected {"message": "…"}, the reply is a list`},
		{"text alone", "application/json", `"Hi"`, 200, "", `expected {"message": "…"}, the reply is a string`},
		{"null", "application/json", `null`, 200, "", `expected {"message": "…"}, the reply is null`},
		{"result instead", "application/json", `{"result":"Hi"}`, 200, "", `expected {"message": "…"}, the reply has "result"`},
		{"two keys", "application/json", `{"ok":true,"data":{"message":"Hi"}}`, 200, "", `expected {"message": "…"}, the reply has "data" and "ok"`},
		{"many keys", "application/json", `{"a":1,"b":2,"c":3,"d":4,"e":5}`, 200, "", `expected {"message": "…"}, the reply has "a", "b", "c" and 2 more`},
		{"hostile key", "application/json", `{"\u202e\u001b` + strings.Repeat("x", 99) + `":1}`, 200, "", `the reply has "\u202e\x1b` + strings.Repeat("x", 37) + `…"`},
		{"empty key", "application/json", `{"":1}`, 200, "", `the reply has ""`},
		{"no key", "application/json", `{}`, 200, "", `expected {"message": "…"}, the reply has no key`},
		{"other case", "application/json", `{"Message":"Hi"}`, 200, "", `expected {"message": "…"}, the reply has "Message"`},
		{"number", "application/json", `{"message":5}`, 200, "", `expected {"message": "…"}, the message is a number`},
		{"boolean", "application/json", `{"message":false}`, 200, "", `expected {"message": "…"}, the message is a boolean`},
		{"object", "application/json", `{"message":{}}`, 200, "", `expected {"message": "…"}, the message is an object`},
		{"null message", "application/json", `{"message":null}`, 200, "", `expected {"message": "…"}, the message is null`},
		{"too large", "application/json", `{"message":"` + strings.Repeat("x", 1<<20) + `"}`, 200, "", "the reply is larger than 1048576 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			calls := 0
			url := serving(t, func(w http.ResponseWriter, r *http.Request) {
				calls++
				w.Header()["Content-Type"] = []string{row.contentType}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(row.status)
				_, _ = w.Write([]byte(row.body))
			})
			var log lockedBuilder
			e := newEmulator(t, headstest.WithLoopbackHTTP(), headstest.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
			call := need(e.CallTool(t.Context(), withTool(e, url+"/canary"), "weather", map[string]any{"day": "canary"}))(t)
			assert.Equal(t, []any{row.status, row.message}, []any{call.Status, call.Message})
			type line struct{ Level, Msg, Tool, Problem string }
			want := line{"INFO", "tool call", "weather", call.Problem}
			if row.problem == "" {
				assert.Empty(t, call.Problem)
			} else {
				assert.Contains(t, call.Problem, row.problem)
				want.Level, want.Msg = "WARN", "tool call failed"
			}
			assert.Equal(t, want, decoded[line](t, log.String()), "one line with the same words")
			assert.NotContains(t, log.String(), "canary")
			assert.Equal(t, 1, calls)
		})
	}
}

func TestToolWithoutAReplyIsAProblem(t *testing.T) {
	url := serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	e := newEmulator(t, headstest.WithLoopbackHTTP())
	call := need(e.CallTool(t.Context(), withTool(e, url+"/canary"), "weather", nil))(t)
	assert.Zero(t, call.Status)
	assert.Contains(t, call.Problem, "no whole reply")
	assert.NotContains(t, call.Problem, "canary", "a tool's path may hold a secret")
}

func TestToolHasALimitedTime(t *testing.T) {
	for want, opts := range map[time.Duration][]headstest.Option{30 * time.Second: nil, time.Second: {headstest.WithToolTimeout(time.Second)}} {
		synctest.Test(t, func(t *testing.T) {
			e := newEmulator(t, append(opts, sendingTo(&receiver{answer: silent}))...)
			start := time.Now()
			call := need(e.CallTool(t.Context(), withTool(e, "https://tools.example.test"), "weather", nil))(t)
			assert.Contains(t, call.Problem, "deadline")
			assert.Equal(t, want, time.Since(start))
		})
	}
}

func TestToolCallEndsWithItsContextAndTheEmulator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEmulator(t, sendingTo(&receiver{answer: silent}))
		id := withTool(e, "https://tools.example.test")
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := e.CallTool(ctx, id, "weather", nil)
		assert.ErrorIs(t, err, why)
		time.AfterFunc(time.Second, e.Close)
		call := need(e.CallTool(t.Context(), id, "weather", nil))(t)
		assert.Contains(t, call.Problem, "canceled")
	})
}

func TestToolIsNotCalled(t *testing.T) {
	rc := &receiver{}
	e := newEmulator(t, sendingTo(rc))
	good := withTool(e, "https://tools.example.test")
	closed := e.StartSession(good)
	require.NoError(t, closed.Close())
	for _, row := range []struct {
		name, head, tool string
		args             map[string]any
		says             string
	}{
		{"unknown head", "nobody", "weather", nil, "no head"},
		{"mode ttt", e.AddHead(headstest.Head{}), "weather", nil, `mode "ttt"`},
		{"unknown tool", good, "Weather", nil, `no tool "Weather"`},
		{"no settings", e.AddHead(headstest.Head{OperationMode: "oc", Fields: map[string]any{"conversationSettings": nil}}), "weather", nil, "no tool"},
		{"plain http", withTool(e, "http://127.0.0.1:1/"), "weather", nil, "HTTPS"},
		{"no address", withTool(e, ""), "weather", nil, "HTTPS"},
		{"reserved name", good, "weather", map[string]any{"session_metadata": 1}, "session_metadata"},
		{"no JSON form", good, "weather", map[string]any{"f": func() {}}, `argument "f"`},
	} {
		_, err := e.CallTool(t.Context(), row.head, row.tool, row.args)
		assert.ErrorContains(t, err, row.says, row.name)
	}
	_, err := closed.CallTool(t.Context(), "weather", nil)
	assert.ErrorContains(t, err, "closed")
	assert.Empty(t, rc.all(), "nothing is sent")
}

func TestToolArgumentsKeepTheirValues(t *testing.T) {
	rc := &receiver{}
	e := newEmulator(t, sendingTo(rc))
	args := map[string]any{}
	for name, raw := range map[string]string{"a": `"<&>"`, "b": `12345678901234567890`, "c": `null`, "d": `[1.0,"x"]`} {
		args[name] = json.RawMessage(raw)
	}
	_, err := e.CallTool(t.Context(), withTool(e, "https://tools.example.test"), "weather", args)
	require.NoError(t, err)
	got := decoded[map[string]json.RawMessage](t, string(rc.all()[0].body))
	for name, raw := range args {
		assert.Equal(t, raw, got[name])
	}
}
