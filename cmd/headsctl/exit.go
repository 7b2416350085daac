package main

import (
	"errors"
	"fmt"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1 // something failed or is blocked, the service refused or is not there, the answer was no
	exitUsage       = 2 // wrong usage, missing settings, a faulty file or id; nothing was sent
	exitFound       = 3 // plan, diff or addresses scan found something, with --exit-code
	exitInterrupted = 130
)

// exitError ends the program with a code. If err is nil, nothing is printed, since stdout says
// it already.
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

// usage returns an error in the command line, which ends with exit code 2.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// faulty returns err with exit code 2.
func faulty(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// exit returns an error that ends the program with a code and no message, or nil for 0.
func exit(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{code: code}
}

// parts splits joined errors.
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
