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

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const (
	headID    = "3f2b8c1e-8a4d-4b7e-9c3a-1d2e3f4a5b6c"
	sharedKey = "canary-shared-key"
	token     = "canary-token"
	pathToken = "canary-path-token"
	scopeName = "github.com/headsapi/heads-go/headsotel"
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
	scope := ended[0].InstrumentationScope()
	assert.Equal(t, []string{scopeName, heads.Version}, []string{scope.Name, scope.Version})
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
		assert.Equal(t, []string{scopeName, heads.Version}, []string{s.Scope.Name, s.Scope.Version})
		for _, m := range s.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// durations returns the attributes, count and sum in seconds of the only point of a histogram.
func (r *recorder) durations(t testing.TB, name string) (attributes map[string]any, count uint64, sum float64) {
	t.Helper()
	m, ok := r.metrics(t)[name]
	require.True(t, ok, name)
	assert.Equal(t, "s", m.Unit)
	points := m.Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, points, 1)
	bounds := []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	if name == "heads.inbox.lag" {
		bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}
	}
	assert.Equal(t, bounds, points[0].Bounds)
	return values(points[0].Attributes.ToSlice()), points[0].Count, points[0].Sum
}

// reports asserts what the only span and the only value of a histogram tell, and returns the span.
// Only a span tells the operation.
func (r *recorder) reports(t testing.TB, name string, kind trace.SpanKind, histogram string, failed bool, want map[string]any) sdktrace.ReadOnlySpan {
	t.Helper()
	span, attributes := r.span(t)
	assert.Equal(t, want, attributes)
	assert.Equal(t, []any{name, kind, failed}, []any{span.Name(), span.SpanKind(), span.Status().Code == codes.Error})
	assert.False(t, span.Parent().IsValid(), "nothing incoming is read")
	delete(want, "heads.operation")
	attributes, count, _ := r.durations(t, histogram)
	assert.Equal(t, want, attributes)
	assert.EqualValues(t, 1, count)
	return span
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int) transport {
	return func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		rec.WriteHeader(max(status, http.StatusOK))
		_, _ = rec.WriteString(`{"id":"` + headID + `"}`)
		response := rec.Result()
		response.Request = r
		return response, nil
	}
}

// newClient returns a client without retries.
func newClient(t testing.TB, baseURL string, tr transport, opts ...heads.Option) *heads.Client {
	t.Helper()
	opts = append([]heads.Option{heads.WithHTTPClient(&http.Client{Transport: tr}), heads.WithRetryPolicy(heads.RetryPolicy{})}, opts...)
	client, err := heads.New(baseURL, token, opts...)
	require.NoError(t, err)
	return client
}

func get(ctx context.Context, t testing.TB, tr transport, opts ...heads.Option) error {
	t.Helper()
	_, err := newClient(t, "https://api.example.com", tr, opts...).Heads.Get(ctx, headID)
	return err
}

// The attributes are all that is reported: no id, query, body, key or error text.
func TestAttemptsHaveASpanAndADuration(t *testing.T) {
	for _, row := range []struct {
		name, baseURL, address, errorType string
		port, status                      int64
		err                               error
	}{
		{"success", "https://api.example.com/v1", "api.example.com", "", 443, 200, nil},
		{"with a port", "https://api.example.com:8443/v1", "api.example.com", "", 8443, 200, nil},
		{"IPv6", "http://[::1]:8080", "::1", "", 8080, 200, nil},
		{"IPv6 without a port", "https://[2001:db8::1]", "2001:db8::1", "", 443, 200, nil},
		{"refused", "https://api.example.com", "api.example.com", "400", 443, 400, nil},
		{"redirect", "https://api.example.com", "api.example.com", "_OTHER", 443, 302, nil},
		{"broken", "https://api.example.com", "api.example.com", "_OTHER", 443, 0, errors.New("canary")},
		{"timeout", "https://api.example.com", "api.example.com", "timeout", 443, 0, os.ErrDeadlineExceeded},
		{"deadline", "https://api.example.com", "api.example.com", "timeout", 443, 0, context.DeadlineExceeded},
		{"canceled", "https://api.example.com", "api.example.com", "canceled", 443, 0, context.Canceled},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				slow := func(req *http.Request) (*http.Response, error) {
					<-time.After(2 * time.Second)
					if row.err != nil {
						return nil, row.err
					}
					return answer(int(row.status))(req)
				}
				_, err := newClient(t, row.baseURL, slow, Client(r.options(nil)...)).Heads.Get(t.Context(), headID) // a nil option is ignored
				assert.Equal(t, row.errorType != "", err != nil)

				want := map[string]any{"http.request.method": "GET", "url.template": "/head/{id}", "server.address": row.address, "server.port": row.port, "heads.operation": "Heads.Get"}
				if row.status != 0 {
					want["http.response.status_code"] = row.status
				}
				if row.errorType != "" {
					want["error.type"] = row.errorType
				}
				r.reports(t, "GET /head/{id}", trace.SpanKindClient, "http.client.request.duration", row.errorType != "", want)
				_, _, seconds := r.durations(t, "http.client.request.duration")
				assert.InDelta(t, 2, seconds, 0)
			})
		})
	}
}

func TestEachAttemptIsASpanOfItsOwnBelowTheCaller(t *testing.T) {
	state, err := trace.ParseTraceState("a=b")
	require.NoError(t, err)
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state})
	bag, err := baggage.Parse("user=canary")
	require.NoError(t, err)
	ctx := baggage.ContextWithBaggage(trace.ContextWithSpanContext(t.Context(), caller), bag)
	for _, row := range []struct {
		opts    []Option
		headers []string
	}{
		{nil, []string{"Accept", "Authorization", "User-Agent"}},
		{[]Option{Propagate()}, []string{"Accept", "Authorization", "Traceparent", "Tracestate", "User-Agent"}}, // and no baggage
	} {
		r := newRecorder()
		var sent []http.Header
		tr := func(req *http.Request) (*http.Response, error) {
			sent = append(sent, req.Header.Clone())
			return answer(503)(req)
		}
		retries := heads.WithRetryPolicy(heads.RetryPolicy{MaxRetries: 2, MinWait: time.Microsecond, MaxWait: time.Microsecond})
		require.Error(t, get(ctx, t, tr, Client(r.options(row.opts...)...), retries))
		require.Len(t, r.spans.Ended(), 3)
		for i, span := range r.spans.Ended() {
			assert.Equal(t, row.headers, slices.Sorted(maps.Keys(sent[i])))
			assert.Equal(t, caller.TraceID(), span.SpanContext().TraceID())
			assert.Equal(t, caller.SpanID(), span.Parent().SpanID())
			assert.Equal(t, []any{nil, int64(1), int64(2)}[i], values(span.Attributes())["http.request.resend_count"])
			if row.opts != nil {
				assert.Equal(t, "00-"+caller.TraceID().String()+"-"+span.SpanContext().SpanID().String()+"-01", sent[i].Get("Traceparent"), "of this attempt")
				assert.Equal(t, "a=b", sent[i].Get("Tracestate"))
			}
		}
		attributes, count, _ := r.durations(t, "http.client.request.duration")
		assert.NotContains(t, attributes, "http.request.resend_count", "the metric does not have it")
		assert.EqualValues(t, 3, count)
	}
}

func TestCallsOfEventsAndToolsAreTheirChildren(t *testing.T) {
	r := newRecorder()
	client := Client(r.options()...)
	call := func(ctx context.Context) error { return get(ctx, t, answer(200), client) }
	events := eventHandler(t, func(ctx context.Context, _ *heads.Event) error { return call(ctx) }, Events(r.options()...))
	tools := toolHandler(t, func(ctx context.Context, _ struct{}) (string, error) { return "found", call(ctx) }, Tools(r.options()...))

	deliver(t, events, heads.EventStartConversation, sharedKey)
	callTool(t, tools, "find", "{}")
	ended := r.spans.Ended()
	require.Len(t, ended, 4)
	for i, name := range map[int]string{1: "heads.delivery", 3: "heads.tool find"} {
		child, parent := ended[i-1], ended[i]
		assert.Equal(t, []string{"GET /head/{id}", name}, []string{child.Name(), parent.Name()})
		assert.Equal(t, parent.SpanContext().SpanID(), child.Parent().SpanID(), name)
	}
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
	h, err := heads.NewToolHandler("https://tools.example.com", append(opts, heads.WithPathToken(pathToken))...)
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

// Anyone who can reach a handler can send any body: the attributes are all that is reported.
func TestDeliveriesHaveASpanAndADurationAndACount(t *testing.T) {
	handled := func(error) error { return nil }
	for _, row := range []struct {
		name, key, outcome, eventType string
		handle                        func(error) error
		kind                          heads.EventType
		failed                        bool
	}{
		{"end", sharedKey, "handled", "end_conversation", handled, heads.EventEndConversation, false},
		{"inactivity", sharedKey, "handled", "inactivity_warning", handled, heads.EventInactivityWarning, false},
		{"timeout", sharedKey, "handled", "timeout_conversation", handled, heads.EventTimeoutConversation, false},
		{"other type", sharedKey, "handled", "other", handled, "canary", false},
		{"failed", sharedKey, "failed", "start_conversation", func(err error) error { return err }, heads.EventStartConversation, true},
		{"panicked", sharedKey, "panicked", "start_conversation", func(err error) error { panic(err) }, heads.EventStartConversation, true},
		{"not verified", "another key", "unauthorized", "", nil, heads.EventStartConversation, false},
		{"shut down", sharedKey, "shut_down", "", nil, heads.EventStartConversation, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder()
			var inside trace.SpanContext
			h := eventHandler(t, func(ctx context.Context, _ *heads.Event) error {
				inside = trace.SpanContextFromContext(ctx)
				return row.handle(errors.New("canary"))
			}, Events(r.options(Propagate())...))
			if row.name == "shut down" {
				require.NoError(t, h.Shutdown(t.Context()))
			}
			deliver(t, h, row.kind, row.key)

			want := map[string]any{"heads.delivery.outcome": row.outcome}
			if row.handle != nil {
				want["heads.event.type"] = row.eventType
			}
			span := r.reports(t, "heads.delivery", trace.SpanKindConsumer, "heads.delivery.duration", row.failed, want)
			assert.Equal(t, row.handle != nil, span.SpanContext().SpanID() == inside.SpanID())
			count := r.metrics(t)["heads.delivery.count"]
			assert.Equal(t, "{delivery}", count.Unit)
			points := count.Data.(metricdata.Sum[int64]).DataPoints
			require.Len(t, points, 1)
			assert.EqualValues(t, 1, points[0].Value)
			assert.Equal(t, want, values(points[0].Attributes.ToSlice()))
		})
	}
	for outcome, failed := range map[heads.DeliveryOutcome]bool{heads.DeliveryBusy: false, heads.DeliveryKeysFailed: true} {
		assert.Equal(t, failed, deliveryFailed(heads.DeliveryInfo{Outcome: outcome, StatusCode: 503}), outcome)
	}
}

// post calls a tool and returns the status of the answer.
func post(h *heads.ToolHandler, tool, body string) int {
	rec := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/"+pathToken+"/"+tool+"?q=canary", strings.NewReader(body))
	request.Header.Set("traceparent", "00-01000000000000000000000000000000-0200000000000000-01")
	h.ServeHTTP(rec, request)
	return rec.Code
}

func callTool(t testing.TB, h *heads.ToolHandler, tool, body string) {
	t.Helper()
	require.Equal(t, http.StatusOK, post(h, tool, body))
}

func TestToolCallsHaveASpanAndADuration(t *testing.T) {
	const body = `{"canary":"canary","session_metadata":{"session_id":"canary"}}`
	for outcome, row := range map[heads.ToolOutcome]struct {
		f      func(context.Context) (string, error)
		body   string
		failed bool
	}{
		heads.ToolAnswered:   {func(context.Context) (string, error) { return "canary", nil }, body, false},
		heads.ToolTold:       {func(context.Context) (string, error) { return "", heads.ToolError{Message: "canary"} }, body, false},
		heads.ToolUnreadable: {nil, "canary", false},
		heads.ToolFailed:     {func(context.Context) (string, error) { return "", errors.New("canary") }, body, true},
		heads.ToolPanicked:   {func(context.Context) (string, error) { panic("canary") }, body, true},
		heads.ToolTimedOut:   {func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, body, true},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			r := newRecorder()
			var inside trace.SpanContext
			h := toolHandler(t, func(ctx context.Context, _ struct{}) (string, error) {
				inside = trace.SpanContextFromContext(ctx)
				return row.f(ctx)
			}, heads.WithToolTimeout(100*time.Millisecond), Tools(r.options()...))
			callTool(t, h, "find", row.body)
			require.NoError(t, h.Shutdown(t.Context()))
			want := map[string]any{"heads.tool.name": "find", "heads.tool.outcome": string(outcome)}
			span := r.reports(t, "heads.tool find", trace.SpanKindServer, "heads.tool.duration", row.failed, want)
			assert.Equal(t, row.f != nil, span.SpanContext().SpanID() == inside.SpanID())
		})
	}
}

func TestToolCallsThatReachNoFunctionAreNoErrors(t *testing.T) {
	r := newRecorder()
	var refusal error
	h, err := heads.NewToolHandler("https://tools.example.com", heads.WithPathToken(pathToken), Tools(r.options()...), heads.WithToolAuth(func(*http.Request) error { return refusal }))
	require.NoError(t, err)
	type arguments struct {
		City string `json:"city" jsonschema:"City"`
	}
	require.NoError(t, heads.AddTool(h, "find", "Finds", func(context.Context, arguments) (string, error) { return "found", nil }))
	callTool(t, h, "find", "{}")
	assert.Equal(t, http.StatusNotFound, post(h, strings.Repeat("canary", 4<<10), "{}"), "it has no span")
	refusal = errors.New("canary")
	assert.Equal(t, http.StatusUnauthorized, post(h, "find", "{}"))
	require.NoError(t, h.Shutdown(t.Context()))
	callTool(t, h, "find", "{}")
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
	require.NoError(t, get(ctx, t, answer(200), Client(first.options()...), Client(second.options()...)))
	for _, r := range []*recorder{first, second} {
		r.span(t)
		_, count, _ := r.durations(t, "http.client.request.duration")
		assert.EqualValues(t, 1, count)
	}
	assert.True(t, outer.IsRecording())
	assert.Empty(t, caller.spans.Ended())
}

type panickingProcessor struct{ sdktrace.SpanProcessor }

func (panickingProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (panickingProcessor) OnEnd(sdktrace.ReadOnlySpan)                     { panic("exporter broke") }

func TestPanicOfAnExporterReachesNoCall(t *testing.T) {
	r := newRecorder()
	r.reader = sdkmetric.NewManualReader()
	panicking := sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{AttributeFilter: func(attribute.KeyValue) bool { panic("exporter broke") }})
	for name, opts := range map[string][]Option{
		"spans":        {WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(panickingProcessor{})))},
		"measurements": {WithTracerProvider(r.tracers), WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader), sdkmetric.WithView(panicking)))},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, get(t.Context(), t, answer(200), Client(opts...)))
			h := eventHandler(t, func(context.Context, *heads.Event) error { return nil }, Events(opts...))
			assert.Equal(t, http.StatusOK, deliver(t, h, heads.EventStartConversation, sharedKey))
			callTool(t, toolHandler(t, func(context.Context, struct{}) (string, error) { return "found", nil }, Tools(opts...)), "find", "{}")
		})
	}
	assert.Len(t, r.spans.Ended(), 3, "a span ends even if its measurement panics")
	assert.Empty(t, r.metrics(t))
}

func TestGlobalProvidersMayBeSetLater(t *testing.T) {
	const variable = "HEADSOTEL_TEST_ALONE" // runs the test in a process of its own, since the global provider can't be unset
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	client := Client()
	require.NoError(t, get(t.Context(), t, answer(200), client))
	r := newRecorder()
	otel.SetTracerProvider(r.tracers)
	otel.SetMeterProvider(r.meters)
	require.NoError(t, get(t.Context(), t, answer(200), client))
	r.span(t)
	_, count, _ := r.durations(t, "http.client.request.duration")
	assert.EqualValues(t, 1, count)
}

func TestTheSDKIsNoDependencyAtRunTime(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "go.opentelemetry.io/otel/trace\n")
	assert.NotContains(t, string(out), "go.opentelemetry.io/otel/sdk")
}
