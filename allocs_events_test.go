//go:build !race

package heads

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The race detector makes sync.Pool drop items, so allocations are counted
// without it.
func TestVerifyAndParseAllocateLittle(t *testing.T) {
	body := benchEventBody(0)
	assert.Len(t, body, 300)
	signature := Sign(body, testKeyA)
	verifyAndParse := func() {
		require.NoError(t, VerifySignature(body, signature, testKeyA))
		_, err := ParseEvent(body)
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, verifyAndParse), 14.0)
	assert.LessOrEqual(t, bytesPerRun(1000, verifyAndParse), uint64(700))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = VerifySignature(body, signature, testKeyA, testKeyB) }), "verifying allocates nothing")
}

// bytesPerRun is like testing.AllocsPerRun, but counts bytes.
func bytesPerRun(runs uint64, f func()) uint64 {
	var before, after runtime.MemStats
	f()
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}
