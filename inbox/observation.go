package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// ObservationKind is the kind of an observation. The set of values is fixed, so they can be metric
// labels.
type ObservationKind string

// The kinds of observations. Unless its process dies, every started attempt ends as succeeded,
// failed or fenced.
const (
	KindAppended     ObservationKind = "appended"      // an event was stored
	KindDuplicate    ObservationKind = "duplicate"     // an event was already known
	KindAppendFailed ObservationKind = "append_failed" // not stored, or the outcome is unknown
	KindStarted      ObservationKind = "started"       // an attempt begins
	KindSucceeded    ObservationKind = "succeeded"     // an event was handled
	KindFailed       ObservationKind = "failed"        // an attempt failed
	KindDead         ObservationKind = "dead"          // an event was moved to the dead letters
	KindTakenOver    ObservationKind = "taken_over"    // an expired claim was taken over
	KindFenced       ObservationKind = "fenced"        // a worker found its claim taken over
	KindPruned       ObservationKind = "pruned"        // events were removed after the retention
)

// Observation describes one thing that happened to an event. It does not contain the body.
type Observation struct {
	Kind      ObservationKind
	Duration  time.Duration // of the append, the function or the pruning
	Attempt   int           // 1 for the first; 0 outside of attempts
	Lag       time.Duration // since the event was stored
	Sequence  int64         // of the event; 0 if there is none
	HeadID    string
	SessionID string
	Count     int64 // of pruned events
	Err       error // the failure; for an attempt, the function's error itself
}

// Format writes kind, sequence, ids and the type of the error, for every verb.
func (o Observation) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(o.describe())) }

// LogValue returns the text that Format writes.
func (o Observation) LogValue() slog.Value { return slog.StringValue(o.describe()) }

func (o Observation) describe() string {
	text := fmt.Sprintf("inbox.Observation{%s, sequence: %d, attempt: %d, head: %s, session: %s", o.Kind, o.Sequence, o.Attempt, o.HeadID, o.SessionID)
	if o.Err != nil {
		text += ", error: " + typeName(o.Err)
	}
	return text + "}"
}

// observed returns an Observation of an event.
func observed(kind ObservationKind, e *engine.Record) Observation {
	return Observation{
		Kind:      kind,
		Attempt:   int(e.Attempts),
		Lag:       max(time.Since(timeOf(e.Received)), 0),
		Sequence:  e.Sequence,
		HeadID:    string(e.HeadID),
		SessionID: string(e.SessionID),
	}
}

// reporter writes the log and calls the observer and the functions of OnAttempt.
type reporter struct {
	logger    *slog.Logger
	errorText bool // log and store the text of the function's errors
	observe   func(context.Context, Observation)

	mu        sync.Mutex
	onAttempt atomic.Pointer[[]func(context.Context, time.Duration, error)]
}

func (r *reporter) tell(ctx context.Context, o Observation) {
	if r.observe != nil {
		r.callObserver(ctx, func() { r.observe(ctx, o) })
	}
	r.tellOfAttempt(ctx, o)
}

// tellOfAttempt calls the functions of OnAttempt if o reports the end of an attempt.
func (r *reporter) tellOfAttempt(ctx context.Context, o Observation) {
	err := o.Err
	switch o.Kind {
	case KindSucceeded:
		err = nil // after Commit, the function's error does not matter
	case KindFailed:
	default:
		return
	}
	for _, f := range r.attemptFunctions() {
		r.callObserver(ctx, func() { f(ctx, o.Lag, err) })
	}
}

func (r *reporter) addAttempt(f func(ctx context.Context, lag time.Duration, err error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := append(slices.Clone(r.attemptFunctions()), f)
	r.onAttempt.Store(&all)
}

func (r *reporter) attemptFunctions() []func(context.Context, time.Duration, error) {
	if all := r.onAttempt.Load(); all != nil {
		return *all
	}
	return nil
}

// callObserver calls f, which calls a function of the user, and logs a panic.
func (r *reporter) callObserver(ctx context.Context, f func()) {
	defer func() {
		if v := recover(); v != nil {
			r.log(ctx, slog.LevelError, "the observer panicked")
		}
	}()
	f()
}

func (r *reporter) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	if r.logger != nil {
		r.logger.LogAttrs(ctx, level, "inbox: "+text, attrs...)
	}
}

// describe returns the text to log and store for an error of the function.
func (r *reporter) describe(err error) string {
	switch {
	case errors.Is(err, ErrDamaged):
		return ErrDamaged.Error()
	case r.errorText:
		return clip(errorText(err), maxErrorText)
	}
	return clip(typeName(err), maxErrorText)
}
