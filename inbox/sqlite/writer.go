package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

// maxGroup is the maximum number of writes that share a transaction.
const maxGroup = 256

// op is a write in the queue.
type op struct {
	f        func(context.Context, engine.Tx) error
	appended int64 // sequence of the event that f stored, or 0
	state    atomic.Int32
	done     chan error // buffered
}

const (
	opWaits int32 = iota
	opRuns
	opLeft // abandoned by its caller before it ran
)

// Append implements engine.Backend. A duplicate needs no write: every row that can be read is
// already synced.
func (b *backend) Append(ctx context.Context, e *engine.Record) (int64, error) {
	o := &op{done: make(chan error, 1)}
	o.f = func(ctx context.Context, tx engine.Tx) error {
		o.appended = 0
		err := tx.Send(ctx, engine.Get(func(scan func(...any) error) error { return scan(&o.appended) }, insertion,
			e.Key, e.Session, e.HeadID, e.SessionID, e.Type, e.Body, e.Checksum))
		if err != nil || o.appended == 0 {
			return err
		}
		return tx.Send(ctx, engine.Do(engine.WakeSession, e.Session))
	}
	if err := b.do(ctx, o); err != nil {
		return 0, err
	}
	return o.appended, nil
}

// Write implements engine.Backend.
func (b *backend) Write(ctx context.Context, f func(context.Context, engine.Tx) error) error {
	return b.do(ctx, &op{f: f, done: make(chan error, 1)})
}

// Renew implements engine.Backend.
func (b *backend) Renew(ctx context.Context, f func(context.Context, engine.Tx) error) error {
	return b.Write(ctx, f)
}

// do queues an operation and waits for it. If ctx ends, do returns, and a running operation may
// still succeed.
func (b *backend) do(ctx context.Context, o *op) error {
	select {
	case b.queue <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stop:
		return errClosed
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		o.state.CompareAndSwap(opWaits, opLeft)
		return ctx.Err()
	}
}

// write is the goroutine that runs the operations. All that are queued when a transaction begins
// share the transaction and its sync.
func (b *backend) write() {
	defer close(b.stopped)
	group := make([]*op, 0, maxGroup)
	for {
		select {
		case o := <-b.queue:
			group = append(group[:0], o)
		case <-b.stop:
			return
		}
		b.writing <- struct{}{}
		group = b.gather(group)
		b.commit(group)
		<-b.writing
		clear(group)
	}
}

func (b *backend) gather(group []*op) []*op {
	for len(group) < maxGroup {
		select {
		case o := <-b.queue:
			group = append(group, o)
		default:
			return group
		}
	}
	return group
}

// commit runs a group in one transaction. If an operation fails, commit runs each in a transaction
// of its own, so that none fails because of another.
func (b *backend) commit(group []*op) {
	live := group[:0]
	for _, o := range group {
		if o.state.CompareAndSwap(opWaits, opRuns) {
			live = append(live, o)
		}
	}
	if len(live) == 0 {
		return
	}
	err := b.together(live)
	if err == nil || len(live) == 1 {
		b.answer(live, err)
		return
	}
	kind := engine.KindOf(fault(err))
	for i, o := range live {
		if kind != engine.Failed && kind != engine.Full {
			b.answer(live[i:i+1], err)
			continue
		}
		b.answer(live[i:i+1], b.together([]*op{o}))
	}
}

func (b *backend) together(group []*op) error {
	return b.writer.alone(func() error {
		for _, o := range group {
			if err := o.f(context.Background(), b.writer); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *backend) answer(group []*op, err error) {
	err = fault(err)
	if err == nil {
		var high int64
		for _, o := range group {
			high = max(high, o.appended)
		}
		b.mark.raise(high)
	}
	for _, o := range group {
		o.done <- err
	}
}

// writer is the connection for the backend's own writes. It bypasses package sql, which would take
// as much time as SQLite itself.
type writer struct {
	backend  *backend
	conn     driver.Conn
	prepared []driver.Stmt
	begin    driver.Stmt
	end      driver.Stmt
}

// alone runs f in a transaction. After an error, it closes the connection, whose state is unknown,
// and the next call opens another.
func (w *writer) alone(f func() error) error {
	if err := w.open(); err != nil {
		return err
	}
	err := w.lock()
	if err != nil {
		if kind, _ := kindOf(err); kind != engine.Again {
			w.close()
		}
		return err
	}
	if err = f(); err == nil {
		err = w.run(w.end, nil, nil)
	}
	if err != nil {
		_ = w.exec("ROLLBACK")
		w.close()
	}
	return err
}

// lock begins the transaction. During Setup, the line does not exist yet.
func (w *writer) lock() error {
	begin := func() error { return w.run(w.begin, nil, nil) }
	if w.backend.line.file == nil {
		return begin()
	}
	return w.backend.begin(context.Background(), begin)
}

// begin retries the given function while it reports that the database is busy, at most for
// lockTimeout, and keeps the place in the line meanwhile. The caller must have filled b.writing.
func (b *backend) begin(ctx context.Context, begin func() error) error {
	if b.line.enter() {
		defer unlock(b.line.file)
	}
	for begun := time.Now(); ; time.Sleep(lockPoll) {
		err := begin()
		if err == nil || ctx.Err() != nil || engine.KindOf(fault(err)) != engine.Again || time.Since(begun) > lockTimeout {
			return err
		}
	}
}

// open connects if necessary and prepares BEGIN and COMMIT.
func (w *writer) open() (err error) {
	if w.conn == nil {
		connector, err := sqlite.NewConnector(w.backend.dsn(writeTimeout))
		if err != nil {
			return err
		}
		if w.conn, err = connector.Connect(context.Background()); err != nil {
			return err
		}
	}
	if w.begin == nil {
		if w.end, err = w.conn.Prepare("COMMIT"); err != nil {
			return err
		}
		w.begin, err = w.conn.Prepare("BEGIN IMMEDIATE")
	}
	return err
}

func (w *writer) close() {
	for _, s := range append(w.prepared, w.begin, w.end) {
		if s != nil {
			_ = s.Close()
		}
	}
	w.prepared, w.begin, w.end = nil, nil, nil
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// Send implements engine.Tx.
func (w *writer) Send(_ context.Context, calls ...*engine.Call) (err error) {
	if w.prepared == nil {
		w.prepared = make([]driver.Stmt, len(w.backend.texts))
	}
	for _, c := range calls {
		s := w.prepared[c.Stmt]
		if s == nil {
			if s, err = w.conn.Prepare(w.backend.texts[c.Stmt]); err != nil {
				return err
			}
			w.prepared[c.Stmt] = s
		}
		c.N = 0
		if err := w.run(s, c.Row, &c.N, c.Args...); err != nil {
			return err
		}
	}
	return nil
}

// run executes a prepared statement.
func (w *writer) run(s driver.Stmt, row func(func(...any) error) error, n *int64, args ...any) error {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	if row == nil {
		result, err := s.(driver.StmtExecContext).ExecContext(context.Background(), named)
		if err == nil && n != nil {
			*n, err = result.RowsAffected()
		}
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), named)
	if err != nil {
		return err
	}
	values := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		if err = rows.Next(values); err == nil {
			if n != nil {
				*n++
			}
			err = row(func(dest ...any) error { return assign(dest, values) })
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	return err
}

func assign(dest []any, values []driver.Value) error {
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			v, ok := values[i].(int64)
			if !ok {
				return &engine.Error{Kind: engine.Damaged, Text: fmt.Sprintf("sqlite: column %d is a %T, not an integer", i, values[i])}
			}
			*d = v
		case *[]byte:
			switch v := values[i].(type) {
			case []byte:
				*d = append(make([]byte, 0, len(v)), v...)
			case string:
				*d = []byte(v)
			case nil:
				*d = []byte{}
			default:
				return &engine.Error{Kind: engine.Damaged, Text: fmt.Sprintf("sqlite: column %d is a %T, not bytes", i, values[i])}
			}
		}
	}
	return nil
}

// exec and query run statements of Setup, which are not prepared.
func (w *writer) exec(text string) error {
	_, err := w.conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

func (w *writer) query(text string, dest ...any) error {
	if err := w.open(); err != nil { // a failed transaction has closed it
		return err
	}
	s, err := w.conn.Prepare(text)
	if err != nil {
		return err
	}
	defer s.Close()
	return w.run(s, func(scan func(...any) error) error { return scan(dest...) }, nil)
}

// Effect implements engine.Backend. The savepoint detects that SQLite has rolled the transaction
// back by itself: later statements would then be committed one by one, and RELEASE is the only one
// that fails.
func (b *backend) Effect(ctx context.Context, _ time.Duration, mark func(context.Context, engine.Tx) error, effect func(*sql.Tx) error) error {
	select {
	case b.writing <- struct{}{}:
		defer func() { <-b.writing }()
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stop:
		return errClosed
	}
	var tx *sql.Tx
	err := b.begin(ctx, func() (err error) {
		tx, err = b.effects.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return engine.ChangeKind(ended(ctx, err), engine.Again, engine.Away) // the effect has not run
	}
	defer tx.Rollback()
	run := func() error {
		if _, err := tx.Exec("SAVEPOINT heads_inbox_effect"); err != nil {
			return err
		}
		if err := mark(ctx, &engine.SQLTx{Tx: tx, Texts: b.texts, Prepared: b.marking}); err != nil {
			return err
		}
		if err := effect(tx); err != nil {
			// The transaction holds SQLite's lock, so a busy file is another one.
			return &engine.EffectError{Err: err}
		}
		_, err := tx.Exec("RELEASE heads_inbox_effect")
		if err != nil {
			err = gone(err)
		} else {
			err = tx.Commit()
		}
		// There is no connection to lose: this may fail because of what the effect has written.
		return engine.ChangeKind(fault(err), engine.Away, engine.Again)
	}
	return ended(ctx, run())
}

// ended returns ctx's error instead of the driver's if ctx has ended.
func ended(ctx context.Context, err error) error {
	var effect *engine.EffectError
	if err != nil && ctx.Err() != nil && !errors.As(err, &effect) {
		return ctx.Err()
	}
	return fault(err)
}

// gone returns the error for a missing savepoint.
func gone(err error) error {
	if kind, _ := kindOf(err); kind != engine.Failed {
		return err
	}
	return &engine.Error{Kind: engine.Failed, Text: "sqlite: the transaction ended inside the effect: the effect must not end it, and must return the errors of its statements"}
}

// reader runs statements that change nothing.
type reader struct {
	db    *sql.DB
	texts []string

	mu       sync.Mutex
	prepared map[engine.Stmt]*sql.Stmt
}

// Send implements engine.Tx.
func (r *reader) Send(ctx context.Context, calls ...*engine.Call) error {
	for _, c := range calls {
		s, err := r.prepare(ctx, c.Stmt)
		if err != nil {
			return fault(err)
		}
		rows, err := s.QueryContext(ctx, c.Args...)
		if err == nil {
			err = engine.ReadRows(rows, c)
		}
		if err != nil {
			return fault(err)
		}
	}
	return nil
}

func (r *reader) prepare(ctx context.Context, s engine.Stmt) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.prepared[s]; p != nil {
		return p, nil
	}
	p, err := r.db.PrepareContext(ctx, r.texts[s])
	if err == nil {
		r.prepared[s] = p
	}
	return p, err
}
