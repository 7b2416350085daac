// Package headsmcp lets a head call the tools of an MCP server.
//
// AddTools reads the tools that a server offers and adds them to a
// heads.ToolHandler, which registers them with the service and passes each call
// to the server:
//
//	server := exec.Command("weather-server")
//	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
//	if err != nil {
//		return err
//	}
//	names, err := headsmcp.AddTools(ctx, tools, session)
//
// The visitors of a head are anonymous. Any of them can make the head call these
// tools, with any arguments. Give the server no more rights than any visitor may
// have, and choose the tools with Only.
package headsmcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
)

const (
	operation = "headsmcp.AddTools"
	maxTools  = 1000
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

// Changed returns a channel that receives a value after the server has said that
// its tools have changed; several changes that wait for a reader are one value.
// Call it before mcp.NewClient. A handler that o has is called as well.
//
// The tools of a ToolHandler do not change. After a change, make a new handler, add
// the tools to it, and register what it returns with SetTools.
func Changed(o *mcp.ClientOptions) <-chan struct{} {
	changed := make(chan struct{}, 1)
	before := o.ToolListChangedHandler
	o.ToolListChangedHandler = func(ctx context.Context, r *mcp.ToolListChangedRequest) {
		if before != nil {
			before(ctx, r)
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return changed
}

// AddTools adds the tools of the server behind session to h, in the server's
// order, and returns the names under which they are registered. It reads all
// pages, up to 1000 tools, until ctx ends.
//
// The properties of a tool's input schema become its parameters, those that are
// required first. A call reaches the server with only the declared arguments,
// read as heads.AddTool reads them and then checked against the schema; the
// model reads which argument does not match its description. The model reads the
// texts of the server's reply. After any other failure, the model reads only that
// the tool failed. The log of h gets the tool and the kind of failure, never the
// text of the server.
//
// Either all tools are added or none: every fault comes back as a
// *heads.InvalidError, all of them joined. Refused are names and descriptions
// that heads.Tool.Validate refuses, a name that h has, a parameter
// session_metadata, and schemas that no list of parameters can express: with
// oneOf, anyOf, allOf, if, not or another type than object at the top, with a
// $ref that doesn't lead to a place in the schema, and those that package
// jsonschema can't resolve.
func AddTools(ctx context.Context, h *heads.ToolHandler, session *mcp.ClientSession, opts ...Option) ([]string, error) {
	c, err := newConfig(h, session, opts)
	if err != nil {
		return nil, err
	}
	offered, err := listTools(ctx, session)
	if err != nil {
		return nil, err
	}
	chosen, err := c.choose(offered)
	if err != nil {
		return nil, err
	}
	bridges, err := c.bridges(h, chosen)
	if err != nil {
		return nil, err
	}
	newLink(ctx, session, c.connect, bridges)
	names := make([]string, 0, len(bridges))
	for _, b := range bridges {
		if err := heads.AddToolFunc(h, b.spec, b.call); err != nil {
			return names, renamed(err) // another goroutine has just taken the name
		}
		names = append(names, b.spec.Name)
	}
	return names, nil
}

func newConfig(h *heads.ToolHandler, session *mcp.ClientSession, opts []Option) (c config, err error) {
	var faults []error
	if h == nil {
		faults = append(faults, invalid("handler", "is nil", "make one with heads.NewToolHandler"))
	}
	if session == nil {
		faults = append(faults, invalid("session", "is nil", "connect to a server with mcp.Client.Connect"))
	}
	for _, opt := range opts {
		if opt == nil {
			faults = append(faults, invalid("option", "is nil", "leave it out"))
		} else if err := opt(&c); err != nil {
			faults = append(faults, err)
		}
	}
	return c, errors.Join(faults...)
}

func invalid(field, problem, remedy string) error {
	return &heads.InvalidError{Operation: operation, Field: field, Problem: problem, Remedy: remedy}
}

func toolField(name string) string { return "tool " + strconv.Quote(clip(name, 64)) }

// listTools stops after maxTools pages too, since a page may be empty.
func listTools(ctx context.Context, session *mcp.ClientSession) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	cursor := ""
	for range maxTools {
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, failure("list the tools", err)
		}
		all = append(all, page.Tools...)
		if len(all) > maxTools {
			break
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
	return nil, invalid("server", fmt.Sprintf("offers more than %d tools, or as many pages of them, too many for a head", maxTools), "offer fewer")
}

func (c config) choose(offered []*mcp.Tool) ([]*mcp.Tool, error) {
	if c.only == nil {
		return offered, nil
	}
	var faults []error
	for _, name := range c.only {
		if !slices.ContainsFunc(offered, func(t *mcp.Tool) bool { return t.Name == name }) {
			faults = append(faults, invalid(toolField(name), "is not one of the server's", "name those that it offers"))
		}
	}
	return slices.DeleteFunc(offered, func(t *mcp.Tool) bool { return !slices.Contains(c.only, t.Name) }), errors.Join(faults...)
}

// bridges returns one for each tool, or everything that is wrong with them.
func (c config) bridges(h *heads.ToolHandler, tools []*mcp.Tool) ([]*bridge, error) {
	// A trial handler finds what h would refuse before h is changed.
	trial, err := heads.NewToolHandler("https://tools.example.com")
	if err != nil {
		return nil, err
	}
	taken := h.Tools()
	var bridges []*bridge
	var faults []error
	for _, t := range tools {
		b, err := c.newBridge(t)
		faults = append(faults, err, renamed(heads.AddToolFunc(trial, b.spec, b.call)))
		if slices.ContainsFunc(taken, func(has heads.Tool) bool { return has.Name == c.prefix+t.Name }) {
			faults = append(faults, invalid(toolField(c.prefix+t.Name), "has the name of a tool of this handler", "use Prefix, or Only to leave it out"))
		}
		bridges = append(bridges, b)
	}
	return bridges, errors.Join(faults...)
}

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
