//go:build !linux

package sqlite

// networkFileSystem returns "": only the file systems of Linux are known.
func networkFileSystem(string) string { return "" }
