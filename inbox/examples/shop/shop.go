package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/database"
)

// shop has an inbox, and a table of visits in the same database.
type shop struct {
	settings
	logger *slog.Logger
	inbox  *inbox.Inbox
	visits *visits
	crm    *crm
	events *heads.EventHandler
	tools  *heads.ToolHandler
}

func open(ctx context.Context, set settings, client *heads.Client, logger *slog.Logger) (*shop, error) {
	in, err := database.OpenInbox(ctx, set.database, inbox.WithLogger(logger), inbox.WithErrorText(), inbox.WithTables(visitTables...))
	if err != nil {
		return nil, err
	}
	s := &shop{settings: set, logger: logger, inbox: in, visits: &visits{in.SQL()}, crm: newCRM(set.crmURL)}
	if err := s.prepare(client); err != nil {
		return nil, errors.Join(err, in.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *shop) prepare(client *heads.Client) (err error) {
	if s.events, err = s.inbox.Handler(client.Webhooks.KeySource(), heads.WithEventLogger(s.logger)); err != nil {
		return err
	}
	// The tool tells a caller no more than it tells any visitor. One that does wants
	// WithPathToken, and the token in its registered URL.
	s.tools, err = heads.NewToolHandler("http://127.0.0.1:"+s.port+"/tools", heads.WithToolLogger(s.logger))
	if err != nil {
		return err
	}
	return heads.AddTool(s.tools, "order_status", "Tells where an order is.", orderStatus)
}

func (s *shop) routes() http.Handler {
	op := &operator{s.operatorToken, s.logger, s.inbox, s.visits}
	mux := http.NewServeMux()
	mux.Handle("POST /events", s.events)
	mux.Handle("POST /tools/", s.tools)
	mux.Handle("GET /health", s.inbox.Health())
	mux.Handle("GET /stats", op.only(op.stats))
	mux.Handle("POST /redrive", op.only(op.redrive))
	return mux
}

// handle is called for each event until it returns nil. The row is added exactly once. A
// session goes to the CRM before its last event is marked as handled, so at least once.
func (s *shop) handle(ctx context.Context, d *inbox.Delivery) error {
	v := visit{Event: string(d.Event.Type), At: d.Received.UTC().Format(time.RFC3339Nano)}
	if d.Event.Type == heads.EventEndConversation {
		earlier, err := s.visits.of(ctx, d.Event)
		if err != nil {
			return err
		}
		if err := s.crm.send(ctx, finished{d.Event.HeadID, d.Event.SessionID, append(earlier, v)}); err != nil {
			return err
		}
	}
	return d.Commit(ctx, func(tx *sql.Tx) error { return add(ctx, tx, d, v) })
}

// lease is how long the sessions wait whose events a killed shop was handling.
const lease = 5 * time.Second

// serve answers requests and handles events until ctx ends. What waits then is handled after the
// next start.
func (s *shop) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.routes(), ReadTimeout: 10 * time.Second}
	return s.inbox.Serve(ctx, server, s.handle, inbox.Listener(listener), inbox.Lease(lease), inbox.MaxAttempts(s.attempts),
		inbox.AtShutdown(s.tools.Shutdown))
}
