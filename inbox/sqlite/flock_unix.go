//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// checkWritable returns a precise error for files that SQLite would only report as "can't be
// opened".
func checkWritable(paths ...string) error {
	const write = 2 // W_OK
	for _, path := range paths {
		if err := syscall.Access(path, write); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fileError(&os.PathError{Op: "write to", Path: path, Err: err})
		}
	}
	return nil
}
