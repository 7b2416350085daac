package headstest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// api sends requests to an emulator in plain HTTP, as the contract documents them.
type api struct {
	*headstest.Server
	t  testing.TB
	hc *http.Client
}

func newAPI(t testing.TB, opts ...headstest.Option) *api {
	srv := headstest.NewServer(opts...)
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.Close() })
	return &api{srv, t, &http.Client{Transport: tr}}
}

type answer struct {
	status int
	header http.Header
	body   string
}

// request returns a request with the credential. If it has a body, it has the JSON
// content type, too.
func (a *api) request(method, path, body string) *http.Request {
	req, err := http.NewRequest(method, a.URL+path, strings.NewReader(body))
	require.NoError(a.t, err)
	req.Header.Set("Authorization", "Bearer "+a.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func (a *api) send(req *http.Request) answer {
	a.t.Helper()
	resp, err := a.hc.Do(req)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (a *api) do(method, path, body string) answer {
	a.t.Helper()
	return a.send(a.request(method, path, body))
}

func (a *api) ok(method, path, body string) answer {
	a.t.Helper()
	ans := a.do(method, path, body)
	require.Less(a.t, ans.status, 300, "%s %s: %s", method, path, ans.body)
	return ans
}

func (a *api) head(id string) map[string]any {
	a.t.Helper()
	return object(a.t, a.ok("GET", "/head/"+id, "").body)
}

// register returns the id and the shared key of a new registration.
func (a *api) register(body string) (id int64, sharedKey string) {
	a.t.Helper()
	var created struct{ SharedKey, HeadID string }
	require.NoError(a.t, json.Unmarshal([]byte(a.ok("POST", "/head-events", body).body), &created))
	require.NoError(a.t, json.Unmarshal([]byte(body), &created))
	var list []struct {
		ID        int64
		SharedKey string
	}
	require.NoError(a.t, json.Unmarshal([]byte(a.ok("GET", "/head-events?headId="+created.HeadID, "").body), &list))
	for _, w := range list {
		if w.SharedKey == created.SharedKey {
			return w.ID, w.SharedKey
		}
	}
	require.Fail(a.t, "the new registration is not in the list")
	return 0, ""
}

func object(t testing.TB, body string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &m), "%s", body)
	return m
}

// refused asserts a refusal in the form that every refusal has.
func (ans answer) refused(t testing.TB, status int, says string) {
	t.Helper()
	require.Equal(t, status, ans.status, ans.body)
	body := object(t, ans.body)
	assert.EqualValues(t, status, body["statusCode"])
	assert.Equal(t, http.StatusText(status), body["error"])
	assert.Contains(t, body["message"], says)
	assert.Contains(t, ans.header.Get("Content-Type"), "application/json")
}
