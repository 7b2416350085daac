package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const tableConnLife = time.Minute // so that a former primary is left soon

// Create implements engine.Backend. CREATE TABLE IF NOT EXISTS fails if another session creates the
// table at the same time, hence the lock.
func (b *backend) Create(ctx context.Context, statements []string) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	err := pgx.BeginTxFunc(ctx, b.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := lockSetup(ctx, tx, "heads inbox: tables of the caller"); err != nil {
			return err
		}
		for i, text := range statements {
			_, err := tx.Exec(ctx, text)
			var e *pgconn.PgError
			switch {
			case errors.As(err, &e) && kindOf(err) == engine.Failed:
				return &engine.StatementError{Number: i + 1, Text: fmt.Sprintf("postgres: %s (SQLSTATE %s)", e.Message, e.Code)}
			case err != nil:
				return err
			case tx.Conn().PgConn().TxStatus() != 'T':
				return &engine.StatementError{Number: i + 1, Text: engine.EndedTransaction}
			}
		}
		return nil
	})
	var e *engine.StatementError
	if errors.As(err, &e) {
		return e
	}
	return fault(ctx, err)
}

// SQL implements engine.Backend.
func (b *backend) SQL() *sql.DB { return b.tables }

// openTables returns a pool of its own, since a function that waits for a connection must not keep
// others from being called.
func openTables(cfg *pgxpool.Config) *sql.DB {
	var opts []stdlib.OptionOpenDB
	if cfg.BeforeConnect != nil {
		opts = append(opts, stdlib.OptionBeforeConnect(cfg.BeforeConnect))
	}
	if cfg.AfterConnect != nil {
		opts = append(opts, stdlib.OptionAfterConnect(cfg.AfterConnect))
	}
	db := sql.OpenDB(tableConnector{stdlib.GetConnector(*cfg.ConnConfig, opts...)})
	db.SetMaxOpenConns(tableConns)
	db.SetMaxIdleConns(tableConns)
	db.SetConnMaxLifetime(tableConnLife)
	return db
}

// tableConnector hides the text of the driver's errors, which may show a part of the DSN.
type tableConnector struct{ driver.Connector }

func (c tableConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, publicError(fault(ctx, err))
	}
	return conn, nil
}
