package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

var errClosed = &engine.Error{Kind: engine.Failed, Text: "sqlite: the database is closed"}

// fault turns an error of the driver into one of package engine. It returns errors of contexts and
// of package engine unchanged.
func fault(err error) error {
	var own *engine.Error
	var schema *engine.SchemaError
	var effect *engine.EffectError
	if err == nil || errors.As(err, &own) || errors.As(err, &schema) || errors.As(err, &effect) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	kind, code := kindOf(err)
	if code == 0 {
		return &engine.Error{Kind: kind, Text: fmt.Sprintf("sqlite: %T", err)}
	}
	return &engine.Error{Kind: kind, Text: fmt.Sprintf("sqlite: %s (%d)", sqlite.ErrorCodeString[code&0xff], code)}
}

// kindOf returns the kind of an error and its SQLite code, 0 if it has none.
func kindOf(err error) (engine.Kind, int) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return engine.Failed, 0
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT:
		return engine.Again, e.Code()
	case sqlite3.SQLITE_FULL:
		return engine.Full, e.Code()
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return engine.Damaged, e.Code()
	case sqlite3.SQLITE_READONLY:
		return engine.ReadOnly, e.Code()
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return engine.Away, e.Code()
	}
	return engine.Failed, e.Code()
}

func fileError(err error) error {
	kind := engine.Failed
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = engine.Full
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		kind = engine.ReadOnly
	}
	return &engine.Error{Kind: kind, Text: "sqlite: " + err.Error()}
}
