package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPauseAfterFailedBuildsDoublesToAnHour(t *testing.T) {
	for failures, longest := range map[int]time.Duration{
		0: 4 * time.Second, 1: 4 * time.Second, 2: 8 * time.Second, 5: 64 * time.Second,
		10: 2048 * time.Second, 11: time.Hour, 12: time.Hour, 1000: time.Hour,
	} {
		for range 100 {
			wait := indexWait(failures)
			assert.GreaterOrEqual(t, wait, longest/2, "after %d failures", failures)
			assert.Less(t, wait, longest, "after %d failures", failures)
		}
	}
}
