package headsmcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
)

const operation = "headsmcp.AddTools"

func invalid(field, problem, remedy string) error {
	return &heads.InvalidError{Operation: operation, Field: field, Problem: problem, Remedy: remedy}
}

func toolField(name string) string { return "tool " + strconv.Quote(clip(name, 64)) }

// renamed returns err with the name of this operation.
func renamed(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, renamed(e))
		}
		return errors.Join(all...)
	}
	var fault *heads.InvalidError
	if errors.As(err, &fault) {
		own := *fault
		own.Operation = operation
		return &own
	}
	return err
}

var errNoSession = errors.New("the function of Reconnect returned neither a session nor an error")

// failure returns an error with the kind of err, or its code, and no text of the server.
func failure(doing string, err error) error {
	var coded *jsonrpc.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		err = context.Canceled
	case errors.Is(err, mcp.ErrConnectionClosed):
		err = mcp.ErrConnectionClosed
	case errors.Is(err, errNoSession):
		err = errNoSession
	case errors.As(err, &coded):
		return fmt.Errorf("headsmcp: %s: the server answered with protocol error %d", doing, coded.Code)
	default:
		return fmt.Errorf("headsmcp: %s: the session is broken or the answer can't be read (%T)", doing, err)
	}
	return fmt.Errorf("headsmcp: %s: %w", doing, err)
}
