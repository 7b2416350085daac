package fleet

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	lockExclusiveNow = 0x3 // LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY
	lockViolation    = syscall.Errno(33)
)

// lockFile locks a file until it is closed. No other process and no other open file
// of this process can lock it. The byte that is locked is far after the end,
// so others can still read the file.
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
