package headstest

import (
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
)

// DeliveryFault is something that goes wrong with the delivery of events. It
// acts on an event when it occurs, once for each registration that wants it.
type DeliveryFault struct {
	WebhookID        int64             // 0: any
	Event            heads.EventType   // "": any
	Times            int               // 0: always
	Drop             bool              // never sent; the journal holds it with ErrDropped
	Duplicate        bool              // sent twice, byte for byte
	Reorder          bool              // sent after the next event of the registration
	Delay            time.Duration     // waited before the first attempt; what comes after waits too
	CorruptSignature bool              // one character of the signature is another
	Encoding         SignatureEncoding // instead of the emulator's own
	Age              time.Duration     // taken off the timestamp; below 0 for one from the future
}

type deliveryFault struct {
	DeliveryFault
	left int
}

// Validate returns an error for a fault of an event that never occurs.
func (f DeliveryFault) Validate() error {
	known := slices.ContainsFunc(eventFlags, func(flag eventFlag) bool { return flag.event == f.Event })
	if f.Event != "" && !known {
		return fmt.Errorf("there is no event %q, so the fault would never happen", string(f.Event))
	}
	return nil
}

// InjectDelivery makes deliveries go wrong from now on. Of several faults that
// match an event, the one injected first is used. It panics where Validate
// returns an error.
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

// takeDeliveryFault uses up one of the times of the fault that matches. The
// zero fault does nothing.
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
