// Package engine is the interface between package inbox and a database. Packages sqlite and
// postgres implement it, so a program links only the driver that it uses.
package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// DB is a database for one inbox. sqlite.Open, postgres.Open and postgres.FromPool return one.
// After inbox.Open, the inbox owns it.
type DB struct {
	backend Backend
	taken   atomic.Bool
}

// New returns a DB that uses a backend.
func New(b Backend) *DB { return &DB{backend: b} }

// ErrTaken is returned by Take for a DB that belongs to an inbox.
var ErrTaken = errors.New("inbox: the DB belongs to another inbox; open one for each")

// Take returns the backend of db. It succeeds once, so only one inbox uses a DB.
func Take(db *DB) (Backend, error) {
	if db.taken.Swap(true) {
		return nil, ErrTaken
	}
	return db.backend, nil
}

// Close closes a DB that was never passed to inbox.Open. Otherwise Inbox.Close closes it.
func (db *DB) Close() error {
	if db.taken.Swap(true) {
		return ErrTaken
	}
	return db.backend.Close()
}

// String returns the name of the type. A DB may hold a password.
func (db *DB) String() string { return "inbox.DB" }

// Format writes the result of String for every verb.
func (db *DB) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, db.String()) }

// Backend is a database. It is safe for concurrent use. Its errors are *Error, or the error of the
// context.
type Backend interface {
	// Setup checks the database, migrates its tables and prepares the statements. Work that goes on
	// in the background calls report for each failure.
	Setup(ctx context.Context, prefix string, report func(text string, err error)) error
	// Append stores an event and returns its sequence, or 0 if its key is already stored.
	Append(ctx context.Context, e *Record) (int64, error)
	// Write runs f in a transaction. On SQLite, the transaction may include other writes. f may run
	// again after an error.
	Write(ctx context.Context, f func(context.Context, Tx) error) error
	// Effect runs mark and then effect in a transaction of their own. It returns an error of effect
	// as *EffectError, unless the transaction's connection was lost meanwhile. Only a failure of that
	// connection has the kind Away.
	Effect(ctx context.Context, lease time.Duration, mark func(context.Context, Tx) error, effect func(*sql.Tx) error) error
	// Create runs the caller's statements in one transaction, while no other Create runs in the
	// database. It returns a failure of a statement as *StatementError.
	Create(ctx context.Context, statements []string) error
	// SQL returns a pool for tables of the caller. Close closes it.
	SQL() *sql.DB
	// Renew is a Write on a connection that functions can't use up.
	Renew(ctx context.Context, f func(context.Context, Tx) error) error
	// Read runs statements that change nothing, each in a transaction of its own.
	Read() Tx
	// Listen calls wake when another process has stored events, until ctx ends.
	Listen(ctx context.Context, wake func())
	// Notify tells the other processes that events were stored.
	Notify()
	// Poll returns how long a worker waits before it searches for work without a notification: soon
	// after it had work, then twice as long each time, up to late.
	Poll() (soon, late time.Duration)
	Close() error
}

// Tx runs statements.
type Tx interface {
	// Send executes the calls in order, in one round trip if possible.
	Send(ctx context.Context, calls ...*Call) error
}

// Call is one execution of a statement.
type Call struct {
	Stmt Stmt
	Args []any
	Row  func(scan func(...any) error) error // for every row; scans into *int64 and *[]byte
	N    int64                               // number of rows changed or read
}

// Do returns a call of a statement that returns no rows.
func Do(s Stmt, args ...any) *Call { return &Call{Stmt: s, Args: args} }

// Get returns a call of a statement that calls row for each row.
func Get(row func(scan func(...any) error) error, s Stmt, args ...any) *Call {
	return &Call{Stmt: s, Args: args, Row: row}
}

// Record is a row of the table of events.
type Record struct {
	Sequence                  int64
	Key, Session              []byte
	HeadID, SessionID, Type   []byte
	Body, Checksum            []byte
	Attempts, Fence, Redriven int64
	State, Received, Finished int64 // times in microseconds since 1970
	Error                     []byte
}

// The states of an event.
const (
	Waiting int64 = iota
	Handled
	Dead
	Deleted // a dead event whose body was removed
)

// Kind classifies an error by how to react to it.
type Kind int

// The kinds of errors.
const (
	Failed   Kind = iota // permanent
	Again                // a retry may succeed at once
	Locked               // another transaction holds a row; a retry may succeed
	Away                 // the database is unreachable, or too slow
	Full                 // the disk is full
	Damaged              // the data was changed or lost outside the program
	ReadOnly             // the database accepts no writes
	Stale                // the claim on the event has ended
)

// Error is a failure of the database. Its text contains no secret and no event data. It wraps no
// driver error, since drivers print both.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

// Retriable reports whether the same transaction may succeed later.
func (k Kind) Retriable() bool { return k == Again || k == Locked || k == Away }

// KindOf returns the kind of an *Error in err's tree, and Failed for any other error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Failed
}

// ChangeKind returns err with another kind if it has the given one.
func ChangeKind(err error, from, to Kind) error {
	var e *Error
	if errors.As(err, &e) && e.Kind == from {
		return &Error{Kind: to, Text: e.Text}
	}
	return err
}

// EffectError is an error returned by the function passed to Effect.
type EffectError struct {
	Err   error
	Again bool // its transaction reported a failure that a repetition may avoid
}

func (e *EffectError) Error() string { return "the effect failed" }

// StatementError is the failure of a statement of Create. Its text is what the database says.
type StatementError struct {
	Number int // from 1
	Text   string
}

func (e *StatementError) Error() string { return fmt.Sprintf("statement %d: %s", e.Number, e.Text) }

// EndedTransaction is the text of a StatementError for a statement that ended the transaction.
const EndedTransaction = "it ended the transaction, which the inbox commits: leave BEGIN, COMMIT and ROLLBACK out"

// SchemaError reports tables that a newer version of this module has created.
type SchemaError struct{ Found, Known int }

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the tables have schema version %d, and this program knows versions up to %d: update the program", e.Found, e.Known)
}

// DefaultPrefix is the prefix of the tables unless an option sets another.
const DefaultPrefix = "heads_inbox_"
