package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// idleTimeout is how long a transaction may be idle between two statements.
const idleTimeout = 2 * time.Second

// opening begins a transaction, in the same round trip as its first statement. The idle timeout
// makes the server end the transaction of a paused process, so its locks are released. The other
// settings make the planner use the indexes: it assumes that a table that is always emptied is
// small, and would read all dead rows that an open transaction keeps.
var opening = []string{
	"BEGIN ISOLATION LEVEL READ COMMITTED",
	`SELECT set_config('idle_in_transaction_session_timeout', '` + milliseconds(idleTimeout) + `', true),
		set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`,
}

// transaction sends BEGIN in the same round trip as its first statement.
type transaction struct {
	conn  *pgx.Conn
	texts []string
	begun bool
}

// Send implements engine.Tx.
func (t *transaction) Send(ctx context.Context, calls ...*engine.Call) error {
	batch := &pgx.Batch{}
	first := !t.begun
	if first {
		for _, text := range opening {
			batch.Queue(text)
		}
	}
	sent := batch.Len()
	for _, c := range calls {
		if t.texts[c.Stmt] != "" {
			batch.Queue(t.texts[c.Stmt], c.Args...)
		}
	}
	if batch.Len() == sent {
		return nil
	}
	t.begun = true
	results := t.conn.SendBatch(ctx, batch)
	err := receive(results, first, t.texts, calls)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

func receive(results pgx.BatchResults, first bool, texts []string, calls []*engine.Call) error {
	if first {
		for range opening {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
	}
	for _, c := range calls {
		if texts[c.Stmt] == "" {
			continue
		}
		if err := receiveOne(results, c); err != nil {
			return err
		}
	}
	return nil
}

func receiveOne(results pgx.BatchResults, c *engine.Call) error {
	if c.Row == nil {
		tag, err := results.Exec()
		c.N = tag.RowsAffected()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	return readRows(rows, c)
}

func readRows(rows pgx.Rows, c *engine.Call) error {
	defer rows.Close()
	c.N = 0
	for rows.Next() {
		c.N++
		if err := c.Row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t *transaction) commit(ctx context.Context) error {
	if !t.begun {
		return nil
	}
	delete(t.conn.PgConn().CustomData(), warned)
	tag, err := t.conn.Exec(ctx, "COMMIT")
	switch {
	case err != nil:
		return err
	case tag.String() != "COMMIT":
		return &engine.Error{Kind: engine.Failed, Text: "postgres: the transaction was rolled back"}
	}
	t.begun = false
	return unconfirmed(t.conn)
}

// rollback ends a failed transaction. If the connection is closed, the server has ended it.
func (t *transaction) rollback() {
	if t.begun && !t.conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), hostTimeout)
		defer cancel()
		if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
			_ = t.conn.Close(ctx)
		}
	}
}

const warned = "heads_inbox_warned"

// noticeWarnings records on the connection that the server sent a warning. A COMMIT with a warning
// was not confirmed by the standby.
func noticeWarnings(cfg *pgx.ConnConfig) {
	next := cfg.OnNotice
	cfg.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warned] = true
		}
		if next != nil {
			next(c, n)
		}
	}
}

// unconfirmed returns an error if the last COMMIT had a warning.
func unconfirmed(c *pgx.Conn) error {
	if c.PgConn().CustomData()[warned] == nil {
		return nil
	}
	return &engine.Error{Kind: engine.Again, Text: "postgres: the commit was not confirmed by the standby"}
}

// milliseconds returns a duration as the value of a setting.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", max(d.Milliseconds(), 1)) }
