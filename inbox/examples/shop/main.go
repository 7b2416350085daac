// Shop is the back end of a shop whose heads talk to visitors. It answers two tools, stores the
// events of conversations in an inbox, and passes each finished session to a CRM. No event is lost
// when the shop is killed or the CRM is down.
//
//	POST /events          events of the service, verified with the keys of their head
//	POST /tools/NAME      calls of tools, which tell a caller no more than any visitor
//	GET  /health          200, or 503 while events can't be stored
//	GET  /stats, /metrics figures, as JSON and for Prometheus; want the operator's token
//	POST /redrive         brings all dead letters back; wants the operator's token
//
// Settings are variables of the environment:
//
//	HEADS_BASE_URL, HEADS_TOKEN  the service, which has the keys that verify events
//	PORT                         port on 127.0.0.1; a proxy in front has the certificate
//	SHOP_DB                      SQLite file, which is created, or PostgreSQL DSN
//	SHOP_CRM_URL                 gets a POST for each finished session; it may hold a key
//	SHOP_OPERATOR_TOKEN          bearer token of the operator, 16 characters or more
//	SHOP_ATTEMPTS                attempts before an event is a dead letter; default 20
//
// SIGINT and SIGTERM end it after what is under way; a second one ends it at once.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"strconv"
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

type settings struct {
	port, database        string
	crmURL, operatorToken heads.Secret
	attempts              int
}

// run reads all settings first, so that whatever is missing is told together.
func run(ctx context.Context, logger *slog.Logger) error {
	client, err := heads.NewFromEnv()
	set := settings{os.Getenv("PORT"), os.Getenv("SHOP_DB"), heads.NewSecret(os.Getenv("SHOP_CRM_URL")), heads.NewSecret(os.Getenv("SHOP_OPERATOR_TOKEN")), 0}
	for _, name := range []string{"PORT", "SHOP_DB"} {
		if os.Getenv(name) == "" {
			err = errors.Join(err, fmt.Errorf("%s is not set", name))
		}
	}
	if u, fault := url.Parse(set.crmURL.Reveal()); fault != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		err = errors.Join(err, errors.New("SHOP_CRM_URL is not an http or https URL"))
	}
	if len(set.operatorToken.Reveal()) < 16 {
		err = errors.Join(err, errors.New("SHOP_OPERATOR_TOKEN is shorter than 16 characters"))
	}
	text := cmp.Or(os.Getenv("SHOP_ATTEMPTS"), "20")
	if set.attempts, _ = strconv.Atoi(text); set.attempts < 1 {
		err = errors.Join(err, fmt.Errorf("SHOP_ATTEMPTS is %q; give a number from 1", text))
	}
	if err != nil {
		return err
	}
	s, err := open(ctx, set, client, logger)
	if err != nil {
		return err
	}
	return s.serve(ctx)
}
