package sqlite

import (
	"os"
	"time"
)

const (
	lockTimeout = time.Second            // for SQLite's write lock; shorter than the timeout of an append
	lineTimeout = 100 * time.Millisecond // for the place before it
	lineDetour  = time.Second
	lockPoll    = 300 * time.Microsecond
)

// line makes the processes that share a file take turns. SQLite has no queue for its lock, so a
// process that writes all the time could starve the renewals of another. The process that waits for
// SQLite's lock holds a lock on the mark file, and a process that has just committed waits for that
// lock.
type line struct {
	file   *os.File
	detour time.Time // until then no process waits, since the first in the line may be stopped
}

// enter waits for its place for a limited time and reports whether it has it.
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
