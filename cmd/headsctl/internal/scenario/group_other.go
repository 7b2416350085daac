//go:build !unix

package scenario

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(leader int) {
	if p, err := os.FindProcess(leader); err == nil {
		_ = p.Kill()
	}
}

// terminateGroup kills, since there is no signal to ask with.
func terminateGroup(leader int) { killGroup(leader) }

func groupIsAlive(int) bool { return false }
