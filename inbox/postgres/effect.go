package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// Effect implements engine.Backend. The transaction has the database's default isolation. If it is
// idle for longer than the lease, for example because the process is paused, the server ends it, so
// its locks do not outlast the claim.
func (b *backend) Effect(ctx context.Context, lease time.Duration, mark func(context.Context, engine.Tx) error, effect func(*sql.Tx) error) error {
	conn, err := b.effects.Conn(ctx)
	if err != nil {
		return fault(ctx, err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(context.WithValue(ctx, leaseKey{}, lease), nil)
	if err != nil {
		return fault(ctx, err)
	}
	defer tx.Rollback()
	begun := time.Now()
	if err := mark(ctx, &engine.SQLTx{Tx: tx, Texts: b.texts}); err != nil {
		return b.outcome(ctx, begun, err)
	}
	begun = time.Now()
	returned := effect(tx)
	took, left := time.Since(begun), traceOf(conn)
	begun = time.Now()
	if returned == nil {
		err = tx.Commit()
	} else {
		err = tx.Rollback()
	}
	if returned == nil && err == nil {
		return nil
	}
	lost := traceOf(conn).closed
	// The effect has caused the loss if the context of its statement ended, or if it was idle for so
	// long that the server closed the connection.
	caused := left.cutOff || took >= lease
	switch {
	case lost && !caused && ctx.Err() == nil:
		if returned == nil {
			return b.outcome(ctx, begun, err)
		}
		return &engine.Error{Kind: engine.Away, Text: "postgres: the connection was lost during the effect"}
	case returned != nil:
		return &engine.EffectError{Err: returned, Again: lost || kindOf(left.err).Retriable()}
	}
	return engine.ChangeKind(fault(ctx, err), engine.Away, engine.Again) // a deferred trigger can raise any error
}

// trace is what the connection of an effect has reported. Other connections that the effect uses
// report the same errors, so the errors that it returns say nothing about the transaction.
type trace struct {
	err    error // of the last statement that failed
	cutOff bool  // the end of that statement's context has closed the connection
	closed bool
}

// traceOf holds the lock that package sql holds for every call of the driver.
func traceOf(conn *sql.Conn) trace {
	t := trace{closed: true}
	_ = conn.Raw(func(c any) error {
		own := c.(*effectConn)
		t = own.trace
		t.closed = own.Conn.Conn().IsClosed()
		return nil
	})
	return t
}

// leaseKey is the key of the lease in the context of a BeginTx.
type leaseKey struct{}

// openEffects returns a DB on the pool. Its transactions set their idle timeout in the same round
// trip as BEGIN.
func openEffects(pool *pgxpool.Pool) *sql.DB {
	db := sql.OpenDB(effectConnector{stdlib.GetPoolConnector(pool)})
	db.SetMaxIdleConns(0) // the pool keeps idle connections
	return db
}

type effectConnector struct{ driver.Connector }

func (c effectConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &effectConn{Conn: conn.(*stdlib.Conn)}, nil
}

// effectConn traces the statements of an effect.
type effectConn struct {
	*stdlib.Conn
	trace trace
}

// BeginTx begins a transaction of Effect. The lease is in ctx.
func (c *effectConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	lease, _ := ctx.Value(leaseKey{}).(time.Duration)
	tx, err := c.Conn.Conn().BeginTx(ctx, pgx.TxOptions{
		BeginQuery: "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '" + milliseconds(lease) + "'",
	})
	if err != nil {
		return nil, err
	}
	return effectTx{ctx, tx}, nil
}

// saw records the error of a statement, and returns it. What follows the error that has closed the
// connection or aborted the transaction is only its consequence.
func (c *effectConn) saw(ctx context.Context, err error) error {
	var e *pgconn.PgError
	aborted := errors.As(err, &e) && e.Code == "25P02"
	if err != nil && !errors.Is(err, io.EOF) && !aborted && !c.trace.closed {
		c.trace.err, c.trace.closed = err, c.Conn.Conn().IsClosed()
		c.trace.cutOff = c.trace.closed && ctx.Err() != nil
	}
	return err
}

func (c *effectConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.saw(ctx, err)
}

func (c *effectConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.rows(ctx)(c.Conn.QueryContext(ctx, query, args))
}

func (c *effectConn) rows(ctx context.Context) func(driver.Rows, error) (driver.Rows, error) {
	return func(rows driver.Rows, err error) (driver.Rows, error) {
		if err != nil {
			return nil, c.saw(ctx, err)
		}
		return &effectRows{rows.(*stdlib.Rows), ctx, c}, nil
	}
}

func (c *effectConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.saw(ctx, err)
	}
	return &effectStmt{stmt.(*stdlib.Stmt), c}, nil
}

type effectStmt struct {
	*stdlib.Stmt
	conn *effectConn
}

func (s *effectStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.Stmt.ExecContext(ctx, args)
	return result, s.conn.saw(ctx, err)
}

func (s *effectStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.rows(ctx)(s.Stmt.QueryContext(ctx, args))
}

type effectRows struct {
	*stdlib.Rows
	ctx  context.Context //nolint:containedctx // of the query
	conn *effectConn
}

func (r *effectRows) Next(dest []driver.Value) error { return r.conn.saw(r.ctx, r.Rows.Next(dest)) }
func (r *effectRows) Close() error                   { return r.conn.saw(r.ctx, r.Rows.Close()) }

type effectTx struct {
	ctx context.Context //nolint:containedctx // as package stdlib does
	tx  pgx.Tx
}

func (t effectTx) Commit() error   { return t.tx.Commit(t.ctx) }
func (t effectTx) Rollback() error { return t.tx.Rollback(t.ctx) }
