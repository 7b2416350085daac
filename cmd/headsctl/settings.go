package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// client returns a client with the settings of --env or of the shell, and of
// --token-file.
func (a *app) client(opts ...heads.Option) (*heads.Client, error) {
	token := ""
	if a.tokenFile != "" {
		var err error
		if token, err = a.readSecret("--token-file", a.tokenFile); err != nil {
			return nil, err
		}
		a.hideToken(token)
		if err := os.Setenv("HEADS_TOKEN", token); err != nil { // of this process alone
			return nil, err
		}
	}
	if a.environment != nil {
		return a.clientIn(a.environment, token, opts...)
	}
	c, err := heads.NewFromEnv(append(a.clientOptions(), opts...)...)
	return c, faulty(err)
}

func (a *app) clientOptions() []heads.Option {
	return []heads.Option{heads.WithApplication("headsctl", heads.Version), heads.WithObserver(heads.Observer[heads.Attempt]{End: a.observe})}
}

// baseURL is the address of the service for that the client was made.
func (a *app) baseURL() string {
	if a.environment == nil {
		return os.Getenv("HEADS_BASE_URL")
	}
	text, _ := a.environment.BaseURL.Value() // a fault was that of the client
	return text
}

// clientFor is client for a command on one head.
func (a *app) clientFor(id string) (*heads.Client, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return a.client()
}

// observe counts the attempts, and tells of them with --debug.
func (a *app) observe(_ context.Context, t heads.Attempt) {
	a.requests.Add(1)
	if !a.debug {
		return
	}
	line := fmt.Sprintf("debug: %s %s", t.Method, t.Route)
	if t.StatusCode != 0 {
		line += fmt.Sprintf(" %d", t.StatusCode)
	}
	line += " in " + t.Duration.Round(100*time.Microsecond).String()
	if t.Number > 1 {
		line += fmt.Sprintf(", attempt %d", t.Number)
	}
	if t.Waited > 0 {
		line += ", waited " + t.Waited.Round(time.Millisecond).String()
	}
	if t.RequestID != "" {
		line += ", request " + show.Line(t.RequestID)
	}
	if t.Err != nil && t.StatusCode == 0 {
		line += ": " + show.Line(t.Err.Error())
	}
	a.note("%s", line)
}

// readSecret reads a file that holds one secret. No error shows any of it.
func (a *app) readSecret(what, path string) (string, error) {
	text, err := a.readFile(what, path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", usage("%s %s is empty; write the secret into it", what, path)
	}
	return secret, nil
}

// unreadable is the error of a file that can't be read.
func unreadable(what, path string, err error) error {
	return faulty(headsfile.Unreadable(what, path, err))
}

// readInput reads a file, or stdin for "-".
func (a *app) readInput(what, path string) ([]byte, error) {
	return a.readStart(what, path, math.MaxInt64)
}

// readStart is readInput for the first bytes.
func (a *app) readStart(what, path string, limit int64) ([]byte, error) {
	if path != "-" {
		return a.readFileStart(what, path, limit)
	}
	return a.read(what, "stdin", func() ([]byte, error) { return io.ReadAll(io.LimitReader(a.stdin, limit)) })
}

// readFile reads a file, which may be a pipe.
func (a *app) readFile(what, path string) ([]byte, error) {
	return a.readFileStart(what, path, math.MaxInt64)
}

// readFileStart is readFile for the first bytes.
func (a *app) readFileStart(what, path string, limit int64) ([]byte, error) {
	return a.read(what, path, func() ([]byte, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		return io.ReadAll(io.LimitReader(file, limit))
	})
}

// read calls a function that may wait for ever. Ctrl-C ends the program then.
func (a *app) read(what, path string, f func() ([]byte, error)) ([]byte, error) {
	a.reading.Store(true)
	defer a.reading.Store(false)
	if a.interrupted.Load() {
		return nil, context.Canceled
	}
	text, err := f()
	if err != nil {
		return nil, unreadable(what, path, err)
	}
	return text, nil
}

// readYAML is readInput for YAML: no more is read than it may have.
func (a *app) readYAML(what, path string) ([]byte, error) {
	return a.readStart(what, path, yamltext.MaxBytes+1)
}

// nameOf is how messages call a file.
func nameOf(path string) string {
	if path == "-" {
		return "stdin"
	}
	return show.Line(path)
}

// inFile puts the name of a file before each of the joined errors, and makes
// them exit code 2.
func inFile(file string, err error) error {
	var all []error
	for _, part := range parts(err) {
		separator := ": "
		if errors.As(part, new(*yamltext.Error)) {
			separator = ":"
		}
		all = append(all, fmt.Errorf("%s%s%w", nameOf(file), separator, part))
	}
	return faulty(errors.Join(all...))
}
