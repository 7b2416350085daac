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
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/headsapi/heads-go"
)

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
	schemas := map[string]document{}
	for _, b := range bridges {
		schemas[b.name] = b.document
	}
	link := newLink(ctx, session, c.connect, schemas)
	names := make([]string, 0, len(bridges))
	for _, b := range bridges {
		b.link = link
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
