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
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// shop has an inbox, and a table of visits in the same file.
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
	db, err := sqlite.Open(set.file)
	if err != nil {
		return nil, err
	}
	in, err := inbox.Open(ctx, db, inbox.WithLogger(logger), inbox.WithErrorText())
	if err != nil {
		return nil, err
	}
	s := &shop{settings: set, logger: logger, inbox: in, crm: newCRM(set.crmURL)}
	if err := s.prepare(ctx, client); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *shop) prepare(ctx context.Context, client *heads.Client) (err error) {
	if s.visits, err = openVisits(ctx, s.file); err != nil {
		return err
	}
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

// close closes the files. Nothing may be under way.
func (s *shop) close(ctx context.Context) error {
	err := s.inbox.Close(ctx)
	if s.visits != nil {
		err = errors.Join(err, s.visits.db.Close())
	}
	return err
}

func (s *shop) routes() http.Handler {
	op := &operator{s.operatorToken, s.logger, s.inbox, s.visits}
	mux := http.NewServeMux()
	mux.Handle("POST /events", s.events)
	mux.Handle("POST /tools/", s.tools)
	mux.HandleFunc("GET /health", op.health)
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
	return d.Commit(ctx, func(tx *sql.Tx) error { return add(ctx, tx, d.Event, v) })
}

const (
	// lease is how long the sessions wait whose events a killed shop was handling.
	lease    = 5 * time.Second
	patience = 30 * time.Second // of a shutdown
)

// serve answers requests and handles events until ctx ends, or until one of both fails.
func (s *shop) serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		cancel()
	}()
	ran := make(chan error, 1)
	go func() {
		ran <- s.inbox.Run(ctx, s.handle, inbox.Lease(lease), inbox.MaxAttempts(s.attempts))
		cancel()
	}()
	<-ctx.Done()

	// What has arrived is stored and answered, and what is being handled comes to its end.
	// The rest waits in the file for the next start.
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	err := errors.Join(server.Shutdown(ending), s.events.Shutdown(ending), s.tools.Shutdown(ending))
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return errors.Join(err, <-ran, s.close(ending))
}
