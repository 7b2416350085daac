//go:build !race

package heads_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headsapi/heads-go"
)

// The race detector makes sync.Pool drop items, so allocations are counted
// without it.
func TestToolCallAllocatesLittle(t *testing.T) {
	call := oneToolCall(t, []byte(toolDocument(t, "call_flat.json")))
	assert.LessOrEqual(t, testing.AllocsPerRun(200, call), 30.0)
}

func TestAddToolFuncAllocatesNoMoreThanAddTool(t *testing.T) {
	body := []byte(toolDocument(t, "call_flat.json"))
	assert.LessOrEqual(t, testing.AllocsPerRun(200, oneToolFuncCall(t, body)), testing.AllocsPerRun(200, oneToolCall(t, body)))
}

func TestToolObserverAllocatesTwice(t *testing.T) {
	body := []byte(toolDocument(t, "call_flat.json"))
	observe := heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{
		Start: func(ctx context.Context, _ heads.ToolCallInfo) context.Context { return ctx },
		End:   func(context.Context, heads.ToolCallInfo) {},
	})
	assert.LessOrEqual(t, testing.AllocsPerRun(200, oneToolCall(t, body, observe)), testing.AllocsPerRun(200, oneToolCall(t, body))+2)
}
