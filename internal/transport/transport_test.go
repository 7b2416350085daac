package transport

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	getThing    = NewOperation("Things.Get", http.MethodGet, "/thing/{id}/part")
	createThing = NewOperation("Things.Create", http.MethodPost, "/thing")
	deleteThing = NewOperation("Things.Delete", http.MethodDelete, "/thing/{id}")
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	return f(r)
}

// answer returns an answer without a body, with headers as "Name: value".
func answer(r *http.Request, status int, headers ...string) *http.Response {
	header := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		header.Add(name, value)
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}
}

// newTestClient returns a client that retries three times without waits, unless change says
// otherwise.
func newTestClient(rt roundTrip, change func(*Config)) *Client {
	c := Config{
		Base:           &url.URL{Scheme: "https", Host: "api.example.com", Path: "/v 1", RawPath: "/v%201"},
		RoundTripper:   rt,
		UserAgent:      "test",
		Token:          "token",
		AttemptTimeout: time.Minute,
		Retry:          RetryPolicy{MaxRetries: 3},
		Failure:        func(c *Call) error { return errors.Join(c.Err, errors.New(http.StatusText(c.Status))) },
	}
	if change != nil {
		change(&c)
	}
	return New(c)
}

func TestPathOfACall(t *testing.T) {
	for name, row := range map[string]struct {
		op         *Operation
		param      string
		path, sent string
	}{
		"parameter":          {getThing, "7", "/thing/7/part", "/v%201/thing/7/part"},
		"escaped parameter":  {getThing, "a/b c", "/thing/a%2Fb%20c/part", "/v%201/thing/a%2Fb%20c/part"},
		"no parameter":       {createThing, "", "/thing", "/v%201/thing"},
		"path of its own":    {createThing.At("/voice/7", "/voice/7"), "", "/voice/7", "/v%201/voice/7"},
		"escaped by another": {createThing.At("/voice/a/b", "/voice/a%2Fb"), "", "/voice/a%2Fb", "/v%201/voice/a%2Fb"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent *url.URL
			client := newTestClient(func(r *http.Request) (*http.Response, error) {
				sent = r.URL
				return answer(r, 200), nil
			}, nil)
			call, err := client.Do(t.Context(), row.op, Request{Param: row.param, RawQuery: "a=b"})
			require.NoError(t, err)
			assert.Equal(t, row.path, call.Path)
			assert.Equal(t, "https://api.example.com"+row.sent+"?a=b", sent.String())
			call.Release()
		})
	}
}

func TestCallCountsItsAttempts(t *testing.T) {
	for name, row := range map[string]struct {
		op     *Operation
		once   bool
		status int
		err    error
		want   int
	}{
		"retried":           {getThing, false, 503, nil, 4},
		"lost, retried":     {getThing, false, 0, io.ErrUnexpectedEOF, 4},
		"once":              {getThing, true, 503, nil, 1},
		"not repeatable":    {createThing, false, 500, nil, 1},
		"lost, unrepeated":  {createThing, false, 0, io.ErrUnexpectedEOF, 1},
		"final":             {getThing, false, 404, nil, 1},
		"success at once":   {getThing, false, 200, nil, 1},
		"success of a POST": {createThing, false, 201, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(func(r *http.Request) (*http.Response, error) {
				if row.err != nil {
					return nil, row.err
				}
				return answer(r, row.status), nil
			}, nil)
			call, err := client.Do(t.Context(), row.op, Request{Once: row.once})
			require.NoError(t, err, "an attempt was made")
			assert.Equal(t, row.want, call.Attempts)
			assert.Equal(t, row.status, call.Status)
			require.ErrorIs(t, call.Err, row.err)
			assert.Equal(t, row.err != nil && row.op == createThing, call.MayBeCarriedOut())
			call.Release()
		})
	}
}

func TestDeleted(t *testing.T) {
	for name, row := range map[string]struct {
		statuses []int
		want     bool
	}{"at once": {[]int{404}, false}, "after a lost answer": {[]int{503, 404}, true}, "after a 429": {[]int{429, 404}, false}} {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(func(r *http.Request) (*http.Response, error) {
				status := row.statuses[0]
				row.statuses = row.statuses[1:]
				return answer(r, status), nil
			}, nil)
			call, err := client.Do(t.Context(), deleteThing, Request{Param: "7"})
			require.NoError(t, err)
			assert.Equal(t, row.want, call.Deleted())
			call.Release()
		})
	}
}
