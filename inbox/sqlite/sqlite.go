// Package sqlite stores an inbox in an SQLite file with modernc.org/sqlite, which needs no C
// compiler.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/headsapi/heads-go/inbox"
	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	readTimeout  = time.Second          // for a lock held by another process
	writeTimeout = 5 * time.Millisecond // for one BEGIN; see line
	setupTimeout = 10 * time.Second
	// watchInterval is how often a worker checks whether another process has stored an event, by
	// the modification time of the -wal file. That time has the resolution of the kernel's clock
	// tick, so it can miss an event; pollInterval is how soon the worker finds it anyway.
	watchInterval = 20 * time.Millisecond
	pollInterval  = 250 * time.Millisecond
)

// Open returns a DB with its tables in the SQLite file path, which is created with mode
// 0600. The file is in WAL mode, and every commit is synced. Several processes of one
// machine can use one file.
//
// Open returns an error for a folder and for a file on a network file system, where WAL mode does
// not work. inbox.Open opens and checks the file, and returns an error if it is damaged.
func Open(path string) (*inbox.DB, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, fmt.Errorf("inbox: sqlite: path %q: want the path of a file", path)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("inbox: sqlite: path %q: %w", path, err)
	}
	if err := checkPath(full); err != nil {
		return nil, err
	}
	return engine.New(newBackend(full)), nil
}

func newBackend(path string) *backend {
	return &backend{path: path, now: now, writing: make(chan struct{}, 1)}
}

func checkPath(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("inbox: sqlite: %s is not a regular file: want the path of a file, which may not exist yet", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("inbox: sqlite: %s is not a folder: create it first", dir)
	}
	if name := networkFileSystem(dir); name != "" {
		return fmt.Errorf("inbox: sqlite: %s is on a network file system (%s), where SQLite's WAL mode loses data: use a local disk or package postgres", path, name)
	}
	return nil
}

// backend has one connection for its own writes, which share transactions, one for effects and
// several for reads.
type backend struct {
	path    string
	now     string        // the SQL expression of the time
	writing chan struct{} // full while a transaction writes
	texts   []string

	writer  *writer
	effects *sql.DB
	tables  *sql.DB   // for SQL
	marking *sql.Stmt // MarkHandled on the connection of effects
	reads   *reader
	mark    *mark
	line    line

	closing sync.Once
	queue   chan *op
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the goroutine of write has ended
}

// dsn returns the URI of the file with the settings of a connection. It escapes ?, # and % in the
// path.
func (b *backend) dsn(busy time.Duration, more ...string) string {
	q := url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"},
		"_pragma": append([]string{
			fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
			"journal_mode(wal)",
			"synchronous(full)",
			"journal_size_limit(67108864)",
			"cell_size_check(1)",
		}, more...),
	}
	return "file:" + (&url.URL{Path: b.path}).EscapedPath() + "?" + q.Encode()
}

// Setup implements engine.Backend.
func (b *backend) Setup(ctx context.Context, prefix string, _ func(string, error)) error {
	b.texts = statements(prefix, b.now)
	acknowledged, err := readMark(b.markPath(prefix))
	if err != nil {
		return err
	}
	if err := checkWritable(filepath.Dir(b.path), b.path); err != nil {
		return err
	}
	if err := create(b.path); err != nil {
		return err
	}
	conn, err := b.connect(ctx)
	if err != nil {
		return fault(err)
	}
	b.writer = &writer{conn: conn, backend: b}
	if err := retryBusy(ctx, func() error { return b.check(prefix, acknowledged) }); err != nil {
		return err
	}
	if b.mark, err = openMark(b.markPath(prefix), acknowledged); err != nil {
		return err
	}
	b.line.file = b.mark.file
	syncFolder(filepath.Dir(b.path))
	if err := b.open(ctx); err != nil {
		return fault(err)
	}
	b.queue, b.stop, b.stopped = make(chan *op), make(chan struct{}), make(chan struct{})
	go b.write()
	return nil
}

// connect opens the writer's connection. It retries while another process creates the file.
func (b *backend) connect(ctx context.Context) (conn driver.Conn, err error) {
	connector, err := sqlite.NewConnector(b.dsn(writeTimeout))
	if err != nil {
		return nil, err
	}
	err = retryBusy(ctx, func() error {
		conn, err = connector.Connect(ctx)
		return err
	})
	return conn, err
}

// open opens the connections for effects and for reads.
func (b *backend) open(ctx context.Context) error {
	effects, err := sqlite.NewConnector(b.dsn(writeTimeout))
	if err != nil {
		return err
	}
	b.effects = sql.OpenDB(effects)
	b.effects.SetMaxOpenConns(1)
	err = retryBusy(ctx, func() (err error) {
		b.marking, err = b.effects.PrepareContext(ctx, b.texts[engine.MarkHandled])
		return err
	})
	if err != nil {
		return err
	}
	reads, err := sqlite.NewConnector(b.dsn(readTimeout, "query_only(1)"))
	if err != nil {
		return err
	}
	b.reads = &reader{db: sql.OpenDB(reads), texts: b.texts, prepared: make(map[engine.Stmt]*sql.Stmt)}
	b.reads.db.SetMaxOpenConns(4)
	b.reads.db.SetMaxIdleConns(4)
	b.tables, err = b.openTables()
	return err
}

// retryBusy retries f while another process has locked the file, at most for setupTimeout.
func retryBusy(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	for {
		err := f()
		if engine.KindOf(fault(err)) != engine.Again {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var creating sync.Mutex

// create creates the file with mode 0600, since SQLite would make it readable by others. It must
// close the file before this process opens a connection to it: closing any descriptor of a file
// drops all POSIX locks that the process holds on it.
func create(path string) error {
	creating.Lock()
	defer creating.Unlock()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return fileError(err)
	}
	return f.Close()
}

// syncFolder syncs the directory, so that new files exist after a power failure.
func syncFolder(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// Read implements engine.Backend.
func (b *backend) Read() engine.Tx { return b.reads }

// Listen implements engine.Backend. It polls the modification time of the -wal file, which costs a
// fiftieth of a query.
func (b *backend) Listen(ctx context.Context, wake func()) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if info, err := os.Stat(b.path + "-wal"); err == nil && !info.ModTime().Equal(last) {
			last = info.ModTime()
			wake()
		}
	}
}

// Notify implements engine.Backend.
func (b *backend) Notify() {}

// Poll implements engine.Backend.
func (b *backend) Poll() (soon, late time.Duration) { return pollInterval, pollInterval }

// Close implements engine.Backend.
func (b *backend) Close() error {
	b.closing.Do(func() {
		if b.queue != nil {
			close(b.stop)
			<-b.stopped
			b.writing <- struct{}{} // wait for a running effect
		}
		if b.reads != nil {
			_ = b.reads.db.Close()
		}
		for _, db := range []*sql.DB{b.effects, b.tables} {
			if db != nil {
				_ = db.Close()
			}
		}
		if b.writer != nil {
			b.writer.close()
		}
		if b.mark != nil {
			b.mark.close()
		}
	})
	return nil
}

// markPath returns the path of the mark file. Each prefix has its own.
func (b *backend) markPath(prefix string) string {
	if prefix == engine.DefaultPrefix {
		return b.path + "-mark"
	}
	return b.path + "-" + prefix + "-mark"
}
