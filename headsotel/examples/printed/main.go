// Printed converts a head, receives an event and answers a tool call, with an emulator in this
// process, and prints the spans and metrics.
//
//	go run ./examples/printed
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsotel"
	"github.com/headsapi/heads-go/headstest"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if err := flag.NewFlagSet("printed", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	// A real program sets the global providers and needs no option.
	providers := []headsotel.Option{headsotel.WithTracerProvider(tracers), headsotel.WithMeterProvider(meters)}

	if err := work(ctx, tracers.Tracer("printed"), providers); err != nil {
		return err
	}
	printSpans(out, spans.GetSpans(), trace.SpanID{}, 0)
	return printMetrics(ctx, out, reader)
}

// work is a conversion, a delivery and a tool call.
func work(ctx context.Context, tracer trace.Tracer, providers []headsotel.Option) error {
	service := headstest.NewServer(headstest.WithLoopbackHTTP())
	defer service.Close()
	client := service.Client(headsotel.Client(providers...))
	visual := service.AddVisual(headstest.Visual{Mode: heads.VisualModeDefault})
	headID := service.AddHead(headstest.Head{Name: "Ada", HeadVisualID: visual, TTSProvider: "azure", TTSVoice: "en-US-AriaNeural", OperationMode: heads.OperationModeOC})

	handled := make(chan struct{}, 1)
	events, err := heads.NewEventHandler(client.Webhooks.KeySource(), func(ctx context.Context, _ *heads.Event) error {
		_, span := tracer.Start(ctx, "store the event")
		span.End()
		handled <- struct{}{}
		return nil
	}, headsotel.Events(providers...))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	tools, err := heads.NewToolHandler(server.URL, headsotel.Tools(providers...))
	if err != nil {
		return err
	}
	mux.Handle("/events", events)
	mux.Handle("/", tools)
	err = heads.AddTool(tools, "find_order", "Finds an order.", func(context.Context, struct{}) (string, error) { return "On its way.", nil })
	if err != nil {
		return err
	}

	converting, span := tracer.Start(ctx, "convert one head")
	_, err = client.Heads.ConvertToStreaming(converting, headID, heads.ConvertOptions{})
	span.End()
	if err != nil {
		return err
	}
	preparing, span := tracer.Start(ctx, "prepare")
	defer span.End()
	if _, err := client.Webhooks.Ensure(preparing, heads.WebhookSpec{HeadID: headID, URL: server.URL + "/events", Events: []heads.EventType{heads.EventStartConversation}}, heads.EnsureOptions{}); err != nil {
		return err
	}
	if _, err := client.ConversationSettings.SetTools(preparing, headID, tools.Tools()...); err != nil {
		return err
	}
	service.StartSession(headID).UserMessage("Where is my order?")
	<-handled
	if _, err := service.CallTool(ctx, headID, "find_order", nil); err != nil {
		return err
	}
	return errors.Join(events.Shutdown(ctx), tools.Shutdown(ctx)) // ends all spans
}

// printSpans prints the children of parent in the order of their start.
func printSpans(out io.Writer, spans tracetest.SpanStubs, parent trace.SpanID, level int) {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	for _, s := range spans {
		if s.Parent.SpanID() == parent {
			fmt.Fprintf(out, "%s%s (%s)%s\n", strings.Repeat("  ", level), s.Name, s.SpanKind, describe(s.Attributes))
			printSpans(out, slices.Clone(spans), s.SpanContext.SpanID(), level+1)
		}
	}
}

func printMetrics(ctx context.Context, out io.Writer, reader sdkmetric.Reader) error {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		return err
	}
	for _, scope := range all.ScopeMetrics {
		slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		for _, m := range scope.Metrics {
			var lines []string
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("  %d%s", p.Count, describe(p.Attributes.ToSlice())))
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					lines = append(lines, fmt.Sprintf("  %d%s", p.Value, describe(p.Attributes.ToSlice())))
				}
			}
			slices.Sort(lines)
			fmt.Fprintf(out, "%s in %s\n%s\n", m.Name, m.Unit, strings.Join(lines, "\n"))
		}
	}
	return nil
}

// describe omits the port, which differs between runs.
func describe(attributes []attribute.KeyValue) string {
	var b strings.Builder
	for _, a := range attributes {
		if a.Key != "server.port" {
			fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
		}
	}
	return b.String()
}
