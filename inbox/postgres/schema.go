package postgres

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// now is the database's time at the start of the statement, in microseconds. Unlike
// clock_timestamp(), it can be used in an index condition.
const now = `(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`

// schema has the statements that migrate each version to the next. Released entries are never
// changed.
var schema = [][]string{{
	`CREATE TABLE {p}meta (name text PRIMARY KEY, value text NOT NULL)`,
	`INSERT INTO {p}meta VALUES ('schema', '0'), ('touched', '0')`,
	`CREATE SEQUENCE {p}fence`,
	`CREATE TABLE {p}events (
		sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		key bytea NOT NULL UNIQUE,
		session bytea NOT NULL,
		head_id bytea NOT NULL,
		session_id bytea NOT NULL,
		type bytea NOT NULL,
		body bytea NOT NULL,
		checksum bytea NOT NULL,
		state bigint NOT NULL DEFAULT 0,
		attempts bigint NOT NULL DEFAULT 0,
		fence bigint NOT NULL DEFAULT 0,
		redriven bigint NOT NULL DEFAULT 0,
		received bigint NOT NULL,
		finished bigint,
		error text
	)`,
	`CREATE INDEX {p}events_waiting ON {p}events (session, sequence) WHERE state = 0`,
	`CREATE INDEX {p}events_dead ON {p}events (sequence) WHERE state = 2`,
	`CREATE TABLE {p}sessions (
		session bytea PRIMARY KEY,
		owner bytea,
		fence bigint NOT NULL,
		next_at bigint NOT NULL
	)`,
	`CREATE INDEX {p}sessions_due ON {p}sessions (next_at)`,
}}

// indexes are built in the background if they are missing. They are on expressions, so the planner
// does not choose them for claims; see package engine.
var indexes = []struct{ name, on string }{
	{"events_oldest", `(sequence) WHERE state + 0 = 0`},
	{"events_story", `((session || ''::bytea))`},
}

// lockTimeout limits how long an append waits for a session that another transaction has locked, so
// paused workers do not use up the connections for appends.
const lockTimeout = 250 * time.Millisecond

// insertEvent locks the session first, so appends of one session wait for each other and their
// sequences have the order of their commits. The lock writes no row version. It assigns a
// transaction id even for a duplicate, so that its commit waits for the standby too.
const insertEvent = `WITH settings AS (
		SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END AS raised,
			set_config('lock_timeout', '{wait}', true) AS waits
	), s AS (
		INSERT INTO {p}sessions (session, fence, next_at)
		SELECT $1::bytea, 0, {now} + 0 * length(settings.waits || coalesce(settings.raised, '')) FROM settings
		ON CONFLICT (session) DO UPDATE SET fence = {p}sessions.fence WHERE false RETURNING session
	)
	INSERT INTO {p}events (key, session, head_id, session_id, type, body, checksum, received)
	SELECT $2::bytea, $1::bytea, $3::bytea, $4::bytea, $5::bytea, $6::bytea, $7::bytea, {now} + 0 * locked.n
	FROM (SELECT count(*) AS n FROM s) locked ON CONFLICT (key) DO NOTHING RETURNING sequence`

func statements(prefix string) (texts []string, insert string) {
	texts = engine.Texts(prefix, now, nil, func(text string) string { return text })
	return texts, strings.ReplaceAll(engine.Expand(insertEvent, prefix, now), "{wait}", milliseconds(lockTimeout))
}

// setup checks the server and migrates the tables. It executes DDL only for an older version, since
// even CREATE INDEX IF NOT EXISTS blocks writers.
func (b *backend) setup(ctx context.Context, prefix string) error {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return fault(ctx, err)
	}
	defer conn.Release()
	if !b.pooled {
		b.pooled, err = isPooled(ctx, conn.Conn())
	}
	if err == nil {
		err = checkServer(ctx, conn.Conn())
	}
	if err != nil {
		return fault(ctx, err)
	}
	version, err := schemaVersion(ctx, conn.Conn(), prefix)
	if err == nil && version != len(schema) {
		err = b.migrate(ctx, conn.Conn(), prefix)
	}
	if err == nil {
		_, err = conn.Exec(ctx, b.texts[engine.Touch])
	}
	return fault(ctx, err)
}

func checkServer(ctx context.Context, conn *pgx.Conn) error {
	var commit, fsync, readOnly string
	err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('transaction_read_only')`).
		Scan(&commit, &fsync, &readOnly)
	switch {
	case err != nil:
		return err
	case commit == "off":
		return refused("synchronous_commit is off: a commit would be acknowledged before it is on disk; set it to on for this database or role")
	case fsync == "off":
		return refused("fsync is off: a loss of power would lose events; set it to on")
	case readOnly == "on":
		return refused("the database is read-only; connect to the primary")
	}
	return nil
}

// schemaVersion returns the version of the tables, 0 without tables.
func schemaVersion(ctx context.Context, q interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, prefix string) (int, error) {
	var exists bool
	// Do not use to_regclass, which caches that a table does not exist.
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = $1::text AND pg_catalog.pg_table_is_visible(oid))`, prefix+"meta").Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	var text string
	err = q.QueryRow(ctx, `SELECT value FROM `+prefix+`meta WHERE name = 'schema'`).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, refused("the table " + prefix + "meta has no schema version")
	}
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, refused("the schema version in the table " + prefix + "meta is not a number")
	case version > len(schema):
		return 0, &engine.SchemaError{Found: version, Known: len(schema)}
	}
	return version, nil
}

func (b *backend) migrate(ctx context.Context, conn *pgx.Conn, prefix string) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := lockSetup(ctx, tx, "heads inbox "+prefix); err != nil {
			return err
		}
		version, err := schemaVersion(ctx, tx, prefix) // another process may have migrated the tables
		if err != nil {
			return err
		}
		for ; version < len(schema); version++ {
			for _, text := range schema[version] {
				if _, err := tx.Exec(ctx, engine.Expand(text, prefix, now)); err != nil {
					return err
				}
			}
			if version == 0 {
				for _, index := range indexes { // the tables are still empty
					if _, err := tx.Exec(ctx, createIndex("", prefix, index.name, index.on)); err != nil {
						return err
					}
				}
			}
		}
		_, err = tx.Exec(ctx, `UPDATE `+prefix+`meta SET value = $1::text WHERE name = 'schema'`, strconv.Itoa(version))
		return err
	})
}

func createIndex(how, prefix, name, on string) string { // how: CONCURRENTLY or ""
	return "CREATE INDEX " + how + " IF NOT EXISTS " + prefix + name + " ON " + prefix + "events " + on
}

// lockSetup waits until no other transaction has the lock of this name.
func lockSetup(ctx context.Context, tx pgx.Tx, name string) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, int64(h.Sum64()))
	return err
}
