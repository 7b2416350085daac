//go:build !unix

package main

// openNonblock is no flag: a file that is opened is never waited for.
const openNonblock = 0
