// Package durable makes sure that a file is still there after a power failure.
package durable

import (
	"errors"
	"io/fs"
	"os"
)

// SyncDir syncs the directory of a file that was created or renamed, on systems that
// can.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
