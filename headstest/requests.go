package headstest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Request is one request that the emulator has answered. Header and Body are as
// received, with the credential. They are shared with the journal and must not be
// changed. Printing a Request shows only method, path and status.
type Request struct {
	ID                  int // counts the requests from 1, and from 1 again after a Reset
	Method, Path, Query string
	Header              http.Header
	Body                []byte
	Status              int // 0 if the connection was cut without an answer
	At                  time.Time
	Duration            time.Duration

	effect *effect // nil without a console
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

// difference ignores the time of the change.
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
