package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// client returns a client with the settings of the environment and of
// --token-file.
func (a *app) client(opts ...heads.Option) (*heads.Client, error) {
	if a.tokenFile != "" {
		token, err := a.readSecret("--token-file", a.tokenFile)
		if err != nil {
			return nil, err
		}
		a.hideToken(token)
		if err := os.Setenv("HEADS_TOKEN", token); err != nil { // of this process alone
			return nil, err
		}
	}
	opts = append([]heads.Option{heads.WithApplication("headsctl", heads.Version), heads.WithObserver(heads.Observer[heads.Attempt]{End: a.observe})}, opts...)
	c, err := heads.NewFromEnv(opts...)
	return c, faulty(err)
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
		line += ", request " + oneLine(t.RequestID)
	}
	if t.Err != nil && t.StatusCode == 0 {
		line += ": " + oneLine(t.Err.Error())
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

// unreadable is the error of a file that can't be read, whose name is shown
// once.
func unreadable(what, path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return usage("%s %s can't be read: %w; check the path and its permissions", what, oneLine(path), err)
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
	return oneLine(path)
}
