package headsfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
)

// NoFolder is the folder of YAML that came from elsewhere and can't refer to
// files.
const NoFolder = ""

// maxFileText is the size of a file that stands for a text, in bytes.
const maxFileText = 1 << 20

// readText reads a regular file of at most limit bytes below a folder. A path is relative to the
// folder; symbolic links are followed as long as they stay below it.
func readText(folder, path string, limit int) (string, error) {
	if folder == NoFolder {
		return "", errors.New("{file: PATH} is refused here, since it would read a file of this machine; give the text itself")
	}
	shown := show.Clip(path, len(path))
	text, err := readBelow(folder, path, limit)
	switch {
	case errors.Is(err, errOutside):
		return "", fmt.Errorf("the file %s is not below the folder of the file that names it; put it there", shown)
	case errors.Is(err, errNotRegular):
		return "", fmt.Errorf("%s is not a regular file; give the path of one", shown)
	case errors.Is(err, errTooLarge):
		return "", fmt.Errorf("the file %s has more than %d bytes, which nothing here needs; check the path", shown, limit)
	case err != nil:
		return "", Unreadable("the file", path, err)
	case !utf8.Valid(text):
		return "", fmt.Errorf("the file %s is not UTF-8; save it as UTF-8", shown)
	}
	return WithoutNewline(string(text)), nil
}

var (
	errOutside    = errors.New("outside of the folder")
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = errors.New("too large")
)

// readBelow reads a regular file of at most limit bytes below a folder.
// Between its checks and the read, os.Root lets no other program turn the path to
// somewhere else.
func readBelow(folder, path string, limit int) ([]byte, error) {
	base, err := filepath.EvalSymlinks(folder)
	if err == nil {
		base, err = filepath.Abs(base)
	}
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(relative) {
		return nil, errOutside
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	// A named pipe would be waited for.
	file, err := root.OpenFile(relative, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNotRegular)
	}
	text, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if len(text) > limit {
		return nil, errTooLarge
	}
	return text, err
}

// Unreadable is the error of a file that can't be read, whose name is shown once.
func Unreadable(what, path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s %s can't be read: %w; check the path and its permissions", what, show.Clip(path, len(path)), err)
}

// WithoutNewline takes one newline away from the end of a file's text.
func WithoutNewline(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}
