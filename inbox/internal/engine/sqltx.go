package engine

import (
	"context"
	"database/sql"
)

// SQLTx runs statements in a transaction of package sql.
type SQLTx struct {
	Tx       *sql.Tx
	Texts    []string
	Prepared *sql.Stmt // for MarkHandled, or nil
}

// Send implements Tx.
func (t *SQLTx) Send(ctx context.Context, calls ...*Call) error {
	for _, c := range calls {
		if c.Row != nil {
			rows, err := t.Tx.QueryContext(ctx, t.Texts[c.Stmt], c.Args...)
			if err == nil {
				err = ReadRows(rows, c)
			}
			if err != nil {
				return err
			}
			continue
		}
		result, err := t.exec(ctx, c)
		if err != nil {
			return err
		}
		if c.N, err = result.RowsAffected(); err != nil {
			return err
		}
	}
	return nil
}

func (t *SQLTx) exec(ctx context.Context, c *Call) (sql.Result, error) {
	if t.Prepared != nil && c.Stmt == MarkHandled {
		return t.Tx.StmtContext(ctx, t.Prepared).ExecContext(ctx, c.Args...)
	}
	return t.Tx.ExecContext(ctx, t.Texts[c.Stmt], c.Args...)
}

// ReadRows calls c.Row for each row and closes rows.
func ReadRows(rows *sql.Rows, c *Call) error {
	c.N = 0
	defer rows.Close()
	for rows.Next() {
		c.N++
		if err := c.Row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
