package heads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	defaultMaxAge         = 24 * time.Hour
	defaultFutureSkew     = 5 * time.Minute
	defaultHandlerTimeout = 4 * time.Second
)

// ErrDuplicate is what an event function returns, alone or wrapped, for an event
// that was handled before. The delivery is answered 200 with the outcome
// DeliveryDuplicate. It is for functions that remember events themselves, such as
// with a unique Event.Key in a database.
var ErrDuplicate = errors.New("heads: the event was handled before")

// EventHandler is an http.Handler that receives webhook events: it verifies the
// signature with the keys of the event's head, skips what was handled before,
// and calls a function with the rest. NewEventHandler makes one.
type EventHandler struct {
	keys         KeySource
	handle       func(context.Context, *Event) error
	logger       *slog.Logger
	observe      func(context.Context, DeliveryInfo)
	dedup        Deduplicator
	local        bool // dedup is a MemoryDeduplicator
	maxAge       time.Duration
	futureSkew   time.Duration
	timeout      time.Duration
	queueTimeout time.Duration // 0 for none
	bodyTimeout  time.Duration
	queue        *eventQueue // nil without WithQueue
	gate         *deliveryGate
	stopped      context.Context // ends when Shutdown gives up waiting
	stop         context.CancelFunc
}

// NewEventHandler returns a handler that calls handle for every event, once
// while it succeeds.
//
// The service sends an event again, up to three times, until it is answered 200
// within 5 seconds. The handler answers 200 when handle returned nil or
// ErrDuplicate, or had done so before for the same event (Event.Key); after any
// other error or a panic the next delivery calls handle again. So handle may see an event twice when it
// fails after half of its work.
//
// Handle runs on the goroutine of the request, with a context that ends 4
// seconds after the delivery arrived (WithHandlerTimeout); for longer work see
// WithQueue. Returning nil after that is still a success.
//
// What is answered otherwise is listed with DeliveryOutcome. The bodies of the
// answers say nothing that the status does not.
//
// Faults in keys, handle and the options come back as *InvalidError, all of them
// joined.
func NewEventHandler(keys KeySource, handle func(context.Context, *Event) error, opts ...EventHandlerOption) (*EventHandler, error) {
	h := &EventHandler{
		keys:        keys,
		handle:      handle,
		dedup:       NewMemoryDeduplicator(defaultDeduplicatorSize),
		maxAge:      defaultMaxAge,
		futureSkew:  defaultFutureSkew,
		timeout:     defaultHandlerTimeout,
		bodyTimeout: eventBodyTimeout,
		gate:        &deliveryGate{empty: make(chan struct{})},
	}
	h.stopped, h.stop = context.WithCancel(context.Background())
	err := errors.Join(
		refuseOption(keys == nil, "keys", "are nil; see SharedKeys, HeadKeys and WebhooksService.KeySource"),
		refuseOption(handle == nil, "handle", "is nil; give the function that handles an event"),
	)
	switch s := keys.(type) {
	case cachedKeySource:
		err = errors.Join(err, s.err)
	case staticKeys:
		err = errors.Join(err, s.err)
	}
	for _, opt := range opts {
		if opt == nil {
			err = errors.Join(err, refuseOption(true, "option", "is nil; leave it out"))
			continue
		}
		err = errors.Join(err, opt(h))
	}
	if err != nil {
		return nil, err
	}
	_, h.local = h.dedup.(*MemoryDeduplicator)
	return h, nil
}

// Queued reports whether the handler was made with WithQueue.
func (h *EventHandler) Queued() bool { return h.queue != nil }

// Deduplicator returns what remembers the events: the one that was given with
// WithDeduplicator, or else the handler's own.
func (h *EventHandler) Deduplicator() Deduplicator { return h.dedup }

// Memory returns how long the handler remembers an event that was handled: a
// minute longer than WithMaxAge lets a delivery of it in.
func (h *EventHandler) Memory() time.Duration {
	return addDurations(h.maxAge, h.futureSkew, memoryMargin)
}

// lease returns how long a claim lasts that is not extended.
func (h *EventHandler) lease() time.Duration { return addDurations(h.timeout, leaseMargin) }

// String returns the name of the type: a handler knows keys.
func (h EventHandler) String() string { return "heads.EventHandler" }

// Format writes the same as String, whatever the verb.
func (h EventHandler) Format(f fmt.State, _ rune) { writeText(f, h.String()) }

// LogValue returns the same as String.
func (h EventHandler) LogValue() slog.Value { return slog.StringValue(h.String()) }

// ServeHTTP receives one delivery.
func (h *EventHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := &delivery{arrived: time.Now()}
	// Even a delivery that is refused unread must not hold its connection.
	d.hasDeadline = http.NewResponseController(w).SetReadDeadline(d.arrived.Add(h.bodyTimeout)) == nil
	outcome, err := DeliveryShutDown, errShutDown
	if h.gate.enter() {
		defer h.gate.leave()
		outcome, err = h.receive(w, r, d)
	}
	if outcome == deliveryQueued { // d is the queue's by now
		w.WriteHeader(http.StatusOK)
		return
	}
	d.Outcome, d.Err = outcome, err
	d.StatusCode = outcome.status()
	d.Duration = time.Since(d.arrived)
	answerDelivery(w, outcome)
	h.report(r.Context(), d)
}

// Shutdown lets no further delivery in, which is then answered 503, and waits
// until those under way and in the queue are done. When ctx ends before that,
// the functions of queued events see their context end, what still waits is
// given up with the outcome DeliveryDropped, and Shutdown returns the error of
// ctx.
//
// Call it after the Shutdown of the http.Server, with a deadline of its own:
// otherwise a connection that is slow to close leaves no time for the queue. It
// also waits for calls of the Deduplicator that the answers did not wait for.
func (h *EventHandler) Shutdown(ctx context.Context) error {
	err := h.gate.close(ctx)
	h.stop()
	if err != nil && h.queue != nil {
		for _, d := range h.queue.drop() {
			d.claim.settle(false, time.Now())
			d.Outcome, d.Err = DeliveryDropped, errDropped
			h.report(d.ctx, d)
			h.gate.leave()
		}
	}
	return err
}

// deliveryQueued is the outcome of a delivery that has not come to its end.
const deliveryQueued DeliveryOutcome = "queued"

var (
	errShutDown  = errors.New("heads: the event handler was shut down")
	errDropped   = errors.New("heads: the event handler was shut down before the event's turn came")
	errTwin      = errors.New("heads: another delivery of this event is being handled")
	errQueueFull = errors.New("heads: the event queue is full")
)

// receive is the way of a delivery; each step may end it.
func (h *EventHandler) receive(w http.ResponseWriter, r *http.Request, d *delivery) (outcome DeliveryOutcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			outcome, err = DeliveryPanicked, newPanicError(v)
		}
	}()
	if r.Method != http.MethodPost {
		return DeliveryBadMethod, fmt.Errorf("heads: the method is %q: deliveries are sent with POST", clipSent(r.Method, 64))
	}
	body, outcome, err := h.receiveBody(w, r, d)
	if err != nil {
		return outcome, err
	}
	defer eventBodies.Put(body)
	if d.event, err = decodeEvent(body.Bytes()); err != nil {
		return DeliveryBadBody, err
	}
	ctx, cancel := context.WithDeadline(r.Context(), d.arrived.Add(h.timeout))
	defer cancel()
	if outcome, err = h.verify(ctx, r, d, body.Bytes()); err != nil {
		return outcome, err
	}
	d.event.Raw = bytes.Clone(body.Bytes())
	if err = h.checkAge(d.event.Timestamp); err != nil {
		return DeliveryStale, err
	}
	return h.handOn(ctx, d)
}

// decoyKeys match nothing: their result is thrown away.
var decoyKeys = []string{"decoy"}

// verify looks the keys up for the very head id of the event that is handed on.
func (h *EventHandler) verify(ctx context.Context, r *http.Request, d *delivery, body []byte) (DeliveryOutcome, error) {
	sent, err := requestSignature(r)
	if err != nil {
		return DeliveryUnauthorized, err
	}
	hint := KeyHint{HeadID: d.event.HeadID, Request: r}
	keys, err := h.keys.Keys(ctx, hint)
	if err != nil {
		return DeliveryKeysFailed, fmt.Errorf("heads: no keys for the event: %w", err)
	}
	position, err := matchingKey(body, sent, keys)
	if err == ErrSignatureMismatch {
		hint.Mismatch = true
		newer, keysErr := h.keys.Keys(ctx, hint)
		if keysErr != nil {
			return DeliveryKeysFailed, fmt.Errorf("heads: no newer keys for the event: %w", keysErr)
		}
		if !slices.Equal(newer, keys) {
			position, err = matchingKey(body, sent, newer)
		}
	}
	if err == ErrNoSharedKey {
		// An unknown head costs as much to compute as a wrong signature, or the time
		// taken would tell which heads are known.
		_, _ = matchingKey(body, sent, decoyKeys)
	}
	if err != nil {
		return DeliveryUnauthorized, err
	}
	d.KeyPosition = position + 1
	d.Type, d.HeadID, d.SessionID = d.event.Type, d.event.HeadID, d.event.SessionID
	return "", nil
}

// requestSignature refuses a repeated header: which one the sender meant can't
// be known. Space around the value is no part of it; HTTP/1 readers trim it,
// HTTP/2 readers don't.
func requestSignature(r *http.Request) (sum [sha256.Size]byte, err error) {
	switch values := r.Header.Values(SignatureHeader); len(values) {
	case 0:
		return sum, ErrSignatureMissing
	case 1:
		return decodeSignature(strings.Trim(values[0], " \t"))
	default:
		return sum, ErrSignatureMalformed
	}
}

// checkAge lets a time through that could not be read: losing an event is worse
// than handling it late.
func (h *EventHandler) checkAge(timestamp time.Time) error {
	age := time.Since(timestamp)
	switch {
	case timestamp.IsZero():
		return nil
	case age > h.maxAge:
		return fmt.Errorf("heads: the event is %v old, more than %v", age, h.maxAge)
	case age < -h.futureSkew:
		return fmt.Errorf("heads: the time of the event, %s, lies more than %v in the future: compare the clocks", timestamp, h.futureSkew)
	}
	return nil
}

// handOn passes an event that is new to the function or the queue. However that
// ends, the claim is settled or given back.
func (h *EventHandler) handOn(ctx context.Context, d *delivery) (outcome DeliveryOutcome, err error) {
	if err := ctx.Err(); err != nil {
		return DeliveryTimedOut, err
	}
	key := d.event.Key()
	if h.queue != nil && h.queue.holds(key) {
		return DeliveryDuplicate, nil
	}
	d.claim = h.newClaim(ctx, key)
	claim, err := d.claim.take(d.arrived.Add(min(h.timeout, claimTime)))
	switch claim {
	case ClaimDone:
		return DeliveryDuplicate, nil
	case ClaimBusy:
		return DeliveryBusy, errTwin
	}
	defer func() {
		if outcome != deliveryQueued {
			d.claim.settle(outcome.isDone(), d.arrived.Add(answerTime))
		}
	}()
	if err != nil { // the store may have applied the claim all the same
		return claimFailure(err)
	}
	if err := ctx.Err(); err != nil {
		return DeliveryTimedOut, err
	}
	if h.queue == nil {
		return h.call(ctx, d)
	}
	if !h.enqueue(ctx, d) {
		return DeliveryQueueFull, errQueueFull
	}
	return deliveryQueued, nil
}

func claimFailure(err error) (DeliveryOutcome, error) {
	var p *panicError
	if errors.As(err, &p) {
		return DeliveryPanicked, err
	}
	return DeliveryClaimFailed, fmt.Errorf("heads: the event can't be claimed: %w", err)
}

// call runs the user's function.
func (h *EventHandler) call(ctx context.Context, d *delivery) (outcome DeliveryOutcome, err error) {
	begun := time.Now()
	defer func() {
		d.HandleDuration = time.Since(begun)
		if v := recover(); v != nil {
			outcome, err = DeliveryPanicked, newPanicError(v)
		}
	}()
	err = h.handle(ctx, d.event)
	switch {
	case err == nil:
		return DeliveryHandled, nil
	case errors.Is(err, ErrDuplicate):
		return DeliveryDuplicate, nil
	case ctx.Err() == context.DeadlineExceeded:
		return DeliveryTimedOut, err
	default:
		return DeliveryFailed, err
	}
}

// enqueue reports false when there is no room. Afterwards the delivery belongs
// to the queue.
func (h *EventHandler) enqueue(ctx context.Context, d *delivery) bool {
	d.ctx = context.WithoutCancel(ctx)
	d.StatusCode = http.StatusOK
	d.Duration = time.Since(d.arrived)
	h.gate.stay()
	if h.queue.push(d) {
		return true
	}
	h.gate.leave()
	return false
}

// work handles a queued delivery.
func (h *EventHandler) work(d *delivery) {
	defer h.gate.leave()
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	defer context.AfterFunc(h.stopped, cancel)()
	if h.queueTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, h.queueTimeout)
		defer cancel()
	}
	d.QueueDuration = time.Since(d.arrived) - d.Duration
	d.Outcome, d.Err = h.callQueued(ctx, d)
	h.report(d.ctx, d)
}

// callQueued runs the function at most once: what fails is done as well.
func (h *EventHandler) callQueued(ctx context.Context, d *delivery) (DeliveryOutcome, error) {
	switch Claim(d.claim.lost.Load()) {
	case ClaimDone:
		return DeliveryDuplicate, nil
	case ClaimBusy:
		return DeliveryBusy, errTwin
	}
	defer func() { d.claim.settle(true, time.Now().Add(storeTimeout)) }()
	return h.call(ctx, d)
}

// answerDelivery says nothing that the status does not: the truth is for the log.
func answerDelivery(w http.ResponseWriter, outcome DeliveryOutcome) {
	status := outcome.status()
	switch outcome {
	case DeliveryHandled, DeliveryDuplicate:
		w.WriteHeader(status)
		return
	case DeliveryBadMethod:
		w.Header().Set("Allow", http.MethodPost)
	case DeliveryTooLarge, DeliveryTooSlow:
		w.Header().Set("Connection", "close") // more would come that nobody wants
	}
	http.Error(w, http.StatusText(status), status)
}
