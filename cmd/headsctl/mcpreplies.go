package main

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answering is a transport whose input ends when every call has its reply. The
// library drops the replies of calls that are under way when the input ends.
type answering struct{ mcp.Transport }

// Connect implements mcp.Transport.
func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answeringConnection{Connection: c, open: map[jsonrpc.ID]bool{}}, nil
}

type answeringConnection struct {
	mcp.Connection

	mu     sync.Mutex
	open   map[jsonrpc.ID]bool
	calls  sync.WaitGroup // as many as are open
	closed bool
}

// Read returns the next message, or the end of the input once no call is open.
func (c *answeringConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		c.calls.Wait()
		return nil, err
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.begin(r.ID)
	}
	return m, nil
}

func (c *answeringConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok {
		defer c.end(r.ID)
	}
	return c.Connection.Write(ctx, m)
}

// Close ends the wait for replies: the library writes no more of them. It may
// still read calls that were sent before.
func (c *answeringConnection) Close() error {
	c.mu.Lock()
	c.closed = true
	for range c.open {
		c.calls.Done()
	}
	clear(c.open)
	c.mu.Unlock()
	return c.Connection.Close()
}

func (c *answeringConnection) begin(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open[id] && !c.closed { // a second call with the id of an open one has no reply of its own
		c.open[id] = true
		c.calls.Add(1)
	}
}

func (c *answeringConnection) end(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] {
		delete(c.open, id)
		c.calls.Done()
	}
}
