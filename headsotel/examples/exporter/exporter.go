// Package exporter is a runnable example with a complete exporter: a client, an event handler and
// an inbox report through OpenTelemetry to a page that Prometheus scrapes. It is a separate module,
// so that no other program gets its dependencies.
package exporter

import (
	"context"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsotel"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// startMetrics sets a global meter provider whose metrics are served at /metrics, until the
// returned function is called.
func startMetrics(mux *http.ServeMux) (stop func(context.Context) error, err error) {
	exporter, err := prometheus.New()
	if err != nil {
		return nil, err
	}
	service := resource.NewSchemaless(attribute.String("service.name", "my-back-end"))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(service))
	otel.SetMeterProvider(meters)
	mux.Handle("/metrics", promhttp.Handler())
	return meters.Shutdown, nil
}

// receive stores events and handles them until ctx ends.
func receive(ctx context.Context, mux *http.ServeMux, file string, keys heads.KeySource, handle func(context.Context, *inbox.Delivery) error) error {
	db, err := sqlite.Open(file)
	if err != nil {
		return err
	}
	in, err := inbox.Open(ctx, db)
	if err != nil {
		return err
	}
	headsotel.Inbox(in)
	events, err := in.Handler(keys, headsotel.Events())
	if err != nil {
		return err
	}
	mux.Handle("/events", events)
	return errors.Join(in.Run(ctx, handle), in.Close(context.WithoutCancel(ctx)))
}
