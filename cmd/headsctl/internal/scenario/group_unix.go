//go:build unix

package scenario

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// ownGroup gives a process a group of its own, so that what it starts ends with it,
// and so that a Ctrl-C at the terminal is not its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }

func terminateGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGTERM) }

// groupIsAlive reports whether a process of the group still runs. One that has ended
// and that nobody has waited for does not.
func groupIsAlive(leader int) bool {
	if errors.Is(syscall.Kill(-leader, 0), syscall.ESRCH) {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	known := false
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		known = true
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		// After the name in parentheses: state, parent, group.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(leader) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return !known
}
