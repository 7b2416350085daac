package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modernc.org/sqlite"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	tableTimeout = 5 * time.Second // for a lock held by another transaction
	tableConns   = 4
)

// Create implements engine.Backend. The transaction begins with the lock for writing.
func (b *backend) Create(ctx context.Context, statements []string) error {
	err := retryBusy(ctx, func() error {
		b.writing <- struct{}{}
		defer func() { <-b.writing }()
		return b.create(ctx, statements)
	})
	var e *engine.StatementError
	if errors.As(err, &e) {
		return e
	}
	return fault(err)
}

func (b *backend) create(ctx context.Context, statements []string) error {
	var tx *sql.Tx
	err := b.begin(ctx, func() (err error) {
		tx, err = b.effects.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for i, text := range statements {
		if _, err := tx.Exec("SAVEPOINT heads_inbox_create"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, text); err != nil {
			var e *sqlite.Error
			if kind, _ := kindOf(err); errors.As(err, &e) && kind == engine.Failed {
				return &engine.StatementError{Number: i + 1, Text: "sqlite: " + e.Error()}
			}
			return err
		}
		if _, err := tx.Exec("RELEASE heads_inbox_create"); err != nil {
			return &engine.StatementError{Number: i + 1, Text: engine.EndedTransaction}
		}
	}
	return tx.Commit()
}

// SQL implements engine.Backend.
func (b *backend) SQL() *sql.DB { return b.tables }

// openTables returns the pool of SQL. Its transactions take the lock for writing when they begin,
// unless they are read-only: one that took it later would fail if another has written meanwhile.
func (b *backend) openTables() (*sql.DB, error) {
	connector, err := sqlite.NewConnector(b.dsn(tableTimeout))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(tableConns)
	db.SetMaxIdleConns(tableConns)
	return db, nil
}
