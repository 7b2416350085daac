package headsmcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Option changes what AddTools adds.
type Option func(*config) error

type config struct {
	only     []string // nil for all
	prefix   string
	describe func(t *mcp.Tool, parameter string) string
	connect  func(context.Context) (*mcp.ClientSession, error)
}

// Only adds only the tools with these names, as the server names them. A name that the
// server does not have is refused.
func Only(names ...string) Option {
	return func(c *config) error {
		if len(names) == 0 {
			return invalid("option Only", "names no tool", "name one or leave the option out")
		}
		c.only = append(c.only, names...)
		return nil
	}
}

// Prefix puts p before every name, so the names of two servers can't collide. Calls to
// the server use its own names.
func Prefix(p string) Option {
	return func(c *config) error {
		c.prefix = p
		return nil
	}
}

// Describe replaces the descriptions of the server. f is called for each tool with
// parameter "", and for each of its parameters. If f returns "", the server's text is
// used. The rules of the schema for a parameter's values are added to either text.
func Describe(f func(t *mcp.Tool, parameter string) string) Option {
	return func(c *config) error {
		if f == nil {
			return invalid("option Describe", "has no function", "give one or leave the option out")
		}
		c.describe = f
		return nil
	}
}

// Reconnect makes a call connect to the server again, with connect, after the session of
// AddTools or of an earlier connect has ended: the server's process died, or the
// connection broke. Without Reconnect, every call fails from then on.
//
// One attempt is made at a time, and calls that arrive meanwhile wait for it until
// their time is over. After an attempt that fails, or whose session ends before it has
// answered a call, calls fail at once for 1 s, doubling up to 30 s. The call in which a
// connection breaks fails and is not repeated, since the server may have done it.
//
// The tools of a new session are listed. A tool that is gone, or whose input schema has
// changed, is refused until a later session has it unchanged; the log of the handler
// says so at each call. The log shows only the kind of a failure, so log in connect
// what else you want to know.
//
// The context of connect has the values of AddTools' context. It ends with the session,
// so a process may depend on it, or after 30 s if there is no session by then. Close the
// sessions yourself, after the handler has shut down; those that have ended are closed.
func Reconnect(connect func(context.Context) (*mcp.ClientSession, error)) Option {
	return func(c *config) error {
		if connect == nil {
			return invalid("option Reconnect", "has no function", "give one or leave the option out")
		}
		c.connect = connect
		return nil
	}
}
