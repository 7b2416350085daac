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

// Validate returns an error for a fault of an event that never occurs.
func (f DeliveryFault) Validate() error {
	known := slices.ContainsFunc(eventFlags, func(flag eventFlag) bool { return flag.event == f.Event })
	if f.Event != "" && !known {
		return fmt.Errorf("there is no event %q, so the fault would never happen", string(f.Event))
	}
	return nil
}

func (f DeliveryFault) matches(webhookID int64, t heads.EventType) bool {
	return (f.WebhookID == 0 || f.WebhookID == webhookID) && (f.Event == "" || f.Event == t)
}
