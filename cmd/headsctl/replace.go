package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile puts another content into a file, all at once, and keeps its mode
// and owner. The backup holds what was there before.
func replaceFile(path string, content []byte, backup bool) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if backup {
		if err := backUp(path, info); err != nil {
			return fmt.Errorf("no backup can be kept, so the file stays as it is: %w", err)
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".headsctl-*")
	if err != nil {
		return err
	}
	err = fill(file, content, info)
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// backUp copies a file to the first of FILE.bak, FILE.bak.2 and so on that is
// not there.
func backUp(path string, info fs.FileInfo) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		name := path + ".bak"
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return fill(file, content, info)
	}
}

// fill writes and closes a file that gets mode and owner of another one.
func fill(file *os.File, content []byte, like fs.FileInfo) error {
	_, err := file.Write(content)
	keepOwner(file, like)
	return errors.Join(err, file.Chmod(like.Mode()), file.Sync(), file.Close())
}
