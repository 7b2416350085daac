package headstest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
)

// CutPoint is the point at which a fault closes the connection without an answer.
//
// If a reused connection is closed before the answer, the client's transport may
// retry a GET by itself. So a cut that happens only once may have no visible effect.
type CutPoint int

// Points at which a fault closes the connection.
const (
	CutNone   CutPoint = iota // the connection stays open
	CutBefore                 // before the request has its effect
	CutAfter                  // after it
)

// Fault is a fault in the answers to requests. Without Status and Cut, the
// operation runs, and only the other fields of the fault apply.
//
// Route is a route of the contract, with any names for its parameters, or a path. Share is
// the share of matching requests, chosen at random. With WithSeed the choice is the same in
// every run.
type Fault struct {
	Method, Route string        // empty: any
	Status, Times int           // Status: answered at once, without effect. Times 0: always
	Body          string        // the answer's body; without Status it replaces the operation's own
	RetryAfter    time.Duration // sent as Retry-After in whole seconds, rounded up
	Latency       time.Duration // waited before the effect, or with After or CutAfter after it
	Cut           CutPoint
	After         bool    // the request has its effect before Status is answered
	CutBody       bool    // the connection is closed after half of the body, or before an empty answer
	Share         float64 // above 0 and up to 1; 0: all matching requests
}

// Validate returns an error if the fault can't happen: if no operation has its
// method and route, if its status can't end an answer, or if its share is not from
// 0 to 1.
func (f Fault) Validate() error {
	switch {
	case checkFaultStatus(f.Status) != nil:
		return checkFaultStatus(f.Status)
	case !(f.Share >= 0 && f.Share <= 1): // NaN too
		return fmt.Errorf("share %v is not from 0 to 1", f.Share)
	case !f.hasOperation():
		return fmt.Errorf(`no operation has method %q and route %q, so the fault would never happen; give a route such as "/head/{id}", or leave it out`,
			cmp.Or(f.Method, "any"), cmp.Or(f.Route, "any"))
	}
	return nil
}

// checkFaultStatus accepts 0, which is no status.
func checkFaultStatus(status int) error {
	if status != 0 && (status < 200 || status > 599) {
		return fmt.Errorf("status %d can't end an answer; give 0 or one from 200 to 599", status)
	}
	return nil
}

func (f Fault) hasOperation() bool {
	for _, pattern := range patterns {
		method, route, _ := strings.Cut(pattern, " ")
		if (f.Method == "" || strings.EqualFold(f.Method, method)) && (f.Route == "" || sameRoute(f.Route, route) || isPathOf(f.Route, route)) {
			return true
		}
	}
	return false
}

func (f Fault) matches(r *http.Request, pattern string) bool {
	if f.Method != "" && !strings.EqualFold(f.Method, r.Method) {
		return false
	}
	if f.Route == "" || f.Route == r.URL.Path {
		return true
	}
	_, route, _ := strings.Cut(pattern, " ")
	return sameRoute(f.Route, route)
}

// inShare reports whether a matching request is in the fault's share.
func (f Fault) inShare(random *rand.Rand) bool {
	return f.Share == 0 || random.Float64() < f.Share
}

// faultList has injected faults, in the order in which they were injected.
type faultList[F any] []injected[F]

// injected is a fault that still happens left times. If left is below 1, it always happens.
type injected[F any] struct {
	n     int // of all faults of a run
	fault F
	left  int
}

// remove removes the fault with a number, and reports whether there was one.
func (l *faultList[F]) remove(n int) bool {
	before := len(*l)
	*l = slices.DeleteFunc(*l, func(f injected[F]) bool { return f.n == n })
	return len(*l) < before
}

// active returns the faults with the times that they still happen; 0 means always.
func (l faultList[F]) active(withTimes func(f F, n, times int)) {
	for _, f := range l {
		withTimes(f.fault, f.n, max(f.left, 0))
	}
}

// take returns the first fault that matches and counts it. A fault that has happened
// as often as it can is removed.
func (l *faultList[F]) take(matches func(F) bool) (f F, ok bool) {
	i := slices.IndexFunc(*l, func(f injected[F]) bool { return matches(f.fault) })
	if i < 0 {
		return f, false
	}
	taken := &(*l)[i]
	f = taken.fault
	if taken.left--; taken.left == 0 {
		*l = slices.Delete(*l, i, i+1)
	}
	return f, true
}

// DeliveryFault is a fault in the delivery of events. It is applied when an event
// occurs, once for each webhook that receives the event. A fault with Status is
// applied to attempts instead, and has no other effect.
type DeliveryFault struct {
	WebhookID        int64             // 0: any
	Event            heads.EventType   // "": any
	Times            int               // 0: always
	Drop             bool              // not sent; the journal has it with ErrDropped
	Duplicate        bool              // sent twice, byte for byte
	Reorder          bool              // sent after the next event of the webhook
	Delay            time.Duration     // before the first attempt; later events of the webhook wait, too
	CorruptSignature bool              // one character of the signature is changed
	Encoding         SignatureEncoding // instead of the emulator's own
	Age              time.Duration     // subtracted from the timestamp; below 0 for one in the future
	Status           int               // an attempt is not sent, and counts as answered with this status
}

// Validate returns an error for a fault of an event that never occurs, for a status
// that can't end an answer, and for a status beside an effect that happens before
// the attempts.
func (f DeliveryFault) Validate() error {
	if err := checkFaultStatus(f.Status); err != nil {
		return err
	}
	if only := (DeliveryFault{WebhookID: f.WebhookID, Event: f.Event, Times: f.Times, Status: f.Status}); f.Status != 0 && f != only {
		return fmt.Errorf("status %d acts on attempts, and the other effects on events; give them in a fault of their own", f.Status)
	}
	known := slices.ContainsFunc(eventFlags, func(flag eventFlag) bool { return flag.event == f.Event })
	if f.Event != "" && !known {
		return fmt.Errorf("there is no event %q, so the fault would never happen", string(f.Event))
	}
	return nil
}

func (f DeliveryFault) matches(webhookID int64, t heads.EventType) bool {
	return (f.WebhookID == 0 || f.WebhookID == webhookID) && (f.Event == "" || f.Event == t)
}
