//go:build unix

package main

import "syscall"

// openNonblock opens a named pipe without waiting for whoever writes to it.
const openNonblock = syscall.O_NONBLOCK
