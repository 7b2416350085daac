package registration_test

import (
	"testing"
	"time"

	"github.com/headsapi/heads-go/internal/registration"
	"github.com/stretchr/testify/assert"
)

func TestSortByAgePutsTheOldestFirst(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		created map[int64]time.Time
		order   []int64
	}{
		"by time":                        {map[int64]time.Time{1: day(3), 2: day(1), 3: day(2)}, []int64{2, 3, 1}},
		"by id if a time is unknown":     {map[int64]time.Time{1: day(3), 2: {}, 3: day(2)}, []int64{1, 2, 3}},
		"by id where times are the same": {map[int64]time.Time{1: day(1), 2: day(1), 3: day(1)}, []int64{1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			ids := []int64{3, 1, 2}
			registration.SortByAge(ids, func(id int64) (time.Time, int64) { return tt.created[id], id })
			assert.Equal(t, tt.order, ids)
		})
	}
}
