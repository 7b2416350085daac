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
	var undelivered []*recording.Entry
	if slices.Contains(words, Undelivered) {
		undelivered = undeliveredOf(entries)
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *recording.Entry) bool {
		return !slices.Contains(undelivered, e) && !slices.ContainsFunc(words, func(word string) bool {
			return word != "" && (strings.EqualFold(word, e.Event) || word == e.Tool || strings.EqualFold(word, e.HeadID) || word == e.SessionID)
		})
	})
}

// undeliveredOf returns the first delivery of each event of which none was accepted.
// Nobody waits any longer for the reply of a tool, so calls are not among them.
func undeliveredOf(entries []*recording.Entry) (undelivered []*recording.Entry) {
	delivered, listed := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if e.Delivered() {
			delivered[deliveryOf(e)] = true
		}
	}
	for _, e := range entries {
		if key := deliveryOf(e); e.Type == recording.KindEvent && !delivered[key] && !listed[key] {
			listed[key] = true
			undelivered = append(undelivered, e)
		}
	}
	return undelivered
}

// deliveryOf is the same for all attempts of the service to deliver an event to a URL.
func deliveryOf(e *recording.Entry) string { return e.Path + "\n" + string(e.Body) }
