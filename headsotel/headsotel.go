// Package headsotel reports to OpenTelemetry what package heads does: a span and a measurement for
// each attempt of a client, each delivery of an event and each call of a tool, and the backlog of
// an inbox.
//
//	client, err := heads.New(baseURL, token, headsotel.Client())
//	events, err := heads.NewEventHandler(keys, handle, headsotel.Events())
//	tools, err := heads.NewToolHandler(toolsURL, headsotel.Tools())
//	headsotel.Inbox(in)
//
// Without options, the global providers are used, which may be set later. While none is set, a call
// makes two more allocations.
//
// Spans and measurements contain no id, query, body, key or error text. Every attribute has few
// values.
//
// docs/observability.md lists the names and has a Grafana dashboard.
package headsotel

import (
	"context"
	"reflect"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headsapi/heads-go"
)

const scope = "github.com/headsapi/heads-go/headsotel"

// buckets are the boundaries of the semantic conventions for durations, in seconds.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// Option configures Client, Events, Tools and Inbox.
type Option func(*config)

type config struct {
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	propagate bool
}

// WithTracerProvider sets the provider for spans. The default, also for nil, is the global
// provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) { c.tracers = p }
}

// WithMeterProvider sets the provider for measurements. The default, also for nil, is the global
// provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.meters = p }
}

// Propagate sends the trace context of each attempt to the service, in the headers traceparent and
// tracestate. Baggage is not sent. It has no effect on Events and Tools, which never read these
// headers.
func Propagate() Option {
	return func(c *config) { c.propagate = true }
}

// telemetry is the state of one option. Its address is the key of its spans in a context, so it
// never ends a span of another.
type telemetry struct {
	tracer    trace.Tracer
	global    bool // the tracer is of the global provider
	duration  metric.Float64Histogram
	meter     metric.Meter
	propagate bool
}

func newTelemetry(opts []Option, duration, description string, boundaries ...float64) *telemetry {
	var c config
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	t := &telemetry{global: c.tracers == nil, propagate: c.propagate}
	if c.tracers == nil {
		c.tracers = otel.GetTracerProvider()
	}
	if c.meters == nil {
		c.meters = otel.GetMeterProvider()
	}
	t.tracer = c.tracers.Tracer(scope, trace.WithInstrumentationVersion(heads.Version))
	t.meter = c.meters.Meter(scope, metric.WithInstrumentationVersion(heads.Version))
	var err error
	t.duration, err = t.meter.Float64Histogram(duration, metric.WithDescription(description), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(boundaries...))
	report(err)
	return t
}

// traces reports whether spans are recorded. The initial global provider drops them until another
// one is set.
func (t *telemetry) traces() bool {
	if !t.global {
		return true
	}
	provider := reflect.TypeOf(otel.GetTracerProvider())
	return provider.Kind() != reflect.Pointer || !strings.HasSuffix(provider.Elem().PkgPath(), "/otel/internal/global")
}

// start returns ctx with a span in it.
func (t *telemetry) start(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) context.Context {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return context.WithValue(ctx, t, span)
}

// end ends the span of ctx, if it has one, and records the duration.
func (t *telemetry) end(ctx context.Context, took time.Duration, failed bool, attributes func() []attribute.KeyValue) {
	span, _ := ctx.Value(t).(trace.Span)
	measures := t.duration.Enabled(ctx)
	if span == nil && !measures {
		return
	}
	all := attributes()
	if span != nil {
		defer span.End() // even if recording panics
		span.SetAttributes(all...)
		if failed {
			span.SetStatus(codes.Error, "")
		}
	}
	if measures {
		t.duration.Record(ctx, took.Seconds(), metric.WithAttributeSet(attribute.NewSet(all...)))
	}
}
