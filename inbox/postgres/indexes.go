package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// The pauses between two checks. After each failure in a row, the pause is twice as long.
const (
	indexPause        = 2 * time.Second
	longestIndexPause = time.Hour
)

// buildIndexes builds in the background the indexes that tables of older versions lack, until all
// exist or the inbox is closed. Until then, statements that need them are correct but slow. Several
// processes may run it at the same time. It reports each failure.
func (b *backend) buildIndexes(prefix string, report func(text string, err error)) {
	for failures := 0; ; {
		done, err := b.buildMissing(b.ctx, prefix)
		switch {
		case b.ctx.Err() != nil, done && err == nil:
			return
		case err == nil: // another process builds, or may have dropped one
			failures = 0
		default:
			failures++
			report("indexes were not built, so some queries are slow", fault(b.ctx, err))
		}
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(indexWait(failures)):
		}
	}
}

// indexWait returns the pause after a number of failures in a row. Half of it is random, since
// several processes build.
func indexWait(failures int) time.Duration {
	d := longestIndexPause
	if failures < 12 {
		d = min(d, 2*indexPause<<max(failures-1, 0))
	}
	return d/2 + rand.N(d/2)
}

// buildMissing reports whether there is nothing left to build.
func (b *backend) buildMissing(ctx context.Context, prefix string) (done bool, err error) {
	missing, err := b.missingIndexes(ctx, prefix)
	if err != nil || len(missing) == 0 {
		return err == nil, err
	}
	conn, err := b.connect(ctx)
	if err != nil {
		return false, err
	}
	defer disconnect(conn)
	if !b.pooled { // behind a pooler, the settings would be those of other clients
		if _, err := conn.Exec(ctx, withoutTimeouts); err != nil {
			return false, err
		}
	}
	for _, index := range indexes {
		switch missing[prefix+index.name] {
		case "building":
			return false, nil
		case "invalid": // an interrupted build left it
			if _, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+prefix+index.name, pgx.QueryExecModeSimpleProtocol); err != nil {
				return false, err
			}
		case "":
			continue
		}
		if _, err := conn.Exec(ctx, createIndex("CONCURRENTLY", prefix, index.name, index.on), pgx.QueryExecModeSimpleProtocol); err != nil {
			return false, err
		}
	}
	return false, nil // check again: another process may have dropped one
}

// withoutTimeouts switches off the timeouts of a session that the server knows. A build on a large
// table can take hours, and one that was cut off begins from the start.
const withoutTimeouts = `SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name IN
	('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout')`

// missingIndexes returns the indexes that can't be used, and why. While a process builds an index,
// it holds a lock on the table.
func (b *backend) missingIndexes(ctx context.Context, prefix string) (map[string]string, error) {
	missing := make(map[string]string)
	for _, index := range indexes {
		name := prefix + index.name
		var why string
		err := b.pool.QueryRow(ctx, `SELECT CASE
				WHEN i.indisvalid THEN ''
				WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_locks l WHERE l.relation = t.oid AND l.mode = 'ShareUpdateExclusiveLock' AND l.granted
					AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())) THEN 'building'
				WHEN i.indexrelid IS NULL THEN 'absent'
				ELSE 'invalid' END
			FROM pg_catalog.pg_class t
			LEFT JOIN (pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relname = $2::text) ON i.indrelid = t.oid
			WHERE t.relname = $1::text AND pg_catalog.pg_table_is_visible(t.oid)`, prefix+"events", name).Scan(&why)
		if err != nil {
			return nil, err
		}
		if why != "" {
			missing[name] = why
		}
	}
	return missing, nil
}
