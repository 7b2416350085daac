package headstest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
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

// Request is one request that the emulator has answered. Header and Body are as
// received, with the credential. They are shared with the journal and must not be
// changed.
type Request struct {
	ID                  int // counts the requests from 1, and from 1 again after a Reset
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	Status              int // 0 if the connection was cut without an answer
	At                  time.Time
	Duration            time.Duration

	effect *effect // nil without a console
	headID string  // of the head that it is about, with a console
}

// effect is what a request changed in a head, shown by the console.
type effect struct {
	headID  string
	changes []fieldChange // in the order of the fields' names
	ignored document      // the read-only fields of the body
	before  document
}

// A value of fieldChange is nil if the head did not have the field.
type fieldChange struct {
	name          string
	before, after json.RawMessage
}

// difference returns the fields in which two documents differ, without updatedAt.
func difference(before, after document) (changes []fieldChange) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != "updatedAt" && !bytes.Equal(before[name], after[name]) {
			changes = append(changes, fieldChange{name, before[name], after[name]})
		}
	}
	return changes
}
