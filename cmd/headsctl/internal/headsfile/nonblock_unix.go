//go:build unix

package headsfile

import "syscall"

// openNonblock opens a named pipe without waiting for whoever writes to it.
const openNonblock = syscall.O_NONBLOCK
