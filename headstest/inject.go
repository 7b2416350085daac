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
	return e.injected(e.run, injectInto(e.run, &e.run.faults, f, f.Times))
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
	return e.injected(e.run, injectInto(e.run, &e.run.deliveryFaults, f, f.Times))
}

// injectInto adds a fault to a list of the run, and returns its number.
func injectInto[F any](rn *run, l *faultList[F], f F, times int) (n int) {
	rn.lastFault++
	*l = append(*l, injected[F]{rn.lastFault, f, times})
	return rn.lastFault
}

// injected notifies the listeners of a new fault. It returns a function that removes
// the fault under the lock.
func (c *core) injected(rn *run, n int) (remove func()) {
	c.notify()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.removeFault(rn, n)
	}
}

// removeFault removes the fault with a number, and reports whether there was one. It is
// called under the lock.
func (c *core) removeFault(rn *run, n int) bool {
	removed := rn.faults.remove(n) || rn.deliveryFaults.remove(n)
	if removed {
		c.notify()
	}
	return removed
}

// RemoveFaults removes all faults of requests and deliveries. An event that a fault with
// Reorder has delayed still waits for the next event.
func (e *Emulator) RemoveFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.run.faults, e.run.deliveryFaults = nil, nil
	e.notify()
}

// consoleHeader is in every request of the console's page.
const consoleHeader = "Emulator-Console"

// takeFault returns the fault of a request. The page is exempt: what it does would use
// up a fault that is meant for a program.
func (c *core) takeFault(r *http.Request) (Fault, bool) {
	if r.Header.Get(consoleHeader) != "" {
		return Fault{}, false
	}
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
