//go:build unix

package headsredis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// redisServer is a redis-server for one test, on a Unix socket. It keeps its keys across restarts.
type redisServer struct {
	t      testing.TB
	dir    string
	socket string
	cmd    *exec.Cmd
}

// startRedis starts a server that ends with the test. The test fails if redis-server is not
// installed.
func startRedis(t testing.TB) *redisServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // t.TempDir's names are too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &redisServer{t: t, dir: dir, socket: filepath.Join(dir, "socket")}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *redisServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket, "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	s.cmd.Stdout, s.cmd.Stderr = s.t.Output(), s.t.Output()
	s.cmd.SysProcAttr = s.ordinaryUser()
	require.NoError(s.t, s.cmd.Start(), "redis-server is needed; it is in Debian's package of that name")
	client := s.client()
	require.Eventually(s.t, func() bool { return client.Ping(context.Background()).Err() == nil }, 20*time.Second, 10*time.Millisecond, "redis-server does not answer")
}

// ordinaryUser returns an unprivileged user to run the server, or root if there is none.
func (s *redisServer) ordinaryUser() *syscall.SysProcAttr {
	s.t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	require.NoError(s.t, err)
	var id syscall.Credential
	_, err = fmt.Sscan(nobody.Uid+" "+nobody.Gid, &id.Uid, &id.Gid)
	require.NoError(s.t, err)
	require.NoError(s.t, os.Chown(s.dir, int(id.Uid), int(id.Gid)))
	return &syscall.SysProcAttr{Credential: &id}
}

// kill kills the server, as in a crash.
func (s *redisServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// hang stops the server without closing its connections, until the returned function is called.
func (s *redisServer) hang() (resume func()) {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGSTOP))
	return func() { require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGCONT)) }
}

func (s *redisServer) client() *redis.Client {
	client := newRedisClient(s.socket)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

func newRedisClient(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
}
