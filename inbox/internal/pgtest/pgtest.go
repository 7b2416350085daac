// Package pgtest starts PostgreSQL servers for tests. It uses Debian's programs, a unix
// socket in a temporary folder, and an ordinary user.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Server is a running server, or one that was stopped and can start again.
type Server struct {
	dir string // its data, its socket and its log
	*daemon
}

// bin returns the folder of the newest PostgreSQL of the machine.
func bin() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL is not installed; on Debian: apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(strings.Split(strings.TrimPrefix(path, "/usr/lib/postgresql/"), "/")[0])
	return n
}

// program returns a command that runs as an ordinary user, since PostgreSQL refuses to run as root.
func program(path string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC")
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		uid, gid, err := ordinaryUser()
		if err != nil {
			return nil, err
		}
		runAs(cmd, uid, gid)
	}
	return cmd, nil
}

func ordinaryUser() (uid, gid int, err error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, err
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid, nil
}

func run(name string, args ...string) error {
	dir, err := bin()
	if err != nil {
		return err
	}
	cmd, err := program(filepath.Join(dir, name), args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// folder creates a folder of the server's user. Its path is short, since the path of a
// socket must be.
func folder() (string, error) {
	dir, err := os.MkdirTemp("/tmp", "pg")
	if err != nil {
		return "", err
	}
	return dir, own(dir)
}

// own makes a path the ordinary user's.
func own(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := ordinaryUser()
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// New starts a server with further settings, such as "fsync=off". Close it.
func New(settings ...string) (*Server, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	err = run("initdb", "-D", s.data(), "-U", "heads", "--auth=trust", "--no-sync", "-E", "UTF8")
	if err == nil {
		err = s.Start(settings...)
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// ForTest starts a server for a test alone.
func ForTest(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	s, err := New(settings...)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Start starts a server that was killed or stopped. After a kill the last of its
// processes may still hold the shared memory for a moment.
func (s *Server) Start(settings ...string) error {
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := s.start(settings...)
		if err == nil || !strings.Contains(err.Error(), "pre-existing shared memory") || time.Since(begun) > 20*time.Second {
			return err
		}
		_ = os.Truncate(filepath.Join(s.dir, "log"), 0)
	}
}

func (s *Server) start(settings ...string) error {
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=150", "-c", "log_min_messages=warning"}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	dir, err := bin()
	if err != nil {
		return err
	}
	d, err := launch(filepath.Join(s.dir, "log"), filepath.Join(dir, "postgres"), args...)
	if err != nil {
		return err
	}
	s.daemon = d
	return awaitServer(s.DSN("postgres"), s.done, s.Log)
}

// awaitServer waits until a server answers.
func awaitServer(dsn string, done <-chan struct{}, log func() string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-done:
			return fmt.Errorf("the server ended: %s", log())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", err, log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Log returns what the server has logged.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

// DSN returns the DSN of a database.
func (s *Server) DSN(database string) string {
	return "host=" + s.dir + " port=5432 user=heads dbname=" + database
}

// Host returns the folder of the socket, which a DSN names as the host.
func (s *Server) Host() string { return s.dir }

// Exec runs statements.
func (s *Server) Exec(tb testing.TB, database string, statements ...string) {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), s.DSN(database))
	require.NoError(tb, err)
	defer conn.Close(context.Background())
	for _, text := range statements {
		_, err := conn.Exec(context.Background(), text)
		require.NoError(tb, err, text)
	}
}

// Kill kills the server and all its processes at once, like a power failure.
func (s *Server) Kill() {
	// The server's children end when they notice that the postmaster has ended.
	// Those with connections are killed too, so none finishes a commit.
	s.Signal(syscall.SIGKILL)
	<-s.done
}

// Signal sends a signal to the server and its processes.
func (s *Server) Signal(sig syscall.Signal) {
	for _, pid := range children(s.cmd.Process.Pid) {
		send(pid, sig)
	}
	s.signal(sig)
}

func children(pid int) (pids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, field := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(field); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// Standby starts a streaming standby of s with a name for
// synchronous_standby_names.
func (s *Server) Standby(name string) (*Server, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	t := &Server{dir: dir}
	err = run("pg_basebackup", "-h", s.dir, "-p", "5432", "-U", "heads", "-D", t.data(), "-X", "stream", "--checkpoint=fast", "--no-sync", "-R",
		"-d", "application_name="+name)
	if err == nil {
		err = t.Start("hot_standby=on", "synchronous_standby_names=", "primary_conninfo=host="+s.dir+" port=5432 user=heads application_name="+name)
	}
	return t, err
}

// Promote makes a standby the primary.
func (s *Server) Promote() error {
	return run("pg_ctl", "promote", "-D", s.data(), "-w")
}

// Close ends the server and removes its data.
func (s *Server) Close() {
	if s.daemon != nil {
		s.Signal(Continue)
		s.signal(syscall.SIGQUIT)
		<-s.done
	}
	_ = os.RemoveAll(s.dir)
}
