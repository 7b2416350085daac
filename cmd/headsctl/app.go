package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
)

// app is one run of the program.
type app struct {
	args           []string
	stdin          *os.File
	stdout, stderr *console.Output
	jsonErrors     bool

	tokenFile   string
	environment *headsfile.Environment // of --env; nil for the settings of the shell
	headsFile   string                 // that the environment is from
	tokenMask   *redact.Token          // of tokens and secret values
	debug       bool

	requests    atomic.Int64 // attempts made
	interrupted atomic.Bool
	reading     atomic.Bool            // the input; nothing has begun that must be finished
	atExit      atomic.Pointer[func()] // what must happen before a second Ctrl-C ends the program
}

func newApp(stdin, stdout, stderr *os.File, args []string) *app {
	colour := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	a := &app{
		args: args, stdin: stdin, stdout: console.NewOutput(stdout, colour), stderr: console.NewOutput(stderr, colour),
		jsonErrors: wantsJSON(args),
	}
	a.hideToken(os.Getenv("HEADS_TOKEN"))
	return a
}

// watchSignals returns a context that ends with the first Ctrl-C or SIGTERM.
// The second one ends the program at once, and so does the first one while the
// program reads its input.
func (a *app) watchSignals(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		a.interrupted.Store(true)
		cancel()
		if !a.reading.Load() {
			<-signals
		}
		if last := a.atExit.Load(); last != nil {
			(*last)()
		}
		os.Exit(exitInterrupted)
	}()
	return ctx
}

// hideToken masks the token in all later output, besides earlier tokens.
func (a *app) hideToken(token string) {
	a.tokenMask = redact.NewToken(token, a.tokenMask)
	a.stdout.SetMask(a.tokenMask.Hide)
	a.stderr.SetMask(a.tokenMask.Hide)
}

// hideSecret masks a value in all later output, and each of its lines, since many outputs
// are one line.
func (a *app) hideSecret(value string) {
	a.hideToken(value)
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			a.hideToken(line)
		}
		a.hideToken(strings.Join(strings.Fields(value), " "))
	}
}

// wantsJSON reports whether the arguments ask for JSON. It works on arguments that can't be
// parsed, too.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		switch arg {
		case "--json", "--json=true", "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == "json" {
				return true
			}
		}
	}
	return false
}

// say writes a line to stdout.
func (a *app) say(format string, args ...any) { a.stdout.Say(format, args...) }

// note writes a line to stderr.
func (a *app) note(format string, args ...any) { a.stderr.Say(format, args...) }
