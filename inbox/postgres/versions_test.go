package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// oldStatements are the statements of versions before the indexes events_oldest and events_story.
// They update the session's row with every append, search from the beginning and set no planner
// options. Their parameters are numbered like the current ones.
var oldStatements = map[engine.Stmt]string{
	engine.Due: `SELECT q.session, CASE WHEN q.owner IS NULL THEN 0 ELSE 1 END, q.fence, nextval('{p}fence')
		FROM (SELECT session, owner, fence FROM {p}sessions WHERE next_at <= {now} AND $1::bigint IS NOT NULL ORDER BY next_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) q`,
	engine.Low: `SELECT 0::bigint WHERE $1::bigint IS NOT NULL`,
	engine.ClaimEvent: `SELECT e.sequence, e.key, e.session, e.head_id, e.session_id, e.type, e.body, e.checksum,
		e.attempts, e.fence, e.redriven, e.state, e.received, coalesce(e.finished, 0), coalesce(e.error, '') FROM {p}events e WHERE e.state = 0 AND e.sequence = (
		SELECT min(w.sequence) FROM {p}events w WHERE w.session = $1::bytea AND w.state = 0) FOR UPDATE OF e SKIP LOCKED`,
	engine.FirstEvent: `SELECT e.sequence, e.key, e.session, e.head_id, e.session_id, e.type, e.body, e.checksum,
		e.attempts, e.fence, e.redriven, e.state, e.received, coalesce(e.finished, 0), coalesce(e.error, '') FROM {p}events e
		WHERE e.session = $1::bytea AND e.state = 0 AND $2::bigint IS NOT NULL ORDER BY e.sequence LIMIT 1`,
	engine.Next: `SELECT coalesce(min(next_at), 0), {now} FROM {p}sessions WHERE $1::bigint IS NOT NULL AND $2::bigint IS NOT NULL`,
}

const oldInsert = `WITH durable AS (
		SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END AS raised
	), s AS (
		INSERT INTO {p}sessions (session, fence, next_at) VALUES ($1::bytea, 0, {now})
		ON CONFLICT (session) DO UPDATE SET fence = {p}sessions.fence RETURNING session
	)
	INSERT INTO {p}events (key, session, head_id, session_id, type, body, checksum, received)
	SELECT $2::bytea, s.session, $3::bytea, $4::bytea, $5::bytea, $6::bytea, $7::bytea, {now} + 0 * length(coalesce(durable.raised, ''))
	FROM s CROSS JOIN durable ON CONFLICT (key) DO NOTHING RETURNING sequence`

// older wraps a backend to replace its statements after Setup.
type older struct{ *backend }

func (o older) Setup(ctx context.Context, prefix string, report func(string, error)) error {
	if err := o.backend.Setup(ctx, prefix, report); err != nil {
		return err
	}
	for stmt, text := range oldStatements {
		o.texts[stmt] = engine.Expand(text, prefix, now)
	}
	o.insert = engine.Expand(oldInsert, prefix, now)
	return nil
}

// start opens an inbox with the current or the old statements.
func start(t *testing.T, dsn string, old bool) *inbox.Inbox {
	db, err := Open(t.Context(), dsn)
	require.NoError(t, err)
	taken, err := engine.Take(db)
	require.NoError(t, err)
	b := taken.(*backend)
	var chosen engine.Backend = b
	if old {
		chosen = older{b}
	}
	in, err := inbox.Open(t.Context(), engine.New(chosen))
	require.NoError(t, err)
	return in
}

// die closes an inbox's connections, as if its program had been killed.
func die(t *testing.T, in *inbox.Inbox, admin *pgx.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	closed := make(chan struct{})
	go func() { _ = in.Close(ctx); close(closed) }()
	for {
		_, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'new'")
		require.NoError(t, err)
		select {
		case <-closed:
			return
		default:
		}
	}
}

// Programs of both versions receive and handle events at the same time. The new one dies, the old
// one continues, and another new one starts.
func TestProgramsOfTwoVersionsWorkSideBySide(t *testing.T) {
	const sessions = 20
	server := pgtest.ForTest(t)
	server.Exec(t, "postgres", "CREATE TABLE visits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session text, sequence bigint)")
	dsn := server.DSN("postgres")
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	newDSN := dsn + " application_name=new"
	programs := map[string]*inbox.Inbox{"old": start(t, dsn, true), "new": start(t, newDSN, false)}
	var running sync.Map // by session
	var overlapping, stored atomic.Int64
	run := func(in *inbox.Inbox) {
		go func() {
			_ = in.Run(context.Background(), func(ctx context.Context, d *inbox.Delivery) error {
				if other, busy := running.LoadOrStore(d.Event.SessionID, ctx); busy && other.(context.Context).Err() == nil {
					overlapping.Add(1)
				}
				defer running.CompareAndDelete(d.Event.SessionID, ctx)
				return d.Commit(ctx, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, "INSERT INTO visits (session, sequence) VALUES ($1, $2)", d.Event.SessionID, d.Sequence)
					return err
				})
			}, inbox.Lease(2*time.Second), inbox.Backoff(func(int) time.Duration { return 20 * time.Millisecond }))
		}()
	}
	run(programs["old"])
	run(programs["new"])
	phase := func(events int, names ...string) {
		var publishing sync.WaitGroup
		for i := range sessions {
			publishing.Go(func() {
				for n := range events / sessions {
					body := fmt.Sprintf(`{"event_type":"start_conversation","timestamp":"2026-08-31 06:56:30.%06d","head_id":"ada","session_id":"session%d"}`, stored.Load()*50+int64(n), i)
					e, err := heads.ParseEvent([]byte(body))
					assert.NoError(t, err)
					added, err := false, error(inbox.ErrUnavailable)
					for err != nil {
						added, err = programs[names[n%len(names)]].Append(context.Background(), e)
					}
					assert.True(t, added)
				}
			})
		}
		publishing.Wait()
		stored.Add(int64(events))
	}
	phase(400, "old", "new")
	die(t, programs["new"], conn)
	phase(400, "old")
	programs["new"] = start(t, newDSN, false)
	run(programs["new"])
	phase(400, "new", "old")
	number := func(text string) (n int64) {
		require.NoError(t, conn.QueryRow(t.Context(), text).Scan(&n), text)
		return n
	}
	require.Eventually(t, func() bool { return number("SELECT count(*) FROM heads_inbox_events WHERE state = 0") == 0 }, time.Minute, 10*time.Millisecond)
	for _, p := range programs {
		require.NoError(t, p.Close(context.Background()))
	}
	assert.Equal(t, stored.Load(), number("SELECT count(*) FROM visits"), "lost or doubled")
	assert.Equal(t, stored.Load(), number("SELECT count(DISTINCT sequence) FROM visits"), "doubled")
	assert.Zero(t, number("SELECT count(*) FROM visits a JOIN visits b ON a.session = b.session AND a.id < b.id AND a.sequence > b.sequence"), "out of order")
	assert.Zero(t, overlapping.Load())
	t.Logf("%d events of two versions: lost, doubled, out of order, overlapping 0", stored.Load())
}
