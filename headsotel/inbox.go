package headsotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// lagBuckets are the boundaries for the lag, in seconds: from events handled immediately to those
// with many attempts.
var lagBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}

// statusTimeout limits how long a collection of metrics waits for a database.
const statusTimeout = 5 * time.Second

// InboxSource is implemented by *inbox.Inbox. It uses no type of module inbox, so that a program
// without an inbox does not depend on its databases.
type InboxSource interface {
	Backlog(ctx context.Context) (waiting, retrying, dead int64, oldest time.Time, err error)
	OnAttempt(f func(ctx context.Context, lag time.Duration, err error))
}

// Inbox reports the state of an inbox: the gauges heads.inbox.waiting, heads.inbox.retrying,
// heads.inbox.dead and heads.inbox.oldest_waiting, the counters heads.inbox.handled and
// heads.inbox.failed, and the histogram heads.inbox.lag.
//
// The gauges are read from the database at each collection, so every process reports the same
// values. If the inbox does not answer within 5 s, they are missing. Call Inbox once for each
// inbox, and give each of several inboxes its own meter provider.
func Inbox(in InboxSource, opts ...Option) {
	t := newTelemetry(opts, "heads.inbox.lag", "Time from when an event was stored until it was handled.", lagBuckets...)
	handled := t.counter("heads.inbox.handled", "Events that were handled.", "{event}")
	failed := t.counter("heads.inbox.failed", "Attempts to handle an event that failed.", "{attempt}")
	in.OnAttempt(func(ctx context.Context, lag time.Duration, err error) {
		if err != nil {
			failed.Add(ctx, 1)
			return
		}
		handled.Add(ctx, 1)
		t.duration.Record(ctx, lag.Seconds())
	})

	waiting := t.gauge("heads.inbox.waiting", "Events that are neither handled nor dead.")
	retrying := t.gauge("heads.inbox.retrying", "Waiting events that have had an attempt.")
	dead := t.gauge("heads.inbox.dead", "Events among the dead letters.")
	oldest, err := t.meter.Float64ObservableGauge("heads.inbox.oldest_waiting", metric.WithDescription("Time since the oldest waiting event was stored."), metric.WithUnit("s"))
	report(err)
	_, err = t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		nWaiting, nRetrying, nDead, since, err := in.Backlog(ctx)
		if err != nil {
			return nil //nolint:nilerr // the inbox logs it, and after Close there is nothing to report
		}
		o.ObserveInt64(waiting, nWaiting)
		o.ObserveInt64(retrying, nRetrying)
		o.ObserveInt64(dead, nDead)
		age := 0.0
		if !since.IsZero() {
			age = max(time.Since(since).Seconds(), 0)
		}
		o.ObserveFloat64(oldest, age)
		return nil
	}, waiting, retrying, dead, oldest)
	report(err)
}

func (t *telemetry) counter(name, description, unit string) metric.Int64Counter {
	c, err := t.meter.Int64Counter(name, metric.WithDescription(description), metric.WithUnit(unit))
	report(err)
	return c
}

func (t *telemetry) gauge(name, description string) metric.Int64ObservableGauge {
	g, err := t.meter.Int64ObservableGauge(name, metric.WithDescription(description), metric.WithUnit("{event}"))
	report(err)
	return g
}

// report passes the error of an instrument to the global error handler. The instrument then
// measures nothing.
func report(err error) {
	if err != nil {
		otel.Handle(err)
	}
}
