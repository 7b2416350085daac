package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox/internal/engine"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

// The server ends a transaction that is idle, as that of a stopped process: one of the inbox after
// idleTimeout, an effect after the lease.
func TestServerEndsIdleTransactions(t *testing.T) {
	server := pgtest.ForTest(t)
	db, err := Open(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	b, err := engine.Take(db)
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.Setup(t.Context(), engine.DefaultPrefix, nil))
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	defer conn.Close(context.Background())
	// This transaction locks the row of touch until the server ends it.
	hold := func() (took time.Duration) {
		begun := time.Now()
		_, err := conn.Exec(t.Context(), "UPDATE heads_inbox_meta SET value = '1' WHERE name = 'touched'")
		require.NoError(t, err)
		return time.Since(begun)
	}
	touch := func(ctx context.Context, tx engine.Tx) error { return tx.Send(ctx, engine.Do(engine.Touch)) }

	var took time.Duration
	err = b.Write(t.Context(), func(ctx context.Context, tx engine.Tx) error {
		require.NoError(t, touch(ctx, tx))
		took = hold()
		return touch(ctx, tx)
	})
	assert.Equal(t, engine.Away, engine.KindOf(err))
	assert.Greater(t, took, idleTimeout-200*time.Millisecond)
	assert.Less(t, took, idleTimeout+3*time.Second)

	const lease = 700 * time.Millisecond
	err = b.Effect(t.Context(), lease, touch, func(tx *sql.Tx) error {
		took = hold()
		_, err := tx.Exec("SELECT 1")
		return err
	})
	var failed *engine.EffectError
	require.ErrorAs(t, err, &failed)
	assert.True(t, failed.Again, "the effect has caused it")
	assert.Greater(t, took, lease-200*time.Millisecond)
	assert.Less(t, took, lease+3*time.Second)
}
