// Package postgres stores an inbox in PostgreSQL with github.com/jackc/pgx/v5, for receivers and
// workers on any number of machines.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	defaultConns = 24
	besidePool   = 8 // for appends, in addition to the pool of FromPool
	// pollInterval is how long a worker waits before it searches for work without a notification.
	// Behind a pooler, where LISTEN does not work, it waits for pollSoon, then twice as long each
	// time.
	pollInterval = 250 * time.Millisecond
	pollSoon     = 5 * time.Millisecond
)

// Open returns a DB for the PostgreSQL database of a DSN, as a URL or as keywords and values. It
// connects once, to check the DSN. Its errors contain nothing of the DSN.
//
// The DB opens up to 24 connections, or the pool_max_conns of the DSN, half of them for appends. It
// opens two more: one to renew claims and one to listen for other processes, and up to eight for
// Inbox.SQL when that is used. If the DSN has several
// hosts, the DB uses the one that accepts writes and tries each for a second. Open returns an error
// if they belong to different clusters.
//
// Open detects a pooler, such as PgBouncer in transaction mode. It then uses no prepared
// statements, unless the DSN sets default_query_exec_mode, and searches for work more often, since
// LISTEN does not work there.
func Open(ctx context.Context, dsn string) (*inbox.DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("inbox: postgres: the DSN can't be read (it is not shown, since it may hold a password): want " +
			"postgres://user:password@host:5432/database or host=... user=... dbname=..., with @ : / ? # % in a password as %40 %3A %2F %3F %23 %25")
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		cfg.MaxConns = defaultConns
	}
	h := newHosts(cfg.ConnConfig)
	cfg.BeforeConnect = h.order
	pooled, err := h.examine(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, publicError(fault(ctx, err))
	}
	if pooled && !strings.Contains(dsn, "default_query_exec_mode") {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	own := cfg.Copy()
	own.MaxConns = max(cfg.MaxConns/2, 1)
	cfg.MaxConns = max(cfg.MaxConns-own.MaxConns, 1)
	cfg.PingTimeout = cmp.Or(cfg.PingTimeout, silence)
	noticeWarnings(cfg.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, publicError(fault(ctx, err))
	}
	b, err := newBackend(ctx, pool, own)
	if err != nil {
		pool.Close()
		return nil, publicError(fault(ctx, err))
	}
	b.ownsPool, b.pooled = true, pooled
	return engine.New(b), nil
}

// FromPool returns a DB that uses the caller's pool and never closes it. The DB opens up to ten
// more connections with the pool's settings: eight for appends, which functions can't use up, one
// to renew claims and one to listen for other processes; and eight for Inbox.SQL. Behind a pooler
// in transaction mode, give the pool a DefaultQueryExecMode of pgx.QueryExecModeExec.
func FromPool(p *pgxpool.Pool) (*inbox.DB, error) {
	if p == nil {
		return nil, errors.New("inbox: postgres: the pool is nil")
	}
	own := p.Config()
	own.MaxConns = besidePool
	b, err := newBackend(context.Background(), p, own)
	if err != nil {
		return nil, publicError(fault(context.Background(), err))
	}
	return engine.New(b), nil
}

func newBackend(ctx context.Context, pool *pgxpool.Pool, own *pgxpool.Config) (_ *backend, err error) {
	own.MinConns, own.MinIdleConns = 0, 0
	own.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // failures are retried
	noticeWarnings(own.ConnConfig)
	b := &backend{pool: pool, signal: make(chan struct{}, 1), single: own.Copy()}
	if b.appends, err = pgxpool.NewWithConfig(ctx, own); err != nil {
		return nil, err
	}
	one := own.Copy()
	one.MaxConns = 1
	if b.renewals, err = pgxpool.NewWithConfig(ctx, one); err != nil {
		b.appends.Close()
		return nil, err
	}
	b.effects, b.tables = openEffects(pool), openTables(b.single)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

// Setup implements engine.Backend.
func (b *backend) Setup(ctx context.Context, prefix string, report func(text string, err error)) error {
	b.texts, b.insert = statements(prefix)
	b.channel = prefix + "events"
	limited, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	for {
		err := b.setup(limited, prefix)
		if err == nil || engine.KindOf(err) != engine.Again {
			if err == nil {
				b.helpers.Go(b.notifyOthers)
				b.helpers.Go(func() { b.buildIndexes(prefix, report) })
			}
			return err
		}
		select {
		case <-limited.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Append implements engine.Backend. It is one statement, in a transaction of its own. Appends of
// one session wait for each other here, since in the database each waiting one would occupy a
// connection.
func (b *backend) Append(ctx context.Context, e *engine.Record) (sequence int64, err error) {
	unlock, err := b.sessions.Lock(ctx, string(e.Session))
	if err != nil {
		return 0, errBusy
	}
	defer unlock()
	conn, err := b.appends.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil && b.answers() {
			return 0, errBusy
		}
		return 0, fault(ctx, err)
	}
	defer conn.Release()
	begun := time.Now()
	delete(conn.Conn().PgConn().CustomData(), warned)
	err = conn.QueryRow(ctx, b.insert, e.Session, e.Key, e.HeadID, e.SessionID, e.Type, e.Body, e.Checksum).Scan(&sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		sequence, err = 0, nil
	}
	var answer *pgconn.PgError
	switch {
	case err == nil, errors.As(err, &answer):
		b.answered.Store(time.Now().UnixNano())
	case ctx.Err() != nil && (time.Since(begun) < silence || b.answers()):
		return 0, errBusy // it began late, or other appends succeed
	}
	if err = b.outcome(ctx, begun, err); err != nil {
		return 0, err
	}
	return sequence, unconfirmed(conn.Conn())
}

// errBusy does not mean that the database is unreachable.
var errBusy = &engine.Error{Kind: engine.Locked, Text: "postgres: the session or all connections were busy for too long"}

// Write implements engine.Backend.
func (b *backend) Write(ctx context.Context, f func(context.Context, engine.Tx) error) error {
	return b.transact(ctx, b.pool, f)
}

// Renew implements engine.Backend.
func (b *backend) Renew(ctx context.Context, f func(context.Context, engine.Tx) error) error {
	return b.transact(ctx, b.renewals, f)
}

func (b *backend) transact(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, engine.Tx) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fault(ctx, err)
	}
	defer conn.Release()
	begun := time.Now()
	t := &transaction{conn: conn.Conn(), texts: b.texts}
	if err = f(ctx, t); err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		t.rollback()
	}
	return b.outcome(ctx, begun, err)
}

// Read implements engine.Backend.
func (b *backend) Read() engine.Tx { return reader{b} }

type reader struct{ *backend }

// Send implements engine.Tx.
func (r reader) Send(ctx context.Context, calls ...*engine.Call) error {
	for _, c := range calls {
		rows, err := r.pool.Query(ctx, r.texts[c.Stmt], c.Args...)
		if err == nil {
			err = readRows(rows, c)
		}
		if err != nil {
			return fault(ctx, err)
		}
	}
	return nil
}

// Poll implements engine.Backend.
func (b *backend) Poll() (soon, late time.Duration) {
	if b.pooled {
		return pollSoon, pollInterval
	}
	return pollInterval, pollInterval
}

// Close implements engine.Backend.
func (b *backend) Close() error {
	b.closing.Do(func() {
		b.cancel()
		b.helpers.Wait()
		_ = b.effects.Close()
		_ = b.tables.Close()
		b.appends.Close()
		b.renewals.Close()
		if b.ownsPool {
			b.pool.Close()
		}
	})
	return nil
}
