//go:build !unix

package headsfile

// openNonblock is no flag: a file that is opened is never waited for.
const openNonblock = 0
