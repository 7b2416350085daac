package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
)

const operatorToken = "operator-token-of-the-test"

// fakeCRM answers with a status and keeps what it accepts.
type fakeCRM struct {
	*httptest.Server
	asked chan struct{} // for each request, before its answer

	mu       sync.Mutex
	status   int
	sessions []finished
}

func newFakeCRM(t *testing.T, status int) *fakeCRM {
	t.Helper()
	c := &fakeCRM{status: status, asked: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *fakeCRM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked <- struct{}{}
	var session finished
	err := json.NewDecoder(r.Body).Decode(&session)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.URL.Path == "/login": // a page that anyone may see
	case c.status == http.StatusFound:
		http.Redirect(w, r, "/login", c.status)
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	default:
		if c.status == http.StatusOK {
			c.sessions = append(c.sessions, session)
		}
		w.WriteHeader(c.status)
	}
}

func (c *fakeCRM) answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *fakeCRM) kept() []finished {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]finished(nil), c.sessions...)
}

// lines is a log that a test reads while the shop writes.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// street is a shop with its service.
type street struct {
	t        *testing.T
	shop     *shop
	emulator *headstest.Server
	head     string
	url      string
	log      *lines
	stop     context.CancelFunc
	ended    chan error
}

// openStreet starts a shop with a number of attempts for each event.
func openStreet(t *testing.T, crmURL string, attempts int) *street {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	st := &street{t: t, url: "http://" + listener.Addr().String(), log: &lines{}, ended: make(chan error, 1)}
	st.emulator = headstest.NewServer(headstest.WithLoopbackHTTP(), headstest.WithRetrySchedule(time.Millisecond))
	t.Cleanup(st.emulator.Close)
	st.head = st.emulator.AddHead(headstest.Head{Name: "Lobby", OperationMode: heads.OperationModeOC, EnableEvents: true})
	_, _, err = st.emulator.AddWebhook(st.head, st.url+"/events", heads.EventStartConversation, heads.EventEndConversation)
	require.NoError(t, err)
	require.NoError(t, st.emulator.AddTool(st.head, json.RawMessage(`{"name": "order_status", "description": "Tells where an order is.",
		"url": "`+st.url+`/tools/order_status", "parameters": [{"name": "order", "type": "string", "description": "Its number."}]}`)))

	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	set := settings{port: port, database: filepath.Join(t.TempDir(), "shop.db"), crmURL: heads.NewSecret(crmURL), operatorToken: heads.NewSecret(operatorToken), attempts: attempts}
	s, err := open(t.Context(), set, st.emulator.Client(), slog.New(slog.NewTextHandler(st.log, nil)))
	require.NoError(t, err)
	st.shop = s
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	st.stop = stop
	go func() { st.ended <- s.serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		st.ended <- <-st.ended // it may have been read
	})
	return st
}

// visit plays a session and returns its id.
func (st *street) visit() string {
	st.t.Helper()
	session := st.emulator.StartSession(st.head)
	require.NoError(st.t, session.UserMessage("Hello"))
	require.NoError(st.t, session.Close())
	return session.ID()
}

// operate sends a request with a token and returns the status and the body.
func (st *street) operate(method, path, token string) (int, string) {
	st.t.Helper()
	req, err := http.NewRequestWithContext(st.t.Context(), method, st.url+path, nil)
	require.NoError(st.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(st.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(st.t, err)
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// waitFor waits until the figures are as wanted.
func (st *street) waitFor(want figures) {
	st.t.Helper()
	assert.EventuallyWithT(st.t, func(c *assert.CollectT) {
		status, body := st.operate("GET", "/stats", operatorToken)
		require.Equal(c, http.StatusOK, status)
		var got figures
		require.NoError(c, json.Unmarshal([]byte(body), &got))
		assert.Equal(c, want, got)
	}, 20*time.Second, 10*time.Millisecond)
}

func TestFinishedSessionGoesToTheCRM(t *testing.T) {
	t.Parallel()
	c := newFakeCRM(t, http.StatusOK)
	st := openStreet(t, c.URL, 1)
	session := st.visit()
	st.waitFor(figures{Stored: 2, Handled: 2, Sessions: 1})
	require.Len(t, c.kept(), 1)
	got := c.kept()[0]
	assert.Equal(t, []string{st.head, session}, []string{got.HeadID, got.SessionID})
	require.Len(t, got.Events, 2)
	assert.Equal(t, []string{"start_conversation", "end_conversation"}, []string{got.Events[0].Event, got.Events[1].Event})
}

func TestDeadLettersAreRedriven(t *testing.T) {
	t.Parallel()
	c := newFakeCRM(t, http.StatusServiceUnavailable)
	st := openStreet(t, c.URL, 1)
	for range 3 {
		st.visit()
	}
	st.waitFor(figures{Stored: 6, Handled: 3, Dead: 3})
	c.answer(http.StatusOK)
	status, body := st.operate("POST", "/redrive", operatorToken)
	assert.Equal(t, []any{http.StatusOK, `{"redriven":3}`}, []any{status, body})
	st.waitFor(figures{Stored: 6, Handled: 6, Sessions: 3})
	assert.Len(t, c.kept(), 3)
}

func TestRedirectIsNoSuccess(t *testing.T) {
	t.Parallel()
	st := openStreet(t, newFakeCRM(t, http.StatusFound).URL, 1)
	st.visit()
	st.waitFor(figures{Stored: 2, Handled: 1, Dead: 1})
}

func TestSessionThatTheCRMRefusesIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	c := newFakeCRM(t, http.StatusUnprocessableEntity)
	st := openStreet(t, c.URL, 20)
	st.visit()
	st.waitFor(figures{Stored: 2, Handled: 1, Dead: 1})
	assert.Len(t, c.asked, 1)
}

func TestEventWithAWrongSignatureIsRefused(t *testing.T) {
	t.Parallel()
	st := openStreet(t, newFakeCRM(t, http.StatusOK).URL, 1)
	st.emulator.InjectDelivery(headstest.DeliveryFault{CorruptSignature: true})
	st.visit()
	for _, event := range []heads.EventType{heads.EventStartConversation, heads.EventEndConversation} {
		d, err := st.emulator.WaitDelivery(t.Context(), func(d headstest.Delivery) bool { return d.Final && d.Event.Type == event })
		require.NoError(t, err)
		assert.Equal(t, http.StatusUnauthorized, d.Status)
	}
	st.waitFor(figures{})
}

func TestOrderIsAnswered(t *testing.T) {
	t.Parallel()
	st := openStreet(t, newFakeCRM(t, http.StatusOK).URL, 1)
	for order, want := range map[string]string{"7": "shipped", "8": "packed", "9": "no order with this number"} {
		reply, err := st.emulator.CallTool(t.Context(), st.head, "order_status", map[string]any{"order": order})
		require.NoError(t, err)
		assert.Empty(t, reply.Problem)
		assert.Contains(t, reply.Message, want)
	}
}

func TestOperatorsRoutesWantTheToken(t *testing.T) {
	t.Parallel()
	st := openStreet(t, newFakeCRM(t, http.StatusOK).URL, 1)
	for _, token := range []string{"", operatorToken + "x", "x"} {
		for method, path := range map[string]string{"GET": "/stats", "POST": "/redrive"} {
			status, body := st.operate(method, path, token)
			assert.Equal(t, http.StatusUnauthorized, status, path)
			assert.NotContains(t, body, operatorToken)
		}
	}
	status, body := st.operate("GET", "/health", "")
	assert.Equal(t, []any{http.StatusOK, "ok"}, []any{status, body})
}

// What is under way when the shop is stopped comes to its end.
func TestShopEndsAfterWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	c := newFakeCRM(t, http.StatusOK)
	c.mu.Lock() // the CRM does not answer yet
	st := openStreet(t, c.URL, 1)
	st.visit()
	<-c.asked
	st.stop()
	c.mu.Unlock()
	err := <-st.ended
	st.ended <- err
	require.NoError(t, err)
	assert.Len(t, c.kept(), 1)
	_, err = net.Dial("tcp", strings.TrimPrefix(st.url, "http://"))
	assert.Error(t, err, "nothing listens any more")
}

func TestNoSecretIsLoggedOrStored(t *testing.T) {
	t.Parallel()
	st := openStreet(t, "http://user:crm-password@127.0.0.1:9/?key=crm-key", 1)
	st.visit()
	st.waitFor(figures{Stored: 2, Handled: 1, Dead: 1})
	shown := ""
	for dead, err := range st.shop.inbox.Dead(t.Context(), inbox.Query{}) {
		require.NoError(t, err)
		shown += dead.Error
	}
	assert.Contains(t, shown, "the CRM can't be reached: dial tcp")
	st.operate("POST", "/redrive", operatorToken)
	shown += st.log.String()
	assert.Contains(t, shown, "dead letters redriven")
	for _, secret := range []string{"crm-password", "crm-key", operatorToken, st.emulator.Token} {
		assert.NotContains(t, shown, secret)
	}
}

func TestFaultsOfSettingsAreToldTogether(t *testing.T) {
	for _, name := range []string{"PORT", "SHOP_DB", "HEADS_BASE_URL", "HEADS_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("SHOP_CRM_URL", "httpx://crm.example.com/secret-path")
	t.Setenv("SHOP_OPERATOR_TOKEN", "short-secret")
	t.Setenv("SHOP_ATTEMPTS", "0")
	err := run(t.Context(), slog.New(slog.DiscardHandler))
	require.Error(t, err)
	for _, name := range []string{"HEADS_BASE_URL", "HEADS_TOKEN", "PORT", "SHOP_DB", "SHOP_CRM_URL", "SHOP_OPERATOR_TOKEN", "SHOP_ATTEMPTS"} {
		assert.ErrorContains(t, err, name)
	}
	assert.NotContains(t, err.Error(), "secret")
}
