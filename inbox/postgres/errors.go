package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// fault turns an error of the driver into one of package engine. It keeps only the server's message
// or the kind of the failure: pgx prints host names, and an unescaped @ in a password makes the
// rest of it a host name.
func fault(ctx context.Context, err error) error {
	var own *engine.Error
	var schema *engine.SchemaError
	var e *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own), errors.As(err, &schema):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &e):
		return &engine.Error{Kind: kindOf(err), Text: fmt.Sprintf("postgres: %s (SQLSTATE %s)", e.Message, e.Code)}
	}
	return &engine.Error{Kind: kindOf(err), Text: "postgres: " + describe(err)}
}

const readOnly = "25006"

// kindOf returns the kind of a driver's error.
func kindOf(err error) engine.Kind {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		if isLost(err) {
			return engine.Away
		}
		return engine.Failed
	}
	switch e.Code {
	case "40001", "40P01", "57014":
		return engine.Again
	case "55P03":
		return engine.Locked
	case "53100":
		return engine.Full
	case "XX001", "XX002":
		return engine.Damaged
	case readOnly, "25P03", "53300", "57P01", "57P02", "57P03", "57P05":
		return engine.Away
	}
	if e.Code[:2] == "08" {
		return engine.Away
	}
	return engine.Failed
}

// isLost reports whether an error means that the connection was lost or could not be opened.
func isLost(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	var errno syscall.Errno
	if errors.As(err, &network) || errors.As(err, &connect) || errors.As(err, &errno) {
		return true
	}
	for _, lost := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, driver.ErrBadConn, sql.ErrConnDone,
		context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// describe describes the error without its text.
func describe(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &dns):
		return "the host name can't be resolved"
	case errors.As(err, &errno):
		return "no connection: " + errno.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "no connection in time"
	case isLost(err):
		return "the connection was lost"
	}
	return fmt.Sprintf("%T", err)
}

func refused(reason string) error {
	return &engine.Error{Kind: engine.Failed, Text: "postgres: " + reason}
}

func publicError(err error) error {
	return errors.New("inbox: postgres: " + strings.TrimPrefix(err.Error(), "postgres: "))
}
