//go:build !windows && (!unix || aix || solaris)

package fleet

import (
	"errors"
	"fmt"
	"os"
)

// lockFile refuses a journal that another process could write at the same time.
func lockFile(*os.File) error {
	return fmt.Errorf("files can't be locked on this system: %w", errors.ErrUnsupported)
}
