// Heads-emulator emulates the service on your own machine: its operations with their
// state, signed events with redeliveries, tool calls, and faults on demand. It needs
// no account and starts with one head.
//
//	go run github.com/headsapi/heads-go/cmd/heads-emulator
//
// It prints what a client needs, as lines for a shell or, with -json, as one JSON
// object. The first line has the URL of its console, a web page that shows what
// happens. The control API below /_emulator/ does what the contract has no operation
// for, such as sending a user's message. docs/emulator.md describes the control API
// and the seed file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/headsapi/heads-go/headstest"
)

// patience is how long requests under way may take after a signal to stop.
const patience = 3 * time.Second

// gcPercent makes the garbage collector run less often, since the journals are many
// small objects that it scans each time.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr))
}

// usageError is an error of the flags.
type usageError struct{ error }

// exitCode returns the exit code of a run, and writes why it failed.
func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(stderr, "heads-emulator:", err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// run serves until the context ends. It writes the announcement to stdout and log
// lines to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return usageError{err}
	}
	seed, err := s.seed()
	if err != nil {
		return err
	}
	lines := newLineBuffer(stderr)
	defer lines.flush()
	logger := slog.New(slog.NewTextHandler(lines, nil))
	emulator := headstest.NewEmulator(append(s.options(), headstest.WithLogger(logger))...)
	defer emulator.Close()
	added, err := emulator.Restart(seed)
	if err != nil {
		return fmt.Errorf("the seed file: %w", err)
	}
	listener, err := listen(s)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           allowOrigins(emulator, s.origins),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelError),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = announce(stdout, s, emulator, listener.Addr(), added)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
		}
	}
	return errors.Join(err, shutDown(server, emulator, logger))
}

// shutDown ends everything that requests wait for, deliveries first, and then waits
// for the requests under way.
func shutDown(server *http.Server, emulator *headstest.Emulator, logger *slog.Logger) error {
	logger.Info("stopping")
	emulator.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		return server.Close()
	}
	return nil
}

// listen resolves the address once, so it listens on the address that it has
// checked.
func listen(s *settings) (net.Listener, error) {
	addr, err := net.ResolveTCPAddr("tcp", s.addr)
	if err != nil {
		return nil, fmt.Errorf("-addr: %w", err)
	}
	if !addr.IP.IsLoopback() && !s.expose {
		return nil, fmt.Errorf("-addr %s is reachable from other machines: whoever gets hold of the token could make "+
			"this machine send requests; give a loopback address such as 127.0.0.1:8787, or -expose-to-network if that is what you want", s.addr)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("-addr: %w; give another address", err)
	}
	return l, nil
}
