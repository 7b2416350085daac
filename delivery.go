package heads

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// DeliveryOutcome says in a word what became of a delivery. The values are few
// and fixed, so they are safe as metric labels.
type DeliveryOutcome string

// The outcomes, and what the sender is answered. Behind a queue, the sender has
// been answered 200 before the function runs.
const (
	DeliveryHandled      DeliveryOutcome = "handled"      // 200: the function returned nil
	DeliveryDuplicate    DeliveryOutcome = "duplicate"    // 200: handled before, or in the queue
	DeliveryBusy         DeliveryOutcome = "busy"         // 503: a twin is being handled
	DeliveryFailed       DeliveryOutcome = "failed"       // 503: the function returned an error
	DeliveryTimedOut     DeliveryOutcome = "timed_out"    // 503: there was no success in time
	DeliveryPanicked     DeliveryOutcome = "panicked"     // 500: the function, or another one that was given, panicked
	DeliveryBadMethod    DeliveryOutcome = "bad_method"   // 405: not a POST
	DeliveryTooLarge     DeliveryOutcome = "too_large"    // 413: a body of more than 64 KiB
	DeliveryTooSlow      DeliveryOutcome = "too_slow"     // 408: the body took longer than 3 s
	DeliveryBadBody      DeliveryOutcome = "bad_body"     // 400: no body, or not an event
	DeliveryUnauthorized DeliveryOutcome = "unauthorized" // 401: the signature, or a head without keys
	DeliveryStale        DeliveryOutcome = "stale"        // 400: too old, or from the future
	DeliveryKeysFailed   DeliveryOutcome = "keys_failed"  // 503: the key source returned an error
	DeliveryClaimFailed  DeliveryOutcome = "claim_failed" // 503: the deduplicator returned an error
	DeliveryQueueFull    DeliveryOutcome = "queue_full"   // 503
	DeliveryShutDown     DeliveryOutcome = "shut_down"    // 503: the handler was shut down
	DeliveryDropped      DeliveryOutcome = "dropped"      // 200, but Shutdown gave up before the function ran
)

// isDone reports whether no redelivery of the event may run the function.
func (o DeliveryOutcome) isDone() bool { return o == DeliveryHandled || o == DeliveryDuplicate }

func (o DeliveryOutcome) status() int {
	switch o {
	case DeliveryHandled, DeliveryDuplicate, DeliveryDropped:
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

// level is Warn for what the sender did wrong and Error for what went wrong here.
func (o DeliveryOutcome) level() slog.Level {
	switch status := o.status(); {
	case o == DeliveryDropped || status == http.StatusInternalServerError:
		return slog.LevelError
	case status < http.StatusBadRequest || o == DeliveryBusy || o == DeliveryShutDown:
		return slog.LevelInfo
	case status == http.StatusServiceUnavailable:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// DeliveryInfo is what WithDeliveryObserver is told of a delivery.
type DeliveryInfo struct {
	Outcome        DeliveryOutcome
	StatusCode     int       // what the sender was answered
	Type           EventType // empty unless the signature was right, and so are the two ids
	HeadID         string
	SessionID      string
	KeyPosition    int           // which of the head's keys matched, 1 for the first; 0 for none
	Duration       time.Duration // from the arrival to the answer
	QueueDuration  time.Duration // from the answer to the start of the function, behind a queue
	HandleDuration time.Duration // in the function; 0 when it did not run
	Err            error         // what was wrong; nil for an event handled, now or before
}

// Format shows outcome, event type, ids and the text of the error.
func (d DeliveryInfo) Format(f fmt.State, _ rune) { writeText(f, d.describe()) }

// LogValue shows outcome, event type, ids and the text of the error.
func (d DeliveryInfo) LogValue() slog.Value { return slog.StringValue(d.describe()) }

func (d DeliveryInfo) describe() string {
	text := fmt.Sprintf("heads.DeliveryInfo{%s %d, %s, head: %s, session: %s", d.Outcome, d.StatusCode, d.Type, d.HeadID, d.SessionID)
	if d.Err != nil {
		text += ", error: " + d.Err.Error()
	}
	return text + "}"
}

// delivery is one delivery on its way through the handler. Type, HeadID and
// SessionID of its info are set once the event is verified.
type delivery struct {
	DeliveryInfo
	arrived     time.Time
	hasDeadline bool // the connection's reads end bodyTimeout after the arrival
	event       *Event
	claim       *eventClaim     // nil until the event is to be claimed
	ctx         context.Context // of the request, without its end, for the queue
}

// report logs the delivery and tells the observer.
func (h *EventHandler) report(ctx context.Context, d *delivery) {
	h.log(ctx, d)
	if h.observe == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			h.complain(ctx, "the delivery observer panicked", newPanicError(v))
		}
	}()
	h.observe(ctx, d.DeliveryInfo)
}

func (h *EventHandler) log(ctx context.Context, d *delivery) {
	level := d.Outcome.level()
	if h.logger == nil || !h.logger.Enabled(ctx, level) {
		return
	}
	headID, sessionID, eventType := d.HeadID, d.SessionID, d.Type
	if d.KeyPosition == 0 && d.event != nil {
		headID, sessionID, eventType = d.event.HeadID, d.event.SessionID, d.event.Type
	}
	attrs := []slog.Attr{
		slog.String("outcome", string(d.Outcome)),
		slog.Int("status", d.StatusCode),
		slog.String("head_id", clipSent(headID, 64)),
		slog.String("session_id", clipSent(sessionID, 64)),
		slog.String("event_type", clipSent(string(eventType), 64)),
		slog.Int("key_position", d.KeyPosition),
		slog.Duration("duration", d.Duration),
		slog.Duration("queue_duration", d.QueueDuration),
		slog.Duration("handle_duration", d.HandleDuration),
	}
	h.logger.LogAttrs(ctx, level, "webhook delivery", append(attrs, errorAttrs(d.Err)...)...)
}

// complain logs what does not change the outcome of a delivery.
func (h *EventHandler) complain(ctx context.Context, what string, err error) {
	if h.logger != nil {
		h.logger.LogAttrs(ctx, slog.LevelError, "webhook delivery: "+what, errorAttrs(err)...)
	}
}

func errorAttrs(err error) []slog.Attr {
	if err == nil {
		return nil
	}
	attrs := []slog.Attr{slog.String("error", clipSent(fmt.Sprint(err), 1024))} // Sprint survives an Error method that panics
	if p, ok := err.(*panicError); ok {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	return attrs
}

// clipSent shortens what anybody may have sent.
func clipSent(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "..."
}

// panicError is a panic in a function that the handler was given.
type panicError struct {
	value any
	stack []byte
}

// newPanicError is called while the panic is being recovered.
func newPanicError(value any) *panicError { return &panicError{value, debug.Stack()} }

func (e *panicError) Error() string { return fmt.Sprintf("heads: panic: %v", e.value) }
