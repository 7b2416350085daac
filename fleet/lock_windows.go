package fleet

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	lockExclusiveNow = 0x3 // LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY
	lockViolation    = syscall.Errno(33)
)

// lockFile locks a file until it is closed. No other process and no other open file of this process
// can lock it. The locked byte is far behind the end of the file, so others can still read it.
func lockFile(f *os.File) error {
	at := syscall.Overlapped{OffsetHigh: 0x40000000}
	done, _, err := lockFileEx.Call(f.Fd(), lockExclusiveNow, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case done != 0:
		return nil
	case errors.Is(err, lockViolation):
		return ErrJournalInUse
	}
	return err
}

// replaceLocked renames next to path, which is the name of the locked file old, and returns the new
// file, locked. On Windows, open files can't be renamed, so another process can open the journal in
// between. Then replaceLocked returns an error.
func replaceLocked(old, next *os.File, path string) (*os.File, error) {
	if err := errors.Join(next.Close(), old.Close(), os.Rename(next.Name(), path)); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := lockFile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
