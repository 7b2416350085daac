// Package replay sends recordings again, and makes scenarios of them.
package replay

import (
	"slices"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/recording"
)

// Undelivered is the word for the events that no back end has accepted.
const Undelivered = "undelivered"

// Choose returns the entries that match one of the words, in their order, or all if there
// are no words. A word is the type of an event, the name of a tool, the id of a head or a
// session, or Undelivered.
func Choose(entries []*recording.Entry, words []string) []*recording.Entry {
	if len(words) == 0 {
		return entries
	}
	var undelivered map[*recording.Entry]bool
	if slices.Contains(words, Undelivered) {
		undelivered = undeliveredOf(entries)
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *recording.Entry) bool {
		return !undelivered[e] && !slices.ContainsFunc(words, func(word string) bool {
			return word != "" && (strings.EqualFold(word, e.Event) || word == e.Tool || strings.EqualFold(word, e.HeadID) || word == e.SessionID)
		})
	})
}

// undeliveredOf returns the first delivery of each event of which none was accepted.
// Nobody waits any longer for the reply of a tool, so calls are not among them.
func undeliveredOf(entries []*recording.Entry) map[*recording.Entry]bool {
	done, undelivered := map[[32]byte]bool{}, map[*recording.Entry]bool{}
	for _, e := range entries {
		if e.Delivered() {
			done[e.Delivery] = true
		}
	}
	for _, e := range entries {
		if e.Type == recording.KindEvent && !done[e.Delivery] {
			done[e.Delivery] = true
			undelivered[e] = true
		}
	}
	return undelivered
}
