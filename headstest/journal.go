package headstest

import (
	"slices"
)

// journalBytes is how many bytes of bodies one journal keeps.
const journalBytes = 32 << 20

// journal keeps the newest entries, up to a number and a total size. It is used
// under the emulator's lock.
type journal[T any] struct {
	limit   int
	entries []entry[T]
	dropped int // how many entries were dropped before entries[0]
	bytes   int
}

type entry[T any] struct {
	value T
	size  int
}

func (j *journal[T]) add(v T, size int) {
	j.entries = append(j.entries, entry[T]{v, size})
	j.bytes += size
	for len(j.entries) > j.limit || j.bytes > journalBytes && len(j.entries) > 1 {
		j.bytes -= j.entries[0].size
		j.entries[0] = entry[T]{} // the array is kept until append moves it
		j.entries = j.entries[1:]
		j.dropped++
	}
}

// total counts every entry ever added.
func (j *journal[T]) total() int { return j.dropped + len(j.entries) }

// since returns the kept entries, starting with the n-th ever added.
func (j *journal[T]) since(n int) []T {
	kept := j.entries[max(n-j.dropped, 0):]
	out := make([]T, len(kept))
	for i, e := range kept {
		out[i] = e.value
	}
	return out
}

// at returns the n-th entry ever added, counted from 1, if it is still kept.
func (j *journal[T]) at(n int) (v T, ok bool) {
	i := n - 1 - j.dropped
	if i < 0 || i >= len(j.entries) {
		return v, false
	}
	return j.entries[i].value, true
}

// newest returns the newest entries that match, oldest first and at most limit, of
// those before the n-th ever added. If n is 0, it searches all.
func (j *journal[T]) newest(n, limit int, match func(T) bool) []T {
	end := len(j.entries)
	if n > 0 {
		end = min(max(n-1-j.dropped, 0), end)
	}
	out := []T{}
	for i := end - 1; i >= 0 && len(out) < limit; i-- {
		if v := j.entries[i].value; match(v) {
			out = append(out, v)
		}
	}
	slices.Reverse(out)
	return out
}
