package headstest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
)

// Snapshot is what an emulator holds at one moment. The records are as an
// operation would answer them, secrets included; printing a Snapshot shows
// their numbers alone.
type Snapshot struct {
	Heads, Visuals []json.RawMessage // in the order of their ids
	Webhooks       []json.RawMessage // oldest first
	Faults         []Fault           // those still to happen; Times is what is left of them, 0 when they happen always
	DeliveryFaults []DeliveryFault   // likewise
}

func (s Snapshot) text() string {
	return fmt.Sprintf("headstest.Snapshot of %d heads, %d visuals, %d webhooks", len(s.Heads), len(s.Visuals), len(s.Webhooks))
}

// Format writes how many records there are, whatever the verb.
func (s Snapshot) Format(f fmt.State, _ rune) { writeText(f, s.text()) }

// LogValue returns how many records there are.
func (s Snapshot) LogValue() slog.Value { return slog.StringValue(s.text()) }

// Snapshot returns what the emulator holds now. It leaves no trace in the
// journal, and no fault touches it.
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
