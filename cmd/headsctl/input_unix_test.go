//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAHeadsFileOfAScenarioIsNoPipe(t *testing.T) {
	c := newTerminal(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(c.dir, "pipe"), 0o600))
	c.write("s.yaml", "backend: {url: \"http://127.0.0.1:1\"}\nheads: {file: pipe}\nscenarios: [{name: a, steps: [{say: Hello}]}]\n")
	c.fails(2, "s.yaml:2:15: pipe is not a regular file; give the path of a heads.yaml", "test", "s.yaml")
}

func TestCtrlCEndsAReadOfAnything(t *testing.T) {
	c := newTerminal(t).at("http://127.0.0.1:1", "token")
	c.write("body", "{}")
	pipe := filepath.Join(c.dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, args := range [][]string{
		{"get", someID, "--token-file", pipe}, {"set", someID, "name=@" + pipe}, {"convert", "-f", pipe, "--yes"}, {"apply", "-f", pipe, "--yes"},
		{"tools", "put", someID, "-f", pipe}, {"call", "PUT", "/x", "--data", "@" + pipe}, {"addresses", "scan", "--moves", pipe, "."},
		{"events", "verify", "--body", pipe, "--signature", "x", "--key-file", "body"}, {"events", "verify", "--body", "body", "--signature", "x", "--key-file", pipe},
	} {
		cmd := c.command(t.Context(), args...)
		require.NoError(t, cmd.Start())
		writer := need(os.OpenFile(pipe, os.O_WRONLY, 0))(t) // waits for the reader
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		assert.Equal(t, exitInterrupted, exitCode(t, cmd.Wait()), "%v", args)
		require.NoError(t, writer.Close())
	}
	cmd := c.command(t.Context(), "plan", "-f", "-")
	stdin := need(cmd.StdinPipe())(t)
	require.NoError(t, cmd.Start())
	need(stdin.Write(make([]byte, 1<<18)))(t) // more than a pipe holds, so that some of it was read
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, exitInterrupted, exitCode(t, cmd.Wait()))
}
