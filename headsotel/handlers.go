package headsotel

import (
	"context"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headsapi/heads-go"
)

// Events reports each delivery that reaches an event handler: as a span heads.delivery, in the
// histogram heads.delivery.duration and in the counter heads.delivery.count. The event function has
// the span in its context.
func Events(opts ...Option) heads.EventHandlerOption {
	t := newTelemetry(opts, "heads.delivery.duration", "Duration of deliveries, from their arrival to the answer.", buckets...)
	count := t.counter("heads.delivery.count", "Deliveries by what became of them.", "{delivery}")
	start := func(ctx context.Context, _ heads.DeliveryInfo) context.Context {
		if !t.traces() {
			return ctx
		}
		return t.start(ctx, "heads.delivery", trace.SpanKindConsumer)
	}
	end := func(ctx context.Context, d heads.DeliveryInfo) {
		t.end(ctx, d.Duration, deliveryFailed(d), func() []attribute.KeyValue { return deliveryAttributes(d) })
		if count.Enabled(ctx) {
			count.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(deliveryAttributes(d)...)))
		}
	}
	return heads.WithDeliveryObserver(heads.Observer[heads.DeliveryInfo]{Start: start, End: end})
}

var eventTypes = []heads.EventType{heads.EventStartConversation, heads.EventEndConversation, heads.EventInactivityWarning, heads.EventTimeoutConversation}

// deliveryAttributes returns the attributes of a delivery. It omits the type of an event that was
// not verified, and replaces an unknown type with "other", since the sender could choose any number
// of types.
func deliveryAttributes(d heads.DeliveryInfo) []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.String("heads.delivery.outcome", string(d.Outcome))}
	if d.KeyPosition == 0 {
		return attributes
	}
	if !slices.Contains(eventTypes, d.Type) {
		d.Type = "other"
	}
	return append(attributes, attribute.String("heads.event.type", string(d.Type)))
}

// deliveryFailed reports whether a delivery counts as an error. A busy handler and one after
// Shutdown do not, since the service redelivers the event, nor does a faulty request.
func deliveryFailed(d heads.DeliveryInfo) bool {
	switch d.Outcome {
	case heads.DeliveryBusy, heads.DeliveryShutDown:
		return false
	default:
		return d.StatusCode >= http.StatusInternalServerError
	}
}

// Tools reports each call that reaches a tool: as a span whose name is heads.tool and the tool's
// name, and in the histogram heads.tool.duration. The tool function has the span in its context.
func Tools(opts ...Option) heads.ToolHandlerOption {
	t := newTelemetry(opts, "heads.tool.duration", "Duration of tool calls, from their arrival to the answer.", buckets...)
	start := func(ctx context.Context, i heads.ToolCallInfo) context.Context {
		if !t.traces() {
			return ctx
		}
		return t.start(ctx, "heads.tool "+i.Tool, trace.SpanKindServer, attribute.String("heads.tool.name", i.Tool))
	}
	end := func(ctx context.Context, i heads.ToolCallInfo) {
		failed := i.Outcome == heads.ToolFailed || i.Outcome == heads.ToolPanicked || i.Outcome == heads.ToolTimedOut
		t.end(ctx, i.Duration, failed, func() []attribute.KeyValue {
			return []attribute.KeyValue{attribute.String("heads.tool.name", i.Tool), attribute.String("heads.tool.outcome", string(i.Outcome))}
		})
	}
	return heads.WithToolObserver(heads.Observer[heads.ToolCallInfo]{Start: start, End: end})
}
