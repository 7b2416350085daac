package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// DB is a database for one inbox; see packages sqlite and postgres.
type DB = engine.DB

const (
	defaultRetention = 7 * 24 * time.Hour
	// minRetention is how long an EventHandler with the default WithMaxAge must remember a key.
	minRetention = 24*time.Hour + 6*time.Minute
)

// Inbox stores events and calls a function for each. Open returns one. An Inbox is safe for
// concurrent use.
type Inbox struct {
	db *database
	*reporter
	prefix    string
	retention time.Duration

	statements []string // of WithTables

	health       health
	probed       probed
	handlers     handlers
	serving      atomic.Pointer[context.Context] // of Serve; ends when the shutdown begins
	wakes        wakes
	acknowledged acknowledged
	fences       fences
}

// handlers are those that Handler has returned.
type handlers struct {
	mu   sync.Mutex
	list []*heads.EventHandler
}

func (h *handlers) add(e *heads.EventHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, e)
}

func (h *handlers) all() []*heads.EventHandler {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// Option configures an Inbox.
type Option func(*Inbox) error

// WithTablePrefix sets the prefix of the table names, for several inboxes in one database. The
// default is "heads_inbox_". A prefix has up to 40 lower-case letters, digits and underscores, and
// does not begin with a digit.
func WithTablePrefix(p string) Option {
	return func(in *Inbox) error {
		in.prefix = p
		return refuse(engine.CheckPrefix(p) != nil, "Open", "WithTablePrefix", fmt.Sprintf("%q can't begin the name of a table", p),
			"use up to 40 lower-case letters, digits and underscores, not beginning with a digit")
	}
}

// WithRetention sets how long handled events are kept, counted from when they were stored. They are
// kept for Replay and to recognize redeliveries. The default is 7 days. Open returns an error for
// less than 24 hours and 6 minutes, since a redelivery can be that late. Waiting events are kept
// until they are handled, dead letters until they are deleted.
func WithRetention(d time.Duration) Option {
	return func(in *Inbox) error {
		in.retention = d
		return refuse(d < minRetention, "Open", "WithRetention", fmt.Sprintf("%v is less than %v, the age at which a redelivery can arrive", d, minRetention), "give that or more")
	}
}

// WithLogger sets the logger for failures: an unreachable database, and failed and dead events with
// their ids and the type of the error. Bodies and DSNs are never logged. By default, nothing is
// logged.
func WithLogger(l *slog.Logger) Option {
	return func(in *Inbox) error {
		in.logger = l
		return refuse(l == nil, "Open", "WithLogger", "is nil", "leave the option out for no log")
	}
}

// WithObserver calls f for each change in the life of an event, for metrics and tracing. f runs on
// the goroutine that does the work and delays it.
func WithObserver(f func(context.Context, Observation)) Option {
	return func(in *Inbox) error {
		in.observe = f
		return refuse(f == nil, "Open", "WithObserver", "is nil", "give a function, or leave the option out")
	}
}

// WithErrorText stores the text of the function's errors, up to 1,024 bytes, in DeadEvent.Error and
// the column error. By default, only the error's type is stored, since its text may contain parts
// of the event.
func WithErrorText() Option {
	return func(in *Inbox) error {
		in.errorText = true
		return nil
	}
}

// WithTables creates tables of your own in the inbox's database: CREATE TABLE IF NOT EXISTS, and
// whatever else may run at every start. When Open has created the inbox's tables, it runs the
// statements in one transaction. Any number of processes may start at once: a lock makes them wait
// for each other. If a statement fails, the error of Open names its number, and none has had an
// effect. On PostgreSQL, CREATE INDEX makes writers of the table wait.
func WithTables(statements ...string) Option {
	return func(in *Inbox) error {
		in.statements = append(in.statements, statements...)
		for i, text := range statements {
			if strings.TrimSpace(text) == "" {
				return invalid("Open", "WithTables", fmt.Sprintf("statement %d is empty", i+1), "leave it out")
			}
		}
		return nil
	}
}

// Open creates the tables in db, or migrates those of an older version, and returns an inbox that
// stores its events there. Several processes may call Open at the same time, even while others use
// the inbox.
//
// The inbox owns db: Close closes it, and so does Open if it fails. Open returns a
// *heads.InvalidError if db belongs to another inbox. For invalid options, it returns a
// *heads.InvalidError for each fault, joined. It returns ErrDamaged if the database is damaged or
// has lost events that were acknowledged.
func Open(ctx context.Context, db *DB, opts ...Option) (*Inbox, error) {
	if db == nil {
		return nil, invalid("Open", "db", "is nil", "make one with sqlite.Open or postgres.Open")
	}
	backend, err := engine.Take(db)
	if err != nil {
		return nil, invalid("Open", "db", "belongs to another inbox or was closed", "open one for each inbox")
	}
	in := &Inbox{db: newDatabase(backend), reporter: &reporter{}, prefix: engine.DefaultPrefix, retention: defaultRetention}
	in.health.db, in.health.reporter = in.db, in.reporter
	if err := errors.Join(in.apply(opts), ctx.Err()); err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	if err := backend.Setup(ctx, in.prefix, in.warn); err != nil {
		_ = backend.Close()
		return nil, fmt.Errorf("inbox: open: %w", in.db.public(err))
	}
	err = checkFences(ctx, backend)
	if err == nil && len(in.statements) > 0 {
		err = backend.Create(ctx, in.statements)
	}
	if err != nil {
		_ = backend.Close()
		return nil, fmt.Errorf("inbox: open: %w", in.db.public(err))
	}
	return in, nil
}

// warn logs a failure of the backend's work in the background.
func (in *Inbox) warn(text string, err error) {
	in.log(context.Background(), slog.LevelWarn, text, slog.String("error", in.db.public(err).Error()))
}

func (in *Inbox) apply(opts []Option) (err error) {
	for _, opt := range opts {
		if opt == nil {
			err = errors.Join(err, invalid("Open", "option", "is nil", "leave it out"))
			continue
		}
		err = errors.Join(err, opt(in))
	}
	return err
}

// Close stops accepting events, ends every Run as if its context had ended, waits for running
// functions and closes the database. If ctx ends first, Close cancels the contexts of the running
// functions, closes the database and returns ctx's error. Later calls do nothing.
func (in *Inbox) Close(ctx context.Context) error { return in.db.shut(ctx) }

// SQL returns a pool for your own tables in the inbox's database. Write parameters as $1, $2 for
// either database. Close closes the pool. In the function passed to Run, write through
// Delivery.Commit instead, so that the effect happens exactly once.
//
// On SQLite, one transaction writes at a time, and events that arrive meanwhile wait, for up to
// 1.4 s. Keep transactions short, and begin those that only read with sql.TxOptions.ReadOnly.
func (in *Inbox) SQL() *sql.DB { return in.db.SQL() }

// String returns the name of the type.
func (in *Inbox) String() string { return "inbox.Inbox" }

// Format writes the result of String for every verb.
func (in *Inbox) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(in.String())) }

// LogValue returns the same as String.
func (in *Inbox) LogValue() slog.Value { return slog.StringValue(in.String()) }
