package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

const indexPause = 2 * time.Second // before the next check, at least

// buildIndexes builds in the background the indexes that tables of older versions lack, until all
// exist or the inbox is closed. Until then, statements that need them are correct but slow. Several
// processes may run it at the same time.
func (b *backend) buildIndexes(prefix string) {
	for {
		if done, err := b.buildMissing(b.ctx, prefix); done && err == nil {
			return
		}
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(indexPause + rand.N(indexPause)):
		}
	}
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

func createIndex(how, prefix, name, on string) string { // how: CONCURRENTLY or ""
	return "CREATE INDEX " + how + " IF NOT EXISTS " + prefix + name + " ON " + prefix + "events " + on
}
