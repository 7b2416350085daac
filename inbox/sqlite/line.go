package sqlite

import (
	"context"
	"os"
	"time"

	"github.com/headsapi/heads-go/inbox/internal/engine"
)

const (
	lockTimeout = time.Second            // for SQLite's write lock; less than an append may take
	lineTimeout = 100 * time.Millisecond // for the place before it
	lineDetour  = time.Second
	lockPoll    = 300 * time.Microsecond
)

// line makes the processes that share a file take turns: SQLite's lock goes to
// whoever asks at the right moment, so a process that writes all the time
// starves the renewals of another. The process that waits for SQLite's lock
// holds a lock on the mark file, and the one that has just committed has to
// wait behind it.
type line struct {
	file   *os.File
	detour time.Time // until then no one waits: the first in the line may be frozen
}

// enter is best effort: it reports false when it has waited in vain.
func (l *line) enter() bool {
	begun := time.Now()
	if begun.Before(l.detour) {
		return false
	}
	for !tryLock(l.file) {
		if time.Since(begun) > lineTimeout {
			l.detour = time.Now().Add(lineDetour)
			return false
		}
		time.Sleep(lockPoll)
	}
	return true
}

// begin waits in the line while begin finds the database busy. The caller holds
// the backend's turn.
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
