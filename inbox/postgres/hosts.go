package postgres

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const hostTimeout = time.Second // per host, if there are several

// hosts records which hosts of a DSN did not answer, and the cluster they belong to.
type hosts struct {
	several bool

	mu      sync.Mutex
	cluster string            // system identifier of the first server
	names   map[string]string // host name by address
	mute    map[string]bool   // hosts that did not answer, by host:port
}

// newHosts changes a config with several hosts so that it connects to the one that accepts writes.
func newHosts(cfg *pgx.ConnConfig) *hosts {
	h := &hosts{names: map[string]string{}, mute: map[string]bool{}}
	for _, f := range cfg.Fallbacks {
		h.several = h.several || f.Host != cfg.Host || f.Port != cfg.Port
	}
	if !h.several {
		return h
	}
	if cfg.ConnectTimeout == 0 || cfg.ConnectTimeout > hostTimeout {
		cfg.ConnectTimeout = hostTimeout
	}
	if cfg.ValidateConnect == nil {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.ValidateConnect = h.validate(cfg.ValidateConnect)
	cfg.LookupFunc, cfg.DialFunc = h.lookup(cfg.LookupFunc), h.dial(cfg.DialFunc)
	return h
}

// order moves hosts that did not answer to the end of the list, so that not every new connection
// waits for them.
func (h *hosts) order(_ context.Context, cfg *pgx.ConnConfig) error {
	if !h.several {
		return nil
	}
	all := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	h.mu.Lock()
	rank := func(f *pgconn.FallbackConfig) int {
		if h.mute[hostPort(f.Host, f.Port)] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int { return cmp.Compare(rank(a), rank(b)) })
	h.mu.Unlock()
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
	return nil
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func (h *hosts) lookup(next pgconn.LookupFunc) pgconn.LookupFunc {
	return func(ctx context.Context, host string) ([]string, error) {
		found, err := next(ctx, host)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, address := range found {
			h.names[address] = host
		}
		return found, err
	}
}

func (h *hosts) dial(next pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host := h.hostOf(network, address)
		conn, err := next(ctx, network, address)
		if err != nil {
			h.answered(host, !isTimeout(err))
			return nil, err
		}
		return &watchedConn{Conn: conn, report: func(answered bool) { h.answered(host, answered) }}, nil
	}
}

// hostOf returns the host:port of the config for an address that is dialed.
func (h *hosts) hostOf(network, address string) string {
	if network == "unix" {
		dir, port, _ := strings.Cut(address, "/.s.PGSQL.")
		return net.JoinHostPort(dir, port)
	}
	host, port, _ := net.SplitHostPort(address)
	h.mu.Lock()
	defer h.mu.Unlock()
	return net.JoinHostPort(cmp.Or(h.names[host], host), port)
}

func (h *hosts) answered(host string, yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if yes {
		delete(h.mute, host)
	} else {
		h.mute[host] = true
	}
}

// watchedConn reports whether the server answers at all. A stopped server accepts connections but
// does not answer.
type watchedConn struct {
	net.Conn
	report func(answered bool)
	known  atomic.Bool
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if (n > 0 || isTimeout(err)) && !c.known.Load() && !c.known.Swap(true) {
		c.report(n > 0)
	}
	return n, err
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

var errTwoClusters = errors.New("the DSN has hosts of different clusters: list the primary and the standbys of one cluster")

// validate checks for each new connection that the server belongs to the same cluster as the first
// one.
func (h *hosts) validate(next pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := next(ctx, conn); err != nil {
			return err
		}
		id := clusterOf(ctx, conn)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.cluster = cmp.Or(h.cluster, id); id != "" && id != h.cluster {
			return &engine.Error{Kind: engine.Away, Text: "postgres: " + errTwoClusters.Error()}
		}
		return nil
	}
}

// clusterOf returns the system identifier, which a primary shares with its standbys, or "" if it
// can't be read.
func clusterOf(ctx context.Context, conn *pgconn.PgConn) string {
	results, err := conn.Exec(ctx, "SELECT system_identifier FROM pg_catalog.pg_control_system()").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return ""
	}
	return string(results[0].Rows[0][0])
}

// examine connects to the server that accepts writes. If there are several hosts, it checks that
// all that answer belong to one cluster. It reports whether the connection goes through a pooler.
func (h *hosts) examine(ctx context.Context, cfg *pgx.ConnConfig) (pooled bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, cfg.Copy())
	if err != nil {
		return false, err
	}
	defer disconnect(conn)
	pooled, err = isPooled(ctx, conn)
	if err != nil || !h.several {
		return pooled, err
	}
	return pooled, h.compare(ctx, cfg)
}

// compare returns errTwoClusters if a host belongs to another cluster.
func (h *hosts) compare(ctx context.Context, cfg *pgx.ConnConfig) error {
	h.mu.Lock()
	want := h.cluster
	h.mu.Unlock()
	all := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	found := make([]string, len(all))
	var asking sync.WaitGroup
	for i, f := range all {
		asking.Go(func() {
			one := cfg.Copy()
			one.Host, one.Port, one.TLSConfig, one.Fallbacks, one.ValidateConnect = f.Host, f.Port, f.TLSConfig, nil, nil
			if conn, err := pgx.ConnectConfig(ctx, one); err == nil {
				found[i] = clusterOf(ctx, conn.PgConn())
				disconnect(conn)
			}
		})
	}
	asking.Wait()
	for _, id := range found {
		if id != "" && want != "" && id != want {
			return refused(errTwoClusters.Error())
		}
	}
	return nil
}

// isPooled compares the process id announced when the connection was opened with that of the server
// process that executes its statements.
func isPooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	results, err := conn.PgConn().Exec(ctx, "SELECT pg_catalog.pg_backend_pid()").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return false, err
	}
	return string(results[0].Rows[0][0]) != strconv.FormatUint(uint64(conn.PgConn().PID()), 10), nil
}

func disconnect(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), hostTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}
