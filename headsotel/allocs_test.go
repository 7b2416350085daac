//go:build !race

package headsotel

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
)

func TestWithoutAProviderACallAllocatesTwiceMore(t *testing.T) {
	for name, calls := range map[string][2]func(){
		"client":   {clientCall(t, heads.WithApplication("test", "1")), clientCall(t, Client())}, // as many options in both
		"tool":     {toolCall(t), toolCall(t, Tools())},
		"delivery": {delivery(t), delivery(t, Events())},
	} {
		without, with := testing.AllocsPerRun(200, calls[0]), testing.AllocsPerRun(200, calls[1])
		t.Logf("%s: %v without, %v with", name, without, with)
		assert.LessOrEqual(t, with, without+2, name)
	}
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
	client, ctx := newClient(t, "https://api.example.com", tr, opt), t.Context()
	return func() {
		if _, err := client.Heads.Get(ctx, headID); err != nil {
			t.Fatal(err)
		}
	}
}

func toolCall(t testing.TB, opts ...heads.ToolHandlerOption) func() {
	t.Helper()
	h := toolHandler(t, func(context.Context, struct{}) (string, error) { return "found", nil }, opts...)
	return func() { callTool(t, h, "find", "{}") }
}

func delivery(t testing.TB, opts ...heads.EventHandlerOption) func() {
	t.Helper()
	h := eventHandler(t, func(context.Context, *heads.Event) error { return nil }, opts...)
	return func() { deliver(t, h, heads.EventStartConversation, sharedKey) }
}
