package sqlite

import (
	"os"
	"time"
)

const (
	lockTimeout = time.Second            // for SQLite's write lock; below the timeout of an append
	lineTimeout = 100 * time.Millisecond // for the first place in the line
	lineDetour  = time.Second
	lockPoll    = 300 * time.Microsecond
)

// line makes the processes that share a file write in turn. SQLite's lock has no queue, so a
// process that writes all the time could starve another's renewals. A process that waits for
// SQLite's lock holds a lock on the mark file. A process that has just committed has to wait for
// the lock on the mark file, so the other one goes first.
type line struct {
	file   *os.File
	detour time.Time // do not queue before this time: the first process in the line may be paused
}

// enter waits for the lock on the mark file, at most lineTimeout, and reports whether it has it.
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
