package headstest

import (
	"encoding/json"
	"maps"
	"slices"
)

// Snapshot is the state of an emulator at one moment. The records are as an
// operation returns them, with their secrets. Printing a Snapshot shows only how
// many records it has.
type Snapshot struct {
	Heads, Visuals []json.RawMessage // in the order of their ids
	Webhooks       []json.RawMessage // oldest first
	Faults         []Fault           // those that can still happen; Times is how often, 0 means always
	DeliveryFaults []DeliveryFault   // likewise
}

// Snapshot returns the current state of the emulator. It is not in the journal, and
// no fault applies to it.
func (e *Emulator) Snapshot() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	var s Snapshot
	for _, id := range slices.Sorted(maps.Keys(e.st.heads)) {
		s.Heads = append(s.Heads, e.st.heads[id].encode())
	}
	for _, id := range slices.Sorted(maps.Keys(e.st.visuals)) {
		s.Visuals = append(s.Visuals, e.st.visuals[id].shown.encode())
	}
	for _, id := range slices.Sorted(maps.Keys(e.st.webhooks)) {
		s.Webhooks = append(s.Webhooks, e.st.webhooks[id].document().encode())
	}
	for _, f := range e.st.faults {
		left := f.Fault
		left.Times = max(f.left, 0)
		s.Faults = append(s.Faults, left)
	}
	for _, f := range e.st.deliveryFaults {
		left := f.DeliveryFault
		left.Times = max(f.left, 0)
		s.DeliveryFaults = append(s.DeliveryFaults, left)
	}
	return s
}
