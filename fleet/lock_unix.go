//go:build unix && !aix && !solaris

package fleet

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed. No other process and no other open file of this process
// can lock it.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrJournalInUse
		default:
			return err
		}
	}
}

// replaceLocked renames next to path, which is the name of the locked file old, and returns the new
// file, locked.
func replaceLocked(old, next *os.File, path string) (*os.File, error) {
	if err := errors.Join(lockFile(next), os.Rename(next.Name(), path)); err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, old.Close()
}
