package headstest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/headstest"
)

// pathToken is as long as the shortest path token of a tool handler.
const pathToken = "canary0123456789"

// shown returns everything that the control API shows without a request for a secret. It finds no
// canary there.
func (a *api) shown() (text string) {
	a.t.Helper()
	paths := []string{"state", "sessions", "deliveries", "requests", "faults", "export"}
	for _, id := range a.Heads() {
		paths = append(paths, "heads/"+id)
	}
	for n := range a.Requests() {
		paths = append(paths, fmt.Sprint("requests/", n+1))
	}
	for n := range a.Deliveries() {
		paths = append(paths, fmt.Sprint("deliveries/", n+1))
	}
	for _, s := range read[[]struct{ ID string }](a, "sessions") {
		paths = append(paths, "sessions/"+s.ID)
	}
	for _, path := range paths {
		body := a.controlled("GET", path, "")
		assert.NotContains(a.t, body, "canary", path)
		text += body
	}
	return text
}

func TestRequestsAreShownWithoutTheirSecrets(t *testing.T) {
	var log lockedBuilder
	a, id := withConsole(t, log.option()).with(headstest.Head{OperationMode: "oc"})
	for n, row := range []struct{ method, path, body, shows string }{
		{"GET", "/head/" + id + "?api_key=canary&access_token=canary&canary&=canary&headId=" + id, "", `"query":"api_key=[hidden]&access_token=[hidden]&[hidden]&[hidden]&headId=` + id + `"`},
		{"GET", "/head/" + id + "?" + pathToken + "=1&headId=" + pathToken + "&%zz=canary&x=%63anary", "", `"query":"[hidden]&headId=[hidden]&[hidden]&x=[hidden]"`},
		{"PUT", "/head/" + id + "/video-streaming?videoStreaming=true", "", `"query":"videoStreaming=true"`},
		{"GET", "/hooks/" + pathToken + "/events", "", `"path":"/hooks/[hidden]/events"`},
		{"GET", "/head/" + id + "/conversation-settings", "", `"path":"/head/` + id + `/conversation-settings"`},
		{"PUT", "/head/update", `api_key=canary`, `"body":"[hidden]: 14 bytes that are not a JSON object"`},
		{"PUT", "/head/update", `{"voiceflowApiKey":"canary"`, `[hidden]: 27 bytes`},
		{"PUT", "/head/update", `["canary"]`, `[hidden]: 10 bytes`},
		{"PUT", "/head/update", `"canary"`, `[hidden]: 8 bytes`},
		{"PUT", "/head/update", `{"id":"` + id + `","greetings":"Ask https://u:canary@chat.example.test/a?api_key=canary#canary or \"access_token\": \"canary\" or x_key=canary","suggestions":["Authorization: Basic canary"]}`,
			`Ask https://chat.example.test/a?[hidden] or \\\"access_token\\\": \\\"[hidden]\\\" or x_key=[hidden]`},
		{"PUT", "/head/update", `{"id":"` + id + `","fileUrl":"https://f.example.test/` + pathToken + `/a-long-name-of-a-file.pdf?sig=canary"}`, `https://f.example.test/[hidden]/a-long-name-of-a-file.pdf?[hidden]`},
		{"PUT", "/head/update", `{"id":"` + id + `","phrases":["the basic idea","Bearer canary"],"customWords":{"token":"toe-ken"}}`, `"after":["the basic idea","Bearer [hidden]"]`},
		{"PUT", "/head/" + id + "/conversation-settings", `{"conversationSettings":{"key":"canary","tools":[{"name":"hours","url":"https://tools.example.test/canary/hours"},{"name":"now","url":"https://tools.example.test"}]}}`,
			`"url":"https://tools.example.test/[hidden]"`},
		{"POST", "/head-events", `{"headId":"` + id + `","webhookUrl":"https://hook.example.test/canary","endConversation":true}`, `\"webhookUrl\":\"https://hook.example.test/[hidden]\"`},
		{"POST", "/head-events", `{"headId":"` + id + `","webhookUrl":"canary"}`, `\"webhookUrl\":\"[hidden]\"`},
	} {
		a.do(row.method, row.path, row.body)
		body := a.controlled("GET", fmt.Sprint("requests/", n+1), "")
		assert.Contains(t, body, row.shows, "%s %s", row.method, row.path)
		assert.NotContains(t, body, "canary", "%s %s", row.method, row.path)
	}
	assert.Contains(t, a.controlled("GET", "heads/"+id, ""), `"token":"toe-ken"`, "a word is no secret")
	a.ok("DELETE", "/head-events/1", "") // an export keeps the short path of a URL
	a.ok("PUT", "/head/"+id+"/conversation-settings", `{"conversationSettings":{"tools":[
		{"name":"get_opening_hours","url":"https://tools.example.test/`+pathToken+`/get_opening_hours?x=canary"},
		{"name":"now","url":"https://tools.example.test/a/canary-canary-canary/now"}]}}`)
	a.shown()
	assert.NotContains(t, log.String(), "canary")
	assert.Contains(t, log.String(), "path=/hooks/[hidden]/events")

	export := read[headstest.Seed](a, "export")
	assert.Contains(t, string(export.Heads[0]), `"url":"https://tools.example.test/hidden/get_opening_hours"`)
	assert.Contains(t, string(export.Heads[0]), `"url":"https://tools.example.test/a/hidden/now"`)
	_, err := newEmulator(t).Import(export)
	assert.NoError(t, err, "an export without keys can be imported")
}

// Answers are texts of other programs. Parts without a secret are shown byte for byte.
func TestAnswersAreShownWithoutTheirSecrets(t *testing.T) {
	a, id := withConsole(t, headstest.WithRetrySchedule()).with(headstest.Head{OperationMode: "oc", EnableEvents: true})
	reply := ""
	url := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, reply)
	})
	require.NoError(t, a.AddTool(id, []byte(`{"name":"hours","url":"`+url+`/`+pathToken+`/hours"}`)))
	addWebhook(t, a, id, url+"/"+pathToken, allEvents...)
	for given, shows := range map[string]string{
		`{ "message" : "at nine", "n":1.0 }`:                                        `{ "message" : "at nine", "n":1.0 }`,
		`{"message":"see https://x.example.test/?api_key=canary"}`:                  `{"message":"see https://x.example.test/?[hidden]"}`,
		`{"message":"yes","session":{"access_token":"canary"}}`:                     `{"message":"yes","session":{"access_token":"[hidden]"}}`,
		`api_key=canary&x=1`:                                                        `api_key=[hidden]&x=1`,
		`{"token":"canary","cut":"` + strings.Repeat("x", 5000):                     `{"token":"[hidden]","cut":"xxx`,
		`{"a":"` + strings.Repeat("x", 4<<10-20) + `","token":"canary-` + pathToken: `"token":"[hidden]`,
	} {
		reply = given
		s := a.StartSession(id)
		called := a.controlled("POST", "sessions/"+s.ID()+"/tool-calls", `{"tool":"hours","arguments":{"password":"canary","day":"Monday"}}`)
		assert.Contains(t, object(t, called)["reply"], shows)
		assert.NotContains(t, called, "canary")
		require.NoError(t, s.UserMessage("my api_key=canary, and https://x.example.test/?k=canary"))
		delivered := read[struct{ Reply string }](a, fmt.Sprint("deliveries/", a.endedOf(s)[0].ID))
		assert.Contains(t, delivered.Reply, shows)
		log := a.controlled("GET", "sessions/"+s.ID(), "")
		assert.Contains(t, log, `"day\":\"Monday\",\"password\":\"[hidden]\"`)
		assert.Contains(t, log, "my api_key=[hidden], and https://x.example.test/?[hidden]")
		assert.NotContains(t, log, "canary")
	}
	a.Inject(headstest.Fault{Route: "/head/update", Status: 500, Body: `{"token":"canary"}`})
	a.shown()
}
