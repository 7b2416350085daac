//go:build !race

package heads

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The race detector makes pools forgetful, so this counts without it.
func TestVerifyAndParseAllocateLittle(t *testing.T) {
	body := benchEventBody(0)
	assert.Len(t, body, 300)
	signature := Sign(body, testKeyA)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if VerifySignature(body, signature, testKeyA) != nil {
				b.Fatal("refused")
			}
			if _, err := ParseEvent(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	assert.LessOrEqual(t, result.AllocsPerOp(), int64(14))
	assert.LessOrEqual(t, result.AllocedBytesPerOp(), int64(700))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = VerifySignature(body, signature, testKeyA, testKeyB) }), "verifying allocates nothing")
}
