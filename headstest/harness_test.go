package headstest_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
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

// with adds a head.
func (a *api) with(h headstest.Head) (_ *api, id string) { return a, a.AddHead(h) }

// withHead returns an emulator with one head.
func withHead(t testing.TB, opts ...headstest.Option) (a *api, id string) {
	return newAPI(t, opts...).with(headstest.Head{})
}

// newEmulator returns an emulator that is closed when the test ends.
func newEmulator(t testing.TB, opts ...headstest.Option) *headstest.Emulator {
	e := headstest.NewEmulator(opts...)
	t.Cleanup(e.Close)
	return e
}

type webhooks interface {
	AddWebhook(headID, url string, events ...heads.EventType) (id int64, sharedKey string, err error)
}

func addWebhook(t testing.TB, to webhooks, headID, url string, events ...heads.EventType) (id int64, sharedKey string) {
	t.Helper()
	id, sharedKey, err := to.AddWebhook(headID, url, events...)
	require.NoError(t, err)
	return id, sharedKey
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

// rename renames a head. It waits so long for the answer.
func (a *api) rename(id string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	resp, err := a.hc.Do(a.request("PUT", "/head/update", `{"id":"`+id+`","name":"Bea"}`).WithContext(ctx))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		err = errors.Join(err, resp.Body.Close())
	}
	return err
}

func (a *api) head(id string) map[string]any {
	a.t.Helper()
	return object(a.t, a.ok("GET", "/head/"+id, "").body)
}

// register returns the id and the shared key of a new webhook.
func (a *api) register(body string) (id int64, sharedKey string) {
	a.t.Helper()
	a.ok("POST", "/head-events", body)
	list := a.Snapshot().Webhooks // in the order of their ids
	w := decoded[struct {
		ID        int64
		SharedKey string
	}](a.t, string(list[len(list)-1]))
	return w.ID, w.SharedKey
}

func decoded[T any](t testing.TB, text string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), "%s", text)
	return v
}

func object(t testing.TB, body string) map[string]any {
	t.Helper()
	return decoded[map[string]any](t, body)
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

// serving starts a customer's server and returns its URL.
func serving(t testing.TB, answer http.HandlerFunc) string {
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return srv.URL
}

type answering = func(n int, r *http.Request, body []byte) (*http.Response, error) // n counts from 1

// receiver is the customer's server. It is a transport, so it works in a bubble.
type receiver struct {
	answer answering

	mu  sync.Mutex
	got []received
}

type received struct {
	at        time.Time
	host      string
	body      []byte
	signature string
	eventType string
}

func (rc *receiver) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var event struct {
		EventType string `json:"event_type"`
	}
	_ = json.Unmarshal(body, &event) // a tool call has no type
	rc.mu.Lock()
	rc.got = append(rc.got, received{time.Now(), r.URL.Host, body, r.Header.Get("x-signature-256"), event.EventType})
	n := len(rc.got)
	rc.mu.Unlock()
	if rc.answer == nil {
		return status(200), nil
	}
	return rc.answer(n, r, body)
}

func (rc *receiver) all() []received {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return append([]received(nil), rc.got...)
}

func (rc *receiver) types() []string {
	types := []string{}
	for _, r := range rc.all() {
		types = append(types, r.eventType)
	}
	return types
}

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil))}
}

func always(code int) answering {
	return func(int, *http.Request, []byte) (*http.Response, error) { return status(code), nil }
}

// failing answers the first n requests with 500.
func failing(n int) answering {
	return func(i int, _ *http.Request, _ []byte) (*http.Response, error) {
		return status(map[bool]int{true: 500, false: 200}[i <= n]), nil
	}
}

// silent does not answer.
func silent(_ int, r *http.Request, _ []byte) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// allEvents are in the order in which a session that is left alone has them.
var allEvents = []heads.EventType{
	heads.EventStartConversation, heads.EventInactivityWarning, heads.EventTimeoutConversation, heads.EventEndConversation,
}

// scene is an emulator with one head whose delivery is enabled, and one webhook for all
// events.
type scene struct {
	*api
	head string
	hook int64
	key  string
	*receiver
}

func sendingTo(rc http.RoundTripper) headstest.Option {
	return headstest.WithDeliveryClient(&http.Client{Transport: rc})
}

// play runs a test in a bubble, in which waiting takes no time.
func play(t *testing.T, rc *receiver, opts []headstest.Option, f func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		a, head := inMemory(t, append([]headstest.Option{sendingTo(rc)}, opts...)...).with(headstest.Head{EnableEvents: true})
		hook, key := addWebhook(t, a, head, "https://hook.example.test/x", allEvents...)
		f(&scene{a, head, hook, key, rc})
	})
}

// converse does the steps in a new session and waits until every delivery has ended.
func (s *scene) converse(steps string) {
	s.t.Helper()
	require.NoError(s.t, perform(s.StartSession(s.head), steps))
	s.settle()
}

// settle waits until every delivery has ended.
func (s *scene) settle() {
	<-time.After(time.Hour) // of the bubble's clock
	synctest.Wait()
}

func hexHMAC(body []byte, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// inMemory returns an API that works in a bubble.
func inMemory(t testing.TB, opts ...headstest.Option) *api {
	e := newEmulator(t, opts...)
	return &api{&headstest.Server{Emulator: e, URL: "http://emulator", Token: e.BearerToken()}, t, &http.Client{Transport: e.Transport()}}
}

// need returns what a function has returned, if it was no error.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
