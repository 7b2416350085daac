package transport

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	getThing    = NewOperation("Things.Get", http.MethodGet, "/thing/{id}/part")
	createThing = NewOperation("Things.Create", http.MethodPost, "/thing")
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	return f(r)
}

// do makes a call with a client that retries three times without waits.
func do(t *testing.T, rt roundTrip, op *Operation, r Request) *Call {
	t.Helper()
	client := New(Config{
		Base:         &url.URL{Scheme: "https", Host: "api.example.com", Path: "/v 1", RawPath: "/v%201"},
		RoundTripper: rt, UserAgent: "test", Token: "token", AttemptTimeout: time.Minute, Retry: RetryPolicy{MaxRetries: 3},
		Failure: func(c *Call) error { return errors.Join(c.Err, errors.New(http.StatusText(c.Status))) },
	})
	call, err := client.Do(t.Context(), op, r)
	require.NoError(t, err, "an attempt was made")
	t.Cleanup(call.Release)
	return call
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
		var sent *url.URL
		call := do(t, func(r *http.Request) (*http.Response, error) {
			sent = r.URL
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
		}, row.op, Request{Param: row.param, RawQuery: "a=b"})
		assert.Equal(t, row.path, call.Path, name)
		assert.Equal(t, "https://api.example.com"+row.sent+"?a=b", sent.String(), name)
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
		"retried":          {getThing, false, 503, nil, 4},
		"lost, retried":    {getThing, false, 0, io.ErrUnexpectedEOF, 4},
		"once":             {getThing, true, 503, nil, 1},
		"not repeatable":   {createThing, false, 500, nil, 1},
		"lost, unrepeated": {createThing, false, 0, io.ErrUnexpectedEOF, 1},
		"final":            {getThing, false, 404, nil, 1},
		"success at once":  {getThing, false, 200, nil, 1},
	} {
		call := do(t, func(r *http.Request) (*http.Response, error) {
			if row.err != nil {
				return nil, row.err
			}
			return &http.Response{StatusCode: row.status, Body: http.NoBody, Request: r}, nil
		}, row.op, Request{Once: row.once})
		assert.Equal(t, row.want, call.Attempts, name)
		assert.Equal(t, row.status, call.Status, name)
		require.ErrorIs(t, call.Err, row.err, name)
		assert.Equal(t, row.err != nil && row.op == createThing, call.MayBeCarriedOut(), name)
	}
}
