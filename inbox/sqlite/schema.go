package sqlite

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"modernc.org/sqlite"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// now is the machine's time in microseconds. All processes that use the file run on that machine.
const now = `CAST(unixepoch('subsec') * 1000000 AS INTEGER)`

// schema has the statements that migrate each version to the next. Released entries are never
// changed.
var schema = []string{
	`CREATE TABLE {p}meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
	INSERT INTO {p}meta VALUES ('schema', '0'), ('fence', '0'), ('touched', '0');
	CREATE TABLE {p}events (
		sequence INTEGER PRIMARY KEY AUTOINCREMENT,
		key BLOB NOT NULL UNIQUE,
		session BLOB NOT NULL,
		head_id BLOB NOT NULL,
		session_id BLOB NOT NULL,
		type BLOB NOT NULL,
		body BLOB NOT NULL,
		checksum BLOB NOT NULL,
		state INTEGER NOT NULL DEFAULT 0,
		attempts INTEGER NOT NULL DEFAULT 0,
		fence INTEGER NOT NULL DEFAULT 0,
		redriven INTEGER NOT NULL DEFAULT 0,
		received INTEGER NOT NULL,
		finished INTEGER,
		error TEXT
	);
	CREATE INDEX {p}events_waiting ON {p}events (session, sequence) WHERE state = 0;
	CREATE INDEX {p}events_dead ON {p}events (sequence) WHERE state = 2;
	CREATE TABLE {p}sessions (
		session BLOB PRIMARY KEY,
		owner BLOB,
		fence INTEGER NOT NULL,
		next_at INTEGER NOT NULL
	) WITHOUT ROWID;
	CREATE INDEX {p}sessions_due ON {p}sessions (next_at);`,
}

const insertEvent = `INSERT INTO {p}events (key, session, head_id, session_id, type, body, checksum, received)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, {now}) ON CONFLICT (key) DO NOTHING RETURNING sequence`

// overrides are the statements that differ from PostgreSQL's. Only one transaction writes at a
// time, so no row locks are needed. The fences come from a row, since SQLite has no SQL sequences.
var overrides = map[engine.Stmt]string{
	engine.Due: `SELECT session, owner IS NOT NULL, fence,
			(SELECT CAST(value AS INTEGER) FROM {p}meta WHERE name = 'fence') + row_number() OVER (ORDER BY next_at)
		FROM {p}sessions WHERE next_at >= ?1 AND next_at <= {now} ORDER BY next_at LIMIT ?2`,
	engine.SpendFences: `UPDATE {p}meta SET value = CAST(value AS INTEGER) + ?1 WHERE name = 'fence'`,
	engine.Sample: `WITH RECURSIVE points (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM points WHERE n < ?3)
		SELECT count(*) FROM (SELECT (SELECT e.state FROM {p}events e WHERE e.sequence = p.at) AS state
			FROM (SELECT ?1 + abs(random() % (?2 - ?1 + 1)) AS at FROM points) p) q WHERE q.state = 0`,
	engine.FencesHandedOut: `SELECT (SELECT CAST(value AS INTEGER) FROM {p}meta WHERE name = 'fence'),
		coalesce((SELECT max(q.fence) FROM (SELECT e.fence FROM {p}events e ORDER BY e.sequence DESC LIMIT 1000) q), 0)`,
}

// indexes are built in Open if they are missing. They are on expressions, as on PostgreSQL, so
// claims do not use them.
const indexes = `CREATE INDEX IF NOT EXISTS {p}events_oldest ON {p}events (sequence) WHERE state + 0 = 0;
	CREATE INDEX IF NOT EXISTS {p}events_story ON {p}events (substr(session, 1));`

var (
	parameter = regexp.MustCompile(`\$(\d+)`)
	cast      = regexp.MustCompile(`::(bigint|bytea|text)\b`)
	rowLock   = regexp.MustCompile(`FOR UPDATE( OF e)?( SKIP LOCKED)?`)
	other     = strings.NewReplacer(`(e.session || ''::bytea)`, `substr(e.session, 1)`,
		`encode(substr(e.type, 1, 64), 'hex')`, `hex(substr(e.type, 1, 64))`, `string_agg(DISTINCT q.type, ',')`, `group_concat(DISTINCT q.type)`)
)

// insertion is the statement of Append, which package engine does not have.
const insertion = engine.Statements

func statements(prefix, now string) []string {
	texts := engine.Texts(prefix, now, overrides, func(text string) string {
		return rowLock.ReplaceAllString(cast.ReplaceAllString(parameter.ReplaceAllString(other.Replace(text), "?$1"), ""), "")
	})
	return append(texts, engine.Expand(insertEvent, prefix, now))
}

// check checks the file for damage and migrates the tables. If the mark has a higher sequence than
// the file, the file is an older copy.
func (b *backend) check(prefix string, acknowledged int64) error {
	if err := b.writer.quickCheck(); err != nil {
		return fault(err)
	}
	version, err := b.version(prefix)
	if err != nil {
		return fault(err)
	}
	if version == 0 && acknowledged > 0 {
		return b.older(prefix, acknowledged, 0)
	}
	if version != len(schema) {
		if err := b.migrate(prefix); err != nil {
			return fault(err)
		}
	}
	if err := b.buildIndexes(prefix); err != nil {
		return fault(err)
	}
	var highest int64
	err = b.writer.query(`SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '`+prefix+`events'`, &highest)
	if err != nil {
		return fault(err)
	}
	if highest < acknowledged {
		return b.older(prefix, acknowledged, highest)
	}
	return fault(b.writer.exec(b.texts[engine.Touch]))
}

func (b *backend) older(prefix string, acknowledged, highest int64) error {
	return &engine.Error{Kind: engine.Damaged, Text: fmt.Sprintf(
		"sqlite: %s holds events up to sequence %d, and %d were acknowledged: the file or its -wal file was removed, emptied or replaced by an older one; put it back, or remove %s to go on with the events that are left",
		b.path, highest, acknowledged, b.markPath(prefix))}
}

// version returns the version of the tables, 0 without tables.
func (b *backend) version(prefix string) (int, error) {
	var tables int64
	if err := b.writer.query(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '`+prefix+`meta'`, &tables); err != nil || tables == 0 {
		return 0, err
	}
	var text []byte
	if err := b.writer.query(`SELECT value FROM `+prefix+`meta WHERE name = 'schema'`, &text); err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(string(text))
	switch {
	case err != nil:
		return 0, &engine.Error{Kind: engine.Damaged, Text: "sqlite: the schema version is not a number"}
	case version > len(schema):
		return 0, &engine.SchemaError{Found: version, Known: len(schema)}
	}
	return version, nil
}

func (b *backend) migrate(prefix string) error {
	return b.writer.alone(func() error {
		version, err := b.version(prefix) // another process may have migrated the tables
		if err != nil {
			return err
		}
		for ; version < len(schema); version++ {
			if err := b.writer.exec(engine.Expand(schema[version], prefix, b.now)); err != nil {
				return err
			}
		}
		return b.writer.exec(`UPDATE ` + prefix + `meta SET value = '` + strconv.Itoa(version) + `' WHERE name = 'schema'`)
	})
}

// buildIndexes adds the indexes that tables of older versions lack.
func (b *backend) buildIndexes(prefix string) error {
	var n int64
	err := b.writer.query(`SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name IN ('`+prefix+`events_oldest', '`+prefix+`events_story')`, &n)
	if err != nil || n == 2 {
		return err
	}
	return b.writer.alone(func() error { return b.writer.exec(engine.Expand(indexes, prefix, b.now)) })
}

// quickCheck checks the structure of the whole file. It does not detect changed bodies, which have
// their own checksums.
func (w *writer) quickCheck() error {
	var result []byte
	err := w.query(`PRAGMA quick_check(1)`, &result)
	var e *sqlite.Error
	switch {
	case errors.As(err, &e):
		return err
	case err != nil || string(result) == "ok":
		return err
	}
	return &engine.Error{Kind: engine.Damaged, Text: "sqlite: " + w.backend.path + " is damaged: restore it from a backup"}
}
