package headstest

import (
	"net/http"
	"slices"

	heads "github.com/headsapi/heads-go"
)

// Inject adds a fault to the answers of later requests. If several faults match a
// request, the one that was injected first is used. The credential is checked after
// the fault. Inject panics if Validate returns an error.
func (e *Emulator) Inject(f Fault) (remove func()) {
	if err := f.Validate(); err != nil {
		panic("headstest: Inject: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	st, injected := e.st, &fault{f, f.Times}
	st.faults = append(st.faults, injected)
	e.notify()
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notify()
		st.faults = slices.DeleteFunc(st.faults, func(f *fault) bool { return f == injected })
	}
}

// InjectDelivery adds a fault to the deliveries of later events. If several faults
// match an event, the one that was injected first is used. InjectDelivery panics
// if Validate returns an error.
func (e *Emulator) InjectDelivery(f DeliveryFault) (remove func()) {
	if err := f.Validate(); err != nil {
		panic("headstest: InjectDelivery: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	st, injected := e.st, &deliveryFault{f, f.Times}
	st.deliveryFaults = append(st.deliveryFaults, injected)
	e.notify()
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notify()
		st.deliveryFaults = slices.DeleteFunc(st.deliveryFaults, func(f *deliveryFault) bool { return f == injected })
	}
}

// RemoveFaults removes all faults of requests and deliveries. An event that a fault
// with Reorder holds back still waits for the next event.
func (e *Emulator) RemoveFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.st.faults, e.st.deliveryFaults = nil, nil
	e.notify()
}

// takeFault returns the fault that matches and counts it.
func (c *core) takeFault(r *http.Request) (Fault, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.st.faults) == 0 {
		return Fault{}, false
	}
	_, pattern := c.mux.Handler(r)
	i := slices.IndexFunc(c.st.faults, func(f *fault) bool { return f.matches(r, pattern) && f.strikes(c.st.chance) })
	if i < 0 {
		return Fault{}, false
	}
	f := c.st.faults[i]
	if f.left--; f.left == 0 {
		c.st.faults = slices.Delete(c.st.faults, i, i+1)
	}
	c.notify()
	return f.Fault, true
}

// takeDeliveryFault returns the fault that matches and counts it. It returns the
// zero fault, which does nothing, if none matches.
func (st *state) takeDeliveryFault(webhookID int64, t heads.EventType) DeliveryFault {
	i := slices.IndexFunc(st.deliveryFaults, func(f *deliveryFault) bool {
		return (f.WebhookID == 0 || f.WebhookID == webhookID) && (f.Event == "" || f.Event == t)
	})
	if i < 0 {
		return DeliveryFault{}
	}
	f := st.deliveryFaults[i]
	if f.left--; f.left == 0 {
		st.deliveryFaults = slices.Delete(st.deliveryFaults, i, i+1)
	}
	return f.DeliveryFault
}
