// Shop is the back end of a shop whose heads talk to visitors. It answers the tool
// order_status, stores the events of conversations in an inbox, and passes each finished
// session to a CRM. No event is lost when the shop is killed or the CRM is down.
//
//	POST /events              events of the service, verified with the keys of their head
//	POST /tools/order_status  calls of the tool
//	GET  /health              200, or 503 while events can't be stored
//	GET  /stats               figures, as JSON; wants the operator's token
//	POST /redrive             brings all dead letters back; wants the operator's token
//
// Settings are variables of the environment:
//
//	HEADS_BASE_URL, HEADS_TOKEN  the service, which has the keys that verify events
//	PORT                         port on 127.0.0.1; a proxy in front has the certificate
//	SHOP_DB                      SQLite file, which is created, or PostgreSQL DSN
//	SHOP_CRM_URL                 gets a POST for each finished session
//	SHOP_OPERATOR_TOKEN          bearer token of the operator, 16 characters or more
//	SHOP_ATTEMPTS                attempts before an event is a dead letter; default 20
//
// SIGINT and SIGTERM end it after what is under way; a second one ends it at once.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	heads "github.com/headsapi/heads-go"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the process
	if err := run(ctx, logger); err != nil {
		logger.Error("the shop ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *slog.Logger) error {
	client, clientErr := heads.NewFromEnv()
	set, err := readSettings()
	if err := errors.Join(clientErr, err); err != nil {
		return err
	}
	s, err := open(ctx, set, client, logger)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+set.port)
	if err != nil {
		return errors.Join(err, s.inbox.Close(context.WithoutCancel(ctx)))
	}
	logger.Info("listening", "address", listener.Addr().String())
	return s.serve(ctx, listener)
}
