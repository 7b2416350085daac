//go:build unix

package pgtest

import (
	"os/exec"
	"syscall"
)

// runAs makes a command run as another user.
func runAs(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
	}
}

// send sends a signal to the process of an id.
func send(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) }

// Stop stops a process, Continue lets it go on.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)
