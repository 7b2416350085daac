//go:build !windows && (!unix || aix || solaris)

package fleet

import (
	"errors"
	"fmt"
	"os"
)

// lockFile returns an error. Without locks, another process could write the journal.
func lockFile(*os.File) error {
	return fmt.Errorf("files can't be locked on this system: %w", errors.ErrUnsupported)
}

// replaceLocked is never called, since no journal can be opened.
func replaceLocked(_, _ *os.File, _ string) (*os.File, error) { return nil, errors.ErrUnsupported }
