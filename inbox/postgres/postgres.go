// Package postgres stores an inbox in PostgreSQL with github.com/jackc/pgx/v5, for
// receivers and workers on any number of machines.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	defaultConns   = 24
	besidePool     = 8 // for appends, beside the pool of FromPool
	setupTimeout   = 10 * time.Second
	hostTimeout    = time.Second // of each host, where there are several
	notifyInterval = 2 * time.Millisecond
	// pollInterval is how soon a worker finds work without a notification, for
	// example behind a pooler, where LISTEN does not work.
	pollInterval = 250 * time.Millisecond
	listenPause  = time.Second
)

// Open returns a DB for the PostgreSQL database of a DSN, in either form. It connects
// once. Its errors show nothing of the DSN.
//
// The DB opens up to 24 connections, half of them for appends, or the pool_max_conns of
// the DSN. It opens two more: one renews claims and one listens for other processes. If
// the DSN has several hosts, the DB uses the one that accepts writes and tries each for
// a second. Behind pgbouncer in transaction mode, the DSN needs
// default_query_exec_mode=exec.
func Open(ctx context.Context, dsn string) (*inbox.DB, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("inbox: postgres: the DSN can't be read (it is not shown, since it may hold a password): want " +
			"postgres://user:password@host:5432/database or host=... user=... dbname=..., with @ : / ? # % in a password as %40 %3A %2F %3F %23 %25")
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		cfg.MaxConns = defaultConns
	}
	seekWritable(cfg.ConnConfig)
	own := cfg.Copy()
	own.MaxConns = max(cfg.MaxConns/2, 1)
	cfg.MaxConns = max(cfg.MaxConns-own.MaxConns, 1)
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
	b.ownsPool = true
	if err := pool.Ping(ctx); err != nil {
		err = publicError(fault(ctx, err))
		_ = b.Close()
		return nil, err
	}
	return engine.New(b), nil
}

// FromPool returns a DB that uses the caller's pool. Close does not close the pool. The
// DB opens up to ten more connections with the pool's settings: eight for appends, so
// functions can't use them up, one that renews claims, and one that listens for other
// processes.
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

func publicError(err error) error {
	return errors.New("inbox: postgres: " + strings.TrimPrefix(err.Error(), "postgres: "))
}

// seekWritable makes a DSN with several hosts find the primary.
func seekWritable(cfg *pgx.ConnConfig) {
	several := false
	for _, f := range cfg.Fallbacks {
		several = several || f.Host != cfg.Host || f.Port != cfg.Port
	}
	if !several {
		return
	}
	if cfg.ValidateConnect == nil {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if cfg.ConnectTimeout == 0 || cfg.ConnectTimeout > hostTimeout {
		cfg.ConnectTimeout = hostTimeout
	}
}

const warned = "heads_inbox_warned"

// noticeWarnings records a warning of the server on the connection. A commit with a
// warning was not confirmed by the standby.
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

// backend uses pool. Appends and renewals have their own connections, since functions
// may use up the pool.
type backend struct {
	pool     *pgxpool.Pool
	ownsPool bool
	effects  *sql.DB
	appends  *pgxpool.Pool
	renewals *pgxpool.Pool
	listener *pgx.ConnConfig
	texts    []string
	insert   string
	channel  string

	closing sync.Once
	signal  chan struct{}
	ctx     context.Context //nolint:containedctx // ends with Close
	cancel  context.CancelFunc
	helpers sync.WaitGroup
}

func newBackend(ctx context.Context, pool *pgxpool.Pool, own *pgxpool.Config) (_ *backend, err error) {
	own.MinConns, own.MinIdleConns = 0, 0
	noticeWarnings(own.ConnConfig)
	b := &backend{pool: pool, signal: make(chan struct{}, 1), listener: own.ConnConfig.Copy()}
	if b.appends, err = pgxpool.NewWithConfig(ctx, own); err != nil {
		return nil, err
	}
	one := own.Copy()
	one.MaxConns = 1
	if b.renewals, err = pgxpool.NewWithConfig(ctx, one); err != nil {
		b.appends.Close()
		return nil, err
	}
	b.effects = stdlib.OpenDBFromPool(pool)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

// Setup implements engine.Backend.
func (b *backend) Setup(ctx context.Context, prefix string) error {
	b.texts, b.insert = statements(prefix)
	b.channel = prefix + "events"
	limited, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	for {
		err := b.setup(limited, prefix)
		if err == nil || engine.KindOf(err) != engine.Again {
			if err == nil {
				b.helpers.Go(b.notifyOthers)
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

// Append implements engine.Backend: one statement, which is a transaction.
func (b *backend) Append(ctx context.Context, e *engine.Record) (sequence int64, err error) {
	conn, err := b.appends.Acquire(ctx)
	if err != nil {
		return 0, b.fault(ctx, err)
	}
	defer conn.Release()
	delete(conn.Conn().PgConn().CustomData(), warned)
	err = conn.QueryRow(ctx, b.insert, e.Session, e.Key, e.HeadID, e.SessionID, e.Type, e.Body, e.Checksum).Scan(&sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		sequence, err = 0, nil
	}
	if err != nil {
		return 0, b.fault(ctx, err)
	}
	return sequence, unconfirmed(conn.Conn())
}

// unconfirmed returns an error for a commit with a warning.
func unconfirmed(c *pgx.Conn) error {
	if c.PgConn().CustomData()[warned] == nil {
		return nil
	}
	return &engine.Error{Kind: engine.Again, Text: "postgres: the commit was not confirmed by the standby"}
}

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
		return b.fault(ctx, err)
	}
	defer conn.Release()
	t := &transaction{conn: conn.Conn(), texts: b.texts}
	if err = f(ctx, t); err == nil {
		err = t.commit(ctx)
	}
	if err != nil {
		t.rollback()
	}
	return b.fault(ctx, err)
}

// transaction begins with its first statement, in the same round trip.
type transaction struct {
	conn  *pgx.Conn
	texts []string
	begun bool
}

// Send implements engine.Tx.
func (t *transaction) Send(ctx context.Context, calls ...*engine.Call) error {
	batch := &pgx.Batch{}
	for _, c := range calls {
		if t.texts[c.Stmt] != "" {
			batch.Queue(t.texts[c.Stmt], c.Args...)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	first := !t.begun
	if first {
		t.begun = true
		batch.QueuedQueries = append([]*pgx.QueuedQuery{{SQL: "BEGIN ISOLATION LEVEL READ COMMITTED"}}, batch.QueuedQueries...)
	}
	results := t.conn.SendBatch(ctx, batch)
	err := receive(results, first, t.texts, calls)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return err
}

func receive(results pgx.BatchResults, first bool, texts []string, calls []*engine.Call) error {
	if first {
		if _, err := results.Exec(); err != nil {
			return err
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

// rollback ends a failed transaction. If the connection is closed, the server does
// that.
func (t *transaction) rollback() {
	if t.begun && !t.conn.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), hostTimeout)
		defer cancel()
		if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
			_ = t.conn.Close(ctx)
		}
	}
}

// Effect implements engine.Backend. The transaction has the database's default
// isolation. If it is idle for longer than the lease, for example in a stopped process,
// the server ends it, so its locks do not outlive the claim.
func (b *backend) Effect(ctx context.Context, lease time.Duration, mark func(context.Context, engine.Tx) error, effect func(*sql.Tx) error) error {
	tx, err := b.effects.BeginTx(ctx, nil)
	if err != nil {
		return b.fault(ctx, err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true)`, milliseconds(lease)); err != nil {
		return b.fault(ctx, err)
	}
	if err := mark(ctx, &engine.SQLTx{Tx: tx, Texts: b.texts}); err != nil {
		return b.fault(ctx, err)
	}
	if err := effect(tx); err != nil {
		return &engine.EffectError{Err: err, Kind: b.effectKind(ctx, tx, err)}
	}
	return b.fault(ctx, tx.Commit())
}

// effectKind checks whether the connection is lost, since a network error of an effect
// may come from another call of the effect.
func (b *backend) effectKind(ctx context.Context, tx *sql.Tx, err error) engine.Kind {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		_ = b.fault(ctx, err) // disconnects from a server that has become read-only
		return kindOf(err)
	}
	_, err = tx.ExecContext(ctx, "SELECT 1")
	return kindOf(err)
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
			return r.fault(ctx, err)
		}
	}
	return nil
}

// Listen implements engine.Backend.
func (b *backend) Listen(ctx context.Context, wake func()) {
	for ctx.Err() == nil {
		b.listen(ctx, wake)
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
}

func (b *backend) listen(ctx context.Context, wake func()) {
	conn, err := pgx.ConnectConfig(ctx, b.listener)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), hostTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+b.channel); err != nil {
		return
	}
	for wake(); ; wake() {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return
		}
	}
}

// Notify implements engine.Backend.
func (b *backend) Notify() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// notifyOthers runs outside the transactions of appends, since the lock of NOTIFY would
// make their commits wait for each other.
func (b *backend) notifyOthers() {
	for {
		select {
		case <-b.signal:
		case <-b.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(b.ctx, setupTimeout)
		_, _ = b.renewals.Exec(ctx, "SELECT pg_notify($1::text, '')", b.channel)
		cancel()
		select {
		case <-time.After(notifyInterval):
		case <-b.ctx.Done():
			return
		}
	}
}

// Poll implements engine.Backend.
func (b *backend) Poll() time.Duration { return pollInterval }

// Close implements engine.Backend.
func (b *backend) Close() error {
	b.closing.Do(func() {
		b.cancel()
		b.helpers.Wait()
		_ = b.effects.Close()
		b.appends.Close()
		b.renewals.Close()
		if b.ownsPool {
			b.pool.Close()
		}
	})
	return nil
}
