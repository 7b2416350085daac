//go:build !unix

package sqlite

import "os"

// tryLock always succeeds: without flock, processes do not queue.
func tryLock(*os.File) bool { return true }

func unlock(*os.File) {}

func checkWritable(...string) error { return nil }
