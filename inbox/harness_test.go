package inbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
	"github.com/headsapi/heads-go/inbox/postgres"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

// TestMain is also the main function of the processes that the tests kill and stop.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(playRole(role))
	}
	code := m.Run()
	if sharedServer.Load() != nil {
		sharedServer.Load().Close()
	}
	os.Exit(code)
}

var (
	sharedServer atomic.Pointer[pgtest.Server]
	startServer  = sync.OnceValues(func() (*pgtest.Server, error) {
		s, err := pgtest.New()
		sharedServer.Store(s)
		return s, err
	})
	databases atomic.Int64
)

// newDatabase returns the DSN of an empty database on the server that the tests share.
func newDatabase(tb testing.TB) string {
	s := need(startServer())(tb)
	name := fmt.Sprintf("test%d", databases.Add(1))
	s.Exec(tb, "postgres", "CREATE DATABASE "+name)
	tb.Cleanup(func() { s.Exec(tb, "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
	return s.DSN(name)
}

// store is the database of a test: an SQLite file or a database on a PostgreSQL server.
type store struct {
	kind string // "sqlite" or "postgres"
	name string // path or DSN
}

func forEachStore(t *testing.T, f func(t *testing.T, s store)) {
	t.Run("sqlite", func(t *testing.T) { f(t, newStore(t, "sqlite")) })
	t.Run("postgres", func(t *testing.T) { f(t, newStore(t, "postgres")) })
}

func forEachInbox(t *testing.T, f func(t *testing.T, s store, in *inbox.Inbox), opts ...inbox.Option) {
	forEachStore(t, func(t *testing.T, s store) { f(t, s, s.open(t, opts...)) })
}

func newInbox(t *testing.T, kind string) (store, *inbox.Inbox) {
	s := newStore(t, kind)
	return s, s.open(t)
}

func newStore(tb testing.TB, kind string) store {
	if kind == "postgres" {
		return store{kind, newDatabase(tb)}
	}
	return store{kind, filepath.Join(tb.TempDir(), "inbox.db")}
}

func (s store) db(ctx context.Context) (*inbox.DB, error) {
	if s.kind == "postgres" {
		return postgres.Open(ctx, s.name)
	}
	return sqlite.Open(s.name)
}

func (s store) openUnclosed(tb testing.TB, opts ...inbox.Option) *inbox.Inbox {
	tb.Helper()
	in := need(s.try(tb.Context(), opts...))(tb)
	return in
}

// open opens an inbox that is closed when the test ends.
func (s store) open(tb testing.TB, opts ...inbox.Option) *inbox.Inbox {
	tb.Helper()
	in := s.openUnclosed(tb, opts...)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(tb, in.Close(ctx))
	})
	return in
}

// sql opens the database with another connection, as an operator does.
func (s store) sql(tb testing.TB) *sql.DB {
	tb.Helper()
	driver, name := "pgx", s.name
	if s.kind == "sqlite" {
		driver, name = "sqlite", "file:"+s.name+"?_pragma=busy_timeout(5000)&_txlock=immediate"
	}
	db := need(sql.Open(driver, name))(tb)
	tb.Cleanup(func() { db.Close() })
	return db
}

func (s store) exec(tb testing.TB, text string, args ...any) {
	tb.Helper()
	db := s.sql(tb)
	defer db.Close()
	_, err := db.Exec(text, args...)
	require.NoError(tb, err, text)
}

func (s store) int(tb testing.TB, text string, args ...any) (n int64) {
	tb.Helper()
	db := s.sql(tb)
	defer db.Close()
	require.NoError(tb, db.QueryRow(text, args...).Scan(&n), text)
	return n
}

var begin = time.Now().UTC().Truncate(time.Second)

// eventBody returns a body as the service sends it. n determines the time, and so the key.
func eventBody(head, session string, n int) []byte {
	body, err := json.Marshal(map[string]any{
		"event_type": "start_conversation",
		"timestamp":  begin.Add(time.Duration(n) * time.Microsecond).Format("2006-01-02 15:04:05.000000"),
		"head_id":    head,
		"session_id": session,
		"number":     n,
	})
	if err != nil {
		panic(err)
	}
	return body
}

func newEvent(tb testing.TB, head, session string, n int) *heads.Event {
	tb.Helper()
	e := need(heads.ParseEvent(eventBody(head, session, n)))(tb)
	return e
}

// numberOf returns n of eventBody.
func numberOf(e *heads.Event) int {
	var body struct{ Number int }
	if err := json.Unmarshal(e.Raw.Bytes(), &body); err != nil {
		panic(err)
	}
	return body.Number
}

func appendEvents(tb testing.TB, in *inbox.Inbox, session string, from, to int) {
	tb.Helper()
	for n := from; n < to; n++ {
		added := need(in.Append(tb.Context(), newEvent(tb, "head", session, n)))(tb)
		require.True(tb, added)
	}
}

// appendUntilStored appends an event until it is stored, as the service does after a 503.
func appendUntilStored(ctx context.Context, in *inbox.Inbox, e *heads.Event) error {
	_, err := in.Append(context.Background(), e)
	for ; errors.Is(err, inbox.ErrUnavailable) && ctx.Err() == nil; _, err = in.Append(context.Background(), e) {
		pauseFor(ctx, 10*time.Millisecond)
	}
	return err
}

// background calls Run with f in a goroutine. stop ends Run and checks its result.
func background(tb testing.TB, in *inbox.Inbox, f func(context.Context, *inbox.Delivery) error, opts ...inbox.RunOption) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, f, opts...) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				require.NoError(tb, err)
			case <-time.After(60 * time.Second):
				require.Fail(tb, "Run did not return")
			}
		})
	}
	tb.Cleanup(stop)
	return stop
}

// handleAll calls Run with f until no event waits, and returns the attempts in the order of their
// beginnings.
func handleAll(tb testing.TB, in *inbox.Inbox, f func(context.Context, *inbox.Delivery) error, opts ...inbox.RunOption) (seen []*inbox.Delivery) {
	tb.Helper()
	var mu sync.Mutex
	stop := background(tb, in, func(ctx context.Context, d *inbox.Delivery) error {
		mu.Lock()
		seen = append(seen, d)
		mu.Unlock()
		return f(ctx, d)
	}, opts...)
	eventually(tb, "all events are handled", pendingIsZero(in))
	stop()
	return seen
}

func statusOf(tb testing.TB, in *inbox.Inbox) inbox.Status {
	tb.Helper()
	status := need(in.Status(tb.Context()))(tb)
	return status
}

// eventually polls a condition of the database.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	require.Eventually(tb, condition, 60*time.Second, 10*time.Millisecond, what)
}

// unusedAddress returns an address of this machine at which nothing listens.
func unusedAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// answers reports whether something answers a GET.
func answers(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

func pendingIsZero(in *inbox.Inbox) func() bool {
	return statusIs(in, func(s inbox.Status) bool { return s.Pending == 0 })
}

func at(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// spelled returns a statement with the placeholders of the store's dialect.
func (s store) spelled(text string) string {
	if s.kind == "sqlite" {
		return strings.NewReplacer("$1", "?1", "$2", "?2", "$3", "?3", "$4", "?4").Replace(text)
	}
	return text
}

func newPool(t *testing.T, dsn string, conns int32) *pgxpool.Pool {
	cfg := need(pgxpool.ParseConfig(dsn))(t)
	cfg.MaxConns = conns
	pool := need(pgxpool.NewWithConfig(t.Context(), cfg))(t)
	t.Cleanup(pool.Close)
	return pool
}

func openPool(t *testing.T, pool *pgxpool.Pool) *inbox.Inbox {
	db := need(postgres.FromPool(pool))(t)
	in := need(inbox.Open(t.Context(), db))(t)
	t.Cleanup(func() { require.NoError(t, in.Close(context.Background())) })
	return in
}

// filled is an event of a large table.
type filled struct {
	session  string
	state    int64
	received time.Time
}

// fill stores n events in PostgreSQL, faster than Append does. Sessions of waiting events get their
// rows.
func (s store) fill(tb testing.TB, n int, describe func(i int) filled) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.name)
	require.NoError(tb, err)
	defer conn.Close(context.Background())
	columns := []string{"key", "session", "head_id", "session_id", "type", "body", "checksum", "state", "attempts", "received", "finished", "error"}
	_, err = conn.CopyFrom(tb.Context(), pgx.Identifier{"heads_inbox_events"}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		f := describe(i)
		e, err := heads.ParseEvent(eventBody("head", f.session, i))
		if err != nil {
			return nil, err
		}
		r, err := inbox.NewRecord(e)
		if err != nil {
			return nil, err
		}
		var finished, text any
		attempts := int64(0)
		if f.state != engine.Waiting {
			finished, attempts = f.received.UnixMicro(), 1
		}
		if f.state == engine.Dead {
			text = "*errors.errorString"
		}
		return []any{r.Key, r.Session, r.HeadID, r.SessionID, r.Type, r.Body, r.Checksum, f.state, attempts, f.received.UnixMicro(), finished, text}, nil
	}))
	require.NoError(tb, err)
	_, err = conn.Exec(tb.Context(), `INSERT INTO heads_inbox_sessions (session, fence, next_at)
		SELECT DISTINCT session, 0, (extract(epoch FROM now()) * 1000000)::bigint FROM heads_inbox_events WHERE state = 0 ON CONFLICT DO NOTHING`)
	require.NoError(tb, err)
}

// scale returns large in a full run, otherwise small.
func scale(tb testing.TB, small, large int) int {
	if runs(tb) > 1 {
		return large
	}
	return small
}

// try returns what Open does.
func (s store) try(ctx context.Context, opts ...inbox.Option) (*inbox.Inbox, error) {
	db, err := s.db(ctx)
	if err != nil {
		return nil, err
	}
	return inbox.Open(ctx, db, opts...)
}

// hold executes a statement in a transaction that is open until the test ends it or ends itself.
func (s store) hold(tb testing.TB, text string, args ...any) *sql.Tx {
	tb.Helper()
	tx, err := s.sql(tb).BeginTx(tb.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.Exec(text, args...)
	require.NoError(tb, err)
	return tx
}

func nothing(context.Context, *inbox.Delivery) error { return nil }

// replayed returns the events of a Replay.
func replayed(tb testing.TB, in *inbox.Inbox, q inbox.Query) (all []*inbox.Delivery) {
	tb.Helper()
	require.NoError(tb, in.Replay(tb.Context(), q, func(_ context.Context, d *inbox.Delivery) error { all = append(all, d); return nil }))
	return all
}

// lost counts the acknowledged events that the inbox does not have.
func lost(tb testing.TB, in *inbox.Inbox, acknowledged map[int]bool) (n int) {
	tb.Helper()
	stored := map[int]bool{}
	for _, d := range replayed(tb, in, inbox.Query{HeadID: "head"}) {
		stored[numberOf(d.Event)] = true
	}
	for number := range acknowledged {
		if !stored[number] {
			n++
		}
	}
	return n
}

// receiverOf starts the inbox's handler and returns its URL.
func receiverOf(tb testing.TB, in *inbox.Inbox, opts ...heads.EventHandlerOption) string {
	tb.Helper()
	h := need(in.Handler(heads.SharedKeys(sharedKey), opts...))(tb)
	srv := httptest.NewServer(h)
	tb.Cleanup(srv.Close)
	return srv.URL
}

// serve starts the inbox's handler and returns a client that delivers to it.
func serve(tb testing.TB, in *inbox.Inbox, opts ...heads.EventHandlerOption) func(body []byte) int {
	tb.Helper()
	url := receiverOf(tb, in, opts...)
	return func(body []byte) int { return deliver(http.DefaultClient, url, body) }
}

func statusIs(in *inbox.Inbox, is func(inbox.Status) bool) func() bool {
	return func() bool {
		s, err := in.Status(context.Background())
		return err == nil && is(s)
	}
}

func requireClosed(tb testing.TB, in *inbox.Inbox) {
	tb.Helper()
	_, err := in.Status(tb.Context())
	require.ErrorIs(tb, err, inbox.ErrClosed)
}

// need returns what a function has returned, if it was no error.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
