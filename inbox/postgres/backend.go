package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headsapi/heads-go/inbox/internal/keyed"
)

const (
	tableConns   = 8
	setupTimeout = 10 * time.Second

	// If a statement fails after silence or later, the server is considered unresponsive, and its
	// connections are closed, at most once every resetInterval.
	silence       = 300 * time.Millisecond
	resetInterval = 200 * time.Millisecond
	// A server that has answered an append within this time is considered reachable.
	lately = time.Second
)

// backend has separate pools for appends and renewals, since functions may use up pool.
type backend struct {
	pool     *pgxpool.Pool
	ownsPool bool
	pooled   bool // connected through a pooler
	effects  *sql.DB
	tables   *sql.DB // for SQL
	appends  *pgxpool.Pool
	renewals *pgxpool.Pool
	single   *pgxpool.Config // for connections outside the pools
	texts    []string
	insert   string
	channel  string
	sessions keyed.Locks[string] // one append per session at a time

	mu        sync.Mutex
	lastReset time.Time
	hangUp    context.CancelFunc // closes the connection that listens
	answered  atomic.Int64       // time of the last answer to an append, in Unix nanoseconds

	closing sync.Once
	signal  chan struct{}
	ctx     context.Context //nolint:containedctx // ends with Close
	cancel  context.CancelFunc
	helpers sync.WaitGroup
}

// connect opens a connection outside the pools.
func (b *backend) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := b.single.ConnConfig.Copy()
	if b.single.BeforeConnect != nil {
		if err := b.single.BeforeConnect(ctx, cfg); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// outcome calls fault for the error of a statement on an open connection. It closes all connections
// to a server that has become read-only, is shutting down or did not answer. Do not call it for a
// failed connection attempt: each would close the connections that the last one opened.
func (b *backend) outcome(ctx context.Context, begun time.Time, err error) error {
	var e *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &e):
		if e.Code == readOnly || e.Code == "57P01" || e.Code == "57P02" {
			b.reset()
		}
	case time.Since(begun) >= silence:
		b.reset()
	}
	return fault(ctx, err)
}

// answers reports whether the server has recently answered an append.
func (b *backend) answers() bool { return time.Since(time.Unix(0, b.answered.Load())) < lately }

// reset closes all connections. Those in use are closed when they are released.
func (b *backend) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.lastReset) < resetInterval {
		return
	}
	b.lastReset = time.Now()
	b.appends.Reset()
	b.renewals.Reset()
	b.pool.Reset()
	b.tables.SetMaxIdleConns(0) // closes those that are idle
	b.tables.SetMaxIdleConns(tableConns)
	if b.hangUp != nil {
		b.hangUp()
	}
}
