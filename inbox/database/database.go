// Package database opens an inbox in the database that a DSN names, so that one setting chooses
// between SQLite and PostgreSQL. It links the drivers of both.
package database

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/postgres"
	"github.com/headsapi/heads-go/inbox/sqlite"
)

var (
	keywords = regexp.MustCompile(`^\s*[a-z_]+\s*=`) // of a PostgreSQL DSN
	scheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)
)

// Open returns a DB for a DSN:
//
//	postgres://user:password@host:5432/database (or postgresql://…)  PostgreSQL
//	host=… user=… dbname=…                                            PostgreSQL
//	sqlite:PATH                                                       an SQLite file
//	PATH                                                              the same
//
// A path that could be taken for another DSN, such as one with an @, needs the prefix sqlite:.
// See postgres.Open and sqlite.Open. No error contains anything of a PostgreSQL DSN.
func Open(ctx context.Context, dsn string) (*inbox.DB, error) {
	path, isFile := strings.CutPrefix(dsn, "sqlite:")
	switch {
	case isFile && strings.HasPrefix(path, "//"):
		return nil, refuse("begins with sqlite://")
	case isFile:
		return sqlite.Open(path)
	case strings.TrimSpace(dsn) == "":
		return nil, refuse("is empty")
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"), keywords.MatchString(dsn):
		return postgres.Open(ctx, dsn)
	case scheme.MatchString(dsn), strings.ContainsAny(dsn, "@?"):
		return nil, refuse("is of no known form (it is not shown, since it may hold a password)")
	}
	return sqlite.Open(dsn)
}

// OpenInbox calls Open, and inbox.Open with the DB.
func OpenInbox(ctx context.Context, dsn string, opts ...inbox.Option) (*inbox.Inbox, error) {
	db, err := Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return inbox.Open(ctx, db, opts...)
}

func refuse(problem string) error {
	return errors.New("inbox: database: the DSN " + problem + ": want postgres://user:password@host:5432/database, host=... user=... dbname=..., sqlite:PATH, or the path of a file")
}
