// Package oldest puts records of the service in the order of their age.
package oldest

import (
	"cmp"
	"slices"
	"time"
)

// First sorts records, the oldest first. Ids decide where the times are the same,
// and everywhere if one of the times is zero, which stands for an unreadable one.
func First[T any](records []T, age func(T) (created time.Time, id int64)) {
	undated := slices.ContainsFunc(records, func(r T) bool {
		created, _ := age(r)
		return created.IsZero()
	})
	slices.SortFunc(records, func(a, b T) int {
		createdA, idA := age(a)
		createdB, idB := age(b)
		if undated {
			return cmp.Compare(idA, idB)
		}
		return cmp.Or(createdA.Compare(createdB), cmp.Compare(idA, idB))
	})
}
