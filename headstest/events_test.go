package headstest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEventRequestServesHandlersAndClients(t *testing.T) {
	var body, signature string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/{name}", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.EqualValues(t, len(b), r.ContentLength)
		assert.Equal(t, "x", r.PathValue("name"))
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		assert.NotEmpty(t, r.RemoteAddr)
		body, signature = string(b), r.Header.Get("x-signature-256")
		w.WriteHeader(http.StatusTeapot)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	e := heads.Event{
		Type: heads.EventEndConversation, HeadID: "h", SessionID: "s", PublicHeadID: "li-1", PublicOrgID: "Org-1",
		Timestamp: heads.Time{Time: time.Date(2026, 8, 31, 6, 56, 30, 0, time.UTC)},
	}
	const want = `{"timestamp":"2026-08-31 06:56:30","head_id":"h","session_id":"s","public_head_id":"li-1","public_org_id":"Org-1","event_type":"end_conversation"}`
	senders := map[string]func(*http.Request) int{
		"handler": func(r *http.Request) int {
			rec := httptest.NewRecorder()
			mux.ServeHTTP(rec, r)
			return rec.Code
		},
		"client": func(r *http.Request) int {
			resp := need(srv.Client().Do(r))(t)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode
		},
	}
	for name, send := range senders {
		t.Run(name, func(t *testing.T) {
			body, signature = "", ""
			assert.Equal(t, http.StatusTeapot, send(headstest.NewEventRequest(srv.URL+"/hooks/x", e, "key")))
			assert.JSONEq(t, want, body)
			assert.Equal(t, hexHMAC([]byte(body), "key"), signature)
		})
	}
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, headstest.NewEventRequest("/hooks/x", e, "key"))
	assert.Equal(t, http.StatusTeapot, rec.Code, "a path alone is enough for a handler")
}

func TestEventRequestSendsRawBytesAndGivenTexts(t *testing.T) {
	read := func(e heads.Event) string {
		b := need(io.ReadAll(headstest.NewEventRequest("https://x.example.test", e, "key").Body))(t)
		return string(b)
	}
	assert.Equal(t, "not JSON\n", read(heads.Event{Type: "x", Raw: heads.NewRaw([]byte("not JSON\n"))}))
	assert.Empty(t, read(heads.Event{Raw: heads.NewRaw([]byte{})}))
	assert.Contains(t, read(heads.Event{Timestamp: heads.Time{Text: "2026-08-31T06:56:30Z"}}), `"2026-08-31T06:56:30Z"`)
	synctest.Test(t, func(t *testing.T) {
		assert.Contains(t, read(heads.Event{}), time.Now().UTC().Format(`"2006-01-02 15:04:05"`))
	})
	assert.Panics(t, func() { headstest.NewEventRequest("https://x\x00", heads.Event{}, "key") })
}
