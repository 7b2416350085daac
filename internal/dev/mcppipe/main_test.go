package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is the server, too: it counts its messages and answers each request with a
// notification and its number.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "serve" {
		os.Exit(m.Run())
	}
	lines := bufio.NewScanner(os.Stdin)
	for n := 1; lines.Scan(); n++ {
		var m message
		_ = json.Unmarshal(lines.Bytes(), &m)
		switch {
		case m.Method == "exit":
			os.Exit(1)
		case m.ID != nil:
			fmt.Printf("{\"method\":\"notifications/progress\"}\n{\"id\":%s,\"result\":%d}\n", m.ID, n)
		}
	}
}

func TestEachSessionIsAProcess(t *testing.T) {
	p := &pipe{command: []string{os.Args[0], "serve"}, sessions: map[string]*process{}}
	defer p.close()
	send := func(method, session, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
		req.Header.Set(sessionHeader, session)
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, req)
		return rec
	}
	shown := func(rec *httptest.ResponseRecorder) string {
		body, err := io.ReadAll(rec.Body)
		require.NoError(t, err)
		return fmt.Sprintf("%d %s", rec.Code, strings.TrimSpace(string(body)))
	}

	first := send("POST", "", "{\"id\":\"a\",\n\"method\":\"initialize\"}")
	one := first.Header().Get(sessionHeader)
	assert.Equal(t, `200 {"id":"a","result":1}`, shown(first), "of several lines, too")
	assert.Equal(t, "202 ", shown(send("POST", one, `{"method":"notifications/initialized"}`)))
	assert.Equal(t, `200 {"id":7,"result":3}`, shown(send("POST", one, `{"id":7,"method":"ping"}`)))

	second := send("POST", "", `{"id":1,"method":"initialize"}`)
	assert.Equal(t, `200 {"id":1,"result":1}`, shown(second))
	assert.NotEqual(t, one, second.Header().Get(sessionHeader))

	for range 2 {
		alone := send("POST", "", `{"id":1,"method":"server/discover"}`)
		assert.Equal(t, `200 {"id":1,"result":1}`, shown(alone), "a process of its own")
		assert.Empty(t, alone.Header().Get(sessionHeader))
	}

	assert.Equal(t, "200 ", shown(send("DELETE", one, "")))
	assert.Equal(t, "404 there is no such session", shown(send("POST", one, `{"id":8,"method":"ping"}`)))
	assert.Equal(t, http.StatusMethodNotAllowed, send("GET", one, "").Code)
	assert.Equal(t, http.StatusBadRequest, send("POST", "", `{`).Code)
	assert.Equal(t, "502 the server ended before it answered", shown(send("POST", "", `{"id":1,"method":"exit"}`)))
}
