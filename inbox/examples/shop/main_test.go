package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/inboxtest"
)

const operatorToken = "operator-token-of-the-test"

// street is a shop, its service and its CRM, which answers with a status.
type street struct {
	*shop
	emulator *headstest.Server
	head     string
	status   atomic.Int64
	sessions chan finished // that the CRM has
	log      bytes.Buffer
}

// newStreet opens a shop in a street, which a visitor has left.
func newStreet(t *testing.T, status int64, attempts int) *street {
	t.Helper()
	st := &street{emulator: headstest.NewServer(headstest.WithLoopbackHTTP()), sessions: make(chan finished, 10)}
	t.Cleanup(st.emulator.Close)
	st.status.Store(status)
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" { // a page that anyone may see
			return
		}
		var session finished
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&session))
		w.Header().Set("Location", "/login")
		w.WriteHeader(int(st.status.Load()))
		st.sessions <- session
	}))
	t.Cleanup(crm.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + listener.Addr().String()
	set := settings{strings.TrimPrefix(url, "http://127.0.0.1:"), filepath.Join(t.TempDir(), "shop.db"), heads.NewSecret(crm.URL + "/?key=crm-key"), heads.NewSecret(operatorToken), attempts}
	st.shop, err = open(t.Context(), set, st.emulator.Client(), slog.New(slog.NewTextHandler(&st.log, nil)))
	require.NoError(t, err)
	st.head = st.emulator.AddHead(headstest.Head{OperationMode: heads.OperationModeOC, EnableEvents: true})
	_, _, err = st.emulator.AddWebhook(st.head, url+"/events", heads.EventStartConversation, heads.EventEndConversation)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- st.serve(ctx, inbox.Listener(listener)) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		for _, secret := range []string{"crm-key", operatorToken, st.emulator.Token} {
			assert.NotContains(t, st.log.String(), secret)
		}
	})
	session := st.emulator.StartSession(st.head)
	require.NoError(t, session.UserMessage("Hello"))
	require.NoError(t, session.Close())
	return st
}

// operate returns the answer to a request of the operator.
func (st *street) operate(method, path, token string) (int, string) {
	answer, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	st.mux.ServeHTTP(answer, r)
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

func TestFinishedSessionGoesToTheCRM(t *testing.T) {
	st := newStreet(t, http.StatusOK, 1)
	inboxtest.WaitHandled(t, st.inbox, 2)
	got := <-st.sessions
	require.Len(t, got.Events, 2)
	assert.Equal(t, []string{st.head, "start_conversation", "end_conversation"}, []string{got.HeadID, got.Events[0].Event, got.Events[1].Event})
	for path, want := range map[string]string{"/stats": `{"stored":2,"handled":2,"pending":0,"dead":0,"sessions":1}`, "/metrics": "heads_inbox_handled_total", "/health": "ok"} {
		_, body := st.operate("GET", path, operatorToken)
		assert.Contains(t, body, want)
	}
	for path, method := range map[string]string{"/stats": "GET", "/metrics": "GET", "/redrive": "POST"} {
		code, body := st.operate(method, path, operatorToken+"x")
		assert.Equal(t, http.StatusUnauthorized, code)
		assert.NotContains(t, body, operatorToken)
	}
}

// A redirect is no success, a refused session is dead at the first attempt, and both are redriven.
func TestDeadLettersAreRedriven(t *testing.T) {
	for status, attempts := range map[int64]int{http.StatusFound: 1, http.StatusUnprocessableEntity: 20} {
		st := newStreet(t, status, attempts)
		require.Eventually(t, func() bool {
			_, body := st.operate("GET", "/stats", operatorToken)
			return body == `{"stored":2,"handled":1,"pending":0,"dead":1,"sessions":0}`
		}, 10*time.Second, 10*time.Millisecond)
		assert.Len(t, st.sessions, 1, "one attempt")
		st.status.Store(http.StatusOK)
		_, body := st.operate("POST", "/redrive", operatorToken)
		assert.Equal(t, `{"redriven":1}`, body)
		inboxtest.WaitHandled(t, st.inbox, 2)
	}
}

func TestToolsAnswer(t *testing.T) {
	st := newStreet(t, http.StatusOK, 1)
	headstest.ToolsFile(t, "tools.json", st.tools.Tools())
	_, err := st.emulator.Client().ConversationSettings.SetTools(t.Context(), st.head, st.tools.Tools()...)
	require.NoError(t, err)
	for order, want := range map[string]string{"7": "shipped", "8": "packed", "9": "no order with this number"} {
		reply, err := st.emulator.CallTool(t.Context(), st.head, "order_status", map[string]any{"order": order})
		require.NoError(t, err)
		assert.Contains(t, reply.Message, want)
	}
}

func TestErrorsOfTheCRMDoNotShowItsURL(t *testing.T) {
	err := send(t.Context(), heads.NewSecret("http://user:crm-password@127.0.0.1:9/?key=crm-key"), finished{})
	require.ErrorContains(t, err, "the CRM can't be reached: dial tcp")
	assert.NotContains(t, err.Error(), "crm-")
}

func TestFaultsOfSettingsAreToldTogether(t *testing.T) {
	for name, value := range map[string]string{"SHOP_CRM_URL": "httpx://crm.example.com/secret", "SHOP_OPERATOR_TOKEN": "short-secret", "SHOP_ATTEMPTS": "0"} {
		t.Setenv(name, value)
	}
	err := run(t.Context(), slog.New(slog.DiscardHandler))
	for _, name := range []string{"HEADS_BASE_URL", "HEADS_TOKEN", "PORT", "SHOP_DB", "SHOP_CRM_URL", "SHOP_OPERATOR_TOKEN", "SHOP_ATTEMPTS"} {
		require.ErrorContains(t, err, name)
	}
	assert.NotContains(t, err.Error(), "secret")
}
