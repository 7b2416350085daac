package scenario

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of its descendants whose own parent has ended,
// so that they can be found.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children returns the processes that a process is the parent of.
func children(parent int) []int { return childrenOf()[parent] }

// descendants returns the children of a process, theirs, and so on.
func descendants(of int) []int {
	all := childrenOf()
	found := slices.Clone(all[of])
	for i := 0; i < len(found); i++ {
		found = append(found, all[found[i]]...)
	}
	return found
}

// childrenOf returns the processes that run, by their parents.
func childrenOf() map[int][]int {
	all := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		// After the name in parentheses: state, parent. Z and X have ended.
		if fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])); len(fields) > 1 && fields[0] != "Z" && fields[0] != "X" {
			if parent, err := strconv.Atoi(fields[1]); err == nil {
				all[parent] = append(all[parent], pid)
			}
		}
	}
	return all
}

// killAll kills those of the processes that still descend from this one, and returns when none of
// them runs. Any other one has got the number of a process that has ended.
func killAll(processes []int) {
	for deadline, pause := time.Now().Add(endWithin), firstPause; len(processes) > 0 && time.Now().Before(deadline); pause = longer(pause) {
		running := descendants(os.Getpid())
		processes = slices.DeleteFunc(slices.Clone(processes), func(pid int) bool { return !slices.Contains(running, pid) })
		for _, pid := range processes {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(processes) > 0 {
			time.Sleep(pause)
		}
	}
}

// hasSetting reports whether a process was started with NAME=VALUE.
func hasSetting(pid int, setting string) bool {
	environment, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return slices.Contains(strings.Split(string(environment), "\x00"), setting)
}
