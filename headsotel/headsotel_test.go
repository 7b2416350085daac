package headsotel

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

const (
	headID    = "3f2b8c1e-8a4d-4b7e-9c3a-1d2e3f4a5b6c"
	sharedKey = "canary-shared-key"
	token     = "canary-token"
)

// recorder has the spans and measurements of a test.
type recorder struct {
	spans   *tracetest.SpanRecorder
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	meters  *sdkmetric.MeterProvider
}

func newRecorder() *recorder {
	r := &recorder{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	r.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	return r
}

func (r *recorder) options(more ...Option) []Option {
	return append(more, WithTracerProvider(r.tracers), WithMeterProvider(r.meters))
}

// span returns the only span, and its attributes.
func (r *recorder) span(t testing.TB) (sdktrace.ReadOnlySpan, map[string]any) {
	t.Helper()
	ended := r.spans.Ended()
	require.Len(t, ended, 1)
	assert.Equal(t, "github.com/headsapi/heads-go/headsotel", ended[0].InstrumentationScope().Name)
	assert.Empty(t, ended[0].Status().Description, "no text")
	assert.Empty(t, ended[0].Events())
	return ended[0], values(ended[0].Attributes())
}

func values(attributes []attribute.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range attributes {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

// metrics returns the metrics by name.
func (r *recorder) metrics(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(context.Background(), &all))
	byName := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		assert.Equal(t, "github.com/headsapi/heads-go/headsotel", s.Scope.Name)
		for _, m := range s.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// duration returns the attributes of the only point of a histogram.
func (r *recorder) duration(t testing.TB, name string) map[string]any {
	t.Helper()
	m, ok := r.metrics(t)[name]
	require.True(t, ok, name)
	assert.Equal(t, "s", m.Unit)
	points := m.Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, points, 1)
	assert.EqualValues(t, 1, points[0].Count)
	assert.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, points[0].Bounds)
	return values(points[0].Attributes.ToSlice())
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int) transport {
	return func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		rec.WriteHeader(status)
		_, _ = rec.WriteString(`{"id":"` + headID + `"}`)
		response := rec.Result()
		response.Request = r
		return response, nil
	}
}

func get(ctx context.Context, t testing.TB, baseURL string, tr transport, opt heads.Option, more ...heads.Option) error {
	t.Helper()
	opts := append(more, heads.WithHTTPClient(&http.Client{Transport: tr}), heads.WithRetryPolicy(heads.RetryPolicy{}), opt)
	client, err := heads.New(baseURL, token, opts...)
	require.NoError(t, err)
	_, err = client.Heads.Get(ctx, headID)
	return err
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "canary" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

func TestAttemptsHaveASpanAndADuration(t *testing.T) {
	broken := func(err error) transport { return func(*http.Request) (*http.Response, error) { return nil, err } }
	for _, row := range []struct {
		name, baseURL string
		transport     transport
		failed        bool
		want          map[string]any // in addition to method, template, address and port
		address       string
		port          int64
	}{
		{name: "success", transport: answer(200), want: map[string]any{"http.response.status_code": int64(200)}},
		{name: "with a port", baseURL: "https://api.example.com:8443/v1", transport: answer(200), port: 8443, want: map[string]any{"http.response.status_code": int64(200)}},
		{name: "IPv6", baseURL: "http://[::1]:8080", transport: answer(200), address: "::1", port: 8080, want: map[string]any{"http.response.status_code": int64(200)}},
		{name: "IPv6 without a port", baseURL: "https://[2001:db8::1]", transport: answer(200), address: "2001:db8::1", want: map[string]any{"http.response.status_code": int64(200)}},
		{name: "refused", transport: answer(404), failed: true, want: map[string]any{"http.response.status_code": int64(404), "error.type": "404"}},
		{name: "bad request", transport: answer(400), failed: true, want: map[string]any{"http.response.status_code": int64(400), "error.type": "400"}},
		{name: "redirect", transport: answer(302), failed: true, want: map[string]any{"http.response.status_code": int64(302), "error.type": "_OTHER"}},
		{name: "broken", transport: broken(errors.New("canary")), failed: true, want: map[string]any{"error.type": "_OTHER"}},
		{name: "timeout", transport: broken(timeoutError{}), failed: true, want: map[string]any{"error.type": "timeout"}},
		{name: "deadline", transport: broken(context.DeadlineExceeded), failed: true, want: map[string]any{"error.type": "timeout"}},
		{name: "canceled", transport: broken(context.Canceled), failed: true, want: map[string]any{"error.type": "canceled"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder()
			if row.baseURL == "" {
				row.baseURL = "https://api.example.com/v1"
			}
			err := get(t.Context(), t, row.baseURL, row.transport, Client(r.options()...))
			assert.Equal(t, row.failed, err != nil)

			want := row.want
			want["http.request.method"], want["url.template"] = "GET", "/head/{id}"
			want["server.address"], want["server.port"] = "api.example.com", int64(443)
			if row.address != "" {
				want["server.address"] = row.address
			}
			if row.port != 0 {
				want["server.port"] = row.port
			}
			assert.Equal(t, want, r.duration(t, "http.client.request.duration"))
			span, attributes := r.span(t)
			assert.Equal(t, "GET /head/{id}", span.Name())
			assert.Equal(t, trace.SpanKindClient, span.SpanKind())
			want["heads.operation"] = "Heads.Get"
			assert.Equal(t, want, attributes)
			assert.Equal(t, row.failed, span.Status().Code == codes.Error)
		})
	}
}

func TestDurationsAreInSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		slow := func(req *http.Request) (*http.Response, error) {
			<-time.After(2 * time.Second)
			return answer(200)(req)
		}
		require.NoError(t, get(t.Context(), t, "https://api.example.com", slow, Client(r.options(nil)...)), "a nil option is ignored")
		points := r.metrics(t)["http.client.request.duration"].Data.(metricdata.Histogram[float64]).DataPoints
		require.Len(t, points, 1)
		assert.InDelta(t, 2, points[0].Sum, 0)
	})
}

func TestResendsAreCounted(t *testing.T) {
	r := newRecorder()
	attempts := 0
	tr := transport(func(req *http.Request) (*http.Response, error) {
		attempts++
		return answer(503)(req)
	})
	err := get(t.Context(), t, "https://api.example.com", tr, Client(r.options()...), heads.WithRetryPolicy(heads.RetryPolicy{}))
	require.Error(t, err)
	retrying(t.Context(), t, tr, Client(r.options()...))
	var counts []any
	for _, s := range r.spans.Ended() {
		counts = append(counts, values(s.Attributes())["http.request.resend_count"])
	}
	assert.Equal(t, []any{nil, nil, int64(1), int64(2)}, counts)
	assert.NotContains(t, r.attributes(t), "http.request.resend_count", "the metric does not have it")
}

// attributes returns the attributes of the client's histogram, for any count.
func (r *recorder) attributes(t testing.TB) map[string]any {
	points := r.metrics(t)["http.client.request.duration"].Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, points, 1)
	return values(points[0].Attributes.ToSlice())
}

func TestTraceContextIsSentWithPropagateAlone(t *testing.T) {
	for _, propagate := range []bool{false, true} {
		r := newRecorder()
		var sent http.Header
		tr := transport(func(req *http.Request) (*http.Response, error) {
			sent = req.Header.Clone()
			return answer(200)(req)
		})
		var more []Option
		if propagate {
			more = []Option{Propagate()}
		}
		state, err := trace.ParseTraceState("a=b")
		require.NoError(t, err)
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state})
		member, err := baggage.NewMember("user", "canary")
		require.NoError(t, err)
		bag, err := baggage.New(member)
		require.NoError(t, err)
		ctx := baggage.ContextWithBaggage(trace.ContextWithSpanContext(t.Context(), parent), bag)
		require.NoError(t, get(ctx, t, "https://api.example.com", tr, Client(r.options(more...)...)))
		names := []string{"Accept", "Authorization", "User-Agent"}
		if !propagate {
			assert.ElementsMatch(t, names, slices.Collect(maps.Keys(sent)))
			continue
		}
		assert.ElementsMatch(t, append(names, "Traceparent", "Tracestate"), slices.Collect(maps.Keys(sent)), "no baggage")
		span, _ := r.span(t)
		assert.Equal(t, "00-"+span.SpanContext().TraceID().String()+"-"+span.SpanContext().SpanID().String()+"-01", sent.Get("Traceparent"), "of the attempt")
		assert.Equal(t, "a=b", sent.Get("Tracestate"))
		assert.Equal(t, parent.SpanID(), span.Parent().SpanID())
	}
}

// retrying makes one call with three attempts.
func retrying(ctx context.Context, t testing.TB, tr transport, opt heads.Option) {
	t.Helper()
	client, err := heads.New("https://api.example.com", token, heads.WithHTTPClient(&http.Client{Transport: tr}),
		heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 2, MinWait: time.Microsecond, MaxWait: time.Microsecond}), opt)
	require.NoError(t, err)
	_, err = client.Heads.Get(ctx, headID)
	require.Error(t, err)
}

func TestEachAttemptIsASpanOfItsOwnBelowTheCaller(t *testing.T) {
	r, caller := newRecorder(), newRecorder()
	ctx, outer := caller.tracers.Tracer("caller").Start(t.Context(), "outer")
	var sent []string
	retrying(ctx, t, func(req *http.Request) (*http.Response, error) {
		sent = append(sent, req.Header.Get("Traceparent"))
		return answer(503)(req)
	}, Client(r.options(Propagate())...))
	require.Len(t, r.spans.Ended(), 3)
	for i, span := range r.spans.Ended() {
		assert.Equal(t, outer.SpanContext().TraceID(), span.SpanContext().TraceID())
		assert.Equal(t, outer.SpanContext().SpanID(), span.Parent().SpanID())
		assert.Contains(t, sent[i], span.SpanContext().SpanID().String(), "of this attempt")
	}
}

func TestCallsOfEventsAndToolsAreTheirChildren(t *testing.T) {
	r := newRecorder()
	client := Client(r.options()...)
	call := func(ctx context.Context) error { return get(ctx, t, "https://api.example.com", answer(200), client) }
	handle := func(ctx context.Context, _ *heads.Event) error { return call(ctx) }
	direct := eventHandler(t, handle, Events(r.options()...))
	tools := toolHandler(t, func(ctx context.Context, _ struct{}) (string, error) { return "found", call(ctx) }, Tools(r.options()...))

	deliver(t, direct, heads.EventStartConversation, sharedKey)
	callTool(t, tools, "{}")
	ended := r.spans.Ended()
	require.Len(t, ended, 4)
	for i := 0; i < len(ended); i += 2 {
		child, parent := ended[i], ended[i+1]
		assert.Equal(t, "GET /head/{id}", child.Name())
		assert.Equal(t, parent.SpanContext().SpanID(), child.Parent().SpanID(), parent.Name())
		assert.False(t, parent.Parent().IsValid(), "nothing incoming is read")
	}
	assert.Equal(t, []string{"heads.delivery", "heads.tool find"}, []string{ended[1].Name(), ended[3].Name()})
}

// Anyone who can reach a handler can send any body.
func TestAttributeValuesFromOutsideAreClipped(t *testing.T) {
	long := strings.Repeat("canary", 20<<10/6)
	r := newRecorder()
	h := eventHandler(t, func(context.Context, *heads.Event) error { return nil }, Events(r.options()...))
	deliver(t, h, heads.EventType(long), sharedKey)
	deliver(t, h, heads.EventType(long), "another key")
	tools, err := heads.NewToolHandler("https://tools.example.com", Tools(r.options()...))
	require.NoError(t, err)
	tools.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/"+long, strings.NewReader("{}")))
	require.Len(t, r.spans.Ended(), 2, "a tool that is not found has no span")
	assert.Equal(t, map[string]any{"heads.delivery.outcome": "handled", "heads.event.type": "other"}, values(r.spans.Ended()[0].Attributes()))
	assert.Equal(t, map[string]any{"heads.delivery.outcome": "unauthorized"}, values(r.spans.Ended()[1].Attributes()))
}

func eventHandler(t testing.TB, f func(context.Context, *heads.Event) error, opts ...heads.EventHandlerOption) *heads.EventHandler {
	t.Helper()
	h, err := heads.NewEventHandler(heads.SharedKeys(sharedKey), f, opts...)
	require.NoError(t, err)
	return h
}

// toolHandler returns a handler with the tool find.
func toolHandler(t testing.TB, f func(context.Context, struct{}) (string, error), opts ...heads.ToolHandlerOption) *heads.ToolHandler {
	t.Helper()
	h, err := heads.NewToolHandler("https://tools.example.com", opts...)
	require.NoError(t, err)
	require.NoError(t, heads.AddTool(h, "find", "Finds", f))
	return h
}

func deliver(t testing.TB, h http.Handler, kind heads.EventType, key string) int {
	t.Helper()
	e := heads.Event{Type: kind, HeadID: headID, SessionID: "canary-session", Timestamp: heads.Time{Time: time.Now()}}
	rec := httptest.NewRecorder()
	request := headstest.NewEventRequest("https://hooks.example.com/events", e, key)
	request.Header.Set("traceparent", "00-01000000000000000000000000000000-0200000000000000-01")
	h.ServeHTTP(rec, request)
	return rec.Code
}

func TestDeliveriesHaveASpanAndADurationAndACount(t *testing.T) {
	broken := func(context.Context, *heads.Event) error { return errors.New("canary") }
	for _, row := range []struct {
		name   string
		handle func(context.Context, *heads.Event) error
		kind   heads.EventType
		key    string
		shut   bool
		failed bool
		want   map[string]any
	}{
		{name: "handled", kind: heads.EventEndConversation, want: map[string]any{"heads.delivery.outcome": "handled", "heads.event.type": "end_conversation"}},
		{name: "inactivity", kind: heads.EventInactivityWarning, want: map[string]any{"heads.delivery.outcome": "handled", "heads.event.type": "inactivity_warning"}},
		{name: "timeout", kind: heads.EventTimeoutConversation, want: map[string]any{"heads.delivery.outcome": "handled", "heads.event.type": "timeout_conversation"}},
		{name: "other type", kind: "canary", want: map[string]any{"heads.delivery.outcome": "handled", "heads.event.type": "other"}},
		{name: "failed", kind: heads.EventStartConversation, handle: broken, failed: true, want: map[string]any{"heads.delivery.outcome": "failed", "heads.event.type": "start_conversation"}},
		{name: "panicked", kind: heads.EventStartConversation, handle: func(context.Context, *heads.Event) error { panic("canary") }, failed: true,
			want: map[string]any{"heads.delivery.outcome": "panicked", "heads.event.type": "start_conversation"}},
		{name: "not verified", kind: heads.EventStartConversation, key: "another key", want: map[string]any{"heads.delivery.outcome": "unauthorized"}},
		{name: "shut down", kind: heads.EventStartConversation, shut: true, want: map[string]any{"heads.delivery.outcome": "shut_down"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder()
			var inside trace.SpanContext
			h := eventHandler(t, func(ctx context.Context, e *heads.Event) error {
				inside = trace.SpanContextFromContext(ctx)
				if row.handle != nil {
					return row.handle(ctx, e)
				}
				return nil
			}, Events(r.options(Propagate())...))
			if row.shut {
				require.NoError(t, h.Shutdown(t.Context()))
			}
			if row.key == "" {
				row.key = sharedKey
			}
			deliver(t, h, row.kind, row.key)

			span, attributes := r.span(t)
			assert.Equal(t, "heads.delivery", span.Name())
			assert.Equal(t, trace.SpanKindConsumer, span.SpanKind())
			assert.Equal(t, row.want, attributes)
			assert.Equal(t, row.failed, span.Status().Code == codes.Error)
			assert.False(t, span.Parent().IsValid(), "nothing incoming is read")
			if row.want["heads.event.type"] != nil {
				assert.Equal(t, span.SpanContext().SpanID(), inside.SpanID())
			}
			assert.Equal(t, row.want, r.duration(t, "heads.delivery.duration"))
			count := r.metrics(t)["heads.delivery.count"]
			assert.Equal(t, "{delivery}", count.Unit)
			points := count.Data.(metricdata.Sum[int64]).DataPoints
			require.Len(t, points, 1)
			assert.EqualValues(t, 1, points[0].Value)
			assert.Equal(t, row.want, values(points[0].Attributes.ToSlice()))
		})
	}
}

func TestStatusOfDeliveries(t *testing.T) {
	for _, row := range []struct {
		outcome heads.DeliveryOutcome
		status  int
		failed  bool
	}{
		{heads.DeliveryHandled, 200, false},
		{heads.DeliveryDuplicate, 200, false},
		{heads.DeliveryBusy, 503, false},
		{heads.DeliveryShutDown, 503, false},
		{heads.DeliveryUnauthorized, 401, false},
		{heads.DeliveryBadBody, 400, false},
		{heads.DeliveryFailed, 503, true},
		{heads.DeliveryPanicked, 500, true},
		{heads.DeliveryKeysFailed, 503, true},
	} {
		assert.Equal(t, row.failed, deliveryFailed(heads.DeliveryInfo{Outcome: row.outcome, StatusCode: row.status}), row.outcome)
	}
}

func callTool(t testing.TB, h *heads.ToolHandler, body string) {
	t.Helper()
	rec := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/find", strings.NewReader(body))
	request.Header.Set("traceparent", "00-01000000000000000000000000000000-0200000000000000-01")
	h.ServeHTTP(rec, request)
	require.Equal(t, http.StatusOK, rec.Code)
}

func TestToolCallsHaveASpanAndADuration(t *testing.T) {
	for outcome, row := range map[heads.ToolOutcome]struct {
		f      func(context.Context) (string, error)
		body   string
		failed bool
	}{
		heads.ToolAnswered:   {f: func(context.Context) (string, error) { return "canary", nil }},
		heads.ToolTold:       {f: func(context.Context) (string, error) { return "", heads.ToolError{Message: "canary"} }},
		heads.ToolUnreadable: {body: "canary"},
		heads.ToolFailed:     {f: func(context.Context) (string, error) { return "", errors.New("canary") }, failed: true},
		heads.ToolPanicked:   {f: func(context.Context) (string, error) { panic("canary") }, failed: true},
		heads.ToolTimedOut:   {f: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, failed: true},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			r := newRecorder()
			var inside trace.SpanContext
			h := toolHandler(t, func(ctx context.Context, _ struct{}) (string, error) {
				inside = trace.SpanContextFromContext(ctx)
				return row.f(ctx)
			}, heads.WithToolTimeout(100*time.Millisecond), Tools(r.options()...))
			body := row.body
			if body == "" {
				body = `{"session_metadata":{"session_id":"canary"}}`
			}
			callTool(t, h, body)
			require.NoError(t, h.Shutdown(t.Context()))
			want := map[string]any{"heads.tool.name": "find", "heads.tool.outcome": string(outcome)}
			assert.Equal(t, want, r.duration(t, "heads.tool.duration"))
			span, attributes := r.span(t)
			assert.Equal(t, "heads.tool find", span.Name())
			assert.Equal(t, trace.SpanKindServer, span.SpanKind())
			assert.Equal(t, want, attributes)
			assert.False(t, span.Parent().IsValid(), "nothing incoming is read")
			assert.Equal(t, row.failed, span.Status().Code == codes.Error)
			if row.f != nil {
				assert.Equal(t, span.SpanContext().SpanID(), inside.SpanID())
			}
		})
	}
}

func TestToolCallsThatReachNoFunctionAreNoErrors(t *testing.T) {
	r := newRecorder()
	refuse := false
	h, err := heads.NewToolHandler("https://tools.example.com", Tools(r.options()...), heads.WithToolAuth(func(*http.Request) error {
		if refuse {
			return errors.New("canary")
		}
		return nil
	}))
	require.NoError(t, err)
	type arguments struct {
		City string `json:"city" jsonschema:"City"`
	}
	require.NoError(t, heads.AddTool(h, "find", "Finds", func(context.Context, arguments) (string, error) { return "found", nil }))
	callTool(t, h, "{}")
	refuse = true
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/find", strings.NewReader("{}")))
	require.NoError(t, h.Shutdown(t.Context()))
	callTool(t, h, "{}")
	var outcomes []any
	for _, span := range r.spans.Ended() {
		outcomes = append(outcomes, values(span.Attributes())["heads.tool.outcome"])
		assert.Equal(t, codes.Unset, span.Status().Code)
	}
	assert.Equal(t, []any{"arguments", "unauthorized", "busy"}, outcomes)
}

// Two options start two spans. Neither ends the other's span or the caller's.
func TestProvidersAddUp(t *testing.T) {
	first, second, caller := newRecorder(), newRecorder(), newRecorder()
	ctx, outer := caller.tracers.Tracer("caller").Start(t.Context(), "outer")
	require.NoError(t, get(ctx, t, "https://api.example.com", answer(200), Client(first.options()...), Client(second.options()...)))
	for _, r := range []*recorder{first, second} {
		r.span(t)
		r.duration(t, "http.client.request.duration")
	}
	assert.True(t, outer.IsRecording())
	assert.Empty(t, caller.spans.Ended())
}

type panickingProcessor struct{ sdktrace.SpanProcessor }

func (panickingProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (panickingProcessor) OnEnd(sdktrace.ReadOnlySpan)                     { panic("exporter broke") }

// panickingMeters are providers whose instruments panic.
type panickingMeters struct{ noop.MeterProvider }

type panickingMeter struct{ noop.Meter }

type panickingHistogram struct{ noop.Float64Histogram }

type panickingCounter struct{ noop.Int64Counter }

func (panickingMeters) Meter(string, ...metric.MeterOption) metric.Meter { return panickingMeter{} }

func (panickingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return panickingHistogram{}, nil
}

func (panickingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return panickingCounter{}, nil
}

func (panickingHistogram) Enabled(context.Context) bool { return true }
func (panickingHistogram) Record(context.Context, float64, ...metric.RecordOption) {
	panic("exporter broke")
}
func (panickingCounter) Enabled(context.Context) bool                    { return true }
func (panickingCounter) Add(context.Context, int64, ...metric.AddOption) { panic("exporter broke") }

func TestPanicOfAnExporterReachesNoCall(t *testing.T) {
	r := newRecorder()
	for name, opts := range map[string][]Option{
		"spans":        {WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(panickingProcessor{})))},
		"measurements": {WithTracerProvider(r.tracers), WithMeterProvider(panickingMeters{})},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, get(t.Context(), t, "https://api.example.com", answer(200), Client(opts...)))

			h := eventHandler(t, func(context.Context, *heads.Event) error { return nil }, Events(opts...))
			assert.Equal(t, http.StatusOK, deliver(t, h, heads.EventStartConversation, sharedKey))

			tools := toolHandler(t, func(context.Context, struct{}) (string, error) { return "found", nil }, Tools(opts...))
			callTool(t, tools, "{}")
		})
	}
	assert.Len(t, r.spans.Ended(), 3, "a span ends even if its measurement panics")
}

func TestNothingSecretIsReported(t *testing.T) {
	r := newRecorder()
	tr := transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("canary") })
	require.Error(t, get(t.Context(), t, "https://api.example.com", tr, Client(r.options()...)))
	h := eventHandler(t, func(context.Context, *heads.Event) error { return errors.New("canary") }, Events(r.options()...))
	deliver(t, h, "canary-type", sharedKey)
	tools := toolHandler(t, func(context.Context, struct{}) (string, error) { return "", errors.New("canary") }, heads.WithPathToken("canary-path-token"), Tools(r.options()...))
	rec := httptest.NewRecorder()
	tools.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/canary-path-token/find?q=canary", strings.NewReader(`{"canary":"canary","session_metadata":{"session_id":"canary"}}`)))
	require.Equal(t, http.StatusOK, rec.Code)

	require.Len(t, r.spans.Ended(), 3)
	var all []attribute.KeyValue
	var texts []string
	for _, s := range r.spans.Ended() {
		all = append(all, s.Attributes()...)
		texts = append(texts, s.Name(), s.Status().Description)
		assert.Empty(t, s.Events())
	}
	for _, a := range all {
		texts = append(texts, a.Value.String())
	}
	for _, text := range texts {
		assert.NotContains(t, text, "canary")
		assert.NotContains(t, text, headID)
	}
}

// inAnotherProcess runs the test alone with the variable set, since the global provider can't be
// unset.
func inAnotherProcess(t *testing.T) (inside bool) {
	t.Helper()
	if os.Getenv("HEADSOTEL_TEST_ALONE") != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "HEADSOTEL_TEST_ALONE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return false
}

func TestGlobalProvidersMayBeSetLater(t *testing.T) {
	if !inAnotherProcess(t) {
		return
	}
	client := Client()
	require.NoError(t, get(t.Context(), t, "https://api.example.com", answer(200), client))
	r := newRecorder()
	otel.SetTracerProvider(r.tracers)
	otel.SetMeterProvider(r.meters)
	require.NoError(t, get(t.Context(), t, "https://api.example.com", answer(200), client))
	r.span(t)
	r.duration(t, "http.client.request.duration")
}

func TestTheSDKIsNoDependencyAtRunTime(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "go.opentelemetry.io/otel/trace\n")
	assert.NotContains(t, string(out), "go.opentelemetry.io/otel/sdk")
}
