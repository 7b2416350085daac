package oldest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFirst(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		created [3]time.Time // of the ids 1 to 3
		order   []int64
	}{
		"by time":                        {[3]time.Time{day(3), day(1), day(2)}, []int64{2, 3, 1}},
		"by id if a time is unreadable":  {[3]time.Time{day(3), {}, day(2)}, []int64{1, 2, 3}},
		"by id where times are the same": {[3]time.Time{day(1), day(1), day(1)}, []int64{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			ids := []int64{3, 1, 2}
			First(ids, func(id int64) (time.Time, int64) { return tt.created[id-1], id })
			assert.True(t, slices.Equal(tt.order, ids), "%v", ids)
		})
	}
}
