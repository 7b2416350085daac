package headstest

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// journalBytes bounds the bodies that one journal keeps.
const journalBytes = 32 << 20

// Request is one request that the emulator has answered. Header and Body are
// as received, credential included, and shared with the journal: read them,
// don't change them. Printing a Request shows method, path and status alone.
type Request struct {
	ID                  int // counts the requests from 1 on, and again after a Reset
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	Status              int // 0 when the connection was cut without an answer
	At                  time.Time
	Duration            time.Duration

	effect *effect // nil without a console
}

func (r Request) text() string {
	return r.Method + " " + r.Path + " " + strconv.Itoa(r.Status)
}

// Format writes method, path and status, whatever the verb.
func (r Request) Format(f fmt.State, _ rune) { writeText(f, r.text()) }

// LogValue returns method, path and status.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.text()) }

// Requests returns the requests that were answered, oldest first. A request is
// in the list before its caller sees the answer.
func (e *Emulator) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.st.requests.since(0)
}

// journal keeps the newest entries within a number and a size. It is used
// under the emulator's lock.
type journal[T any] struct {
	limit   int
	entries []entry[T]
	dropped int // how many entries went before entries[0]
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
		j.entries[0] = entry[T]{} // the array lives on until append moves it
		j.entries = j.entries[1:]
		j.dropped++
	}
}

// total counts every entry ever added.
func (j *journal[T]) total() int { return j.dropped + len(j.entries) }

// since returns the entries from the n-th ever added on, of those still kept.
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

// newest returns at most limit entries that match, oldest first, of those
// before the n-th ever added; n 0 is no bound.
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

// writeText is the whole body of a Format method. A write to a fmt.State does
// not fail.
func writeText(f fmt.State, text string) { _, _ = io.WriteString(f, text) }
