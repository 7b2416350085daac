package headsotel

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/headsapi/heads-go"
)

// Client reports each attempt of a client according to the semantic conventions for HTTP: as a span
// named after method and route, such as "GET /head/{id}", and in the histogram
// http.client.request.duration.
func Client(opts ...Option) heads.Option {
	t := newTelemetry(opts, "http.client.request.duration", "Duration of HTTP client requests.", buckets...)
	return heads.WithObserver(heads.Observer[heads.Attempt]{Start: t.startAttempt, End: t.endAttempt})
}

func (t *telemetry) startAttempt(ctx context.Context, a heads.Attempt) context.Context {
	if t.traces() {
		attributes := append(requestAttributes(a), attribute.String("heads.operation", a.Operation))
		if a.Number > 1 {
			attributes = append(attributes, attribute.Int("http.request.resend_count", a.Number-1))
		}
		ctx = t.start(ctx, a.Method+" "+a.Route, trace.SpanKindClient, attributes...)
	}
	if t.propagate {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(a.Header))
	}
	return ctx
}

func (t *telemetry) endAttempt(ctx context.Context, a heads.Attempt) {
	t.end(ctx, a.Duration, a.Err != nil, func() []attribute.KeyValue {
		attributes := requestAttributes(a)
		if a.StatusCode != 0 {
			attributes = append(attributes, attribute.Int("http.response.status_code", a.StatusCode))
		}
		if kind := errorType(a); kind != "" {
			attributes = append(attributes, attribute.String("error.type", kind))
		}
		return attributes
	})
}

// requestAttributes returns the attributes that are known before the response.
func requestAttributes(a heads.Attempt) []attribute.KeyValue {
	host, port := splitHost(a.Host)
	return append(make([]attribute.KeyValue, 0, 6), // with room for two of the response
		attribute.String("http.request.method", a.Method),
		attribute.String("url.template", a.Route),
		attribute.String("server.address", host),
		attribute.Int("server.port", port),
	)
}

// splitHost splits a host and its port. Without a port, it returns 443, since base URLs are https,
// except for local hosts, which have a port.
func splitHost(hostport string) (host string, port int) {
	host, digits, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]"), 443
	}
	port, _ = strconv.Atoi(digits)
	return host, port
}

// errorType returns the status if it is 400 or more, otherwise the kind of the error.
func errorType(a heads.Attempt) string {
	var timeout net.Error
	switch {
	case a.StatusCode >= http.StatusBadRequest:
		return strconv.Itoa(a.StatusCode)
	case a.Err == nil:
		return ""
	case errors.Is(a.Err, context.Canceled):
		return "canceled"
	case errors.Is(a.Err, context.DeadlineExceeded), errors.As(a.Err, &timeout) && timeout.Timeout():
		return "timeout"
	default:
		return "_OTHER"
	}
}
