package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sentinels = map[string]error{
	"ErrBadRequest": ErrBadRequest, "ErrUnauthorized": ErrUnauthorized, "ErrForbidden": ErrForbidden,
	"ErrNotFound": ErrNotFound, "ErrConflict": ErrConflict, "ErrUnprocessable": ErrUnprocessable,
	"ErrRateLimited": ErrRateLimited, "ErrServer": ErrServer, "ErrInvalid": ErrInvalid,
}

func TestSentinelOfAStatusAndWhetherItIsTemporary(t *testing.T) {
	temporary := []int{408, 425, 429, 500, 502, 503, 504, 507, 599}
	for code, want := range map[int]string{
		300: "", 302: "", 304: "", 307: "", 400: "ErrBadRequest", 401: "ErrUnauthorized", 402: "", 403: "ErrForbidden", 404: "ErrNotFound",
		405: "", 408: "", 409: "ErrConflict", 410: "", 413: "", 418: "", 422: "ErrUnprocessable", 425: "", 429: "ErrRateLimited", 499: "",
		500: "ErrServer", 501: "ErrServer", 502: "ErrServer", 503: "ErrServer", 504: "ErrServer", 507: "ErrServer", 599: "ErrServer",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			err := getHead(t.Context(), newTestClient(t, memoryURL, newScript(answer(code, "the body"))))
			assert.Equal(t, slices.Contains(temporary, code), Temporary(err))
			wrapped := fmt.Errorf("reading the head: %w", errors.Join(errors.New("other"), err))
			for name, sentinel := range sentinels {
				assert.Equal(t, name == want, errors.Is(wrapped, sentinel), name)
			}
			assert.Equal(t, Temporary(err), Temporary(fmt.Errorf("wrapped: %w", err)))
			failure := As[*Error](t, wrapped)
			assert.Equal(t, code, failure.StatusCode)
			assert.Equal(t, "the body", string(failure.Body.Bytes()))
		})
	}
}

func TestMessageOfAnAnswer(t *testing.T) {
	for name, row := range map[string]struct{ body, message, code string }{
		"message":                 {`{"statusCode":400,"message":"no such voice","error":"Bad Request"}`, "no such voice", ""},
		"list":                    {`{"message":["name is empty","alias is empty"],"error":"Bad Request"}`, "name is empty; alias is empty", ""},
		"empty list":              {`{"message":[],"error":"Bad Request"}`, "Bad Request", ""},
		"list of objects":         {`{"detail":[{"loc":["body"],"msg":"field required"},{"message":"too long"}]}`, "field required; too long", ""},
		"list of anything":        {`{"message":["a",5,null,{"x":1},"b"]}`, "a; b", ""},
		"error":                   {`{"error":"Bad Request"}`, "Bad Request", ""},
		"error object":            {`{"error":{"code":"voice_unknown","message":"no such voice"}}`, "no such voice", "voice_unknown"},
		"error object, number":    {`{"error":{"code":17}}`, "", "17"},
		"code beside":             {`{"code":"E1","error":{"code":"E2","message":"m"}}`, "m", "E1"},
		"detail":                  {`{"detail":"not here"}`, "not here", ""},
		"title":                   {`{"type":"about:blank","title":"Not found"}`, "Not found", ""},
		"message before others":   {`{"title":"t","detail":"d","error":"e","message":"m"}`, "m", ""},
		"detail before title":     {`{"title":"t","detail":"d"}`, "d", ""},
		"number":                  {`{"message":404}`, "404", ""},
		"wrong types":             {`{"message":{"a":1},"error":true,"detail":null,"code":[]}`, "", ""},
		"unknown shape":           {`{"reason":"x"}`, "", ""},
		"text":                    {"upstream is down\n", "upstream is down", ""},
		"HTML":                    {"<html>\r\n<h1>Bad\tGateway</h1></html>", "<html> <h1>Bad Gateway</h1></html>", ""},
		"broken JSON":             {`{"message":"m`, `{"message":"m`, ""},
		"true":                    {"true", "true", ""},
		"null":                    {"null", "", ""},
		"nothing":                 {"", "", ""},
		"bytes":                   {"\xff\xfe\x00", "", ""},
		"control characters":      {`{"message":"a\u001b[31mb\r\nc\u0000d\u202ee"}`, "a [31mb c d e", ""},
		"the token":               {`{"message":"bad token ` + pathToken + `","code":"` + pathToken + `"}`, "bad token [redacted]", "[redacted]"},
		"the token, escaped":      {`{"message":"\u0074oken-of-the-tests"}`, "[redacted]", ""},
		"the token in text":       {"no: Bearer " + pathToken, "no: Bearer [redacted]", ""},
		"200 characters":          {`{"message":"` + strings.Repeat("é", 200) + `"}`, strings.Repeat("é", 200), ""},
		"more":                    {`{"message":"` + strings.Repeat("é", 201) + `"}`, strings.Repeat("é", 199) + "…", ""},
		"the token at the cut":    {`{"message":"` + strings.Repeat("x", 190) + pathToken + `"}`, strings.Repeat("x", 190) + "[redacted]", ""},
		"message object":          {`{"message":{"text":"no such voice","code":"E1"},"error":"Bad Request"}`, "no such voice", "E1"},
		"message object, deep":    {`{"message":{"error":{"detail":["no","such voice"]}}}`, "no; such voice", ""},
		"message without a text":  {`{"message":{"field":"name"},"error":"Bad Request"}`, "Bad Request", ""},
		"errors":                  {`{"errors":[{"field":"name","message":"is empty"},"alias is empty",{"detail":"too long"}]}`, "is empty; alias is empty; too long", ""},
		"errors of nothing":       {`{"errors":[],"title":"Bad Request"}`, "Bad Request", ""},
		"text key":                {`{"text":"no such voice","detail":"d"}`, "no such voice", ""},
		"text in an error":        {`{"error":{"text":"no such voice"}}`, "no such voice", ""},
		"code alone":              {`{"code":"VOICE_UNKNOWN"}`, "VOICE_UNKNOWN", "VOICE_UNKNOWN"},
		"code in an error":        {`{"error":{"code":"VOICE_UNKNOWN"}}`, "VOICE_UNKNOWN", "VOICE_UNKNOWN"},
		"code in the message":     {`{"message":{"code":"VOICE_UNKNOWN"}}`, "VOICE_UNKNOWN", "VOICE_UNKNOWN"},
		"code after all else":     {`{"code":"E1","title":"Bad Request"}`, "Bad Request", "E1"},
		"the token inside":        {`{"message":{"errors":[{"text":"bad token \u0074oken-of-the-tests"}]}}`, "bad token [redacted]", ""},
		"long code":               {`{"code":"` + strings.Repeat("c", 500) + `"}`, strings.Repeat("c", 199) + "…", strings.Repeat("c", 127) + "…"},
		"deep":                    {strings.Repeat("[", 20000), "", ""},
		"before what Body keeps":  {`{"message":"m","pad":"` + strings.Repeat("x", 70<<10) + `"}`, "m", ""},
		"behind what Body keeps":  {`{"pad":"` + strings.Repeat("x", 70<<10) + `","message":"m"}`, "", ""},
		"cut by what Body keeps":  {`{"message":"` + strings.Repeat("x", 70<<10) + `"}`, strings.Repeat("x", 199) + "…", ""},
		"before what is too deep": {`{"message":"m","deep":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "m", ""},
		"text longer than Body":   {"x" + strings.Repeat("é", 40<<10), "x" + strings.Repeat("é", 198) + "…", ""},
		"a list for an object":    {`["a","b\/c"]`, "a; b/c", ""},
		"a string for an object":  {`"no such \u0076oice"`, "no such voice", ""},
		"escaped token":           {`["\u0074oken-of-the-tests is bad"]`, "[redacted] is bad", ""},
		"escapes that are cut":    {`{"message":"\u0074oken-of-the-tests is bad`, "", ""},
		"text with brackets":      {`[1, [2]] is not a list of names`, "[1, [2]] is not a list of names", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := getHead(t.Context(), newTestClient(t, memoryURL, newScript(answer(400, row.body))))
			failure := As[*Error](t, err)
			assert.Equal(t, row.message, failure.Message)
			assert.Equal(t, row.code, failure.Code)
			assert.Equal(t, row.body[:min(len(row.body), 64<<10)], string(failure.Body.Bytes()), "the body is kept as it was sent")
			assert.NotContains(t, err.Error(), pathToken)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestReasonLeavesTheErrorAsItIs(t *testing.T) {
	mismatch := &json.UnmarshalTypeError{Value: "number 5", Type: reflect.TypeFor[string](), Field: "customWords.hush-hush"}
	decode := &DecodeError{Operation: "Heads.Get", Err: mismatch}
	assert.ErrorContains(t, decode, `field "customWords" holds a JSON number`)
	assert.Equal(t, "customWords.hush-hush", mismatch.Field, "others may be reading it")
}

// The names in the caller's type may come from the answer, for example in a map.
func TestDecodeErrorOfAResponseShowsNoNames(t *testing.T) {
	response := &Response{Body: NewRaw([]byte(`{"hush-hush":"x"}`))}
	for _, v := range []any{new(map[string]int), &struct {
		F int `json:"hush-hush"`
	}{}} {
		err := response.Decode(v)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hush")
	}
}

// After a renewal, an answer may still quote the token before. The longer one is masked first.
func TestBothTokensOfACallAreMasked(t *testing.T) {
	tr := newScript(answer(401, `abc-and-more is bad`), answer(400, `neither abc nor abc-and-more`))
	var seen []string
	client := sourceClient(t, tr, func(_ context.Context, rejected string) (string, error) {
		return map[string]string{"": "abc-and-more", "abc-and-more": "abc"}[rejected], nil
	}, WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { seen = append(seen, a.Err.Error()) }}))
	failure := As[*Error](t, getHead(t.Context(), client))
	assert.Equal(t, "neither [redacted] nor [redacted]", failure.Message)
	require.Len(t, seen, 2)
	assert.NotContains(t, strings.Join(seen, " "), "abc")
}

func TestTextOfAnError(t *testing.T) {
	for want, failure := range map[string]Error{
		"heads: Heads.Get: GET /head/x: 404 Not Found":       {StatusCode: 404},
		"heads: Heads.Get: GET /head/x: 404 Not Found: gone": {StatusCode: 404, Message: "gone", Attempts: 1},
		"heads: Heads.Get: GET /head/x: 599":                 {StatusCode: 599},
		"heads: Heads.Get: GET /head/x: 503 Service Unavailable: busy (4 attempts) (retry after 1h0m0s) [request r-1]: context canceled": {
			StatusCode: 503, Message: "busy", Attempts: 4, RequestID: "r-1", cause: context.Canceled, Code: "E1",
			Body: NewRaw([]byte("the body")), Header: http.Header{"Set-Cookie": {"a=b"}}, RetryAfter: time.Hour,
		},
	} {
		t.Run(want, func(t *testing.T) {
			failure.Operation, failure.Method, failure.Path = "Heads.Get", "GET", "/head/x"
			assert.Equal(t, want, failure.Error())
			assert.Equal(t, want, fmt.Sprint(&failure))
			assert.Equal(t, failure.cause, errors.Unwrap(&failure))
		})
	}
}

func TestErrorsInALog(t *testing.T) {
	failure := &Error{Operation: "Heads.Get", Method: "GET", Path: "/head/x", StatusCode: 404, Code: "E1 of the answer", Message: "gone",
		RequestID: "r-1", Attempts: 2, Body: NewRaw([]byte("the body")), Header: http.Header{"Set-Cookie": {"the header"}}}
	decode := &DecodeError{Operation: "Heads.Get", Body: NewRaw([]byte("the body")), Err: errNullAnswer}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "failure", failure, "value", *failure, "decode", decode)
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	group := map[string]any{"operation": "Heads.Get", "method": "GET", "path": "/head/x", "status": 404.0, "code": "E1 of the answer",
		"message": "gone", "request_id": "r-1", "retry_after": 0.0, "attempts": 2.0}
	assert.Equal(t, group, line["failure"])
	assert.Equal(t, group, line["value"])
	text := "heads: Heads.Get: the request succeeded, but its answer can't be read: it is null"
	assert.Equal(t, text, line["decode"])
}

func TestInvalidErrorIsErrInvalid(t *testing.T) {
	err := fmt.Errorf("saving: %w", invalid("Heads.Update", "update", "sets no field", "call a setter", "HeadUpdate.Set"))
	require.ErrorIs(t, err, ErrInvalid)
	assert.NotErrorIs(t, err, ErrBadRequest)
	one := As[*InvalidError](t, err)
	assert.Equal(t, &InvalidError{Operation: "Heads.Update", Field: "update", Problem: "sets no field", Remedy: "call a setter", Use: "HeadUpdate.Set"}, one)
	assert.Equal(t, "heads: Heads.Update: update sets no field; call a setter", one.Error())
}

func TestSeveralFaultsAreJoined(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(200, "")))
	_, err := client.Webhooks.Create(t.Context(), WebhookSpec{HeadID: "li-28379", URL: "http://hooks.example.com", Events: []EventType{"unheard_of"}})
	require.ErrorIs(t, err, ErrInvalid)
	for _, field := range []string{"head id", "webhookUrl", "events"} {
		assert.ErrorContains(t, err, "heads: Webhooks.Create: "+field+" ")
	}
	_, err = client.Webhooks.Create(t.Context(), WebhookSpec{HeadID: testHead, URL: "http://hooks.example.com", Events: []EventType{EventStartConversation}})
	require.ErrorIs(t, err, ErrInvalid)
	_, joined := err.(interface{ Unwrap() []error })
	assert.False(t, joined, "one fault comes alone")
}

func TestDecodeErrorShowsItsReason(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		says string
	}{
		"none":     {nil, "no reason is known"},
		"syntax":   {json.Unmarshal([]byte("{hush-hush"), new(any)), "it is not JSON"},
		"mismatch": {json.Unmarshal([]byte(`{"name":123456}`), new(Head)), `field "name" holds a JSON number; want a JSON string`},
		"empty":    {errEmptyAnswer, "it is empty"},
		"value":    {json.Unmarshal([]byte(`"hush-hush"`), new(time.Time)), "a value in it is not of the form that its type wants"},
	} {
		t.Run(name, func(t *testing.T) {
			decode := &DecodeError{Operation: "Heads.Get", Body: NewRaw([]byte("the body")), Err: row.err}
			want := "heads: Heads.Get: the request succeeded, but its answer can't be read: " + row.says
			assert.Equal(t, want, decode.Error())
			assert.Equal(t, row.err, errors.Unwrap(decode))
			assert.Equal(t, want, fmt.Sprint(decode))
		})
	}
}

func TestErrorRetryAfterIsWhatTheServiceAskedFor(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "soon": 0, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		var failure *Error
		client := newTestClient(t, memoryURL, newScript(answer(400, "", "Retry-After: "+value)))
		require.ErrorAs(t, getHead(t.Context(), client), &failure)
		assert.Equal(t, want, failure.RetryAfter, value)
	}
}

func TestNoAnswerIsTemporary(t *testing.T) {
	for name, service := range map[string]*wire{
		"connection refused":   refusing(t),
		"no byte of an answer": closing("")(t),
		"half an answer":       closing("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"id\":")(t),
	} {
		err := getHead(t.Context(), service.client(t))
		require.Error(t, err)
		assert.True(t, Temporary(err), "%s: %v", name, err)
	}
}

func TestTemporaryIsFalseForACallThatWasCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	transport := newScript(func(r *http.Request) (*http.Response, error) {
		cancel()
		return hang(r)
	})
	client := newTestClient(t, memoryURL, transport)
	err := getHead(ctx, client)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Temporary(err))

	err = getHead(ctx, client)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Temporary(err))
	assert.Equal(t, 1, transport.sent(), "the second call sent nothing")
}

func TestTemporaryIsFalseForACallThatWasCanceledBeforeItsRetry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := newTestClient(t, memoryURL, answer(503, "", "Retry-After: 5"), WithRetryPolicy(DefaultRetryPolicy()),
		WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) { cancel() }}))
	err := getHead(ctx, client)
	require.ErrorIs(t, err, ErrServer)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, Temporary(err))
}

func TestTemporaryOfOtherErrors(t *testing.T) {
	unavailable, missing := &Error{StatusCode: 503}, &Error{StatusCode: 404}
	conversion := func(r Reason) error {
		return &ConversionError{Reason: r, Err: unavailable}
	}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"any other error", errors.New("x"), false},
		{"canceled", context.Canceled, false},
		{"deadline exceeded", context.DeadlineExceeded, true},
		{"deadline exceeded, wrapped", fmt.Errorf("x: %w", context.DeadlineExceeded), true},
		{"no answer of a token source", fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{"canceled token source", &net.OpError{Op: "dial", Err: context.Canceled}, false},
		{"invalid", &InvalidError{}, false},
		{"decode error of something temporary", &DecodeError{Err: context.DeadlineExceeded}, false},
		{"conversion: temporary", conversion(ReasonTemporary), true},
		{"conversion: unknown outcome", conversion(ReasonUnknownOutcome), true},
		{"conversion: refused", conversion(ReasonRefused), false},
		{"conversion: visual", conversion(ReasonVisual), false},
		{"conversion: provider", conversion(ReasonProvider), false},
		{"conversion: address", conversion(ReasonAddress), false},
		{"temporary conversion that was canceled", &ConversionError{Reason: ReasonTemporary, Err: context.Canceled}, true},
		{"joined, all temporary", errors.Join(unavailable, context.DeadlineExceeded), true},
		{"joined, one not", errors.Join(unavailable, missing), false},
		{"joined, one canceled", errors.Join(unavailable, context.Canceled), false},
		{"joined, nested", errors.Join(unavailable, fmt.Errorf("x: %w", errors.Join(unavailable, missing))), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, Temporary(tt.err))
		})
	}
}

// allRefusals returns an error of every exported function and method that checks
// its arguments.
func allRefusals(t *testing.T) map[string]error {
	ctx := t.Context()
	client := newTestClient(t, memoryURL, newScript(answer(200, `{"id":"`+testHead+`","operationMode":"ttt","conversationSettings":null}`)))
	var none *Client
	errs := map[string]error{}
	for name, err := range refusals(t) {
		errs["canary, "+name] = err
	}
	add := func(name string, err error) { errs[name] = err }
	for name, id := range map[string]string{"blank": " ", "empty": "", "public": "li-28379", "address": "https://a/b?c", "spaces": " " + testHead, "other": "x"} {
		add("Heads.Get "+name, ErrorOf(client.Heads.Get(ctx, id)))
		add("Webhooks.List "+name, ErrorOf(client.Webhooks.List(ctx, id)))
		add("Heads.ConvertToLegacy "+name, ErrorOf(client.Heads.ConvertToLegacy(ctx, id, ConvertOptions{})))
	}
	add("nil client", ErrorOf(none.AccessURL(&Head{})))
	add("nil client, Do", ErrorOf(none.Do(ctx, Request{Method: http.MethodGet, Path: "/"})))
	for name, err := range map[string]error{
		"visuals": ErrorOf(new(HeadVisualsService).Get(ctx, "v")), "settings": ErrorOf(new(ConversationSettingsService).Get(ctx, testHead)),
		"heads": ErrorOf(new(HeadsService).Get(ctx, testHead)), "webhooks": ErrorOf(new(WebhooksService).Get(ctx, 7)),
		"access": ErrorOf(new(Client).AccessURL(&Head{})), "Do": ErrorOf(new(Client).Do(ctx, Request{Method: http.MethodGet, Path: "/"})),
	} {
		require.ErrorContains(t, err, "was not made by New")
		add("not made by New, "+name, err)
	}
	add("nil context", ErrorOf(client.Heads.Get(nil, testHead))) //nolint:staticcheck // what it is refused for
	add("AccessURL, nil head", ErrorOf(client.AccessURL(nil)))
	add("AccessURL, no address", ErrorOf(client.AccessURL(&Head{ID: testHead})))
	add("HeadVisuals.Get", ErrorOf(client.HeadVisuals.Get(ctx, " ")))
	add("HeadVisuals.Get, dots", ErrorOf(client.HeadVisuals.Get(ctx, "..")))
	for name, u := range map[string]*HeadUpdate{
		"nil": nil, "empty": NewHeadUpdate(), "half a voice": NewHeadUpdate().Voice("azure", " "), "voice alone": NewHeadUpdate().Set("ttsVoice", "v"),
		"language": NewHeadUpdate().Language("german"), "speech": NewHeadUpdate().LanguageSpeechRecognition("de_DE"),
		"placeholder": NewHeadUpdate().Name("string"), "read-only": NewHeadUpdate().Set("publicId", "x"), "own operation": NewHeadUpdate().Set("splitter", true),
		"letter case": NewHeadUpdate().Set("Name", "x"), "no name": NewHeadUpdate().Set(" ", 1), "type": NewHeadUpdate().Set("name", 1),
		"null": NewHeadUpdate().Set("name", nil), "no JSON": NewHeadUpdate().Set("x", func() {}),
	} {
		add("Heads.Update "+name, client.Heads.Update(ctx, testHead, u))
	}
	add("Heads.Modify", ErrorOf(client.Heads.Modify(ctx, testHead, nil)))
	add("Heads.Modify, read-only", ErrorOf(client.Heads.Modify(ctx, testHead, Edit(func(h *Head) { h.VideoStreaming, h.PublicID = true, "x" }))))
	add("DiffHeads, prompt", ErrorOf(diffHeads("DiffHeads", &Head{PromptConfig: &PromptConfig{SystemPrompt: "x"}}, &Head{})))
	add("HeadUpdateFromJSON", ErrorOf(HeadUpdateFromJSON([]byte("x"))))
	add("voice", ErrorOf(client.Heads.ConvertToStreaming(ctx, testHead, ConvertOptions{Voice: &Voice{" ", "v"}})))
	add("voice, placeholder", ErrorOf(client.Heads.PlanStreaming(ctx, testHead, ConvertOptions{Voice: &Voice{"azure", "<VOICE>"}})))
	add("webhook", ErrorOf(client.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: " "})))
	add("webhook, event", ErrorOf(client.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: "x", Events: []EventType{"x"}})))
	add("webhook, nil", client.Webhooks.Update(ctx, 1, nil))
	add("webhook, nothing", client.Webhooks.Update(ctx, 0, NewWebhookUpdate()))
	add("webhook, no event", client.Webhooks.Update(ctx, 1, NewWebhookUpdate().Events()))
	add("webhook, change", ErrorOf(client.Webhooks.Modify(ctx, 1, nil)))
	add("webhook id", client.Webhooks.Delete(ctx, -1))
	add("settings", client.ConversationSettings.Replace(ctx, testHead, nil))
	add("settings, change", ErrorOf(client.ConversationSettings.Modify(ctx, testHead, nil)))
	tool := Tool{Name: "find", Description: "Finds.", URL: "https://a.example.com"}
	add("tool twice", ErrorOf(client.ConversationSettings.SetTools(ctx, testHead, tool, tool)))
	add("tool name", ErrorOf(client.ConversationSettings.RemoveTool(ctx, testHead, " ")))
	add("extra, blank", new(ConversationSettings).SetExtra(" ", nil))
	add("extra, tools", new(ConversationSettings).SetExtra("tools", nil))
	add("extra, no JSON", new(ConversationSettings).SetExtra("x", json.RawMessage("x")))
	add("tool", Tool{Name: "a b", URL: "x", Parameters: []ToolParameter{{Name: "c d", Type: "x"}, {Name: "c d"}}}.Validate())
	add("ParseAccessURL", ErrorOf(ParseAccessURL(" ")))
	for _, raw := range []string{"x", "https://a.example.com/b", "https://a.example.com/b/c", "https://a.example.com/b/c?api_key=<KEY>"} {
		add("ParseAccessURL "+raw, ErrorOf(ParseAccessURL(raw)))
	}
	add("New", ErrorOf(New(" ", " ", nil, WithHTTPClient(nil), WithTokenSource(nil), WithRetryPolicy(RetryPolicy{MaxRetries: -1}), WithAttemptTimeout(0), WithLogger(nil),
		WithObserver(Observer[Attempt]{}), WithApplication("", ""), WithAccessBases("", ""), WithStreamingProviders())))
	add("New, others", ErrorOf(New("http://x.localhost", "Bearer x", WithAccessBases(" ", "ftp://x"), WithStreamingProviders(" "))))
	add("New, token source", ErrorOf(New("https://me@a.example.com", "x", WithTokenSource(fixedSource("x")))))
	t.Setenv("HEADS_BASE_URL", "")
	t.Setenv("HEADS_TOKEN", "")
	add("NewFromEnv", ErrorOf(NewFromEnv()))
	add("NewEventHandler", ErrorOf(NewEventHandler(nil, nil, nil, WithEventLogger(nil), WithDeliveryObserver(Observer[DeliveryInfo]{}), WithDeduplicator(nil), WithMaxAge(0, 0), WithHandlerTimeout(0))))
	add("KeySource", ErrorOf(NewEventHandler(client.Webhooks.KeySource(nil, WithKeyTTL(0), WithHeads("", "li-28379", " "+testHead)), func(context.Context, *Event) error { return nil })))
	add("NewToolHandler", ErrorOf(NewToolHandler(" ", nil, WithPathToken(""), WithToolAuth(nil), WithToolTimeout(-time.Second), WithToolReplyLimit(0))))
	for _, base := range []string{"x", "http://tools.example.com", "ftp://a/?b", "https://me@a.example.com"} {
		add("NewToolHandler "+base, ErrorOf(NewToolHandler(base)))
	}
	h := Must(NewToolHandler("https://tools.example.com"))(t)
	add("AddTool", AddTool[struct{ A chan int }](h, " ", " ", nil))
	add("AddTool, no handler", AddTool[struct{}](nil, "find", "Finds.", nil))
	return errs
}

// eachInvalid walks the tree of joined errors.
func eachInvalid(err error, visit func(*InvalidError)) {
	switch e := err.(type) { //nolint:errorlint // it unwraps step by step
	case *InvalidError:
		visit(e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			eachInvalid(one, visit)
		}
	case interface{ Unwrap() error }:
		eachInvalid(e.Unwrap(), visit)
	}
}

// The reason continues the sentence after the field: with the value, a verb, or
// the part of the field that is wrong.
func TestInvalidErrorsReadAsOneSentence(t *testing.T) {
	begins := regexp.MustCompile(`^(".*" |-?[0-9]+ |of head \S+ |on host \S+ |(name|type|parameter|description) .*)?` +
		`(is|are|has|have|hold|holds|can|can't|was|carries|lacks|sets|starts|must|says|and ttsProvider ".*" must) `)
	for name, err := range allRefusals(t) {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, err, ErrInvalid)
			eachInvalid(err, func(e *InvalidError) {
				t.Log(e)
				assert.Equal(t, "heads: "+e.Operation+": "+e.Field+" "+e.Problem+"; "+e.Remedy, e.Error())
				assert.NotContains(t, e.Field, ":")
				assert.Regexp(t, begins, e.Problem+"; "+e.Remedy)
				assert.NotContains(t, e.Error(), "\n")
				assert.NotRegexp(t, `[.;,: ]$`, e.Problem+"; "+e.Remedy)
				assert.LessOrEqual(t, strings.Count(err.Error(), testHead), strings.Count(err.Error(), "heads: "), "the id of the head is said once")
			})
		})
	}
}

func TestBlankTextsAreRefused(t *testing.T) {
	for name, blank := range map[string]string{"empty": "", "space": " ", "line": "\n\t"} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(answer(200, "{}")))
			ctx := t.Context()
			for what, err := range map[string]error{
				"head id":    ErrorOf(client.Heads.Get(ctx, blank)),
				"visual id":  ErrorOf(client.HeadVisuals.Get(ctx, blank)),
				"base URL":   ErrorOf(New(blank, "x")),
				"token":      ErrorOf(New(memoryURL, blank)),
				"access URL": ErrorOf(ParseAccessURL(blank)),
				"base":       ErrorOf(AccessURL{}.WithBase(blank)),
				"webhook":    WebhookSpec{HeadID: testHead, URL: blank, Events: []EventType{EventEndConversation}}.validate("x"),
				"tool URL":   Tool{Name: "find", Description: "Finds.", URL: blank}.Validate(),
				"tool name":  ErrorOf(client.ConversationSettings.RemoveTool(ctx, testHead, blank)),
				"key":        new(ConversationSettings).SetExtra(blank, nil),
				"field":      NewHeadUpdate().Set(blank, 1).Validate(),
				"provider":   NewHeadUpdate().Voice(blank, "v").Validate(),
				"voice":      NewHeadUpdate().Voice("azure", blank).Validate(),
				"tools":      ErrorOf(NewToolHandler(blank)),
			} {
				require.ErrorIs(t, err, ErrInvalid, what)
				assert.Contains(t, err.Error(), "is blank; give", what)
			}
		})
	}
}

func TestLanguageMustBeATag(t *testing.T) {
	for _, tag := range []string{"", "de", "de-DE", "en-us", "yue", "zh-Hans-CN", "es-419", "sr-Latn", "sl-rozaj-biske", "de-CH-1996", "zh-cmn-Hans", "en-a-bbb-x-a", "en-x-private"} {
		require.NoError(t, NewHeadUpdate().Language(tag).LanguageSpeechRecognition(tag).Validate(), tag)
	}
	for _, text := range []string{"german", "German", "d", "de_DE", "de-", "-DE", " ", "de DE", "de-DE ", "english (US)", "12", "dé-DE", "de--DE", "german-DE"} {
		for field, u := range map[string]*HeadUpdate{
			"language": NewHeadUpdate().Language(text), "languageSpeechRecognition": NewHeadUpdate().LanguageSpeechRecognition(text),
		} {
			var one *InvalidError
			require.ErrorAs(t, u.Validate(), &one, text)
			assert.Equal(t, field, one.Field)
			assert.Contains(t, one.Problem+"; "+one.Remedy, "is not a language tag; give a BCP 47 tag such as en-US")
		}
	}
	// A value that the service already stores is written back unchanged.
	head := canaryOf[Head](t, `{"id":"`+testHead+`","language":"german"}`)
	u := Must(HeadUpdateFromJSON(head.Raw.Bytes()))(t)
	require.NoError(t, u.Validate())
}

func TestSentinelsDoNotContradictTheirErrors(t *testing.T) {
	for name, row := range map[string]struct {
		head, visual string
		sentinel     error
	}{
		"no visual": {`"x":1`, ``, ErrVisualMode},
		"two loops": {`"headVisualId":"v"`, `{"id":"v","mode":"two_loops"}`, ErrVisualMode},
		"no mode":   {`"headVisualId":"v"`, `{"id":"v"}`, ErrVisualMode},
		"provider":  {`"headVisualId":"v","ttsProvider":"acme"`, `{"id":"v","mode":"default"}`, ErrProviderNotStreaming},
	} {
		t.Run(name, func(t *testing.T) {
			head := `{"id":"` + testHead + `","publicUrl":"` + canaryPublicURL + `",` + row.head + `}`
			client := newTestClient(t, memoryURL, newScript(answer(200, head), answer(200, row.visual)))
			_, err := client.Heads.ConvertToStreaming(t.Context(), testHead, ConvertOptions{})
			require.ErrorIs(t, err, row.sentinel)
			assert.NotContains(t, err.Error(), strings.TrimPrefix(row.sentinel.Error(), "heads: "))
			assert.Equal(t, 1, strings.Count(err.Error(), testHead), err.Error())
		})
	}
}

// uses returns the values of the constants that InvalidError.Use and Finding.Use
// have, by their names.
func uses(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range sources(t, useLists...) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "use") {
				value := Must(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
				found[spec.Names[0].Name] = value
			}
			return true
		})
	}
	require.NotEmpty(t, found)
	return found
}

// useLists are the files with those constants.
var useLists = []string{"invalid.go", "internal/check/fault.go"}

// Every Use is in one of two lists, and names what exists.
func TestEveryUseNamesWhatExists(t *testing.T) {
	api := Must(os.ReadFile("testdata/api.txt"))(t)
	known := uses(t)
	for name, use := range known {
		receiver, method, dotted := strings.Cut(use, ".")
		switch {
		case receiver == "url" || receiver == "context": // of the standard library
		case !dotted:
			assert.Regexp(t, `(?m)^heads: func `+use+`\(`, string(api), name)
		default:
			assert.Regexp(t, `(?m)^heads: (func \(\w+ \*?`+receiver+`(Service)?\) `+method+`\(|field `+receiver+`\.`+method+` )`, string(api), name)
		}
	}
	// A literal in the place of a constant would be missing in the list.
	used := map[string]bool{}
	for path, file := range sources(t, "*.go", "internal/check/*.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && known[id.Name] != "" && !slices.Contains(useLists, path) {
				used[id.Name] = true
			}
			if lit, ok := n.(*ast.CompositeLit); ok {
				id, isName := lit.Type.(*ast.Ident)
				assert.False(t, isName && (id.Name == "InvalidError" || id.Name == "Finding") && path != "invalid.go" && path != "examine.go", "%s makes one by itself", path)
			}
			if lit, ok := n.(*ast.CompositeLit); ok {
				assertUse(t, known, path, lit)
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := map[string]int{"invalid": 4, "toolFault": 5, "checkText": 4, "refuse": 2, "find": 5}[calledName(call)]
			if at > 0 && len(call.Args) > at {
				id, ok := call.Args[at].(*ast.Ident)
				assert.True(t, ok && (known[id.Name] != "" || id.Name == "use"), "%s: %s has a Use that is no constant", path, calledName(call))
			}
			return true
		})
	}
	assert.Len(t, used, len(known), "every constant is used")
}

// assertUse checks that the Use of a fault is a constant.
func assertUse(t *testing.T, known map[string]string, path string, lit *ast.CompositeLit) {
	if id, ok := lit.Type.(*ast.Ident); !ok || id.Name != "Fault" && id.Name != "fault" {
		return
	}
	for i, element := range lit.Elts {
		value := element
		if pair, keyed := element.(*ast.KeyValueExpr); keyed && pair.Key.(*ast.Ident).Name == "Use" {
			value = pair.Value
		} else if keyed || i != 2 {
			continue
		}
		switch use := value.(type) {
		case *ast.Ident:
			assert.NotEmpty(t, known[use.Name], "%s has a Use that is no constant", path)
		case *ast.BasicLit:
			assert.Fail(t, "a Use that is no constant", path)
		}
	}
}

func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// A remedy that names something of this package says in Use what that is.
func TestRemediesSayWhatTheyUse(t *testing.T) {
	names := regexp.MustCompile(`\b(Heads|Webhooks|HeadVisuals|ConversationSettings|HeadUpdate|Client|ConvertOptions|EnsureOptions|Request|Secret|context|url)\.[A-Z]\w+|\bWith[A-Z]\w+|\bNew[A-Z]\w+`)
	checked := 0
	check := func(remedy, use string) {
		checked++
		if found := names.FindString(remedy); found != "" {
			assert.NotEmpty(t, use, remedy)
		}
		if use != "" {
			assert.Contains(t, remedy, use[strings.LastIndex(use, ".")+1:])
		}
	}
	for _, err := range allRefusals(t) {
		eachInvalid(err, func(e *InvalidError) {
			check(e.Remedy, e.Use)
			assert.NotEmpty(t, e.Remedy, e.Error())
		})
	}
	assert.Greater(t, checked, 90)
}

// brokenHTTP are answers that hold a foreign text and that net/http can't read. Its
// errors quote what it can't parse.
func brokenHTTP(text string) map[string]string {
	const ok = "HTTP/1.1 200 OK\r\n"
	const chunked = ok + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\n{}\r\n"
	return map[string]string{
		"not HTTP":                `{"sharedKey":"` + text + `"}` + "\r\n\r\n",
		"header line":             ok + text + "\r\n\r\n",
		"header begins":           ok + " " + text + ": 1\r\n\r\n",
		"header name":             ok + text + "\x01: 1\r\n\r\n",
		"length":                  ok + "Content-Length: " + text + "\r\n\r\n",
		"two lengths":             ok + "Content-Length: 1\r\nContent-Length: " + text + "\r\n\r\n",
		"transfer encoding":       ok + "Transfer-Encoding: " + text + "\r\n\r\n",
		"status":                  "HTTP/1.1 " + text + "\r\n\r\n",
		"version":                 "HTTP/" + text + " 200 OK\r\n\r\n",
		"trailer":                 "HTTP/1.1 407 No\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length, " + text + "\r\n\r\n",
		"no colon in the trailer": chunked + "0\r\n" + text + "\r\n\r\n",
		"body in the trailer":     chunked + "0\r\n{\"sharedKey\":\"" + text + "\r\n\r\n",
		"space in the trailer":    chunked + "0\r\n " + text + ": 1\r\n\r\n",
		"control in the trailer":  chunked + "0\r\n" + text + "\x01: 1\r\n\r\n",
		"chunk length":            chunked + text + "\r\n",
		"no line end":             chunked + "2\r\n{}" + text + "\r\n",
	}
}

func TestErrorShowsNothingOfAnAnswerThatIsNotHTTP(t *testing.T) {
	for name, sent := range brokenHTTP("hush-hush") {
		t.Run(name, func(t *testing.T) {
			got := shown(t, serveBytes(t, sent).url, newTransport(t))
			assert.Regexp(t, "transport connection broken|broke off", got)
			assert.NotContains(t, got, "hush")
			assert.NotContains(t, shown(t, memoryURL, serveProxy(t, sent)), "hush")
		})
	}
}

// hostile are bytes that a terminal or a log viewer could obey.
const hostile = "a\x9bb\xffc\u009bd\u202ee\u2066f\x07g"

func TestForeignTextsAreCleanWhereverTheyAreShown(t *testing.T) {
	quoted := `"` + strings.NewReplacer("\x07", `\u0007`).Replace(hostile) + `"`
	body := func(status, header, text string) string {
		const form = "HTTP/1.1 %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
		return fmt.Sprintf(form, status, header, len(text), text)
	}
	answers := brokenHTTP(hostile)
	for name, sent := range map[string]string{
		"reason phrase":  body("500 "+hostile, "", "{}"),
		"message":        body("400 Bad", "", `{"message":`+quoted+`,"code":`+quoted+`}`),
		"list":           body("400 Bad", "", `{"message":[`+quoted+`,`+quoted+`]}`),
		"text":           body("400 Bad", "", hostile),
		"request id":     body("400 Bad", "X-Request-Id: "+strings.Trim(hostile, "\x07g")+"\r\n", "{}"),
		"correlation id": body("400 Bad", "X-Correlation-Id: \x9b\xc2\x9b\xe2\x80\xae\r\n", "{}"),
		"location":       body("302 Found", "Location: https://\x9b\xc2\x9b\xe2\x80\xae.example.com/\r\n", ""),
		"retry after":    body("429 No", "Retry-After: \x9b\xc2\x9b\r\n", "{}"),
		"wrong type":     body("200 OK", "", `{"id":5,`+quoted+`:1}`),
		"another id":     body("200 OK", "", `{"id":`+quoted+`}`),
	} {
		answers[name] = sent
	}
	for name, sent := range answers {
		t.Run(name, func(t *testing.T) {
			assertClean(t, shown(t, serveBytes(t, sent).url, newTransport(t)))
			assertClean(t, shown(t, memoryURL, serveProxy(t, sent)))
		})
	}
	lost := newTestClient(t, memoryURL, newScript(fail(errors.New(hostile))), WithRetryPolicy(RetryPolicy{}))
	assertClean(t, getHead(t.Context(), lost).Error())
	source := sourceClient(t, newScript(answer(200, "")), func(context.Context, string) (string, error) { return "", errors.New(hostile) })
	assertClean(t, getHead(t.Context(), source).Error())
}

// shown returns everything that a failing call shows: its error, and what its
// observer and logger receive.
func shown(t *testing.T, baseURL string, transport http.RoundTripper) string {
	t.Helper()
	var seen strings.Builder
	var log bytes.Buffer
	client := newTestClient(t, baseURL, transport, WithRetryPolicy(RetryPolicy{}),
		WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { fmt.Fprintf(&seen, "%v\n%v\n%+v\n%s\n", a.Err, a, a, a.RequestID) }}))
	err := getHead(t.Context(), client)
	require.Error(t, err)
	assert.LessOrEqual(t, utf8.RuneCountInString(err.Error()), 2*maxErrorText)
	var failure *Error
	if errors.As(err, &failure) {
		seen.WriteString(failure.Message + failure.Code + failure.RequestID)
	}
	return err.Error() + "\n" + seen.String() + decoded(t, log.String())
}

// decoded returns what a JSON log holds, since the encoder escapes some control
// characters and leaves others.
func decoded(t *testing.T, lines string) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(lines) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		fmt.Fprintln(&all, fields)
	}
	return all.String()
}

// assertClean checks that a text has none of the bytes of hostile.
func assertClean(t *testing.T, text string) {
	t.Helper()
	assert.True(t, utf8.ValidString(text), "%q", text)
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			assert.Failf(t, "a character that must not be shown", "%U in %q", r, text)
		}
	}
}

// serveProxy returns a transport over a proxy with the same answer to every
// CONNECT.
func serveProxy(t *testing.T, answer string) http.RoundTripper {
	proxy := serveBytes(t, answer)
	transport := newTransport(t)
	transport.Proxy = func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: proxy.addr}, nil }
	return transport
}

// net/http returns the reason phrase of the proxy as its error.
func TestReasonPhraseOfAProxyIsCleaned(t *testing.T) {
	for name, row := range map[string]struct{ phrase, want string }{
		"words":              {"Proxy Authentication Required", "no answer: Proxy Authentication Required"},
		"control characters": {"No\x1b[31mway\tthere", "no answer: No [31mway there"},
		"token":              {"No " + pathToken + " or " + pathToken, "no answer: No [redacted] or [redacted]"},
		"escaped token":      {"No " + pathToken + " or %74oken-of-the-tests", "no answer: [redacted]"},
		"query":              {"No /x?key=hush-hush and https://p.example.com/y?key=hush-hush", "no answer: No /x?[redacted] and https://p.example.com/y"},
		"password":           {"No https://me:hush-hush@p.example.com/", "no answer: No https://p.example.com/"},
		"long":               {strings.Repeat("é", 100<<10), strings.Repeat("é", maxErrorText-1) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, memoryURL, serveProxy(t, "HTTP/1.1 407 "+row.phrase+"\r\nContent-Length: 0\r\n\r\n"))
			assert.Contains(t, got, row.want)
			assert.NotContains(t, got, "hush")
			assert.NotContains(t, got, "\x1b")
			assert.NotContains(t, got, strings.Repeat("é", maxErrorText))
		})
	}
}

func TestErrorsOfATransportAreOneShortLine(t *testing.T) {
	for name, err := range map[string]error{
		"long":      errors.New(strings.Repeat("lost ", 10000)),
		"two lines": errors.Join(errors.New("lost"), &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}),
		"GOAWAY":    errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug="hush-hush"`),
		"path":      errors.New(`parse "/x?key=hush-hush": hopeless`),
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(fail(err)), WithRetryPolicy(RetryPolicy{}))
			got := getHead(t.Context(), client)
			require.ErrorIs(t, got, err)
			assert.LessOrEqual(t, utf8.RuneCountInString(got.Error()), maxErrorText+100)
			assert.NotContains(t, got.Error(), "\n")
			assert.NotContains(t, got.Error(), "hush")
		})
	}
}

func TestLabelsOfRecordsAreCleanWhereTheyAreShown(t *testing.T) {
	event := &Event{Type: hostile, HeadID: hostile, SessionID: hostile, Timestamp: Time{Text: hostile}}
	tool := Tool{Name: hostile, URL: "https://" + hostile + "/", Parameters: []ToolParameter{{Name: hostile, Type: hostile}}}
	webhook := &Webhook{HeadID: hostile, URL: "https://" + hostile + "/"}
	_, parsed := ParseAccessURL("https://" + hostile + ".example.com/")
	for _, v := range []any{event, webhook, tool, tool.Validate(), parsed} {
		assertClean(t, fmt.Sprint(v))
	}
	var log bytes.Buffer
	for _, v := range []slog.LogValuer{&Head{ID: hostile, Name: hostile}, webhook, tool} {
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
	}
	assertClean(t, decoded(t, log.String()))
}

// A name below localhost is resolved like any other name and can be any host.
func TestPlainHTTPIsForLoopbackAlone(t *testing.T) {
	for name, check := range map[string]func(base string) error{
		"New":                func(base string) error { return ErrorOf(New(base, pathToken)) },
		"WithAccessBases":    func(base string) error { return ErrorOf(New(memoryURL, pathToken, WithAccessBases(base, ""))) },
		"AccessURL.WithBase": func(base string) error { return ErrorOf(AccessURL{}.WithBase(base)) },
		"webhook": func(base string) error {
			return WebhookSpec{HeadID: testHead, URL: base, Events: []EventType{EventEndConversation}}.validate("test")
		},
		"tool":           func(base string) error { return Tool{Name: "find", Description: "Finds.", URL: base}.Validate() },
		"NewToolHandler": func(base string) error { return ErrorOf(NewToolHandler(base)) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, base := range []string{"http://localhost:1", "http://LOCALHOST", "http://127.0.0.1", "http://[::1]:80", "https://x.localhost"} {
				require.NoError(t, check(base), base)
			}
			for _, base := range []string{"http://x.localhost", "http://localhost.example.com", "http://0.0.0.0", "http://10.0.0.1"} {
				assert.ErrorIs(t, check(base), ErrInvalid, base)
			}
		})
	}
}
