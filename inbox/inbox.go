package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// DB is a database for one inbox; see packages sqlite and postgres.
type DB = engine.DB

const (
	defaultRetention = 7 * 24 * time.Hour
	// minRetention is how long an EventHandler with the default WithMaxAge must
	// know an event.
	minRetention = 24*time.Hour + 6*time.Minute
)

// Inbox stores events and has them handled. Open returns one. Its methods may be
// called by several goroutines at once.
type Inbox struct {
	db        engine.Backend
	prefix    string
	retention time.Duration
	logger    *slog.Logger
	observe   func(context.Context, Observation)
	errorText bool

	health health
	wakes  wakes

	closed  context.Context //nolint:containedctx // ends when Close begins
	close   context.CancelFunc
	aborted context.Context //nolint:containedctx // ends when Close has waited long enough
	abort   context.CancelFunc
	mu      sync.Mutex
	closing bool
	users   sync.WaitGroup // appends, runs and the prober
}

// Option changes how an Inbox works.
type Option func(*Inbox) error

// WithTablePrefix sets what the names of the tables begin with, for several
// inboxes in one database. The default is "heads_inbox_". A prefix has up to 40
// lower-case letters, digits and underscores and doesn't begin with a digit.
func WithTablePrefix(p string) Option {
	return func(in *Inbox) error {
		in.prefix = p
		if err := engine.CheckPrefix(p); err != nil {
			return invalid("Open", "WithTablePrefix", err.Error())
		}
		return nil
	}
}

// WithRetention sets how long handled events are kept, counted from when they
// were stored: for Replay, and so that a redelivery is known. The default is 7
// days. Less than 24 hours and 6 minutes is refused, since a redelivery can be
// that old. Events that wait and dead letters are kept until they are handled or
// deleted.
func WithRetention(d time.Duration) Option {
	return func(in *Inbox) error {
		in.retention = d
		return refuse(d < minRetention, "Open", "WithRetention", fmt.Sprintf("%v is less than %v, the age at which a redelivery can arrive", d, minRetention))
	}
}

// WithLogger logs what goes wrong: a database that can't be reached, failed and
// dead events with their ids and the type of the error. No line shows a body or
// a DSN. Without it the inbox is silent.
func WithLogger(l *slog.Logger) Option {
	return func(in *Inbox) error {
		in.logger = l
		return refuse(l == nil, "Open", "WithLogger", "the logger is nil; leave the option out for silence")
	}
}

// WithObserver calls f for everything that happens to an event, for metrics and
// tracing. It is called on the goroutine that did it, which waits for it.
func WithObserver(f func(context.Context, Observation)) Option {
	return func(in *Inbox) error {
		in.observe = f
		return refuse(f == nil, "Open", "WithObserver", "the function is nil")
	}
}

// WithErrorText stores the text of the errors that the function returns, up to
// 1,024 bytes, for DeadEvent.Error and the column error. By default only the
// type of the error is stored, since its text may hold what an event says.
func WithErrorText() Option {
	return func(in *Inbox) error {
		in.errorText = true
		return nil
	}
}

// Open creates the tables in db, or brings those of an older version up to date,
// and returns an inbox that keeps its events there. It may run in many processes
// at once, also while others work.
//
// Open owns db from now on, even if it fails: Close closes it. A db that belongs
// to another inbox is refused. Faults in the options come back as
// *heads.InvalidError, all of them joined; a database that was damaged, or is
// older than what was acknowledged, as ErrDamaged.
func Open(ctx context.Context, db *DB, opts ...Option) (*Inbox, error) {
	if db == nil {
		return nil, invalid("Open", "db", "is nil; see sqlite.Open and postgres.Open")
	}
	backend, err := engine.Take(db)
	if err != nil {
		return nil, invalid("Open", "db", "belongs to another inbox or was closed; open one for each inbox")
	}
	in := &Inbox{db: backend, prefix: engine.DefaultPrefix, retention: defaultRetention}
	in.closed, in.close = context.WithCancel(context.Background())
	in.aborted, in.abort = context.WithCancel(context.Background())
	if err := errors.Join(in.apply(opts), ctx.Err()); err != nil {
		return nil, errors.Join(err, backend.Close())
	}
	if err := backend.Setup(ctx, in.prefix); err != nil {
		_ = backend.Close()
		return nil, fmt.Errorf("inbox: open: %w", in.public(err))
	}
	in.health.start(in)
	return in, nil
}

func (in *Inbox) apply(opts []Option) (err error) {
	for _, opt := range opts {
		if opt == nil {
			err = errors.Join(err, invalid("Open", "option", "is nil"))
			continue
		}
		err = errors.Join(err, opt(in))
	}
	return err
}

// Close lets nothing more in, ends every Run as the end of its context does,
// waits for what is under way and closes the database. When ctx ends before
// that, what still runs sees its context end, the database is closed and Close
// returns the error of ctx. A second Close does nothing.
func (in *Inbox) Close(ctx context.Context) error {
	in.mu.Lock()
	if in.closing {
		in.mu.Unlock()
		return nil
	}
	in.closing = true
	in.mu.Unlock()
	in.close()
	done := make(chan struct{})
	go func() {
		in.users.Wait()
		close(done)
	}()
	select {
	case <-done:
		in.abort()
		return in.db.Close()
	case <-ctx.Done():
	}
	in.abort()
	ended := make(chan struct{})
	go func() {
		_ = in.db.Close() // waits for an effect that doesn't end
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(drainGrace):
	}
	return ctx.Err()
}

// enter counts a user of the database until leave; it reports false once Close
// has begun.
func (in *Inbox) enter() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closing {
		return false
	}
	in.users.Add(1)
	return true
}

func (in *Inbox) leave() { in.users.Done() }

// String returns the name of the type.
func (in *Inbox) String() string { return "inbox.Inbox" }

// Format writes the same as String, whatever the verb.
func (in *Inbox) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(in.String())) }

// LogValue returns the same as String.
func (in *Inbox) LogValue() slog.Value { return slog.StringValue(in.String()) }

func invalid(operation, field, reason string) error {
	return &heads.InvalidError{Operation: "inbox." + operation, Field: field, Reason: reason}
}

func refuse(bad bool, operation, field, reason string) error {
	if bad {
		return invalid(operation, field, reason)
	}
	return nil
}
