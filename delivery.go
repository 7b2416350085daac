package heads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/headsapi/heads-go/internal/diagnose"
	"github.com/headsapi/heads-go/internal/httpbody"
	"github.com/headsapi/heads-go/internal/mask"
	"github.com/headsapi/heads-go/internal/panics"
)

// DeliveryOutcome is how a delivery ended, in a word. The values are few and fixed,
// so they are safe as metric labels.
type DeliveryOutcome string

// The outcomes, and how the delivery is answered.
const (
	DeliveryHandled      DeliveryOutcome = "handled"      // 200: the function returned nil
	DeliveryDuplicate    DeliveryOutcome = "duplicate"    // 200: handled before
	DeliveryBusy         DeliveryOutcome = "busy"         // 503: another delivery of the event is being handled
	DeliveryFailed       DeliveryOutcome = "failed"       // 503: the function returned an error
	DeliveryTimedOut     DeliveryOutcome = "timed_out"    // 503: the function did not succeed in time
	DeliveryPanicked     DeliveryOutcome = "panicked"     // 500: the function, the key source or the deduplicator panicked
	DeliveryBadMethod    DeliveryOutcome = "bad_method"   // 405: not a POST
	DeliveryTooLarge     DeliveryOutcome = "too_large"    // 413: a body of more than 64 KiB
	DeliveryTooSlow      DeliveryOutcome = "too_slow"     // 408: the body took longer than 3 s
	DeliveryBadBody      DeliveryOutcome = "bad_body"     // 400: no body, or not an event
	DeliveryUnauthorized DeliveryOutcome = "unauthorized" // 401: the signature, or a head without keys
	DeliveryStale        DeliveryOutcome = "stale"        // 400: too old, or from the future
	DeliveryKeysFailed   DeliveryOutcome = "keys_failed"  // 503: the key source returned an error
	DeliveryClaimFailed  DeliveryOutcome = "claim_failed" // 503: the deduplicator returned an error
	DeliveryShutDown     DeliveryOutcome = "shut_down"    // 503: the handler was shut down
)

func (o DeliveryOutcome) status() int {
	switch o {
	case DeliveryHandled, DeliveryDuplicate:
		return http.StatusOK
	case DeliveryPanicked:
		return http.StatusInternalServerError
	case DeliveryBadMethod:
		return http.StatusMethodNotAllowed
	case DeliveryTooLarge:
		return http.StatusRequestEntityTooLarge
	case DeliveryTooSlow:
		return http.StatusRequestTimeout
	case DeliveryBadBody, DeliveryStale:
		return http.StatusBadRequest
	case DeliveryUnauthorized:
		return http.StatusUnauthorized
	}
	return http.StatusServiceUnavailable
}

// level is Warn for a mistake of the sender and Error for a failure here.
func (o DeliveryOutcome) level() slog.Level {
	switch status := o.status(); {
	case status == http.StatusInternalServerError:
		return slog.LevelError
	case status < http.StatusBadRequest || o == DeliveryBusy || o == DeliveryShutDown:
		return slog.LevelInfo
	case status == http.StatusServiceUnavailable:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// DeliveryInfo describes a delivery to an Observer.
type DeliveryInfo struct {
	Outcome        DeliveryOutcome
	StatusCode     int       // of the answer
	Type           EventType // like the two ids, empty unless the signature was right
	HeadID         string
	SessionID      string
	KeyPosition    int           // which of the head's keys matched, 1 for the first; 0 for none
	Duration       time.Duration // from the arrival to the answer
	HandleDuration time.Duration // in the function; 0 when it did not run
	Err            error         // what was wrong; nil for an event handled, now or before
}

// LogValue returns the fields of a log line of WithEventLogger, error if there is
// one.
func (d DeliveryInfo) LogValue() slog.Value { return slog.GroupValue(d.attrs()...) }

func (d DeliveryInfo) attrs() []slog.Attr {
	return append([]slog.Attr{
		slog.String("outcome", string(d.Outcome)),
		slog.Int("status", d.StatusCode),
		slog.String("head_id", mask.Clip(d.HeadID, 64)),
		slog.String("session_id", mask.Clip(d.SessionID, 64)),
		slog.String("event_type", mask.Clip(string(d.Type), 64)),
		slog.Int("key_position", d.KeyPosition),
		slog.Duration("duration", d.Duration),
		slog.Duration("handle_duration", d.HandleDuration),
	}, errorAttrs(d.Err)...)
}

// delivery is one delivery. Type, HeadID and SessionID of its info are set when the event
// is verified.
type delivery struct {
	DeliveryInfo
	arrived  time.Time
	body     httpbody.Reader
	event    *Event
	observed []context.Context // one for each observer
}

// deliveryError ends a delivery with an outcome. Its err is what was wrong, and
// nil if nothing was.
type deliveryError struct {
	outcome DeliveryOutcome
	err     error
}

func (e *deliveryError) Error() string {
	return fmt.Sprintf("heads: delivery %s: %v", e.outcome, e.err)
}
func (e *deliveryError) Unwrap() error { return e.err }

func endAs(outcome DeliveryOutcome, err error) error { return &deliveryError{outcome, err} }

var (
	errDuplicate = endAs(DeliveryDuplicate, nil)
	errBusy      = endAs(DeliveryBusy, errors.New("heads: another delivery of this event is being handled"))
	errShutDown  = endAs(DeliveryShutDown, errors.New("heads: the event handler was shut down"))

	// errGoexit is for a function that calls runtime.Goexit and so never returns.
	errGoexit = errors.New("heads: the function ended its goroutine")
)

// outcomeOf returns the outcome that err carries, and what was wrong. Any other
// error than a deliveryError is a panic.
func outcomeOf(err error) (DeliveryOutcome, error) {
	if err == nil {
		return DeliveryHandled, nil
	}
	var ended *deliveryError
	if errors.As(err, &ended) {
		return ended.outcome, ended.err
	}
	return DeliveryPanicked, err
}

// isDone reports whether no redelivery of the event may run the function.
func isDone(err error) bool { return err == nil || errors.Is(err, errDuplicate) }

func isPanic(err error) bool {
	if err == nil {
		return false
	}
	var p *panics.Error
	return errors.As(err, &p)
}

// report logs the delivery and calls the observers.
func (h *EventHandler) report(ctx context.Context, d *delivery) {
	h.log(ctx, d)
	h.observers.end(d.observed, slogPanics{h.logger}, d.DeliveryInfo)
}

// mismatchHint says what to do about a signature that no key has made.
const mismatchHint = diagnose.AnotherRegistration + "; record the body and run: " +
	"headsctl events verify --body FILE --signature TEXT --key-file FILE"

func (h *EventHandler) log(ctx context.Context, d *delivery) {
	level := d.Outcome.level()
	if !h.logger.Enabled(ctx, level) {
		return
	}
	shown := d.DeliveryInfo
	if d.KeyPosition == 0 && d.event != nil { // as the sender wrote them
		shown.HeadID, shown.SessionID, shown.Type = d.event.HeadID, d.event.SessionID, d.event.Type
	}
	attrs := shown.attrs()
	if errors.Is(d.Err, ErrSignatureMismatch) {
		attrs = append(attrs, slog.String("hint", mismatchHint))
	}
	h.logger.LogAttrs(ctx, level, "webhook delivery", attrs...)
}

// complain logs a failure that does not change the outcome of a delivery.
func (h *EventHandler) complain(ctx context.Context, what string, err error) {
	h.logger.LogAttrs(ctx, slog.LevelError, "webhook delivery: "+what, errorAttrs(err)...)
}
