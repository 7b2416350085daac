package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/console"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
)

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

// remedy returns what to do about an error answer of the service, or about none at all.
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

// inWordsOf replaces the names of the shell's settings in a text by those of an environment.
func inWordsOf(e *headsfile.Environment, text string) string {
	if e == nil {
		return text
	}
	token := "the token of " + e.Name
	if e.Token.Variable != "" {
		token = e.Token.Variable
	}
	return strings.NewReplacer(
		"HEADS_TOKEN", token,
		"HEADS_BASE_URL", "the base_url of "+e.Name,
		"set HEADS_STREAM_URL and HEADS_CHAT_URL", "give "+e.Name+" its stream_url and chat_url",
	).Replace(text)
}

// failures prints the errors and returns one with the exit code.
func (a *app) failures(errs []error) error {
	failed := false
	for _, err := range errs {
		if err == nil {
			continue
		}
		failed = true
		for _, line := range a.errorLines(err) {
			a.printError(line)
		}
	}
	if failed {
		return exit(exitFailed)
	}
	return nil
}

// faultyUnlessSent returns err with exit code 2 if no request was made.
func (a *app) faultyUnlessSent(err error) error {
	if a.requests.Load() == 0 {
		return faulty(err)
	}
	return err
}
