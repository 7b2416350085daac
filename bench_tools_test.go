//go:build !race

package heads_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headsapi/heads-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oneToolCall returns a function that makes the call in body. The function itself
// allocates twice.
func oneToolCall(tb testing.TB, body []byte, opts ...heads.ToolHandlerOption) func() {
	tb.Helper()
	h := newToolHandler(tb, append(opts, heads.WithPathToken(toolToken))...)
	require.NoError(tb, heads.AddTool(h, "get_weather", "Weather", func(context.Context, weatherArguments) (string, error) { return "5 degrees", nil }))
	return callOf(h, body)
}

// oneToolFuncCall is oneToolCall with AddToolFunc.
func oneToolFuncCall(tb testing.TB, body []byte) func() {
	tb.Helper()
	h := newToolHandler(tb, heads.WithPathToken(toolToken))
	require.NoError(tb, heads.AddToolFunc(h, heads.ToolSpec{
		Name: "get_weather", Description: "Weather", Required: []string{"city"},
		Parameters: []heads.ToolParameter{{Name: "city", Type: "string", Description: "City"}, {Name: "days", Type: "integer", Description: "Days"}},
	}, func(context.Context, json.RawMessage) (string, error) { return "5 degrees", nil }))
	return callOf(h, body)
}

func callOf(h http.Handler, body []byte) func() {
	request := httptest.NewRequest(http.MethodPost, "/"+toolToken+"/get_weather", nil)
	w := &heads.SilentWriter{Headers: http.Header{}}
	return func() {
		// The handler wraps the body, so each call needs its own.
		r := *request
		r.Body = heads.BenchBody{bytes.NewReader(body)}
		h.ServeHTTP(w, &r)
	}
}

// BenchmarkToolHandler measures one call, and json.Unmarshal of the same body for
// comparison.
func BenchmarkToolHandler(b *testing.B) {
	body := []byte(heads.ReadFile(b, "tools/call_flat.json"))
	b.Run("handler", func(b *testing.B) {
		call := oneToolCall(b, body)
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("func", func(b *testing.B) {
		call := oneToolFuncCall(b, body)
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var in struct {
				weatherArguments
				Session json.RawMessage `json:"session_metadata"`
			}
			if err := json.Unmarshal(body, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The race detector makes sync.Pool drop items, so allocations are counted
// without it.
func TestToolCallAllocatesLittle(t *testing.T) {
	call := oneToolCall(t, []byte(heads.ReadFile(t, "tools/call_flat.json")))
	assert.LessOrEqual(t, testing.AllocsPerRun(200, call), 30.0)
}

func TestAddToolFuncAllocatesNoMoreThanAddTool(t *testing.T) {
	body := []byte(heads.ReadFile(t, "tools/call_flat.json"))
	assert.LessOrEqual(t, testing.AllocsPerRun(200, oneToolFuncCall(t, body)), testing.AllocsPerRun(200, oneToolCall(t, body)))
}

func TestToolObserverAllocatesTwice(t *testing.T) {
	body := []byte(heads.ReadFile(t, "tools/call_flat.json"))
	observe := heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{
		Start: func(ctx context.Context, _ heads.ToolCallInfo) context.Context { return ctx },
		End:   func(context.Context, heads.ToolCallInfo) {},
	})
	assert.LessOrEqual(t, testing.AllocsPerRun(200, oneToolCall(t, body, observe)), testing.AllocsPerRun(200, oneToolCall(t, body))+2)
}
