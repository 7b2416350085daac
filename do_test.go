package heads

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDoSendsWhatItIsGiven(t *testing.T) {
	tr := newScript(answer(201, `{"id":7}`, "X-Request-Id: r-1"))
	client := newTestClient(t, memoryURL, tr)
	response := Must(client.Do(t.Context(), Request{
		Method: "POST", Path: "/voice/a%2Fb", Query: url.Values{"q": {"x y"}},
		Body:   map[string]string{"name": "a<b"},
		Header: http.Header{"x-trace": {"1"}},
	}))(t)
	assert.Equal(t, 201, response.StatusCode)
	assert.JSONEq(t, `{"id":7}`, string(response.Body.Bytes()))
	assert.Equal(t, "r-1", response.RequestID)

	sent := tr.requests[0]
	assert.Equal(t, "POST", sent.Method)
	assert.Equal(t, memoryURL+"/voice/a%2Fb?q=x+y", sent.URL.String())
	assert.Equal(t, `{"name":"a<b"}`, tr.bodies[0])
	assert.Equal(t, http.Header{
		"Accept":        {"application/json"},
		"Authorization": {"Bearer " + pathToken},
		"Content-Type":  {"application/json"},
		"User-Agent":    {userAgent},
		"X-Trace":       {"1"},
	}, sent.Header)
}

func TestDoSendsBytesAsTheyAre(t *testing.T) {
	for name, row := range map[string]struct {
		body any
		sent string
	}{
		"nothing":    {nil, ""},
		"bytes":      {[]byte("{ }"), "{ }"},
		"raw JSON":   {json.RawMessage("{ }"), "{ }"},
		"no bytes":   {[]byte{}, ""},
		"an object":  {struct{ A int }{1}, `{"A":1}`},
		"a nil map":  {map[string]any(nil), "null"},
		"plain text": {[]byte("no JSON"), "no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(204, ""))
			Must(newTestClient(t, memoryURL, tr).Do(t.Context(), Request{Method: "PUT", Path: "/x", Body: row.body}))(t)
			assert.Equal(t, row.sent, tr.bodies[0])
			assert.Equal(t, row.sent != "", tr.requests[0].Header.Get("Content-Type") != "")
		})
	}
}

func TestDoReplacesAcceptAndContentType(t *testing.T) {
	tr := newScript(answer(500, ""), answer(200, ""))
	Must(newTestClient(t, memoryURL, tr).Do(t.Context(), Request{
		Method: "PUT", Path: "/audio", Body: []byte("RIFF"),
		Header: http.Header{"Accept": {"text/plain"}, "content-type": {"audio/wav"}},
	}))(t)
	for _, sent := range tr.requests {
		assert.Equal(t, []string{"text/plain"}, sent.Header["Accept"])
		assert.Equal(t, []string{"audio/wav"}, sent.Header["Content-Type"])
	}
}

func TestDoRetriesByMethod(t *testing.T) {
	for name, row := range map[string]struct {
		request  Request
		attempts int
	}{
		"GET":             {Request{Method: "GET"}, 4},
		"DELETE":          {Request{Method: "DELETE"}, 4},
		"POST":            {Request{Method: "POST"}, 1},
		"repeatable POST": {Request{Method: "POST", Repeatable: true}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(500, ""))
			row.request.Path = "/x"
			require.ErrorIs(t, ErrorOf(newTestClient(t, memoryURL, tr).Do(t.Context(), row.request)), ErrServer)
			assert.Equal(t, row.attempts, tr.sent())
		})
	}
}

func TestDoLabelsItsAttempts(t *testing.T) {
	for given, want := range map[string]string{"": "other", "/voice/{id}": "/voice/{id}"} {
		var seen Attempt
		client := newTestClient(t, memoryURL, newScript(answer(404, "")), WithObserver(Observer[Attempt]{End: func(_ context.Context, a Attempt) { seen = a }}))
		refusal := As[*Error](t, ErrorOf(client.Do(t.Context(), Request{Method: "GET", Path: "/voice/7", Route: given})))
		assert.Equal(t, "/voice/7", refusal.Path)
		assert.Equal(t, "Client.Do", seen.Operation)
		assert.Equal(t, want, seen.Route)
	}
}

func TestDoRefusesBeforeItSends(t *testing.T) {
	for name, row := range map[string]struct {
		request Request
		field   string
	}{
		"no method":             {Request{Path: "/x"}, "method"},
		"lower case":            {Request{Method: "get", Path: "/x"}, "method"},
		"another method":        {Request{Method: "HEAD", Path: "/x"}, "method"},
		"no path":               {Request{Method: "GET"}, "path"},
		"no slash":              {Request{Method: "GET", Path: "x"}, "path"},
		"a URL":                 {Request{Method: "GET", Path: "https://evil.example.com/x"}, "path"},
		"a host":                {Request{Method: "GET", Path: "//evil.example.com/x"}, "path"},
		"a query":               {Request{Method: "GET", Path: "/x?api_key=1"}, "path"},
		"a fragment":            {Request{Method: "GET", Path: "/x#a"}, "path"},
		"a backslash":           {Request{Method: "GET", Path: `/\evil`}, "path"},
		"an escaped backslash":  {Request{Method: "GET", Path: "/a%5C..%5Cb"}, "path"},
		"a space":               {Request{Method: "GET", Path: "/a b"}, "path"},
		"a line break":          {Request{Method: "GET", Path: "/a\r\nX: y"}, "path"},
		"a broken escape":       {Request{Method: "GET", Path: "/a%zz"}, "path"},
		"a dot segment":         {Request{Method: "GET", Path: "/a/../b"}, "path"},
		"a single dot":          {Request{Method: "GET", Path: "/./b"}, "path"},
		"an escaped dot":        {Request{Method: "GET", Path: "/a/%2e%2E/b"}, "path"},
		"an escaped slash":      {Request{Method: "GET", Path: "/a%2f..%2fb"}, "path"},
		"a body with GET":       {Request{Method: "GET", Path: "/x", Body: []byte("{}")}, "body"},
		"a body that is none":   {Request{Method: "PUT", Path: "/x", Body: make(chan int)}, "body"},
		"Authorization":         {Request{Method: "GET", Path: "/x", Header: http.Header{"authorization": {"Basic x"}}}, "header"},
		"Host":                  {Request{Method: "GET", Path: "/x", Header: http.Header{"Host": {"x"}}}, "header"},
		"Content-Length":        {Request{Method: "GET", Path: "/x", Header: http.Header{"Content-Length": {"1"}}}, "header"},
		"Transfer-Encoding":     {Request{Method: "GET", Path: "/x", Header: http.Header{"Transfer-Encoding": {"chunked"}}}, "header"},
		"Cookie":                {Request{Method: "GET", Path: "/x", Header: http.Header{"Cookie": {"a=b"}}}, "header"},
		"a name that is none":   {Request{Method: "GET", Path: "/x", Header: http.Header{"a b": {"c"}}}, "header"},
		"a line break in value": {Request{Method: "GET", Path: "/x", Header: http.Header{"X-A": {"canary\r\nX-B: 1"}}}, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newScript(answer(200, ""))
			_, err := newTestClient(t, memoryURL, tr).Do(t.Context(), row.request)
			assert.Equal(t, []string{row.field}, invalidFields(t, err))
			assert.NotContains(t, err.Error(), "api_key")
			assert.NotContains(t, err.Error(), "canary")
			assert.Zero(t, tr.sent())
		})
	}
}

func TestDoNamesAllFaultsTogether(t *testing.T) {
	_, err := newTestClient(t, memoryURL, newScript()).Do(t.Context(), Request{Method: "PIT", Path: "x", Header: http.Header{"Cookie": nil}})
	assert.Equal(t, []string{"method", "path", "header"}, invalidFields(t, err))
}
