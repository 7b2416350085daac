// Mcppipe serves an MCP server over HTTP that speaks on stdin and stdout, so that a
// suite of tests for HTTP can be run against it.
//
//	go run ./internal/dev/mcppipe headsctl mcp --allow-writes
//
// It listens on a free loopback port and prints its URL as a line for a shell. Each
// POST is a line for the server, and is answered with the line that has its id. A
// request initialize begins a session, which is a process of its own; a request
// outside of a session has a process that ends with the answer.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	sessionHeader = "Mcp-Session-Id"
	maxMessage    = 4 << 20
	patience      = 30 * time.Second // with a server that doesn't answer
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: mcppipe COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	if err := serve(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mcppipe:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, out io.Writer, command []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export MCP_URL=http://%s/mcp\n", listener.Addr())
	p := &pipe{command: command, sessions: map[string]*process{}}
	defer p.close()
	server := &http.Server{Handler: p, ReadTimeout: patience}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// pipe answers the requests of one MCP server over HTTP.
type pipe struct {
	command []string

	mu       sync.Mutex
	sessions map[string]*process
	begun    int
}

// message is what the pipe reads of a message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func (p *pipe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		p.post(w, r)
	case http.MethodDelete:
		p.end(r.Header.Get(sessionHeader))
	default:
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "this server has no stream of its own messages", http.StatusMethodNotAllowed)
	}
}

func (p *pipe) post(w http.ResponseWriter, r *http.Request) {
	var line bytes.Buffer
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var m message
	if err = errors.Join(err, json.Compact(&line, body), json.Unmarshal(body, &m)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	server, id, err := p.session(r.Header.Get(sessionHeader), m.Method)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if id == "" {
		defer server.close()
	}
	reply, err := server.exchange(r.Context(), line.Bytes(), m.ID)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if id != "" {
		w.Header().Set(sessionHeader, id)
	}
	if reply == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(reply) // an error means that the client has left
}

// session returns the process of a session, or a new one. Without an id it is for one
// message alone.
func (p *pipe) session(id, method string) (*process, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id != "" {
		if server := p.sessions[id]; server != nil {
			return server, id, nil
		}
		return nil, "", errors.New("there is no such session")
	}
	server, err := start(p.command)
	if err != nil || method != "initialize" {
		return server, "", err
	}
	p.begun++
	id = strconv.Itoa(p.begun)
	p.sessions[id] = server
	return server, id, nil
}

func (p *pipe) end(id string) {
	p.mu.Lock()
	server := p.sessions[id]
	delete(p.sessions, id)
	p.mu.Unlock()
	if server != nil {
		server.close()
	}
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, server := range p.sessions {
		server.close()
	}
}

// process is an MCP server.
type process struct {
	cmd     *exec.Cmd
	writing sync.Mutex
	in      io.WriteCloser

	mu      sync.Mutex
	waiting map[string]chan []byte // for the replies, by the text of the id
	gone    chan struct{}          // closed when the server writes no more
}

func start(command []string) (*process, error) {
	s := &process{cmd: exec.Command(command[0], command[1:]...), waiting: map[string]chan []byte{}, gone: make(chan struct{})}
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.in = in
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(out)
	return s, nil
}

// read hands each line to the request that waits for it. Others, which are what the
// server says of its own accord, have no way over a POST.
func (s *process) read(out io.Reader) {
	defer close(s.gone)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.Method != "" {
			continue
		}
		s.mu.Lock()
		if reply := s.waiting[string(m.ID)]; reply != nil {
			delete(s.waiting, string(m.ID))
			reply <- bytes.Clone(lines.Bytes())
		}
		s.mu.Unlock()
	}
}

// exchange writes a line and returns the reply, or nil if it has no id.
func (s *process) exchange(ctx context.Context, line, id []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply := make(chan []byte, 1)
	if id != nil {
		s.mu.Lock()
		s.waiting[string(id)] = reply
		s.mu.Unlock()
	}
	s.writing.Lock()
	_, err := s.in.Write(append(line, '\n'))
	s.writing.Unlock()
	if err != nil || id == nil {
		return nil, err
	}
	select {
	case text := <-reply:
		return text, nil
	case <-s.gone:
		return nil, errors.New("the server ended before it answered")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close ends stdin of the server, which ends then, or is killed.
func (s *process) close() {
	defer time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() }).Stop()
	_ = s.in.Close()
	<-s.gone
	_ = s.cmd.Wait()
}
