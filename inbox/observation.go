package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// ObservationKind is the kind of an observation. There are only these values, so they
// are safe as metric labels.
type ObservationKind string

// The kinds of observations. Every started attempt ends as succeeded, failed or
// fenced, unless its process dies.
const (
	KindAppended     ObservationKind = "appended"      // an event was stored
	KindDuplicate    ObservationKind = "duplicate"     // an event was already known
	KindAppendFailed ObservationKind = "append_failed" // an event was not stored, or its outcome is unknown
	KindStarted      ObservationKind = "started"       // an attempt begins
	KindSucceeded    ObservationKind = "succeeded"     // an event was handled
	KindFailed       ObservationKind = "failed"        // an attempt failed
	KindDead         ObservationKind = "dead"          // an event was moved to the dead letters
	KindTakenOver    ObservationKind = "taken_over"    // the expired claim of another worker was taken over
	KindFenced       ObservationKind = "fenced"        // a worker noticed that its claim was taken over
	KindPruned       ObservationKind = "pruned"        // events were removed after the retention
)

// Observation is the argument of an observer. It holds no body.
type Observation struct {
	Kind      ObservationKind
	Duration  time.Duration // of the append, the function or the pruning
	Attempt   int           // 1 for the first; 0 outside of attempts
	Lag       time.Duration // from when the event was stored until now
	Sequence  int64         // of the event; 0 if there is none
	HeadID    string
	SessionID string
	Count     int64 // of pruned events
	Err       error // the failure; an error of the function is not wrapped
}

// Format shows kind, sequence, ids and the type of the error.
func (o Observation) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(o.describe())) }

// LogValue shows the same as Format.
func (o Observation) LogValue() slog.Value { return slog.StringValue(o.describe()) }

func (o Observation) describe() string {
	text := fmt.Sprintf("inbox.Observation{%s, sequence: %d, attempt: %d, head: %s, session: %s", o.Kind, o.Sequence, o.Attempt, o.HeadID, o.SessionID)
	if o.Err != nil {
		text += ", error: " + typeName(o.Err)
	}
	return text + "}"
}

// observed returns an observation of an event.
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

func (in *Inbox) tell(ctx context.Context, o Observation) {
	if in.observe != nil {
		in.survive(ctx, func() { in.observe(ctx, o) })
	}
	in.tellOfAttempt(ctx, o)
}

// survive calls f, which is the user's.
func (in *Inbox) survive(ctx context.Context, f func()) {
	defer func() {
		if v := recover(); v != nil {
			in.log(ctx, slog.LevelError, "the observer panicked")
		}
	}()
	f()
}

func (in *Inbox) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	if in.logger != nil {
		in.logger.LogAttrs(ctx, level, "inbox: "+text, attrs...)
	}
}
