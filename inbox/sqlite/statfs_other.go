//go:build !linux

package sqlite

// networkFileSystem returns "": network file systems are detected on Linux only.
func networkFileSystem(string) string { return "" }
