package heads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/internal/mask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
					failure := As[*Error](t, err)
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
				failure := As[*Error](t, err)
				assert.Equal(t, "/head_visual/"+path, failure.Path, "without the prefix")
			})
		}
	}
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
			As[*DecodeError](t, err)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, "the request succeeded, but its answer can't be read")
			As[*json.UnmarshalTypeError](t, err)
			assert.NotContains(t, err.Error(), "hush-hush")
		})
	}
}

func TestDecodeErrorKeepsTheFirst4KiB(t *testing.T) {
	long := "text " + strings.Repeat("0123456789", 1000)
	client := newTestClient(t, memoryURL, newScript(answer(200, long)))
	decode := As[*DecodeError](t, getHead(t.Context(), client))
	assert.Equal(t, long[:4096], string(decode.Body.Bytes()))

	resp := Must(client.Heads.setVideoStreaming(t.Context(), testHead, true))(t)
	assert.Equal(t, long, string(resp.Body.Bytes()))
	var v any
	require.ErrorAs(t, resp.Decode(&v), &decode)
	assert.Equal(t, "Heads.SetVideoStreaming", decode.Operation)
	assert.Equal(t, long[:4096], string(decode.Body.Bytes()))
}

func TestResponseDecodes(t *testing.T) {
	client := newTestClient(t, memoryURL, newScript(answer(200, `{"publicUrl":"https://x.example.com"}`), answer(200, "")))
	resp := Must(client.Heads.setVideoStreaming(t.Context(), testHead, true))(t)
	var v struct {
		PublicURL string `json:"publicUrl"`
	}
	require.NoError(t, resp.Decode(&v))
	assert.Equal(t, "https://x.example.com", v.PublicURL)

	resp = Must(client.Heads.setVideoStreaming(t.Context(), testHead, true))(t)
	As[*DecodeError](t, resp.Decode(&v))
}

// Buffers for answers are reused, so a call must return copies.
func TestResultsOutliveTheNextCall(t *testing.T) {
	first, second := strings.Repeat("a", 100), strings.Repeat("b", 100)
	tr := newScript(answer(200, first), answer(400, first), answer(200, first),
		answer(200, second), answer(200, second), answer(200, second))
	client := newTestClient(t, memoryURL, tr)
	resp := Must(client.Heads.setVideoStreaming(t.Context(), testHead, true))(t)
	failure := As[*Error](t, getHead(t.Context(), client))
	decode := As[*DecodeError](t, getHead(t.Context(), client))
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
			resp := Must(client.Heads.setVideoStreaming(t.Context(), testHead, true))(t)
			assert.Equal(t, row.want, resp.RequestID)
			failure := As[*Error](t, getHead(t.Context(), client))
			assert.Equal(t, row.want, failure.RequestID)
			assert.Equal(t, []string{row.want, row.want}, seen)
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
	assert.NotSame(t, tr.requests[0], tr.requests[1], "the transport may still hold the first one")
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

func TestHeadIDMayHaveAnyCase(t *testing.T) {
	service := newFakeAPI(t, map[string]string{"GET /head/3FA85F64-5717-4562-B3FC-2C963F66AFA6": `{"id":"` + testHead + `","name":"n"}`})
	head := Must(service.Heads.Get(t.Context(), "3FA85F64-5717-4562-B3FC-2C963F66AFA6"))(t)
	assert.Equal(t, "n", head.Name)
}

// declaredOperations returns the names in the package's calls of transport.NewOperation.
func declaredOperations(t *testing.T) []string {
	var names []string
	for path := range sources(t, "*.go") {
		for _, m := range regexp.MustCompile(`NewOperation\("([^"]+)"`).FindAllSubmatch(Must(os.ReadFile(path))(t), -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// answersOfAnyShape are neither an object nor a list of records.
var answersOfAnyShape = map[string]string{
	"nothing": "", "blank": " \r\n", "true": "true", "false": "false", "null": "null", "number": "42", "string": `"hush-hush"`,
	"text": "OK hush-hush", "HTML": "<html>hush-hush</html>", "bytes": "\x00\xff\xfe", "array of text": `["hush-hush"]`,
	"broken object": `{"id":"hush-hush`, "two documents": `{} {}`, "deeply nested": strings.Repeat("[", 20000),
}

// If the contract does not describe an answer, any 2xx is success.
func TestUndescribedAnswersAreSuccessWhateverTheyHold(t *testing.T) {
	for name, body := range answersOfAnyShape {
		for _, status := range []int{200, 201, 202, 204, 299} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				for _, op := range operations() {
					if op.answer == "" {
						tr := newScript(answer(status, body), answer(404, "")) // a delete may be read back
						require.NoError(t, op.run(t.Context(), newTestClient(t, memoryURL, tr)), op.name)
					}
				}
				tr := newScript(answer(status, body, "X-Request-Id: r-1", "X-Other: yes"))
				resp := Must(newTestClient(t, memoryURL, tr).Heads.setVideoStreaming(t.Context(), testHead, true))(t)
				assert.Equal(t, status, resp.StatusCode)
				assert.Equal(t, body, string(resp.Body.Bytes()))
				assert.Equal(t, "yes", resp.Header.Get("X-Other"))
				assert.Equal(t, "r-1", resp.RequestID)
				assert.Equal(t, 1, resp.Attempts)
			})
		}
	}
}

func TestDescribedAnswersMustHaveTheirShape(t *testing.T) {
	for _, op := range operations() {
		if op.answer == "" {
			continue
		}
		bodies := maps.Clone(answersOfAnyShape)
		if op.name == "Webhooks.List" {
			delete(bodies, "null") // an empty list
			bodies["object"] = `{"id":7}`
		} else {
			bodies["list"] = `[{"id":7}]`
		}
		for name, body := range bodies {
			t.Run(op.name+" "+name, func(t *testing.T) {
				err := op.run(t.Context(), newTestClient(t, memoryURL, newScript(answer(200, body))))
				wrong := As[*DecodeError](t, err)
				assert.Equal(t, op.operation(), wrong.Operation)
				assert.Equal(t, body[:min(len(body), 4<<10)], string(wrong.Body.Bytes()))
				assert.Error(t, wrong.Err)
				assert.NotErrorIs(t, err, ErrInvalid)
				assert.NotContains(t, err.Error(), "hush-hush", "the answer is not shown")
			})
		}
	}
}

// The test fails with the name of a new method that is not in the table.
func TestEveryMethodThatTakesAHeadIDIsTested(t *testing.T) {
	var names []string
	for _, m := range methods {
		names = append(names, m.operation())
	}
	declared := regexp.MustCompile(`(?m)^heads: func \(s \*(\w+)Service\) (\w+)\(ctx context\.Context, headID string`)
	found := declared.FindAllStringSubmatch(readFile(t, "api.txt"), -1)
	require.NotEmpty(t, found)
	for _, m := range found {
		assert.Contains(t, names, m[1]+"."+m[2])
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
		{"a path", testHead + "/../head-events/1", "is a URL or a path"},
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
	for _, m := range methods {
		if m.headless {
			continue
		}
		for _, tt := range tests {
			t.Run(m.name+": "+tt.name, func(t *testing.T) {
				err := m.call(t.Context(), service.Client, tt.id)
				faults := invalidErrors(t, err)
				require.Len(t, faults, 1)
				if !m.composed {
					assert.Equal(t, m.operation(), faults[0].Operation)
				}
				assert.Equal(t, "head id", faults[0].Field)
				assert.Contains(t, faults[0].Problem+"; "+faults[0].Remedy, tt.says)
				assert.NotContains(t, err.Error(), "canary")
				assert.Empty(t, service.since())
			})
		}
	}
}

func TestErrorsOfTheServiceNameTheOperation(t *testing.T) {
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			server := serveWire(t, http.StatusConflict, `{"statusCode":409,"message":"wrong order"}`)
			err := op.run(t.Context(), server.client(t))
			refused := As[*Error](t, err)
			require.ErrorIs(t, err, ErrConflict)
			assert.Equal(t, op.operation(), refused.Operation)
			assert.Equal(t, "wrong order", refused.Message)
			_, target, _ := strings.Cut((<-server.requests).line, " "+prefix)
			path, _, _ := strings.Cut(strings.TrimSuffix(target, " HTTP/1.1"), "?")
			assert.Equal(t, path, refused.Path, "neither prefix nor query")
		})
	}
}
