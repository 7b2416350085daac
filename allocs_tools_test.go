//go:build !race

package heads_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The race detector makes pools forgetful, so this counts without it.
func TestToolCallAllocatesLittle(t *testing.T) {
	call := oneToolCall(t, []byte(toolDocument(t, "call_flat.json")))
	assert.LessOrEqual(t, testing.AllocsPerRun(200, call), 30.0)
}
