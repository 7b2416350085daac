package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/console"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// A server stores events before it answers their deliveries, and inserts a visit for each event.
func Example() {
	serve := func(ctx context.Context, mux *http.ServeMux, sharedKey string) error {
		db, err := sqlite.Open("events.db") // or postgres.Open(ctx, dsn)
		if err != nil {
			return err
		}
		in, err := inbox.Open(ctx, db)
		if err != nil {
			return err
		}
		handler, err := in.Handler(heads.SharedKeys(sharedKey)) // was heads.NewEventHandler
		if err != nil {
			return err
		}
		mux.Handle("/webhooks/heads", handler)
		return in.Run(ctx, func(ctx context.Context, d *inbox.Delivery) error {
			return d.Commit(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO visits (session) VALUES ($1)", d.Event.SessionID)
				return err
			})
		})
	}
	_ = serve
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

// shutDown stops receiving first, so that every stored event is answered, and closes the inbox
// last. ran receives the result of Run.
func shutDown(server *http.Server, handler *heads.EventHandler, stopRun context.CancelFunc, ran <-chan error, in *inbox.Inbox) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := errors.Join(server.Shutdown(ctx), handler.Shutdown(ctx)) // no event arrives any more; what arrived is stored and answered
	stopRun()                                                       // running functions finish, up to DrainTimeout; the rest waits in the inbox
	return errors.Join(err, <-ran, in.Close(ctx))
}

func ExampleInbox_Close() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "events.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := inbox.Open(context.Background(), db)
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := in.Handler(heads.SharedKeys("shared key of the registration"))
	if err != nil {
		fmt.Println(err)
		return
	}
	began := make(chan struct{})
	ctx, stopRun := context.WithCancel(context.Background())
	defer stopRun()
	ran := make(chan error, 1)
	go func() {
		ran <- in.Run(ctx, func(ctx context.Context, d *inbox.Delivery) error {
			close(began)
			<-ctx.Done() // ends after DrainTimeout
			fmt.Println("cut off")
			return ctx.Err()
		}, inbox.DrainTimeout(100*time.Millisecond))
	}()
	server := httptest.NewServer(handler)
	event := heads.Event{Type: heads.EventStartConversation, HeadID: "3f2b8c1e-8a4d-4b7e-9c3a-1d2e3f4a5b6c", SessionID: "session-1"}
	request := headstest.NewEventRequest(server.URL, event, "shared key of the registration")
	request.RequestURI = ""
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Body.Close(), answer.StatusCode)
	<-began
	fmt.Println(shutDown(server.Config, handler, stopRun, ran, in))
	// Output:
	// <nil> 200
	// cut off
	// <nil>
}
