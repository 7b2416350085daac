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
//	SHOP_DB                      SQLite file, which is created
//	SHOP_CRM_URL                 gets a POST for each finished session
//	SHOP_OPERATOR_TOKEN          bearer token of the operator, 16 characters or more
//	SHOP_ATTEMPTS                attempts before an event is a dead letter; default 20
//
// SIGINT and SIGTERM end it after what is under way.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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
		return errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	logger.Info("listening", "address", listener.Addr().String())
	return s.serve(ctx, listener)
}

// settings are read once, so that whatever is missing is known at the start.
type settings struct {
	port     string
	file     string
	crm      heads.Secret // a URL may hold a key
	operator heads.Secret
	attempts int
}

func readSettings() (settings, error) {
	s := settings{
		port:     os.Getenv("PORT"),
		file:     os.Getenv("SHOP_DB"),
		crm:      heads.NewSecret(os.Getenv("SHOP_CRM_URL")),
		operator: heads.NewSecret(os.Getenv("SHOP_OPERATOR_TOKEN")),
		attempts: 20,
	}
	var faults []error
	for _, name := range []string{"PORT", "SHOP_DB"} {
		if os.Getenv(name) == "" {
			faults = append(faults, fmt.Errorf("%s is not set", name))
		}
	}
	if u, err := url.Parse(s.crm.Reveal()); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		faults = append(faults, errors.New("SHOP_CRM_URL is not an http or https URL"))
	}
	if len(s.operator.Reveal()) < 16 {
		faults = append(faults, errors.New("SHOP_OPERATOR_TOKEN is shorter than 16 characters"))
	}
	if text := os.Getenv("SHOP_ATTEMPTS"); text != "" {
		n, err := strconv.Atoi(text)
		if s.attempts = n; err != nil || n < 1 {
			faults = append(faults, fmt.Errorf("SHOP_ATTEMPTS is %q; give a number from 1", text))
		}
	}
	return s, errors.Join(faults...)
}

const (
	// lease is how long the events of a killed shop wait. It is longer than the CRM may
	// take, so that a slow answer costs no claim.
	lease      = 5 * time.Second
	crmTimeout = 3 * time.Second
	patience   = 30 * time.Second // of a shutdown
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
