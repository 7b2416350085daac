package heads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sentinels = map[string]error{
	"ErrBadRequest": ErrBadRequest, "ErrUnauthorized": ErrUnauthorized, "ErrForbidden": ErrForbidden,
	"ErrNotFound": ErrNotFound, "ErrConflict": ErrConflict, "ErrUnprocessable": ErrUnprocessable,
	"ErrRateLimited": ErrRateLimited, "ErrServer": ErrServer, "ErrInvalid": ErrInvalid,
}

func TestSentinelOfAStatus(t *testing.T) {
	for code, want := range map[int]string{
		302: "", 304: "", 400: "ErrBadRequest", 401: "ErrUnauthorized", 402: "", 403: "ErrForbidden", 404: "ErrNotFound",
		405: "", 409: "ErrConflict", 410: "", 418: "", 422: "ErrUnprocessable", 429: "ErrRateLimited", 499: "",
		500: "ErrServer", 501: "ErrServer", 502: "ErrServer", 503: "ErrServer", 504: "ErrServer", 599: "ErrServer",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			err := getHead(t.Context(), newTestClient(t, memoryURL, newScript(answer(code, "the body"))))
			wrapped := fmt.Errorf("reading the head: %w", errors.Join(errors.New("other"), err))
			for name, sentinel := range sentinels {
				assert.Equal(t, name == want, errors.Is(wrapped, sentinel), name)
			}
			var failure *Error
			require.ErrorAs(t, wrapped, &failure)
			assert.Equal(t, code, failure.StatusCode)
			assert.Equal(t, "the body", string(failure.Body.Bytes()))
		})
	}
}

func TestMessageOfAnAnswer(t *testing.T) {
	for name, row := range map[string]struct{ body, message, code string }{
		"message":                {`{"statusCode":400,"message":"no such voice","error":"Bad Request"}`, "no such voice", ""},
		"list":                   {`{"message":["name is empty","alias is empty"],"error":"Bad Request"}`, "name is empty; alias is empty", ""},
		"empty list":             {`{"message":[],"error":"Bad Request"}`, "Bad Request", ""},
		"list of objects":        {`{"detail":[{"loc":["body"],"msg":"field required"},{"message":"too long"}]}`, "field required; too long", ""},
		"list of anything":       {`{"message":["a",5,null,{"x":1},"b"]}`, "a; b", ""},
		"error":                  {`{"error":"Bad Request"}`, "Bad Request", ""},
		"error object":           {`{"error":{"code":"voice_unknown","message":"no such voice"}}`, "no such voice", "voice_unknown"},
		"error object, number":   {`{"error":{"code":17}}`, "", "17"},
		"code beside":            {`{"code":"E1","error":{"code":"E2","message":"m"}}`, "m", "E1"},
		"detail":                 {`{"detail":"not here"}`, "not here", ""},
		"title":                  {`{"type":"about:blank","title":"Not found"}`, "Not found", ""},
		"message before others":  {`{"title":"t","detail":"d","error":"e","message":"m"}`, "m", ""},
		"detail before title":    {`{"title":"t","detail":"d"}`, "d", ""},
		"number":                 {`{"message":404}`, "404", ""},
		"wrong types":            {`{"message":{"a":1},"error":true,"detail":null,"code":[]}`, "", ""},
		"unknown shape":          {`{"reason":"x"}`, "", ""},
		"text":                   {"upstream is down\n", "upstream is down", ""},
		"HTML":                   {"<html>\r\n<h1>Bad\tGateway</h1></html>", "<html> <h1>Bad Gateway</h1></html>", ""},
		"broken JSON":            {`{"message":"m`, `{"message":"m`, ""},
		"true":                   {"true", "true", ""},
		"null":                   {"null", "", ""},
		"nothing":                {"", "", ""},
		"bytes":                  {"\xff\xfe\x00", "", ""},
		"control characters":     {`{"message":"a\u001b[31mb\r\nc\u0000d\u202ee"}`, "a [31mb c d e", ""},
		"the token":              {`{"message":"bad token ` + pathToken + `","code":"` + pathToken + `"}`, "bad token [redacted]", "[redacted]"},
		"the token, escaped":     {`{"message":"\u0074oken-of-the-tests"}`, "[redacted]", ""},
		"the token in text":      {"no: Bearer " + pathToken, "no: Bearer [redacted]", ""},
		"200 characters":         {`{"message":"` + strings.Repeat("é", 200) + `"}`, strings.Repeat("é", 200), ""},
		"more":                   {`{"message":"` + strings.Repeat("é", 201) + `"}`, strings.Repeat("é", 199) + "…", ""},
		"the token at the cut":   {`{"message":"` + strings.Repeat("x", 190) + pathToken + `"}`, strings.Repeat("x", 190) + "[redacted]", ""},
		"message object":         {`{"message":{"text":"no such voice","code":"E1"},"error":"Bad Request"}`, "no such voice", "E1"},
		"message object, deep":   {`{"message":{"error":{"detail":["no","such voice"]}}}`, "no; such voice", ""},
		"message without a text": {`{"message":{"field":"name"},"error":"Bad Request"}`, "Bad Request", ""},
		"errors":                 {`{"errors":[{"field":"name","message":"is empty"},"alias is empty",{"detail":"too long"}]}`, "is empty; alias is empty; too long", ""},
		"errors of nothing":      {`{"errors":[],"title":"Bad Request"}`, "Bad Request", ""},
		"text key":               {`{"text":"no such voice","detail":"d"}`, "no such voice", ""},
		"text in an error":       {`{"error":{"text":"no such voice"}}`, "no such voice", ""},
		"code alone":             {`{"code":"VOICE_UNKNOWN"}`, "VOICE_UNKNOWN", "VOICE_UNKNOWN"},
		"code in an error":       {`{"error":{"code":"VOICE_UNKNOWN"}}`, "VOICE_UNKNOWN", "VOICE_UNKNOWN"},
		"code in the message":    {`{"message":{"code":"VOICE_UNKNOWN"}}`, "VOICE_UNKNOWN", "VOICE_UNKNOWN"},
		"code after all else":    {`{"code":"E1","title":"Bad Request"}`, "Bad Request", "E1"},
		"the token inside":       {`{"message":{"errors":[{"text":"bad token \u0074oken-of-the-tests"}]}}`, "bad token [redacted]", ""},
		"long code":              {`{"code":"` + strings.Repeat("c", 500) + `"}`, strings.Repeat("c", 199) + "…", strings.Repeat("c", 127) + "…"},
		"deep":                   {strings.Repeat("[", 20000), strings.Repeat("[", 199) + "…", ""},
		"behind what Body keeps": {`{"pad":"` + strings.Repeat("x", 70<<10) + `","message":"m"}`, "m", ""},
		"text longer than Body":  {"x" + strings.Repeat("é", 40<<10), "x" + strings.Repeat("é", 198) + "…", ""},
		"a list for an object":   {`["a","b\/c"]`, "a; b/c", ""},
		"a string for an object": {`"no such \u0076oice"`, "no such voice", ""},
		"escaped token":          {`["\u0074oken-of-the-tests is bad"]`, "[redacted] is bad", ""},
		"escapes that are cut":   {`{"message":"\u0074oken-of-the-tests is bad`, "", ""},
		"text with brackets":     {`[1, [2]] is not a list of names`, "[1, [2]] is not a list of names", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := getHead(t.Context(), newTestClient(t, memoryURL, newScript(answer(400, row.body))))
			var failure *Error
			require.ErrorAs(t, err, &failure)
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

// The errors of net/http quote what it can't parse as HTTP.
func TestErrorShowsNothingOfAnAnswerThatIsNotHTTP(t *testing.T) {
	for name, answer := range map[string]string{
		"body alone":        `{"sharedKey":"hush-hush"}` + "\r\n\r\n",
		"header line":       "HTTP/1.1 200 OK\r\nhush-hush\r\n\r\n",
		"header begins":     "HTTP/1.1 200 OK\r\n hush-hush: 1\r\n\r\n",
		"length":            "HTTP/1.1 200 OK\r\nContent-Length: hush-hush\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: hush-hush\r\n\r\n",
		"transfer encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: hush-hush\r\n\r\n",
		"status":            "HTTP/1.1 hush-hush\r\n\r\n",
		"version":           "HTTP/hush-hush 200 OK\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := newTestClient(t, serveBytes(t, answer).url, transport, WithLogger(slog.New(slog.NewTextHandler(&out, nil))),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { fmt.Fprintln(&out, a.Err) }}))
			err := getHead(t.Context(), client)
			require.ErrorContains(t, err, "transport connection broken")
			assert.NotContains(t, err.Error()+out.String(), "hush")
		})
	}
}

func TestLongerTokenIsMaskedFirst(t *testing.T) {
	tr := newScript(answer(401, ""), answer(400, `neither abc nor abc-and-more`))
	given := []string{"abc-and-more", "abc"}
	client := sourceClient(t, tr, func(context.Context, string) (string, error) {
		next := given[0]
		given = given[1:]
		return next, nil
	})
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), client), &failure)
	assert.Equal(t, "neither [redacted] nor [redacted]", failure.Message)
}

// After a renewal, an answer may still quote the token before.
func TestBothTokensOfACallAreMasked(t *testing.T) {
	tr := newScript(answer(401, `t1 is bad`), answer(400, `neither t1 nor t2`))
	var seen []string
	client := sourceClient(t, tr, (&tokens{}).next, WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { seen = append(seen, a.Err.Error()) }}))
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), client), &failure)
	assert.Equal(t, "neither [redacted] nor [redacted]", failure.Message)
	require.Len(t, seen, 2)
	assert.NotContains(t, strings.Join(seen, " "), "t1")
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
	var one *InvalidError
	require.ErrorAs(t, err, &one)
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

// With no retry left, a call failed because of its answer, even if its context
// ended in the meantime.
func TestLastAnswerIsNotBlamedOnTheContext(t *testing.T) {
	for name, retries := range map[string]int{"no retries": 0, "a retry": 1} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			refuse := func(r *http.Request) (*http.Response, error) {
				cancel()
				return answer(503, "busy")(r)
			}
			err := getHead(ctx, newTestClient(t, memoryURL, newScript(refuse), WithRetryPolicy(RetryPolicy{MaxRetries: retries})))
			assert.ErrorIs(t, err, ErrServer)
			assert.Equal(t, retries > 0, errors.Is(err, context.Canceled), "it would have gone on")
		})
	}
}

func TestServicesNotMadeByNewSaySo(t *testing.T) {
	_, visualErr := new(HeadVisualsService).Get(t.Context(), "v")
	_, settingsErr := new(ConversationSettingsService).Get(t.Context(), testHead)
	_, headErr := new(HeadsService).Get(t.Context(), testHead)
	_, addressErr := new(Client).AccessURL(&Head{})
	for _, err := range []error{visualErr, settingsErr, headErr, addressErr} {
		assert.ErrorIs(t, err, ErrInvalid)
		assert.ErrorContains(t, err, "was not made by New")
	}
}
