package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/console"
	"github.com/headsapi/heads-go/inbox/database"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// A complete service: it stores events before it answers their deliveries, and inserts a visit for
// each. A signal ends it after what is under way, and a second one ends the process.
func ExampleInbox_Serve() {
	serve := func(ctx context.Context, dsn, address, sharedKey string) error {
		in, err := database.OpenInbox(ctx, dsn, inbox.WithTables("CREATE TABLE IF NOT EXISTS visits (session TEXT)"))
		if err != nil {
			return err
		}
		handler, err := in.Handler(heads.SharedKeys(sharedKey)) // was heads.NewEventHandler
		if err != nil {
			return errors.Join(err, in.Close(ctx))
		}
		mux := http.NewServeMux()
		mux.Handle("POST /events", handler)
		mux.Handle("GET /health", in.Health())
		return in.Serve(ctx, &http.Server{Addr: address, Handler: mux}, func(ctx context.Context, d *inbox.Delivery) error {
			return d.Commit(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO visits (session) VALUES ($1)", d.Event.SessionID)
				return err
			})
		})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	address := unusedAddress()
	go func() { // in place of a signal
		for !answers("http://" + address + "/health") {
		}
		stop()
	}()
	fmt.Println(serve(ctx, filepath.Join(dir, "events.db"), address, "shared key of the registration"))
	// Output: <nil>
}

// The operator's page is behind a proxy with a login, which sets a header with the user.
func Example_console() {
	serve := func(ctx context.Context, in *inbox.Inbox, mux *http.ServeMux, logger *slog.Logger) error {
		user := func(r *http.Request) string { return r.Header.Get("X-Forwarded-User") }
		page, err := console.New(in,
			console.Hosts("operations.example.com"),
			console.AllowChanges(user),
			console.AllowBodies(user),
			console.Audit(logger),
			console.Sample(ctx),
		)
		if err != nil {
			return err
		}
		mux.Handle("/operations/inbox", page)
		return nil
	}
	_ = serve
}

// Dead letters are listed, and redriven after their cause was fixed.
func ExampleInbox_Dead() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := sqlite.Open(filepath.Join(dir, "events.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := inbox.Open(ctx, db, inbox.WithErrorText())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close(context.Background())
	event, err := heads.ParseEvent([]byte(`{"event_type":"end_conversation","timestamp":"2026-08-31 06:56:30","head_id":"ada","session_id":"one"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := in.Append(ctx, event); err != nil {
		fmt.Println(err)
		return
	}
	err = in.Run(ctx, func(context.Context, *inbox.Delivery) error {
		cancel()
		return inbox.Permanent(errors.New("no such customer"))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for dead, err := range in.Dead(context.Background(), inbox.Query{HeadID: "ada"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(dead.Event.SessionID, dead.Attempts, dead.Error)
		n, err := in.Redrive(context.Background(), dead.Sequence)
		fmt.Println("brought back:", n, err)
	}
	// Output:
	// one 1 no such customer
	// brought back: 1 <nil>
}
