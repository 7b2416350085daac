// Headsctl looks after heads from a terminal: it reads and changes them one by
// one or from a file, converts many of them to streaming mode, finds the pages
// that still hold old access URLs, and examines what keeps a head from working.
//
//	go run -C cmd/headsctl . demo
//
// It takes the service's base URL from HEADS_BASE_URL and the access token from
// HEADS_TOKEN or a file (--token-file). docs/headsctl.md is a tour.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/redact"
)

func main() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
	ctx := a.watchSignals(context.Background())
	os.Exit(a.run(ctx))
}

// app is one run of the program.
type app struct {
	args           []string
	stdin          *os.File
	stdout, stderr *console.Output
	jsonErrors     bool

	tokenFile   string
	environment *headsfile.Environment // of --env; nil for the settings of the shell
	headsFile   string                 // that the environment is from
	tokenMask   *redact.Token
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

// run executes the command and returns the exit code. An error of writing to
// stdout counts as a failure, so that no caller takes half of an output for
// the whole.
func (a *app) run(ctx context.Context) int {
	root := newRootCommand(a)
	root.SetArgs(a.args)
	err := root.ExecuteContext(ctx)
	code := a.report(err)
	if failure := a.stdout.Failure(); failure != nil && !errors.Is(err, failure) {
		failed := a.report(failure)
		if code == exitDone || code == exitFound {
			code = failed
		}
	}
	return code
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

// hideToken masks the token, too, in whatever is printed from now on.
func (a *app) hideToken(token string) {
	a.tokenMask = redact.NewToken(token, a.tokenMask)
	a.stdout.SetMask(a.tokenMask.Hide)
	a.stderr.SetMask(a.tokenMask.Hide)
}
