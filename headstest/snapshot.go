package headstest

import (
	"encoding/json"
	"maps"
	"slices"
)

// Snapshot is the state of an emulator at one moment. The records are as an
// operation returns them, with their secrets.
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
	for _, id := range slices.Sorted(maps.Keys(e.run.heads)) {
		s.Heads = append(s.Heads, e.run.heads[id].encode())
	}
	for _, id := range slices.Sorted(maps.Keys(e.run.visuals)) {
		s.Visuals = append(s.Visuals, e.run.visuals[id].shown.encode())
	}
	for _, id := range slices.Sorted(maps.Keys(e.run.webhooks)) {
		s.Webhooks = append(s.Webhooks, e.run.webhooks[id].document().encode())
	}
	e.run.faults.active(func(f Fault, _, times int) {
		f.Times = times
		s.Faults = append(s.Faults, f)
	})
	e.run.deliveryFaults.active(func(f DeliveryFault, _, times int) {
		f.Times = times
		s.DeliveryFaults = append(s.DeliveryFaults, f)
	})
	return s
}

// Import adds the records of a seed to those of the emulator, in the order visuals,
// heads, tools, webhooks. If a record is refused, Import adds nothing.
func (e *Emulator) Import(s Seed) (Added, error) {
	records, err := s.records()
	if err != nil {
		return Added{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.run.clone()
	added, err := next.add(records)
	if err != nil {
		return Added{}, err
	}
	e.run.state = next
	e.warnOf(added)
	e.notify()
	return added, nil
}

// Restart resets the emulator and adds the records of a seed. From then on, the
// reset of the control API restores this seed. If a record is refused, Restart
// changes nothing.
func (e *Emulator) Restart(s Seed) (Added, error) {
	records, err := s.records()
	if err != nil {
		return Added{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := newRun(e.lifetime, &e.cfg)
	added, err := next.add(records)
	if err != nil {
		next.end()
		return Added{}, err
	}
	e.run.end()
	e.run, e.start = next, s
	e.warnOf(added)
	e.notify()
	return added, nil
}

// warnOf logs a line for each early webhook of a seed. It is called under the lock.
func (c *core) warnOf(added Added) {
	for _, id := range added.Registrations {
		c.warnIfEarly(c.run.webhooks[id])
	}
}

// Export returns the records of the emulator as a seed, with their keys. It does
// not return sessions, journals and faults.
func (e *Emulator) Export() Seed {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Seed{Visuals: []json.RawMessage{}, Heads: []json.RawMessage{}, Tools: []json.RawMessage{}, Registrations: []json.RawMessage{}}
	for _, id := range slices.Sorted(maps.Keys(e.run.visuals)) {
		v := e.run.visuals[id]
		record := maps.Clone(v.shown)
		record.set("mode", v.mode)
		s.Visuals = append(s.Visuals, record.encode())
	}
	for _, id := range slices.Sorted(maps.Keys(e.run.heads)) {
		s.Heads = append(s.Heads, seedOfHead(e.run.heads[id]).encode())
	}
	for _, id := range slices.Sorted(maps.Keys(e.run.webhooks)) {
		record := e.run.webhooks[id].document()
		for _, assigned := range []string{"id", "createdAt", "updatedAt", "orgId"} {
			delete(record, assigned)
		}
		s.Registrations = append(s.Registrations, record.encode())
	}
	return s
}

// seedOfHead moves the fields that a head does not have in the contract to extra.
func seedOfHead(h document) document {
	record, extra := document{}, document{}
	for name, value := range h {
		if _, known := fieldRule(name); known || name == "id" {
			record[name] = value
		} else {
			extra[name] = value
		}
	}
	if len(extra) > 0 {
		record["extra"] = extra.encode()
	}
	return record
}
