package headstest

import "net/http"

// Inject adds a fault to the answers of later requests. If several faults match a
// request, the one that was injected first is used. The credential is checked after
// the fault. Inject panics if Validate returns an error.
func (e *Emulator) Inject(f Fault) (remove func()) {
	if err := f.Validate(); err != nil {
		panic("headstest: Inject: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.injected(e.run.faults.add(f, f.Times))
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
	return e.injected(e.run.deliveryFaults.add(f, f.Times))
}

// injected notifies the listeners of a new fault. It returns a function that removes
// the fault under the lock.
func (c *core) injected(remove func()) func() {
	c.notify()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		remove()
		c.notify()
	}
}

// RemoveFaults removes all faults of requests and deliveries. An event that a fault with
// Reorder has delayed still waits for the next event.
func (e *Emulator) RemoveFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.run.faults, e.run.deliveryFaults = nil, nil
	e.notify()
}

// takeFault returns the fault of a request.
func (c *core) takeFault(r *http.Request) (Fault, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.run.faults) == 0 {
		return Fault{}, false
	}
	_, pattern := c.mux.Handler(r)
	f, ok := c.run.faults.take(func(f Fault) bool { return f.matches(r, pattern) && f.inShare(c.run.random) })
	if ok {
		c.notify()
	}
	return f, ok
}
