package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
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
	visits *sql.DB // reads; rows are added through Commit
	events *heads.EventHandler
	tools  *heads.ToolHandler
	http   *http.Client // for the CRM
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
	s := &shop{settings: set, logger: logger, inbox: in, http: &http.Client{
		Timeout: crmTimeout,
		// A POST that is redirected becomes a GET, which would be taken for success.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
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
		err = errors.Join(err, s.visits.Close())
	}
	return err
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /events", s.events)
	mux.Handle("POST /tools/", s.tools)
	mux.HandleFunc("GET /health", s.health)
	mux.Handle("GET /stats", s.operatorOnly(s.stats))
	mux.Handle("POST /redrive", s.operatorOnly(s.redrive))
	return mux
}

var orders = map[string]string{"7": "Your order has been shipped.", "8": "Your order is being packed."}

type orderArguments struct {
	Order string `json:"order" jsonschema:"The number of the order."`
}

func orderStatus(_ context.Context, in orderArguments) (string, error) {
	message, known := orders[in.Order]
	if !known {
		return "", heads.ToolError{Message: "There is no order with this number; ask the user to check it"}
	}
	return message, nil
}

// openVisits creates the table of what was handled, a row for each event.
func openVisits(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS visits (head TEXT, session TEXT, event TEXT, at TEXT);
		CREATE INDEX IF NOT EXISTS visits_session ON visits (session, head)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// handle is called for each event until it returns nil. The row is added exactly once,
// and the session goes to the CRM at least once.
func (s *shop) handle(ctx context.Context, d *inbox.Delivery) error {
	v := visit{Event: string(d.Event.Type), At: d.Received.UTC().Format(time.RFC3339Nano)}
	if d.Event.Type == heads.EventEndConversation {
		if err := s.handOver(ctx, d.Event, v); err != nil {
			return err
		}
	}
	return d.Commit(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO visits (head, session, event, at) VALUES (?, ?, ?, ?)", d.Event.HeadID, d.Event.SessionID, v.Event, v.At)
		return err
	})
}
