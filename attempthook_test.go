package heads

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type hookKey struct{ name string }

func TestAttemptHooksSurroundEveryAttempt(t *testing.T) {
	var told []Attempt
	start := func(ctx context.Context, a Attempt, _ http.Header) context.Context {
		told = append(told, a)
		return context.WithValue(ctx, hookKey{"attempt"}, a.Number)
	}
	end := func(ctx context.Context, a Attempt) {
		assert.Equal(t, a.Number, ctx.Value(hookKey{"attempt"}), "the context of start")
		told = append(told, a)
	}
	tr := newScript(answer(503, ""), answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, WithAttemptHook(start, end))))

	require.Len(t, told, 4)
	for i, a := range told {
		assert.Equal(t, i/2+1, a.Number)
		assert.Equal(t, "api.example.com", a.Host)
		assert.Equal(t, "/head/{id}", a.Route)
	}
	assert.Equal(t, []int{0, 503, 0, 200}, []int{told[0].StatusCode, told[1].StatusCode, told[2].StatusCode, told[3].StatusCode})
	for i, sent := range tr.requests {
		assert.Equal(t, i+1, sent.Context().Value(hookKey{"attempt"}), "the context reaches the transport")
	}
}

func TestAttemptHooksAddKeysToOneAttempt(t *testing.T) {
	start := func(ctx context.Context, a Attempt, header http.Header) context.Context {
		assert.Empty(t, header, "the credential is not shown")
		if a.Number == 1 {
			header["traceparent"] = []string{"00-1"}
			header.Set("Authorization", "Bearer other")
			header.Set("Accept", "text/html")
			header.Set("Cookie", "a=b")
			header.Set("Host", "evil.example.com")
		}
		return ctx
	}
	tr := newScript(answer(503, ""), answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, WithAttemptHook(start, nil))))
	own := http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer " + pathToken}, "User-Agent": {userAgent}}
	assert.Equal(t, own, tr.requests[1].Header)
	own["Traceparent"] = []string{"00-1"}
	assert.Equal(t, own, tr.requests[0].Header)
}

func TestSeveralAttemptHooksAllRun(t *testing.T) {
	var order []string
	hook := func(name string) Option {
		return WithAttemptHook(func(ctx context.Context, _ Attempt, _ http.Header) context.Context {
			order = append(order, "start "+name)
			return context.WithValue(ctx, hookKey{"last"}, name)
		}, func(ctx context.Context, _ Attempt) {
			order = append(order, "end "+name)
			assert.Equal(t, name, ctx.Value(hookKey{"last"}), "each gets its own context back")
		})
	}
	tr := newScript(answer(200, headJSON))
	require.NoError(t, getHead(t.Context(), newTestClient(t, memoryURL, tr, hook("a"), hook("b"))))
	assert.Equal(t, []string{"start a", "start b", "end a", "end b"}, order)
	assert.Equal(t, "b", tr.requests[0].Context().Value(hookKey{"last"}))
}

func TestPanicsOfAttemptHooksAreCaught(t *testing.T) {
	var log strings.Builder
	client := newTestClient(t, memoryURL, newScript(answer(200, headJSON)), WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		WithAttemptHook(func(context.Context, Attempt, http.Header) context.Context { panic("canary") }, func(context.Context, Attempt) { panic("canary") }),
		WithAttemptHook(func(context.Context, Attempt, http.Header) context.Context { return nil }, nil),
	)
	require.NoError(t, getHead(t.Context(), client))
	assert.Equal(t, 2, strings.Count(log.String(), "an attempt hook panicked"))
	assert.NotContains(t, log.String(), "canary")
}

func TestAttemptHookWithoutFunctionsIsRefused(t *testing.T) {
	_, err := New(memoryURL, pathToken, WithAttemptHook(nil, nil))
	require.ErrorIs(t, err, ErrInvalid)
}
