//go:build !linux

package sqlite

// networkFileSystem knows the file systems of Linux alone.
func networkFileSystem(string) string { return "" }
