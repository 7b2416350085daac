package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headsotel"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/database"
)

// shop has an inbox, and in the same database a table with a row for each handled event.
type shop struct {
	settings
	logger *slog.Logger
	inbox  *inbox.Inbox
	tools  *heads.ToolHandler
	meters *metric.MeterProvider
	mux    *http.ServeMux
}

func open(ctx context.Context, set settings, client *heads.Client, logger *slog.Logger) (*shop, error) {
	in, err := database.OpenInbox(ctx, set.database, inbox.WithLogger(logger), inbox.WithErrorText(), inbox.WithTables(
		"CREATE TABLE IF NOT EXISTS visits (id BIGINT PRIMARY KEY, head TEXT, session TEXT, event TEXT, at TEXT)",
		"CREATE INDEX IF NOT EXISTS visits_session ON visits (session, head)"))
	if err != nil {
		return nil, err
	}
	s := &shop{settings: set, logger: logger, inbox: in, mux: http.NewServeMux()}
	if err := s.route(client); err != nil {
		return nil, errors.Join(err, in.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *shop) route(client *heads.Client) error {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return err
	}
	s.meters = metric.NewMeterProvider(metric.WithReader(reader))
	meters := headsotel.WithMeterProvider(s.meters)
	headsotel.Inbox(s.inbox, meters)
	events, err := s.inbox.Handler(client.Webhooks.KeySource(), heads.WithEventLogger(s.logger), headsotel.Events(meters))
	if err != nil {
		return err
	}
	s.tools, err = heads.NewToolHandler("http://127.0.0.1:"+s.port+"/tools", heads.WithToolLogger(s.logger), headsotel.Tools(meters))
	if err != nil {
		return err
	}
	s.mux.Handle("POST /events", events)
	s.mux.Handle("POST /tools/", s.tools)
	s.mux.Handle("GET /health", s.inbox.Health())
	s.mux.Handle("GET /metrics", s.operator(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	s.mux.Handle("GET /stats", s.operator(http.HandlerFunc(s.stats)))
	s.mux.Handle("POST /redrive", s.operator(http.HandlerFunc(s.redrive)))
	return errors.Join(
		heads.AddTool(s.tools, "order_status", "Tells where an order is.", orderStatus),
		heads.AddTool(s.tools, "opening_hours", "Tells when the shop is open.", openingHours))
}

// serve answers requests and handles events until ctx ends. What waits then is handled after the
// next start. The lease is how long sessions wait whose events a killed shop was handling.
func (s *shop) serve(ctx context.Context, opts ...inbox.ServeOption) error {
	server := &http.Server{Addr: "127.0.0.1:" + s.port, Handler: s.mux, ReadTimeout: 10 * time.Second}
	return s.inbox.Serve(ctx, server, s.handle, append(opts, inbox.Lease(5*time.Second), inbox.MaxAttempts(s.attempts),
		inbox.AtShutdown(s.tools.Shutdown, s.meters.Shutdown))...)
}

// handle is called for each event until it returns nil. The row is added exactly once. A session
// goes to the CRM before its last event is marked as handled, so at least once.
func (s *shop) handle(ctx context.Context, d *inbox.Delivery) error {
	e, at := d.Event, d.Received.UTC().Format(time.RFC3339Nano)
	if e.Type == heads.EventEndConversation {
		earlier, err := s.visits(ctx, e)
		if err != nil {
			return err
		}
		if err := send(ctx, s.crmURL, finished{e.HeadID, e.SessionID, append(earlier, visit{string(e.Type), at})}); err != nil {
			return err
		}
	}
	return d.Commit(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO visits (id, head, session, event, at) VALUES ($1, $2, $3, $4, $5)",
			d.Sequence, e.HeadID, e.SessionID, string(e.Type), at)
		return err
	})
}

// visits returns the handled events of a session, in order.
func (s *shop) visits(ctx context.Context, e *heads.Event) (earlier []visit, err error) {
	rows, err := s.inbox.SQL().QueryContext(ctx, "SELECT event, at FROM visits WHERE session = $1 AND head = $2 ORDER BY id", e.SessionID, e.HeadID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v visit
		if err := rows.Scan(&v.Event, &v.At); err != nil {
			return nil, err
		}
		earlier = append(earlier, v)
	}
	return earlier, rows.Err()
}

type orderArguments struct {
	Order string `json:"order" jsonschema:"The number of the order."`
}

func orderStatus(_ context.Context, in orderArguments) (string, error) {
	message, known := map[string]string{"7": "Your order has been shipped.", "8": "Your order is being packed."}[in.Order]
	if !known {
		return "", heads.ToolError{Message: "There is no order with this number; ask the user to check it"}
	}
	return message, nil
}

func openingHours(context.Context, struct{}) (string, error) {
	return "The shop is open from 9 to 20, on Sundays from 11.", nil
}
