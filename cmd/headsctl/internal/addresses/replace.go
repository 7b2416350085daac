package addresses

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// leftover matches the names of temporary files, which only remain if the program
// was killed.
var leftover = regexp.MustCompile(`^\.headsctl-[0-9]+(\.tmp)?$`)

// removeLeftovers removes from a folder what runs that were killed have left.
func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var failures []error
	for _, entry := range entries {
		if entry.Type().IsRegular() && leftover.MatchString(entry.Name()) {
			failures = append(failures, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(failures...)
}

// replaceFile puts another content into a file, all at once, and keeps its mode
// and owner. The backup holds what was there before. At any moment the file is the
// old or the new one, and a backup is whole or not there.
func replaceFile(ctx context.Context, path string, write func(io.Writer) error, backup bool) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if backup {
		if err := backUp(ctx, path, info); err != nil {
			return fmt.Errorf("no backup can be kept, so the file stays as it is: %w", err)
		}
	}
	return create(path, info, write)
}

// create writes a file with the mode and owner of another one. It has another name
// until it is whole and on disk.
func create(path string, like fs.FileInfo, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".headsctl-*.tmp")
	if err != nil {
		return err
	}
	err = write(file)
	keepOwner(file, like)
	err = errors.Join(err, file.Chmod(like.Mode()), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

// backUp copies a file to the first of FILE.bak, FILE.bak.2 and so on that is
// not there, unless one of them is the same already.
func backUp(ctx context.Context, path string, info fs.FileInfo) error {
	for n := 1; ; n++ {
		name := path + ".bak"
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		switch earlier, err := os.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			return create(name, info, func(w io.Writer) error { return copyFile(ctx, w, path) })
		case err != nil:
			return err
		case earlier.Mode().IsRegular() && earlier.Size() == info.Size():
			if same, err := sameContent(ctx, name, path); same || err != nil {
				return err
			}
		}
	}
}

func copyFile(ctx context.Context, w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(w, interruptible(ctx, file))
	return err
}

// errDiffers ends a comparison at the first difference.
var errDiffers = errors.New("the files differ")

// sameContent reports whether two files hold the same.
func sameContent(ctx context.Context, one, other string) (bool, error) {
	file, err := os.Open(one)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	err = copyFile(ctx, comparison{file}, other)
	if errors.Is(err, errDiffers) {
		return false, nil
	}
	return err == nil, err
}

// comparison compares what is written with what is read.
type comparison struct{ with io.Reader }

func (c comparison) Write(p []byte) (int, error) {
	want := make([]byte, len(p))
	if n, err := io.ReadFull(c.with, want); err != nil || !bytes.Equal(want, p) {
		return n, errDiffers
	}
	return len(p), nil
}

// readerFunc is a function as a reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// interruptible returns a reader that ends with a context.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

// syncDir syncs the directory of a file that was renamed, on systems that can. It is
// also in the library, whose internal packages this module can't import.
func syncDir(path string) error {
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
