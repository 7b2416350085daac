package headstest

import (
	"fmt"
	"slices"
	"time"

	heads "github.com/headsapi/heads-go"
)

// DeliveryFault is a fault in the delivery of events. It is applied when an event
// occurs, once for each registration that receives the event.
type DeliveryFault struct {
	WebhookID        int64             // 0: any
	Event            heads.EventType   // "": any
	Times            int               // 0: always
	Drop             bool              // not sent; the journal has it with ErrDropped
	Duplicate        bool              // sent twice, byte for byte
	Reorder          bool              // sent after the next event of the registration
	Delay            time.Duration     // the wait before the first attempt; later events of the registration wait too
	CorruptSignature bool              // one character of the signature is changed
	Encoding         SignatureEncoding // instead of the emulator's own
	Age              time.Duration     // subtracted from the timestamp; below 0 for one in the future
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
