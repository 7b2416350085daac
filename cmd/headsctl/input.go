package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/headsapi/heads-go/cmd/headsctl/internal/headsfile"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/show"
	"github.com/headsapi/heads-go/cmd/headsctl/internal/yamltext"
)

// readInput reads a file, or stdin for "-".
func (a *app) readInput(what, path string) ([]byte, error) {
	return a.readStart(what, path, math.MaxInt64)
}

// readStart is like readInput, but reads at most limit bytes.
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

// readFileStart is like readFile, but reads at most limit bytes.
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

// readYAML is like readInput, but stops after the largest YAML text that is accepted.
func (a *app) readYAML(what, path string) ([]byte, error) {
	return a.readStart(what, path, yamltext.MaxBytes+1)
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

// read calls a function that may block forever. Meanwhile Ctrl-C ends the program at once.
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

// unreadable is the error of a file that can't be read.
func unreadable(what, path string, err error) error {
	return faulty(headsfile.Unreadable(what, path, err))
}

// nameOf returns the name of a file for messages.
func nameOf(path string) string {
	if path == "-" {
		return "stdin"
	}
	return show.Line(path)
}

// inFile puts the name of a file before each of the joined errors, and returns them with exit
// code 2.
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
