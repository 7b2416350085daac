package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"syscall"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1 // something failed or is blocked, the service refused or is not there, the answer was no
	exitUsage       = 2 // wrong usage, missing settings, a faulty file or id; nothing was sent
	exitFound       = 3 // plan, diff or addresses scan found something, with --exit-code
	exitInterrupted = 130
)

// exitError ends the program with a code. Without an error nothing is printed:
// stdout has told it.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error of whoever typed the command: exit code 2.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// faulty makes err exit code 2.
func faulty(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// exit ends the program with a code and no message.
func exit(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{code: code}
}

// report prints the error, one line for each of its parts, and returns the
// exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitDone
	}
	code := a.exitCode(err)
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return code
	}
	a.hideTokenFile()
	for _, line := range a.errorLines(err) {
		a.printError(line)
	}
	return code
}

func (a *app) exitCode(err error) int {
	var e *exitError
	switch {
	case a.interrupted.Load() && errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, heads.ErrInvalid) && a.requests.Load() == 0:
		return exitUsage
	default:
		return exitFailed
	}
}

func (a *app) printError(line string) {
	if a.jsonErrors {
		text, _ := json.Marshal(struct {
			Type  string `json:"type"`
			Error string `json:"error"`
		}{"error", line})
		fmt.Fprintf(a.stderr, "%s\n", text)
		return
	}
	fmt.Fprintln(a.stderr, a.stderr.Paint(console.Red, "error:"), line)
}

// errorLines returns the parts of joined errors, each on one line, with what to
// do about them.
func (a *app) errorLines(err error) []string {
	var lines []string
	for _, part := range parts(err) {
		lines = append(lines, a.errorLine(part))
	}
	return lines
}

// parts takes joined errors apart.
func parts(err error) []error {
	var e *exitError
	if errors.As(err, &e) && e.err != nil {
		err = e.err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	if joinedText(joined.Unwrap()) != err.Error() {
		return []error{err} // a sentence of its own about several errors
	}
	var all []error
	for _, part := range joined.Unwrap() {
		all = append(all, parts(part)...)
	}
	return all
}

func joinedText(errs []error) string { return errors.Join(errs...).Error() }

func (a *app) errorLine(err error) string { return a.errorLineIn(a.environment, err) }

// errorLineIn names the settings of an environment, nil for those of the shell.
func (a *app) errorLineIn(e *headsfile.Environment, err error) string {
	text := plainError(err)
	if errors.Is(err, context.Canceled) {
		return "interrupted: " + text
	}
	if hint := remedy(err); hint != "" && a.requests.Load() > 0 {
		text += "; " + hint
	}
	return inWordsOf(e, text)
}

// remedy says what to do about an answer of the service, or about none.
func remedy(err error) string {
	var answer *heads.Error
	var network net.Error
	var file *fs.PathError // whose cause has the methods of a net.Error
	switch {
	case errors.Is(err, syscall.EPIPE) && errors.As(err, &file):
		return "nobody reads the output any more; --report keeps results where there is one"
	case errors.As(err, &file):
		return ""
	case errors.Is(err, heads.ErrInvalid):
		return "" // it says so itself
	case errors.Is(err, heads.ErrUnauthorized):
		return "get a new access token and set HEADS_TOKEN or --token-file"
	case errors.Is(err, heads.ErrForbidden):
		return "use the access token of the organization that owns the head"
	case errors.Is(err, heads.ErrNotFound):
		return "check the id and HEADS_BASE_URL"
	case errors.Is(err, heads.ErrRateLimited):
		return "try again later, with a lower --rate where there is one"
	case errors.As(err, &answer) && heads.Temporary(err):
		return "try again later"
	case errors.As(err, &answer):
		return ""
	case errors.As(err, &network):
		return "check that HEADS_BASE_URL is right and that the service can be reached from here"
	}
	return ""
}

// wantsJSON reports whether the arguments ask for JSON, also when they can't be
// read otherwise.
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

// hideTokenFile masks the token of --token-file in the errors of a command that has
// not read it yet.
func (a *app) hideTokenFile() {
	if a.tokenFile == "" {
		return
	}
	if token, err := a.readSecret("--token-file", a.tokenFile); err == nil {
		a.hideToken(token)
	}
}
