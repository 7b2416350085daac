// Package panics turns the panic of a user's function into an error.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a recovered panic.
type Error struct {
	Value any
	Stack []byte
}

// Error returns the text of the value.
func (e *Error) Error() string { return fmt.Sprintf("heads: panic: %v", e.Value) }

// Try returns the error of f, or an *Error if f panics. It does not return if f
// calls runtime.Goexit.
func Try(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
