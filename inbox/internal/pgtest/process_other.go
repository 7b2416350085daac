//go:build !unix

package pgtest

import (
	"os/exec"
	"syscall"
)

// This file lets the tests compile on systems that have none of the programs.

func runAs(*exec.Cmd, int, int) {}

func send(int, syscall.Signal) {}

const (
	Stop     syscall.Signal = 0
	Continue syscall.Signal = 0
)
