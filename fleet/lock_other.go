//go:build !windows && (!unix || aix || solaris)

package fleet

import (
	"errors"
	"fmt"
	"os"
)

// lockFile returns an error: without locks, another process could write the journal.
func lockFile(*os.File) error {
	return fmt.Errorf("files can't be locked on this system: %w", errors.ErrUnsupported)
}
