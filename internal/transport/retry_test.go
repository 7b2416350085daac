package transport

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnreadableRetryAfterIsIgnored(t *testing.T) {
	for _, value := range []string{"", "-5", "1.5", "5s", "soon", "+5", "0x10", "2000-01-01T00:00:05Z"} {
		_, asked := parseRetryAfter(value, time.Now())
		assert.False(t, asked, value)
	}
}

func TestBackoffNeverOverflows(t *testing.T) {
	for name, policy := range map[string]RetryPolicy{
		"huge":  {MinWait: math.MaxInt64 - 1, MaxWait: math.MaxInt64},
		"day":   {MinWait: time.Second, MaxWait: 24 * time.Hour},
		"equal": {MinWait: time.Second, MaxWait: time.Second},
		"zero":  {},
		"none":  {MaxWait: time.Hour},
	} {
		for retry := range 200 {
			wait := policy.backoff(retry)
			assert.GreaterOrEqual(t, wait, time.Duration(0), name)
			assert.LessOrEqual(t, wait, policy.MaxWait, name)
			if policy.MinWait == 0 {
				assert.Zero(t, wait, name)
			}
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		wait, ok := parseRetryAfter(value, now)
		require.False(t, wait < 0 || !ok && wait != 0, "%q: %v, %t", value, wait, ok)
	})
}
