package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// daemon is a program that runs until it is ended.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a program as an ordinary user, with its log in a file.
func launch(log, path string, args ...string) (*daemon, error) {
	cmd, err := program(path, args...)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w; on Debian: apt-get install postgresql patroni etcd-server pgbouncer", err)
	}
	d := &daemon{cmd: cmd, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(d.done) }()
	return d, nil
}

func (d *daemon) signal(s syscall.Signal) { _ = d.cmd.Process.Signal(s) }

func (d *daemon) kill() {
	d.signal(syscall.SIGKILL)
	<-d.done
}

// freePort returns a port of the loopback address that nobody uses.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// give writes a file that the ordinary user owns.
func give(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return own(path)
}

// pidIn returns the process id in the first line of a file, 0 without one.
func pidIn(path string) int {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// Pooler is a PgBouncer in transaction mode.
type Pooler struct {
	dir string
	d   *daemon
}

// NewPooler starts a PgBouncer in front of the server.
func (s *Server) NewPooler() (*Pooler, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	p := &Pooler{dir: dir}
	err = give(filepath.Join(dir, "pgbouncer.ini"), fmt.Sprintf(`[databases]
* = host=%s port=5432 user=heads
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = 40
max_client_conn = 500
`, s.dir, dir))
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

// Start starts a pooler that was killed.
func (p *Pooler) Start() (err error) {
	p.d, err = launch(filepath.Join(p.dir, "log"), "/usr/sbin/pgbouncer", filepath.Join(p.dir, "pgbouncer.ini"))
	if err != nil {
		return err
	}
	return awaitServer(p.DSN("postgres")+" default_query_exec_mode=exec", p.d.done, func() string {
		text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		return string(text)
	})
}

// DSN returns the DSN of a database through the pooler.
func (p *Pooler) DSN(database string) string {
	return "host=" + p.dir + " port=6432 user=heads dbname=" + database
}

// Kill ends the pooler like kill -9.
func (p *Pooler) Kill() { p.d.kill() }

// Close ends the pooler and removes its folder.
func (p *Pooler) Close() {
	p.d.kill()
	_ = os.RemoveAll(p.dir)
}
