//go:build !race

package headsotel

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

func TestWithoutAProviderACallAllocatesTwiceMore(t *testing.T) {
	nothing := heads.WithApplication("test", "1") // as many options in both
	without := testing.AllocsPerRun(200, clientCall(t, nothing))
	with := testing.AllocsPerRun(200, clientCall(t, Client()))
	t.Logf("client: %v without, %v with", without, with)
	assert.LessOrEqual(t, with, without+2)

	without, with = testing.AllocsPerRun(200, toolCall(t)), testing.AllocsPerRun(200, toolCall(t, Tools()))
	t.Logf("tool: %v without, %v with", without, with)
	assert.LessOrEqual(t, with, without+2)

	without, with = testing.AllocsPerRun(200, delivery(t)), testing.AllocsPerRun(200, delivery(t, Events()))
	t.Logf("delivery: %v without, %v with", without, with)
	assert.LessOrEqual(t, with, without+2)
}

func BenchmarkCall(b *testing.B) {
	r := newRecorder()
	for _, row := range []struct {
		name string
		call func()
	}{
		{"client/without", clientCall(b, heads.WithApplication("test", "1"))},
		{"client/no provider", clientCall(b, Client())},
		{"client/provider", clientCall(b, Client(r.options()...))},
		{"tool/without", toolCall(b)},
		{"tool/no provider", toolCall(b, Tools())},
		{"tool/provider", toolCall(b, Tools(r.options()...))},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				row.call()
			}
			r.spans.Reset()
		})
	}
}

func clientCall(t testing.TB, opt heads.Option) func() {
	t.Helper()
	body := []byte(`{"id":"` + headID + `"}`)
	tr := transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, nil
	})
	client, err := heads.New("https://api.example.com", token, heads.WithHTTPClient(&http.Client{Transport: tr}), opt)
	require.NoError(t, err)
	ctx := t.Context()
	return func() {
		if _, err := client.Heads.Get(ctx, headID); err != nil {
			t.Fatal(err)
		}
	}
}

func toolCall(t testing.TB, opts ...heads.ToolHandlerOption) func() {
	t.Helper()
	h := toolHandler(t, func(context.Context, struct{}) (string, error) { return "found", nil }, opts...)
	return func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/find", bytes.NewReader([]byte("{}"))))
	}
}

// delivery delivers the same event repeatedly; it is handled once.
func delivery(t testing.TB, opts ...heads.EventHandlerOption) func() {
	t.Helper()
	h := eventHandler(t, func(context.Context, *heads.Event) error { return nil }, opts...)
	e := heads.Event{Type: heads.EventStartConversation, HeadID: headID, SessionID: "s", Timestamp: heads.Time{Time: time.Now()}}
	return func() {
		h.ServeHTTP(httptest.NewRecorder(), headstest.NewEventRequest("https://hooks.example.com/events", e, sharedKey))
	}
}
