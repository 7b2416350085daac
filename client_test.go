package heads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRequestAsTheServiceSeesIt(t *testing.T) {
	var got *http.Request
	var body string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r, string(raw)
		fmt.Fprint(w, `{"id":"`+testHead+`","sharedKey":"k"}`)
	})
	for _, row := range []struct{ method, path, query, body string }{
		{"GET", "/head/" + testHead, "", ""},
		{"PUT", "/head/update", "", `{"id":"` + testHead + `","name":"Ada"}`},
		{"PATCH", "/head-events/7", "", `{"endConversation":true}`},
		{"DELETE", "/head-events/7", "", ""},
		{"POST", "/head-events", "", `{"headId":"` + testHead + `","webhookUrl":"https://hooks.example.com/heads","startConversation":true,"endConversation":false,"timeoutConversation":false,"inactivityWarning":false}`},
	} {
		t.Run(row.method, func(t *testing.T) {
			for _, call := range calls {
				if call.method == row.method {
					require.NoError(t, call.run(t.Context(), client))
				}
			}
			assert.Equal(t, row.method, got.Method)
			assert.Equal(t, row.path, got.URL.Path)
			assert.Equal(t, row.query, got.URL.RawQuery)
			assert.Equal(t, row.body, body)
			assert.Equal(t, int64(len(row.body)), got.ContentLength)
			got.Header.Del("Accept-Encoding")
			got.Header.Del("Content-Length")
			want := http.Header{
				"Accept":        {"application/json"},
				"Authorization": {"Bearer " + pathToken},
				"User-Agent":    {"heads-go/" + Version},
			}
			if row.body != "" {
				want["Content-Type"] = []string{"application/json"}
			}
			assert.Equal(t, want, got.Header)
		})
	}
}

// A transport that logs, signs or caches must see what is sent.
func TestAuthorizationIsOnTheRequestItself(t *testing.T) {
	tr := newScript(answer(503, ""), answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr)))
	require.Equal(t, 2, tr.sent())
	for _, r := range tr.requests {
		assert.Equal(t, []string{"Bearer " + pathToken}, r.Header["Authorization"])
	}
	assert.NotSame(t, tr.requests[0], tr.requests[1], "the transport may still hold the first one")
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := serveWire(t, 200, "")
	host := elsewhere.addr
	var location string
	var status int
	seen := map[string]int{}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen[r.Method]++
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	})
	for name, row := range map[string]struct{ location, says string }{
		"other host":         {elsewhere.url + "/head?key=hush-hush", "redirected to host " + host + ","},
		"other host, user":   {"http://me:hush-hush@" + host + "/", "redirected to host " + host + ","},
		"scheme-relative":    {"//" + host + "/hush-hush", "redirected to host " + host + ","},
		"other path":         {"/elsewhere?key=hush-hush", "redirected to another path of host " + mask.Host(client.BaseURL(), maxLabel) + ","},
		"relative path":      {"other", "redirected to another path of host " + mask.Host(client.BaseURL(), maxLabel) + ","},
		"broken":             {"http://[hush-hush", "redirected to an unreadable URL,"},
		"very long":          {"http://" + strings.Repeat("a", 300) + ".example.com/", "redirected to host aaaa"},
		"the token as host":  {"http://" + pathToken + "/", "redirected to host [redacted],"},
		"nowhere (no value)": {"", ""},
	} {
		for _, status = range []int{301, 302, 303, 307, 308} {
			for _, call := range calls {
				t.Run(fmt.Sprint(name, " ", status, " ", call.method), func(t *testing.T) {
					location = row.location
					clear(seen)
					err := call.run(t.Context(), client)
					var failure *Error
					require.ErrorAs(t, err, &failure)
					assert.Equal(t, status, failure.StatusCode)
					assert.True(t, strings.HasPrefix(failure.Message, row.says), failure.Message)
					assert.LessOrEqual(t, len([]rune(failure.Message)), 200)
					assert.NotContains(t, err.Error(), "hush-hush")
					assert.NotContains(t, err.Error(), pathToken)
					assert.Equal(t, map[string]int{call.method: 1}, seen)
				})
			}
		}
	}
	assert.Zero(t, elsewhere.seen.Load(), "the other host sees no request")
}

func TestPathParametersAreEscaped(t *testing.T) {
	for id, path := range map[string]string{
		"plain-1":       "plain-1",
		"a/b":           "a%2Fb",
		"../head":       "..%2Fhead",
		"...":           "...",
		"a b":           "a%20b",
		"a?b=c#d":       "a%3Fb=c%23d",
		"%2e%2e":        "%252e%252e",
		"é":             "%C3%A9",
		"a\nb":          "a%0Ab",
		"a;b,c":         "a%3Bb%2Cc",
		" x ":           "%20x%20",
		`\\host\x`:      "%5C%5Chost%5Cx",
		"http://x.test": "http:%2F%2Fx.test",
	} {
		for _, base := range []string{prefix, "/a%2Fb"} {
			t.Run(id+" under "+base, func(t *testing.T) {
				server := serveWire(t, 418, "")
				_, err := newTestClient(t, server.url+base, server.transport).HeadVisuals.Get(t.Context(), id)
				assert.Equal(t, "GET "+base+"/head_visual/"+path+" HTTP/1.1", (<-server.requests).line)
				var failure *Error
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, "/head_visual/"+path, failure.Path, "without the prefix")
			})
		}
	}
}

func TestBadIDsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	tr := newScript(answer(200, headJSON))
	client := newTestClient(t, memoryURL, tr)
	ctx := t.Context()
	headMethods := map[string]func(id string) error{
		"Heads.Get":    func(id string) error { _, err := client.Heads.Get(ctx, id); return err },
		"Heads.Update": func(id string) error { err := client.Heads.Update(ctx, id, NewHeadUpdate().Name("Ada")); return err },
		"Heads.SetVideoStreaming": func(id string) error {
			err := client.Heads.SetVideoStreaming(ctx, id, true)
			return err
		},
		"Webhooks.SetDelivery": func(id string) error { err := client.Webhooks.SetDelivery(ctx, id, true); return err },
		"Webhooks.List":        func(id string) error { _, err := client.Webhooks.List(ctx, id); return err },
		"Webhooks.Create": func(id string) error {
			_, err := client.Webhooks.Create(ctx, WebhookSpec{HeadID: id, URL: "https://hooks.example.com", Events: []EventType{EventStartConversation}})
			return err
		},
		"Webhooks.Update": func(id string) error {
			err := client.Webhooks.Update(ctx, 7, NewWebhookUpdate().HeadID(id))
			return err
		},
		"ConversationSettings.Replace": func(id string) error {
			err := client.ConversationSettings.Replace(ctx, id, &ConversationSettings{})
			return err
		},
	}
	for operation, call := range headMethods {
		for id, says := range map[string]string{
			"":                 "is blank",
			".":                "is not a UUID",
			"..":               "is not a UUID",
			"li-28379":         `"li-28379" is a public id`,
			"MyOrg-1234":       `"MyOrg-1234" is a public id`,
			testHead + " ":     "white space",
			testHead[1:]:       "is not a UUID",
			"g" + testHead[1:]: "is not a UUID",
			testHead + "/../x": "is a URL or a path",
			"https://chat.example.com/MyOrg-1/li-2?api_key=hush-hush": "is a URL or a path",
		} {
			t.Run(operation+" "+id, func(t *testing.T) {
				err := call(id)
				var invalid *InvalidError
				require.ErrorAs(t, err, &invalid)
				assert.Equal(t, operation, invalid.Operation)
				assert.Equal(t, "head id", invalid.Field)
				assert.Contains(t, invalid.Problem+"; "+invalid.Remedy, says)
				assert.Contains(t, err.Error()+"use the UUID in the head's id field", "use the UUID in the head's id field")
				assert.NotContains(t, err.Error(), "hush-hush")
			})
		}
	}
	for _, id := range []string{"", " ", ".", ".."} {
		t.Run("visual "+id, func(t *testing.T) {
			_, err := client.HeadVisuals.Get(ctx, id)
			require.ErrorIs(t, err, ErrInvalid)
		})
	}
	for _, id := range []int64{0, -1} {
		t.Run(fmt.Sprint("webhook ", id), func(t *testing.T) {
			_, err := client.Webhooks.Get(ctx, id)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorIs(t, client.Webhooks.Delete(ctx, id), ErrInvalid)
			err = client.Webhooks.Update(ctx, id, NewWebhookUpdate().Event(EventEndConversation, true))
			require.ErrorIs(t, err, ErrInvalid)
		})
	}
	assert.Equal(t, 0, tr.sent())
}

func TestUUIDOfAnyCaseIsAHeadID(t *testing.T) {
	tr := newScript(answer(200, headJSON))
	_, err := newTestClient(t, memoryURL, tr).Heads.Get(t.Context(), strings.ToUpper(testHead))
	require.NoError(t, err)
}

// If the contract does not document the shape of an answer, any 2xx is success.
func TestUndocumentedAnswersNeedNoShape(t *testing.T) {
	for name, row := range answersOfAnyShape {
		for _, status := range []int{200, 201, 202, 204, 299} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				tr := newScript(answer(status, row.body, "X-Request-Id: r-1", "X-Other: yes"))
				client := newTestClient(t, memoryURL, tr)
				for _, call := range calls[1:3] { // PUT, PATCH
					require.NoError(t, call.run(t.Context(), client))
				}
				deleted := newScript(answer(status, row.body), answer(404, ""))
				require.NoError(t, newTestClient(t, memoryURL, deleted).Webhooks.Delete(t.Context(), 7))
				resp, err := client.Heads.setVideoStreaming(t.Context(), testHead, true)
				require.NoError(t, err)
				assert.Equal(t, status, resp.StatusCode)
				assert.Equal(t, row.body, string(resp.Body.Bytes()))
				assert.Equal(t, "yes", resp.Header.Get("X-Other"))
				assert.Equal(t, "r-1", resp.RequestID)
				assert.Equal(t, 1, resp.Attempts)
			})
		}
	}
}

// If the contract documents the shape of an answer, another shape is a
// DecodeError.
func TestDocumentedAnswersNeedTheirShape(t *testing.T) {
	client := func(body string) *Client { return newTestClient(t, memoryURL, newScript(answer(200, body))) }
	documented := map[string]func(body string) error{
		"Heads.Get":       func(body string) error { return getHead(t.Context(), client(body)) },
		"HeadVisuals.Get": func(body string) error { _, err := client(body).HeadVisuals.Get(t.Context(), "v"); return err },
		"Webhooks.Get":    func(body string) error { _, err := client(body).Webhooks.Get(t.Context(), 7); return err },
		"Webhooks.List":   func(body string) error { _, err := client(body).Webhooks.List(t.Context(), testHead); return err },
		"Webhooks.Create": func(body string) error { return postHook(t.Context(), client(body)) },
	}
	for operation, call := range documented {
		for name, row := range answersOfAnyShape {
			if row.object && operation != "Webhooks.List" && operation != "Webhooks.Create" || (row.array || row.body == "null") && operation == "Webhooks.List" {
				continue
			}
			t.Run(operation+" "+name, func(t *testing.T) {
				err := call(row.body)
				var decode *DecodeError
				require.ErrorAs(t, err, &decode)
				assert.Equal(t, operation, decode.Operation)
				assert.Equal(t, row.body[:min(len(row.body), 4<<10)], string(decode.Body.Bytes()))
				assert.Error(t, decode.Err)
				assert.NotContains(t, err.Error(), "hush-hush", "the answer is not shown")
			})
		}
	}
}

var answersOfAnyShape = map[string]struct {
	body          string
	object, array bool
}{
	"nothing":       {body: ""},
	"blank":         {body: " \r\n"},
	"true":          {body: "true"},
	"false":         {body: "false"},
	"null":          {body: "null"},
	"number":        {body: "42"},
	"string":        {body: `"hush-hush"`},
	"text":          {body: "OK hush-hush"},
	"HTML":          {body: "<html>hush-hush</html>"},
	"bytes":         {body: "\x00\xff\xfe"},
	"empty object":  {body: "{}", object: true},
	"empty array":   {body: "[]", array: true},
	"array of text": {body: `["hush-hush"]`},
	"broken object": {body: `{"id":"hush-hush`},
	"two documents": {body: `{} {}`},
	"deeply nested": {body: strings.Repeat("[", 20000)},
}

func TestWrongTypeInADocumentedFieldIsADecodeError(t *testing.T) {
	for body, says := range map[string]string{
		`{"name":5}`:                  `field "name" holds a JSON number; want a JSON string`,
		`{"phrases":"hush-hush"}`:     `field "phrases" holds a JSON string; want a JSON array of strings`,
		`{"videoStreaming":"true"}`:   `field "videoStreaming" holds a JSON string; want a JSON boolean`,
		`{"semanticThreshold":"x"}`:   `field "semanticThreshold" holds a JSON string; want a JSON number`,
		`{"customWords":{"a":true}}`:  `field "customWords" holds a JSON object with a boolean in it; want a JSON object of strings`,
		`{"semanticThreshold":1e999}`: `field "semanticThreshold" holds a JSON number that is out of range`,
	} {
		t.Run(body, func(t *testing.T) {
			client := newTestClient(t, memoryURL, newScript(answer(200, body)))
			err := getHead(t.Context(), client)
			var decode *DecodeError
			require.ErrorAs(t, err, &decode)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, "the request succeeded, but its answer can't be read")
			var mismatch *json.UnmarshalTypeError
			require.ErrorAs(t, err, &mismatch)
			assert.NotContains(t, err.Error(), "hush-hush")
		})
	}
}

func TestDecodeErrorKeepsTheFirst4KiB(t *testing.T) {
	long := "text " + strings.Repeat("0123456789", 1000)
	client := newTestClient(t, memoryURL, newScript(answer(200, long)))
	var decode *DecodeError
	require.ErrorAs(t, getHead(t.Context(), client), &decode)
	assert.Equal(t, long[:4096], string(decode.Body.Bytes()))

	resp, err := client.Heads.setVideoStreaming(t.Context(), testHead, true)
	require.NoError(t, err)
	assert.Equal(t, long, string(resp.Body.Bytes()))
	var v any
	require.ErrorAs(t, resp.Decode(&v), &decode)
	assert.Equal(t, "Heads.SetVideoStreaming", decode.Operation)
	assert.Equal(t, long[:4096], string(decode.Body.Bytes()))
}

func TestResponseDecodes(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(200, `{"publicUrl":"https://x.example.com"}`), answer(200, "")))
	resp, err := client.Heads.setVideoStreaming(t.Context(), testHead, true)
	require.NoError(t, err)
	var v struct {
		PublicURL string `json:"publicUrl"`
	}
	require.NoError(t, resp.Decode(&v))
	assert.Equal(t, "https://x.example.com", v.PublicURL)

	resp, err = client.Heads.setVideoStreaming(t.Context(), testHead, true)
	require.NoError(t, err)
	var decode *DecodeError
	require.ErrorAs(t, resp.Decode(&v), &decode)
}

// Buffers for answers are reused, so a call must return copies.
func TestResultsOutliveTheNextCall(t *testing.T) {
	first, second := strings.Repeat("a", 100), strings.Repeat("b", 100)
	tr := newScript(answer(200, first), answer(400, first), answer(200, first),
		answer(200, second), answer(200, second), answer(200, second))
	client := newTestClient(t, memoryURL, tr)
	resp, err := client.Heads.setVideoStreaming(t.Context(), testHead, true)
	require.NoError(t, err)
	var failure *Error
	require.ErrorAs(t, getHead(t.Context(), client), &failure)
	var decode *DecodeError
	require.ErrorAs(t, getHead(t.Context(), client), &decode)
	for range 3 {
		require.Error(t, getHead(t.Context(), client))
	}
	assert.Equal(t, first, string(resp.Body.Bytes()))
	assert.Equal(t, first, string(failure.Body.Bytes()))
	assert.Equal(t, first, string(decode.Body.Bytes()))
}

func TestRequestID(t *testing.T) {
	for name, row := range map[string]struct {
		headers []string
		want    string
	}{
		"X-Request-Id":     {[]string{"X-Request-Id: a"}, "a"},
		"X-Correlation-Id": {[]string{"X-Correlation-Id: b"}, "b"},
		"both":             {[]string{"X-Correlation-Id: b", "X-Request-Id: a"}, "a"},
		"first is empty":   {[]string{"X-Request-Id: ", "X-Correlation-Id: b"}, "b"},
		"neither":          {nil, ""},
		"hostile":          {[]string{"X-Request-Id: a\x1b[31m\tb " + pathToken + strings.Repeat("c", 500)}, "a [31m b [redacted]" + strings.Repeat("c", 108) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			client := newTestClient(t, memoryURL, newScript(answer(200, "", row.headers...), answer(400, "", row.headers...)),
				WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { seen = append(seen, a.RequestID) }}))
			resp, err := client.Heads.setVideoStreaming(t.Context(), testHead, true)
			require.NoError(t, err)
			assert.Equal(t, row.want, resp.RequestID)
			var failure *Error
			require.ErrorAs(t, getHead(t.Context(), client), &failure)
			assert.Equal(t, row.want, failure.RequestID)
			assert.Equal(t, []string{row.want, row.want}, seen)
		})
	}
}

func TestErrorPathHasNeitherPrefixNorQuery(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(400, "")))
	for name, row := range map[string]struct {
		call func() error
		path string
	}{
		"Heads.Get":     {func() error { return getHead(t.Context(), client) }, "/head/" + testHead},
		"Webhooks.List": {func() error { _, err := client.Webhooks.List(t.Context(), testHead); return err }, "/head-events"},
		"Heads.SetVideoStreaming": {func() error {
			err := client.Heads.SetVideoStreaming(t.Context(), testHead, true)
			return err
		}, "/head/" + testHead + "/video-streaming"},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.call()
			var failure *Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, name, failure.Operation)
			assert.Equal(t, row.path, failure.Path)
			assert.NotContains(t, err.Error(), "?")
			assert.NotContains(t, err.Error(), prefix)
		})
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	tr := newScript(answer(200, headJSON))
	client := newTestClient(t, memoryURL, tr)
	mine := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	err := getHead(ctx, client)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "Heads.Get: nothing was sent")
	assert.Equal(t, 0, tr.sent())
}

func TestMisuseIsAnInvalidError(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(200, headJSON)))
	for name, call := range map[string]func() error{
		"nil context":  func() error { return getHead(nil, client) }, //nolint:staticcheck // the point of the row
		"zero service": func() error { _, err := new(HeadsService).Get(t.Context(), testHead); return err },
		"zero client": func() error {
			_, err := new(Client).Do(t.Context(), Request{Method: http.MethodGet, Path: "/"})
			return err
		},
		"nil client": func() error {
			_, err := (*Client)(nil).Do(t.Context(), Request{Method: http.MethodGet, Path: "/"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, call(), ErrInvalid)
		})
	}
}

func TestClientIsSafeForConcurrentUse(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"sharedKey":"k"}`)
			return
		}
		fmt.Fprintf(w, `{"id":%q}`, strings.TrimPrefix(r.URL.Path, "/head/"))
	}, WithObserver(Observer[Attempt]{End: func(context.Context, Attempt) {}}))
	inParallel(20, func(int) {
		for _, call := range calls {
			assert.NoError(t, call.run(t.Context(), client))
		}
	})
}

func TestHeadersOfRequestsAreTheirOwn(t *testing.T) {
	tr := newScript(func(r *http.Request) (*http.Response, error) {
		r.Header.Add("Accept", "text/plain")
		r.Header.Set("User-Agent", "changed")
		r.Header.Set("Authorization", "changed")
		return answer(200, headJSON)(r)
	}, answer(200, headJSON))
	client := newTestClient(t, memoryURL, tr)
	require.NoError(t, getHead(t.Context(), client))
	require.NoError(t, getHead(t.Context(), client))
	assert.Equal(t, http.Header{
		"Accept":        {"application/json"},
		"Authorization": {"Bearer " + pathToken},
		"User-Agent":    {"heads-go/" + Version},
	}, tr.requests[1].Header)
}

func TestTurnsIgnoreTheCaseOfTheHeadID(t *testing.T) {
	assert.Equal(t, headLock("settings", testHead), headLock("settings", strings.ToUpper(testHead)))
	assert.NotEqual(t, headLock("settings", testHead), headLock("configuration", testHead))
}

// callOf calls one method of the client and returns its error.
type callOf func(context.Context, *Client) error

const hookJSON = `{"id":7,"headId":"` + testHead + `","sharedKey":"k"}`

// onTheWire has each operation, once with every form of its request.
var onTheWire = []struct {
	name   string
	call   callOf
	line   string
	body   string
	length string // Content-Length; "" for none
	answer string
}{
	{
		name: "Heads.Get",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Heads.Get(ctx, testHead)
			return err
		},
		line:   "GET /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6 HTTP/1.1",
		answer: `{"id":"3fa85f64-5717-4562-b3fc-2c963f66afa6"}`,
	},
	{
		name: "Heads.Update",
		call: func(ctx context.Context, c *Client) error {
			err := c.Heads.Update(ctx, testHead, NewHeadUpdate().Voice("elevenlabs", "rachel_eleven_turbo_v2_5"))
			return err
		},
		line:   "PUT /api/v3/head/update HTTP/1.1",
		body:   `{"id":"3fa85f64-5717-4562-b3fc-2c963f66afa6","ttsProvider":"elevenlabs","ttsVoice":"rachel_eleven_turbo_v2_5"}`,
		length: "110",
	},
	{
		name: "HeadVisuals.Get",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.HeadVisuals.Get(ctx, "8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f")
			return err
		},
		line:   "GET /api/v3/head_visual/8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f HTTP/1.1",
		answer: `{"id":"8d2a6c1e-52f4-4e0b-9a55-7f0c3b1d2e4f","mode":"default"}`,
	},
	{
		name: "HeadVisuals.Get with an id that has to be escaped",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.HeadVisuals.Get(ctx, "a/b c?d#e%2F..é")
			return err
		},
		line:   "GET /api/v3/head_visual/a%2Fb%20c%3Fd%23e%252F..%C3%A9 HTTP/1.1",
		answer: `{"id":"a/b c?d#e%2F..é","mode":"default"}`,
	},
	{
		name: "Heads.SetVideoStreaming on",
		call: func(ctx context.Context, c *Client) error {
			err := c.Heads.SetVideoStreaming(ctx, testHead, true)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/video-streaming?videoStreaming=true HTTP/1.1",
		length: "0",
	},
	{
		name: "Heads.SetVideoStreaming off",
		call: func(ctx context.Context, c *Client) error {
			err := c.Heads.SetVideoStreaming(ctx, testHead, false)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/video-streaming?videoStreaming=false HTTP/1.1",
		length: "0",
	},
	{
		name: "ConversationSettings.Replace",
		call: func(ctx context.Context, c *Client) error {
			err := c.ConversationSettings.Replace(ctx, testHead, &ConversationSettings{Tools: []Tool{{
				Name: "weather", Description: "Tells the weather", URL: "https://tools.example.com/weather",
				Parameters: []ToolParameter{{Name: "city", Type: "string", Description: "Where"}},
			}}})
			return err
		},
		line: "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/conversation-settings HTTP/1.1",
		body: `{"conversationSettings":{"tools":[{"name":"weather","description":"Tells the weather",` +
			`"parameters":[{"name":"city","type":"string","description":"Where"}],"url":"https://tools.example.com/weather"}]}}`,
		length: "200",
	},
	{
		name: "Webhooks.Create",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: "https://hooks.example.com/heads", Events: []EventType{EventEndConversation}})
			return err
		},
		line: "POST /api/v3/head-events HTTP/1.1",
		body: `{"headId":"3fa85f64-5717-4562-b3fc-2c963f66afa6","webhookUrl":"https://hooks.example.com/heads",` +
			`"startConversation":false,"endConversation":true,"timeoutConversation":false,"inactivityWarning":false}`,
		length: "199",
		answer: `{"sharedKey":"k"}`,
	},
	{
		name: "Webhooks.List",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Webhooks.List(ctx, testHead)
			return err
		},
		line:   "GET /api/v3/head-events?headId=3fa85f64-5717-4562-b3fc-2c963f66afa6 HTTP/1.1",
		answer: `[` + hookJSON + `]`,
	},
	{
		name: "Webhooks.Get",
		call: func(ctx context.Context, c *Client) error {
			_, err := c.Webhooks.Get(ctx, 9007199254740993) // no float64 holds this
			return err
		},
		line:   "GET /api/v3/head-events/9007199254740993 HTTP/1.1",
		answer: strings.Replace(hookJSON, "7", "9007199254740993", 1),
	},
	{
		name: "Webhooks.Update",
		call: func(ctx context.Context, c *Client) error {
			err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, false))
			return err
		},
		line:   "PATCH /api/v3/head-events/7 HTTP/1.1",
		body:   `{"endConversation":false}`,
		length: "25",
	},
	{
		name: "Webhooks.Delete",
		call: func(ctx context.Context, c *Client) error { return c.Webhooks.Delete(ctx, 7) },
		line: "DELETE /api/v3/head-events/7 HTTP/1.1",
	},
	{
		name: "Webhooks.SetDelivery on",
		call: func(ctx context.Context, c *Client) error {
			err := c.Webhooks.SetDelivery(ctx, testHead, true)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/enable-events?enableEvents=true HTTP/1.1",
		length: "0",
	},
	{
		name: "Webhooks.SetDelivery off",
		call: func(ctx context.Context, c *Client) error {
			err := c.Webhooks.SetDelivery(ctx, testHead, false)
			return err
		},
		line:   "PUT /api/v3/head/3fa85f64-5717-4562-b3fc-2c963f66afa6/enable-events?enableEvents=false HTTP/1.1",
		length: "0",
	},
}

func TestOperationsOnTheWire(t *testing.T) {
	var named []string
	for _, tt := range onTheWire {
		name, _, _ := strings.Cut(tt.name, " ")
		named = append(named, name)
		t.Run(tt.name, func(t *testing.T) {
			server := serveWire(t, http.StatusOK, tt.answer)
			require.NoError(t, tt.call(t.Context(), server.client(t)))
			sent := <-server.requests
			assert.Equal(t, tt.line, sent.line)
			assert.Equal(t, tt.body, sent.body)
			header := http.Header{
				"Host":            {server.addr},
				"User-Agent":      {"heads-go/" + Version},
				"Accept":          {"application/json"},
				"Accept-Encoding": {"gzip"}, // net/http's own
				"Authorization":   {"Bearer " + pathToken},
			}
			if tt.length != "" {
				header.Set("Content-Length", tt.length)
			}
			if tt.body != "" {
				header.Set("Content-Type", "application/json")
			}
			assert.Equal(t, header, sent.header)
			assert.Empty(t, server.requests, "one call is one request")
		})
	}
	for _, name := range declaredOperations(t) {
		assert.Contains(t, named, name)
	}
}

// undescribed are the operations whose answer the contract does not describe.
var undescribed = map[string]callOf{
	"Heads.Update": func(ctx context.Context, c *Client) error {
		return c.Heads.Update(ctx, testHead, NewHeadUpdate().Name("n"))
	},
	"Heads.SetVideoStreaming": func(ctx context.Context, c *Client) error {
		return c.Heads.SetVideoStreaming(ctx, testHead, true)
	},
	"ConversationSettings.Replace": func(ctx context.Context, c *Client) error {
		return c.ConversationSettings.Replace(ctx, testHead, &ConversationSettings{})
	},
	"Webhooks.Update": func(ctx context.Context, c *Client) error {
		return c.Webhooks.Update(ctx, 7, NewWebhookUpdate().Event(EventEndConversation, true))
	},
	"Webhooks.SetDelivery": func(ctx context.Context, c *Client) error {
		return c.Webhooks.SetDelivery(ctx, testHead, true)
	},
}

func TestUndescribedAnswersAreSuccessWhateverTheyHold(t *testing.T) {
	for name, call := range undescribed {
		for _, body := range []string{"", "true", "false", "null", "done", `{"id":5}`, "[1,", "<html>"} {
			t.Run(name+" "+strconv.Quote(body), func(t *testing.T) {
				require.NoError(t, call(t.Context(), serveWire(t, http.StatusAccepted, body).client(t)))
			})
		}
	}
	t.Run("Webhooks.Delete", func(t *testing.T) {
		for _, body := range []string{"", "true", "gone"} {
			assert.NoError(t, serveWire(t, http.StatusOK, body).client(t).Webhooks.Delete(t.Context(), 7))
		}
	})
}

// described are the operations whose answer the contract describes.
var described = map[string]callOf{
	"Heads.Get": func(ctx context.Context, c *Client) error {
		_, err := c.Heads.Get(ctx, testHead)
		return err
	},
	"HeadVisuals.Get": func(ctx context.Context, c *Client) error {
		_, err := c.HeadVisuals.Get(ctx, "v")
		return err
	},
	"Webhooks.Create": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: testHead, URL: "https://hooks.example.com", Events: []EventType{EventEndConversation}})
		return err
	},
	"Webhooks.List": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.List(ctx, testHead)
		return err
	},
	"Webhooks.Get": func(ctx context.Context, c *Client) error {
		_, err := c.Webhooks.Get(ctx, 7)
		return err
	},
}

func TestDescribedAnswersMustHaveTheirShape(t *testing.T) {
	for name, call := range described {
		for _, body := range []string{"", "  \n", "true", "5", `"text"`, "null", "done", `{"id":`, `{"id":"x"} x`, "<html>"} {
			if name == "Webhooks.List" && body == "null" {
				continue // an empty list
			}
			t.Run(name+" "+strconv.Quote(body), func(t *testing.T) {
				err := call(t.Context(), serveWire(t, http.StatusOK, body).client(t))
				var wrong *DecodeError
				require.ErrorAs(t, err, &wrong)
				assert.Equal(t, name, wrong.Operation)
				assert.Equal(t, body, string(wrong.Body.Bytes()))
				assert.NotErrorIs(t, err, ErrInvalid)
			})
		}
	}
	t.Run("an object is no list", func(t *testing.T) {
		_, err := serveWire(t, http.StatusOK, `{"id":7}`).client(t).Webhooks.List(t.Context(), testHead)
		assert.ErrorAs(t, err, new(*DecodeError))
	})
	for name, call := range described {
		if name == "Webhooks.List" {
			continue
		}
		t.Run(name+": a list is no object", func(t *testing.T) {
			assert.ErrorAs(t, call(t.Context(), serveWire(t, http.StatusOK, `[{"id":7}]`).client(t)), new(*DecodeError))
		})
	}
}

// headCalls are the methods that take a head's id.
var headCalls = map[string]func(context.Context, *Client, string) error{
	"Heads.Get": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.Get(ctx, id)
		return err
	},
	"Heads.Update": func(ctx context.Context, c *Client, id string) error {
		err := c.Heads.Update(ctx, id, NewHeadUpdate().Name("n"))
		return err
	},
	"Heads.Modify": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.Modify(ctx, id, func(*Head) error { return nil })
		return err
	},
	"Heads.SetVideoStreaming": func(ctx context.Context, c *Client, id string) error {
		err := c.Heads.SetVideoStreaming(ctx, id, true)
		return err
	},
	"Heads.Examine": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.Examine(ctx, id)
		return err
	},
	"Heads.PlanStreaming": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.PlanStreaming(ctx, id, ConvertOptions{})
		return err
	},
	"Heads.ConvertToStreaming": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.ConvertToStreaming(ctx, id, ConvertOptions{})
		return err
	},
	"Heads.ConvertToLegacy": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Heads.ConvertToLegacy(ctx, id, ConvertOptions{})
		return err
	},
	"ConversationSettings.Get": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.Get(ctx, id)
		return err
	},
	"ConversationSettings.Replace": func(ctx context.Context, c *Client, id string) error {
		err := c.ConversationSettings.Replace(ctx, id, &ConversationSettings{})
		return err
	},
	"ConversationSettings.Modify": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.Modify(ctx, id, func(*ConversationSettings) error { return nil })
		return err
	},
	"ConversationSettings.SetTools": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.SetTools(ctx, id)
		return err
	},
	"ConversationSettings.PutTool": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.PutTool(ctx, id, weatherTool())
		return err
	},
	"ConversationSettings.RemoveTool": func(ctx context.Context, c *Client, id string) error {
		_, err := c.ConversationSettings.RemoveTool(ctx, id, "weather")
		return err
	},
	"Webhooks.Create": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Webhooks.Create(ctx, WebhookSpec{HeadID: id, URL: "https://hooks.example.com", Events: []EventType{EventEndConversation}})
		return err
	},
	"Webhooks.List": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Webhooks.List(ctx, id)
		return err
	},
	"Webhooks.Update": func(ctx context.Context, c *Client, id string) error {
		err := c.Webhooks.Update(ctx, 7, NewWebhookUpdate().HeadID(id))
		return err
	},
	"Webhooks.SetDelivery": func(ctx context.Context, c *Client, id string) error {
		err := c.Webhooks.SetDelivery(ctx, id, true)
		return err
	},
	"Webhooks.Ensure": func(ctx context.Context, c *Client, id string) error {
		_, err := c.Webhooks.Ensure(ctx, WebhookSpec{HeadID: id, URL: "https://hooks.example.com", Events: []EventType{EventEndConversation}}, EnsureOptions{})
		return err
	},
}

// The test fails with the name of a new method that is not tested.
func TestEveryMethodThatTakesAHeadIDIsTested(t *testing.T) {
	api, err := os.ReadFile("testdata/api.txt")
	require.NoError(t, err)
	methods := regexp.MustCompile(`(?m)^heads: func \(s \*(\w+)Service\) (\w+)\(ctx context\.Context, headID string`).FindAllStringSubmatch(string(api), -1)
	require.NotEmpty(t, methods)
	for _, m := range methods {
		assert.Contains(t, headCalls, m[1]+"."+m[2])
	}
}

func TestHeadIDMustBeAUUID(t *testing.T) {
	tests := []struct{ name, id, says string }{
		{"empty", "", "is blank; give the UUID in the head's id field"},
		{"a blank", " ", "is blank; give the UUID"},
		{"a public id", "li-28379", `"li-28379" is a public id; use the UUID in the head's id field`},
		{"an organisation's public id", "MyOrg-1234", `"MyOrg-1234" is a public id`},
		{"a public id with two dashes", "my-org-1234", `"my-org-1234" is a public id`},
		{"an address", "https://chat.example.com/MyOrg-1234/li-28379?api_key=canary-key", "is a URL or a path"},
		{"the end of an address", "MyOrg-1234/li-28379", "is a URL or a path"},
		{"a public id with its key", "li-28379?api_key=canary-key", "is a URL or a path"},
		{"a path", "../head-events/1", "is a URL or a path"},
		{"a step in a path", ".", `"." is not a UUID`},
		{"two steps in a path", "..", `".." is not a UUID`},
		{"white space before it", " " + testHead, "has white space around it; trim it"},
		{"a line break behind it", testHead + "\n", "has white space around it; trim it"},
		{"without dashes", "3fa85f6457174562b3fc2c963f66afa6", "is not a UUID"},
		{"in braces", "{" + testHead + "}", "is not a UUID"},
		{"as a URN", "urn:uuid:" + testHead, "is not a UUID"},
		{"a digit short", testHead[:35], "is not a UUID"},
		{"a digit too many", testHead + "a", "is not a UUID"},
		{"no hexadecimal", "3fa85f64-5717-4562-b3fc-2c963f66afag", "is not a UUID"},
		{"dashes elsewhere", "3fa85f645-717-4562-b3fc-2c963f66afa6", "is not a UUID"},
		{"a digit for a dash", "3fa85f64a5717-4562-b3fc-2c963f66afa6", "is not a UUID"},
		{"wide digits", "３fa85f64-5717-4562-b3fc-2c963f66afa6", "is not a UUID"},
		{"a placeholder", "<HEAD_ID>", "is not a UUID"},
	}
	service := newFakeAPI(t, nil)
	for name, call := range headCalls {
		for _, tt := range tests {
			t.Run(name+": "+tt.name, func(t *testing.T) {
				err := call(t.Context(), service.Client, tt.id)
				faults := invalidErrors(t, err)
				require.Len(t, faults, 1)
				assert.Equal(t, "head id", faults[0].Field)
				assert.Contains(t, faults[0].Problem+"; "+faults[0].Remedy, tt.says)
				assert.NotContains(t, err.Error(), "canary")
				assert.Empty(t, service.since())
			})
		}
	}
}

func TestHeadIDMayHaveAnyCase(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"GET /head/3FA85F64-5717-4562-B3FC-2C963F66AFA6": `{"id":"` + testHead + `","name":"n"}`})
	head, err := service.Heads.Get(t.Context(), "3FA85F64-5717-4562-B3FC-2C963F66AFA6")
	require.NoError(t, err)
	assert.Equal(t, "n", head.Name)
}

func TestErrorsOfTheServiceNameTheOperation(t *testing.T) {
	calls := map[string]callOf{
		"Webhooks.Delete": func(ctx context.Context, c *Client) error { return c.Webhooks.Delete(ctx, 7) },
	}
	for name, call := range described {
		calls[name] = call
	}
	for name, call := range undescribed {
		calls[name] = func(ctx context.Context, c *Client) error {
			err := call(ctx, c)
			return err
		}
	}
	assert.ElementsMatch(t, declaredOperations(t), slices.Collect(maps.Keys(calls)), "every operation is described or undescribed")
	body, err := json.Marshal(map[string]any{"statusCode": 409, "message": "wrong order"})
	require.NoError(t, err)
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call(t.Context(), serveWire(t, http.StatusConflict, string(body)).client(t))
			var refused *Error
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, ErrConflict)
			assert.Equal(t, name, refused.Operation)
			assert.Equal(t, "wrong order", refused.Message)
			assert.NotContains(t, refused.Path, prefix)
		})
	}
}

// declaredOperations returns the names in the package's calls of transport.NewOperation.
func declaredOperations(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`NewOperation\("([^"]+)"`).FindAllSubmatch(source, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
