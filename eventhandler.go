package heads

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headsapi/heads-go/internal/gate"
	"github.com/headsapi/heads-go/internal/httpbody"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/panics"
)

const (
	maxEventBody          = 64 << 10
	eventBodyTimeout      = 3 * time.Second
	defaultMaxAge         = 24 * time.Hour
	defaultFutureSkew     = 5 * time.Minute
	defaultHandlerTimeout = 4 * time.Second
)

// ErrBodyConsumed reports that a request announced a body of which nothing was
// left for the EventHandler, because middleware in front of it had read it.
var ErrBodyConsumed = httpbody.ErrConsumed

// ErrDuplicate is returned by an event function, alone or wrapped, for an event
// that was handled before. The delivery is answered 200 with the outcome
// DeliveryDuplicate. It is for functions that remember events themselves, for
// example with a unique Event.Key in a database.
var ErrDuplicate = errors.New("heads: the event was handled before")

// EventHandler is an http.Handler that receives webhook events. It verifies the
// signature with the keys of the event's head, skips events that were handled
// before, and calls a function with every other event. NewEventHandler makes one.
type EventHandler struct {
	keys        KeySource
	handle      func(context.Context, *Event) error
	logger      *slog.Logger
	observers   observers[DeliveryInfo]
	dedup       Deduplicator // nil with passAll
	passAll     bool         // WithoutDeduplicator
	local       bool         // dedup is a MemoryDeduplicator
	maxAge      time.Duration
	futureSkew  time.Duration
	timeout     time.Duration
	bodyTimeout time.Duration
	gate        *gate.Gate
}

// EventHandlerOption changes how an EventHandler works.
type EventHandlerOption func(*EventHandler) error

// WithEventLogger logs one line for each delivery: the outcome, the head, session
// and type of the event, the position of the key that matched, and the durations.
// The ids of a delivery that was not verified are what the sender wrote. No line
// shows a key, a signature or a body. Without it the handler is silent.
func WithEventLogger(l *slog.Logger) EventHandlerOption {
	return func(h *EventHandler) error {
		if l == nil {
			return invalid(newEventHandler, "WithEventLogger", "has a nil logger", "leave the option out to log nothing")
		}
		h.logger = l
		return nil
	}
}

// WithDeliveryObserver calls o for every delivery, with any outcome, for metrics and
// tracing. Start is called when it arrives, with an empty DeliveryInfo. The key source
// and the event function run with the context that Start returns. End is called after
// the answer was decided, on the goroutine of the request. The answer may wait for it.
func WithDeliveryObserver(o Observer[DeliveryInfo]) EventHandlerOption {
	return func(h *EventHandler) error {
		h.observers = append(h.observers, o)
		return o.check(newEventHandler, "WithDeliveryObserver")
	}
}

// WithoutDeduplicator calls the function for every event, even one that was handled
// before or is being handled. It is for a function that remembers events itself, and
// returns ErrDuplicate for one that it knows. It can't be combined with
// WithDeduplicator.
func WithoutDeduplicator() EventHandlerOption {
	return func(h *EventHandler) error {
		h.passAll = true
		return nil
	}
}

// WithDeduplicator sets the deduplicator that remembers handled events. The
// default is NewMemoryDeduplicator(65536), which is enough for one process.
//
// The calls of any other deduplicator are retried while they fail. The answer is
// sent at most 4.9 seconds after the arrival, unless the function itself takes
// longer. While another receiver has claimed the key, a delivery waits for up to 4
// seconds.
func WithDeduplicator(d Deduplicator) EventHandlerOption {
	return func(h *EventHandler) error {
		if d == nil {
			return invalid(newEventHandler, "WithDeduplicator", "has a nil deduplicator", "leave the option out for the default")
		}
		h.dedup = d
		return nil
	}
}

// WithMaxAge sets how old an event may be when it is delivered, and how far its
// time may be in the future. The defaults are 24 hours and 5 minutes. Events are
// remembered a little longer than the sum of both, so a recorded event can't be
// replayed later. An event whose time can't be read is accepted.
func WithMaxAge(age, futureSkew time.Duration) EventHandlerOption {
	return func(h *EventHandler) error {
		if age <= 0 || futureSkew < 0 {
			return invalid(newEventHandler, "WithMaxAge", fmt.Sprintf("has age %v and skew %v", age, futureSkew), "give an age above 0 and a skew of 0 or more")
		}
		h.maxAge, h.futureSkew = age, futureSkew
		return nil
	}
}

// WithHandlerTimeout sets how long a delivery may take from its arrival to the
// end of the function. The context of the key source and of the function ends
// then. The service waits 5 seconds, and the default is 4. A claim of the
// Deduplicator lasts 5 seconds longer and is extended while the function runs.
func WithHandlerTimeout(d time.Duration) EventHandlerOption {
	return func(h *EventHandler) error {
		if d <= 0 {
			return invalid(newEventHandler, "WithHandlerTimeout", fmt.Sprintf("is %v", d), "give a duration above 0")
		}
		h.timeout = d
		return nil
	}
}

// NewEventHandler returns a handler that calls handle for every event, until
// handle succeeds.
//
// The service redelivers an event up to three times, until it is answered 200
// within 5 seconds. The handler answers 200 if handle returns nil or
// ErrDuplicate, or has done so before for the same event (Event.Key). After any
// other error or a panic, the next delivery calls handle again. So handle may see
// an event twice if it fails after half of its work.
//
// Handle runs on the goroutine of the request, with a context that ends 4
// seconds after the delivery arrived (WithHandlerTimeout). If handle returns nil
// after that, this is still a success. For longer work store the event and return nil, as
// module inbox does.
//
// DeliveryOutcome lists the other answers. Their bodies are the text of the
// status.
//
// NewEventHandler returns an *InvalidError for each fault in keys, handle and the
// options, joined if there are several.
func NewEventHandler(keys KeySource, handle func(context.Context, *Event) error, opts ...EventHandlerOption) (*EventHandler, error) {
	h := &EventHandler{
		keys:        keys,
		handle:      handle,
		maxAge:      defaultMaxAge,
		futureSkew:  defaultFutureSkew,
		timeout:     defaultHandlerTimeout,
		bodyTimeout: eventBodyTimeout,
		logger:      slog.New(slog.DiscardHandler),
		gate:        new(gate.Gate),
	}
	var faults faultList
	switch s := keys.(type) {
	case nil:
		faults.add(invalid(newEventHandler, "keys", "are nil", "give those of SharedKeys, HeadKeys or Webhooks.KeySource", useKeySource))
	case cachedKeys:
		faults.add(s.err)
	case staticKeys:
		faults.add(s.err)
	}
	if handle == nil {
		faults.add(invalid(newEventHandler, "handle", "is nil", "give the function that handles an event"))
	}
	for _, opt := range opts {
		if opt == nil {
			faults.add(invalid(newEventHandler, "option", "is nil", "leave it out"))
			continue
		}
		faults.add(opt(h))
	}
	switch {
	case h.passAll && h.dedup != nil:
		faults.add(invalid(newEventHandler, "WithoutDeduplicator", "is given beside a deduplicator", "leave one of them out"))
	case !h.passAll && h.dedup == nil:
		h.dedup = NewMemoryDeduplicator(defaultDeduplicatorSize)
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	_, h.local = h.dedup.(*MemoryDeduplicator)
	return h, nil
}

// memoryMargin is for stores that round or have another clock.
const memoryMargin = time.Minute

// Memory returns how long the handler remembers an event that was handled: a
// minute longer than WithMaxAge accepts a delivery of it.
func (h *EventHandler) Memory() time.Duration {
	return addDurations(h.maxAge, h.futureSkew, memoryMargin)
}

// lease returns how long a claim lasts unless it is extended.
func (h *EventHandler) lease() time.Duration { return addDurations(h.timeout, leaseMargin) }

// addDurations returns the sum, or the longest duration if that is shorter.
func addDurations(sum time.Duration, more ...time.Duration) time.Duration {
	for _, d := range more {
		sum += min(d, math.MaxInt64-sum)
	}
	return sum
}

// ServeHTTP receives one delivery.
func (h *EventHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := &delivery{arrived: time.Now(), body: httpbody.Start(w, h.bodyTimeout)}
	if len(h.observers) > 0 {
		ctx, observed := h.observers.start(r.Context(), slogPanics{h.logger}, nil, DeliveryInfo{})
		r, d.observed = r.WithContext(ctx), observed
	}
	err := errShutDown
	if h.gate.Enter() {
		defer h.gate.Leave()
		err = panics.Try(func() error { return h.receive(r, d) })
	}
	d.Outcome, d.Err = outcomeOf(err)
	d.StatusCode = d.Outcome.status()
	d.Duration = time.Since(d.arrived)
	answerDelivery(w, d.Outcome)
	h.report(r.Context(), d)
}

// Shutdown answers every further delivery 503, and waits until those that are running
// are done. It also waits for calls of the Deduplicator that the answers did not wait
// for. If ctx ends before that, Shutdown returns the error of ctx.
//
// Call it after the Shutdown of the http.Server, with a deadline of its own. Otherwise a
// connection that is slow to close takes its time.
func (h *EventHandler) Shutdown(ctx context.Context) error { return h.gate.Close(ctx) }

// receive verifies and dispatches one delivery. It returns nil if the event was handled, or
// else an error with the outcome.
func (h *EventHandler) receive(r *http.Request, d *delivery) error {
	if r.Method != http.MethodPost {
		return endAs(DeliveryBadMethod, fmt.Errorf("heads: the method is %q: deliveries are sent with POST", mask.Clip(r.Method, 64)))
	}
	body, err := d.body.Read(r, maxEventBody)
	if err != nil {
		return endUnread(err)
	}
	defer httpbody.Free(body)
	if d.event, err = decodeEvent(body.Bytes()); err != nil {
		return endAs(DeliveryBadBody, err)
	}
	ctx, cancel := context.WithDeadline(r.Context(), d.arrived.Add(h.timeout))
	defer cancel()
	if err := h.verify(ctx, r, d, body.Bytes()); err != nil {
		return err
	}
	d.event.Raw = NewRaw(body.Bytes())
	if err := h.checkAge(d.event.Timestamp.Time); err != nil {
		return err
	}
	return h.dispatch(ctx, d)
}

func endUnread(err error) error {
	switch {
	case isPanic(err):
		return err
	case errors.Is(err, httpbody.ErrTooLarge):
		return endAs(DeliveryTooLarge, err)
	case errors.Is(err, httpbody.ErrTooSlow):
		return endAs(DeliveryTooSlow, err)
	}
	return endAs(DeliveryBadBody, err)
}

// decoyKeys cost the time of a comparison. Their result is ignored.
var decoyKeys = []string{"decoy"}

// verify checks the signature with the keys of the event's head.
func (h *EventHandler) verify(ctx context.Context, r *http.Request, d *delivery, body []byte) error {
	sent, err := requestSignature(r)
	if err != nil {
		return endAs(DeliveryUnauthorized, err)
	}
	hint := KeyHint{HeadID: d.event.HeadID, Request: r}
	keys, err := h.keys.Keys(ctx, hint)
	if err != nil {
		return endAs(DeliveryKeysFailed, fmt.Errorf("heads: no keys for the event: %w", err))
	}
	position, err := matchingKey(body, sent, keys)
	if errors.Is(err, ErrSignatureMismatch) {
		hint.Mismatch = true
		newer, keysErr := h.keys.Keys(ctx, hint)
		if keysErr != nil {
			return endAs(DeliveryKeysFailed, fmt.Errorf("heads: no newer keys for the event: %w", keysErr))
		}
		if !slices.Equal(newer, keys) {
			position, err = matchingKey(body, sent, newer)
		}
	}
	if errors.Is(err, ErrNoSharedKey) {
		// An unknown head takes as long as a wrong signature. Otherwise the time would show
		// which heads are known.
		_, _ = matchingKey(body, sent, decoyKeys)
	}
	if err != nil {
		return endAs(DeliveryUnauthorized, err)
	}
	d.KeyPosition = position + 1
	d.Type, d.HeadID, d.SessionID = d.event.Type, d.event.HeadID, d.event.SessionID
	return nil
}

// requestSignature refuses a header that occurs twice, since the sender could
// mean either. Space around the value is ignored: HTTP/1 readers trim it, HTTP/2
// readers don't.
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

// checkAge accepts a time that could not be read: losing an event is worse than
// handling it late.
func (h *EventHandler) checkAge(timestamp time.Time) error {
	age := time.Since(timestamp)
	switch {
	case timestamp.IsZero():
		return nil
	case age > h.maxAge:
		return endAs(DeliveryStale, fmt.Errorf("heads: the event is %v old, more than %v", age, h.maxAge))
	case age < -h.futureSkew:
		return endAs(DeliveryStale, fmt.Errorf("heads: the time of the event, %s, is more than %v in the future: compare the clocks", timestamp, h.futureSkew))
	}
	return nil
}

// dispatch claims an event and passes it to the function. Every claim is settled or
// released in the end.
func (h *EventHandler) dispatch(ctx context.Context, d *delivery) (err error) {
	if err := ctx.Err(); err != nil {
		return endAs(DeliveryTimedOut, err)
	}
	claimed := h.newClaim(ctx, d.event.Key())
	claim, err := claimed.take(d.arrived.Add(min(h.timeout, claimTime)))
	switch claim {
	case ClaimDone:
		return errDuplicate
	case ClaimBusy:
		return errBusy
	}
	defer func() { claimed.settle(isDone(err), d.arrived.Add(answerTime)) }()
	switch {
	case isPanic(err):
		return err
	case err != nil: // the store may have applied the claim all the same
		return endAs(DeliveryClaimFailed, fmt.Errorf("heads: the event can't be claimed: %w", err))
	case ctx.Err() != nil:
		return endAs(DeliveryTimedOut, ctx.Err())
	}
	err = errGoexit // the result if the function calls runtime.Goexit
	return h.call(ctx, d)
}

// call runs the user's function.
func (h *EventHandler) call(ctx context.Context, d *delivery) error {
	begun := time.Now()
	err := panics.Try(func() error { return h.handle(ctx, d.event) })
	d.HandleDuration = time.Since(begun)
	switch {
	case err == nil, isPanic(err):
		return err
	case errors.Is(err, ErrDuplicate):
		return errDuplicate
	case ctx.Err() == context.DeadlineExceeded:
		return endAs(DeliveryTimedOut, err)
	default:
		return endAs(DeliveryFailed, err)
	}
}

// answerDelivery writes the text of the status. The reason is only logged.
func answerDelivery(w http.ResponseWriter, outcome DeliveryOutcome) {
	status := outcome.status()
	switch outcome {
	case DeliveryHandled, DeliveryDuplicate:
		w.WriteHeader(status)
		return
	case DeliveryBadMethod:
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, http.StatusText(status), status)
}
