package database_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/database"
	"github.com/headsapi/heads-go/inbox/internal/pgtest"
)

func TestDSNChoosesTheDatabase(t *testing.T) {
	server := pgtest.ForTest(t)
	dir := t.TempDir()
	for name, dsn := range map[string]string{
		"path":          filepath.Join(dir, "a.db"),
		"sqlite:path":   "sqlite:" + filepath.Join(dir, "b@c?.db"),
		"keywords":      server.DSN("postgres"),
		"postgres://":   "postgres:///postgres?user=heads&sslmode=disable&host=" + server.Host(),
		"postgresql://": "postgresql:///postgres?user=heads&sslmode=disable&host=" + server.Host(),
	} {
		t.Run(name, func(t *testing.T) {
			in, err := database.OpenInbox(t.Context(), dsn, inbox.WithTables("CREATE TABLE IF NOT EXISTS mine (n BIGINT)"))
			require.NoError(t, err)
			_, err = in.SQL().Exec("INSERT INTO mine (n) VALUES ($1)", 1)
			require.NoError(t, err)
			require.NoError(t, in.Close(t.Context()))
		})
	}
	for _, name := range []string{"a.db", "b@c?.db"} {
		_, err := os.Stat(filepath.Join(dir, name))
		assert.NoError(t, err)
	}
}

func TestDSNThatCanNotBeUsedIsRefusedAndNotShown(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dsn := range []string{
		"", " ", ":memory:", "sqlite:", "sqlite://host-secret/file.db", "sqlite::memory:",
		"postgre://user:secret@127.0.0.1/db", "mysql://user:secret@127.0.0.1/db", "user:secret@127.0.0.1/db",
		"//user:secret@127.0.0.1/db", "file:secret.db?mode=ro", "secret@127.0.0.1", "secret.db?mode=ro",
		"postgres://user:secret@127.0.0.1:notaport/db", "postgres://user:sec#ret@127.0.0.1/db", "host=127.0.0.1 port=secret",
		"postgres://user:secret@127.0.0.1:1/db?connect_timeout=1", "host=127.0.0.1 port=1 user=secret password=secret dbname=secret",
		"missing/folder/file.db", "Postgres://user:secret@127.0.0.1/db",
	} {
		db, err := database.Open(context.Background(), dsn)
		require.Error(t, err, dsn)
		assert.Nil(t, db)
		assert.NotContains(t, err.Error(), "secret", dsn)
		assert.NotContains(t, err.Error(), "127.0.0.1", dsn)
		assert.Regexp(t, "want |create it first|no connection|use ", err.Error(), dsn)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left, "no file is made of a DSN")
}
