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

// New returns a DB of a backend.
func New(b Backend) *DB { return &DB{backend: b} }

// ErrTaken is returned by Take for a DB that belongs to an inbox.
var ErrTaken = errors.New("inbox: the DB belongs to another inbox; open one for each")

// Take returns the backend of db to the one inbox that may use it.
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

// String returns the name of the type, since a DB may have a password.
func (db *DB) String() string { return "inbox.DB" }

// Format writes the same as String, whatever the verb.
func (db *DB) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, db.String()) }

// Backend is a database. It is safe for concurrent use. Its errors are *Error, or the error of the
// context.
type Backend interface {
	// Setup checks the database, migrates its tables and prepares s.
	Setup(ctx context.Context, prefix string) error
	// Append stores an event and returns its sequence, or 0 if the event is known.
	Append(ctx context.Context, e *Record) (int64, error)
	// Write runs f in a transaction, which on SQLite may hold other writes too. After an error f
	// may run again.
	Write(ctx context.Context, f func(context.Context, Tx) error) error
	// Effect runs mark and then effect in a transaction that holds nothing else. It returns an
	// error of effect as *EffectError.
	Effect(ctx context.Context, lease time.Duration, mark func(context.Context, Tx) error, effect func(*sql.Tx) error) error
	// Renew is a Write that doesn't wait for connections that functions use.
	Renew(ctx context.Context, f func(context.Context, Tx) error) error
	// Read runs statements that change nothing, each in a transaction of its own.
	Read() Tx
	// Listen calls wake when another process has stored events, until ctx ends.
	Listen(ctx context.Context, wake func())
	// Notify tells the other processes that events were stored.
	Notify()
	// Poll is how long a worker waits before it looks for work without a notification: soon after
	// work, then twice as long each time, up to late.
	Poll() (soon, late time.Duration)
	Close() error
}

// Tx runs statements.
type Tx interface {
	// Send runs the calls in order, in one round trip if possible.
	Send(ctx context.Context, calls ...*Call) error
}

// Call is one execution of a statement.
type Call struct {
	Stmt Stmt
	Args []any
	Row  func(scan func(...any) error) error // called for every row; destinations are *int64 and *[]byte
	N    int64                               // the number of rows that were changed, or read
}

// Do returns a call of a statement that returns no rows.
func Do(s Stmt, args ...any) *Call { return &Call{Stmt: s, Args: args} }

// Get returns a call of a statement whose rows go to row.
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

// Kind is what can be done about an error.
type Kind int

// The kinds of errors.
const (
	Failed   Kind = iota // nothing
	Again                // a retry may succeed at once
	Locked               // another transaction holds a row; a retry may succeed
	Away                 // the database is unreachable, or too slow
	Full                 // there is no room
	Damaged              // the content is not what was written
	ReadOnly             // the database accepts no writes
	Stale                // the claim on the event has ended
)

// Error is a failure of the database. Its text holds no secret and nothing of an event, and it
// keeps no other error, since drivers print both.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

// Retriable reports whether the same transaction may succeed later.
func (k Kind) Retriable() bool { return k == Again || k == Locked || k == Away }

// KindOf returns the kind of an error, Failed for those of others.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Failed
}

// EffectError is an error that the function passed to Effect returned.
type EffectError struct {
	Err  error
	Kind Kind // what the driver's error in it means
}

func (e *EffectError) Error() string { return "the effect failed" }

// SchemaError reports tables of another version of this module.
type SchemaError struct{ Found, Known int }

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the tables have schema version %d, and this program knows versions up to %d: update the program", e.Found, e.Known)
}

// DefaultPrefix is the prefix of the tables unless an option sets another.
const DefaultPrefix = "heads_inbox_"
