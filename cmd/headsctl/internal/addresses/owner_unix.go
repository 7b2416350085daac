//go:build unix

package addresses

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another one, where that is allowed.
func keepOwner(file *os.File, like fs.FileInfo) {
	if owner, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(owner.Uid), int(owner.Gid))
	}
}
