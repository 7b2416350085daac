package heads_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go"
)

type toolHookKey struct{}

// toolHook puts name into the context and appends the calls to order.
func toolHook(t testing.TB, order *[]string, name string) heads.ToolHandlerOption {
	return heads.WithToolHook(func(ctx context.Context, tool string) context.Context {
		*order = append(*order, "start "+name+" "+tool)
		return context.WithValue(ctx, toolHookKey{}, name)
	}, func(ctx context.Context, info heads.ToolCallInfo) {
		*order = append(*order, "end "+name+" "+string(info.Outcome))
		assert.Equal(t, name, ctx.Value(toolHookKey{}), "each hook gets its own context back")
	})
}

func TestContextOfAToolHookReachesCheckAndFunction(t *testing.T) {
	var order []string
	h := newToolHandler(t, toolHook(t, &order, "a"), toolHook(t, &order, "b"), heads.WithToolAuth(func(r *http.Request) error {
		order = append(order, "check")
		assert.Equal(t, "b", r.Context().Value(toolHookKey{}))
		return nil
	}))
	answerWith(t, h, func(ctx context.Context) (string, error) {
		order = append(order, "function")
		assert.Equal(t, "b", ctx.Value(toolHookKey{}))
		return "done", nil
	})
	assert.Equal(t, "done", toolReply(t, postTool(h, "/answer", "{}")))
	assert.Equal(t, []string{"start a answer", "start b answer", "check", "function", "end a answered", "end b answered"}, order)
}

func TestToolHooksStartOnceTheToolIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		h := newToolHandler(t, toolHook(t, &order, "a"))
		answerWith(t, h, func(context.Context) (string, error) { return "done", nil })
		postTool(h, "/no_such_tool", "{}")
		assert.Empty(t, order)
		postTool(h, "/answer", "{")
		assert.Equal(t, []string{"start a answer", "end a unreadable"}, order)

		order = nil
		require.NoError(t, h.Shutdown(t.Context()))
		postTool(h, "/answer", "{}")
		assert.Equal(t, []string{"start a answer", "end a busy"}, order)
	})
}

func TestPanicsOfToolHooksAreCaught(t *testing.T) {
	var log toolLog
	var order []string
	h := newToolHandler(t, loggedTo(&log), heads.WithToolHook(
		func(context.Context, string) context.Context { panic("start broke") },
		func(context.Context, heads.ToolCallInfo) { panic("end broke") },
	), toolHook(t, &order, "b"), heads.WithToolHook(func(context.Context, string) context.Context { return nil }, nil))
	addWeather(t, h)
	assert.Equal(t, "done", toolReply(t, postTool(h, "/get_weather", `{"city":"Oslo"}`)))
	assert.Equal(t, []string{"start b get_weather", "end b answered"}, order)
	assert.Contains(t, log.String(), "start broke")
	assert.Contains(t, log.String(), "end broke")
	require.NoError(t, h.Shutdown(t.Context()), "the call has ended")
}

func TestToolHookWithoutFunctionsIsRefused(t *testing.T) {
	_, err := heads.NewToolHandler("https://tools.example.com", heads.WithToolHook(nil, nil))
	require.ErrorIs(t, err, heads.ErrInvalid)
}

func TestToolHookMayHaveAnEndAlone(t *testing.T) {
	var ended []heads.ToolOutcome
	h := newToolHandler(t, heads.WithToolHook(nil, func(_ context.Context, call heads.ToolCallInfo) { ended = append(ended, call.Outcome) }))
	addWeather(t, h)
	postTool(h, "/get_weather", `{"city":"Oslo"}`)
	assert.Equal(t, []heads.ToolOutcome{heads.ToolAnswered}, ended)
}
