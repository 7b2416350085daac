package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
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
	tx, err := b.effects.BeginTx(context.WithValue(ctx, leaseKey{}, lease), nil)
	if err != nil {
		return fault(ctx, err)
	}
	defer tx.Rollback()
	begun := time.Now()
	if err := mark(ctx, &engine.SQLTx{Tx: tx, Texts: b.texts}); err != nil {
		return b.outcome(ctx, begun, err)
	}
	if err := effect(tx); err != nil {
		return &engine.EffectError{Err: err, Kind: b.effectKind(ctx, tx, err)}
	}
	begun = time.Now()
	return b.outcome(ctx, begun, tx.Commit())
}

// effectKind returns the kind of an effect's error. For an error that is not PostgreSQL's, it
// checks the connection, since the effect may have returned a network error of something else.
func (b *backend) effectKind(ctx context.Context, tx *sql.Tx, err error) engine.Kind {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		_ = b.outcome(ctx, time.Now(), err) // closes the connections to a read-only server
		return kindOf(err)
	}
	_, err = tx.ExecContext(ctx, "SELECT 1")
	return kindOf(err)
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
	return &effectConn{conn.(*stdlib.Conn)}, nil
}

type effectConn struct{ *stdlib.Conn }

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

type effectTx struct {
	ctx context.Context //nolint:containedctx // as package stdlib does
	tx  pgx.Tx
}

func (t effectTx) Commit() error   { return t.tx.Commit(t.ctx) }
func (t effectTx) Rollback() error { return t.tx.Rollback(t.ctx) }
