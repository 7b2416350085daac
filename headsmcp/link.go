package headsmcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxTools       = 1000             // that a server may offer
	connectTimeout = 30 * time.Second // of connecting and listing the tools
	firstWait      = time.Second      // between two connections
	longestWait    = 30 * time.Second
	maxUnsent      = 64 // calls that a server doesn't read
)

// link is the connection to a server: the session of AddTools and, with Reconnect, the
// sessions after it.
type link struct {
	connect func(context.Context) (*mcp.ClientSession, error) // nil: there is one session alone
	base    context.Context                                   //nolint:containedctx // the values of the context of AddTools
	tools   map[string]document                               // the input schemas at AddTools, by the server's names
	unsent  atomic.Int32

	mu       sync.Mutex
	session  *mcp.ClientSession // nil while there is none
	end      context.CancelFunc // ends the context that session was connected with
	refused  map[string]string  // why tools are not called, by the server's names
	trying   chan struct{}      // closed when the attempt under way has ended; nil without one
	err      error              // of the last attempt
	wait     time.Duration      // before the attempt after the next one
	earliest time.Time          // of the next attempt
}

func newLink(ctx context.Context, session *mcp.ClientSession, connect func(context.Context) (*mcp.ClientSession, error), tools map[string]document) *link {
	l := &link{connect: connect, base: context.WithoutCancel(ctx), tools: tools, session: session, end: func() {}}
	if connect != nil {
		go l.watch(session)
	}
	return l
}

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

// call calls a tool of the server. A call that is not sent because the connection has
// ended is sent to the next session; no other call is repeated.
func (l *link) call(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	session, err := l.get(ctx, params.Name)
	if err != nil {
		return nil, err
	}
	result, err := l.send(ctx, session, params)
	if l.connect == nil || !errors.Is(err, mcp.ErrConnectionClosed) {
		return result, err
	}
	l.lose(session)
	if session, err = l.get(ctx, params.Name); err != nil {
		return nil, err
	}
	return l.send(ctx, session, params)
}

// send returns when ctx ends, even if the server does not read its input: a full pipe
// blocks CallTool.
func (l *link) send(ctx context.Context, session *mcp.ClientSession, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	if l.unsent.Load() >= maxUnsent {
		return nil, notCalled("the server does not read what it is sent")
	}
	type answer struct {
		result *mcp.CallToolResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := session.CallTool(ctx, params)
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, failure("call a tool", a.err)
		}
		l.works(session)
		return a.result, nil
	case <-ctx.Done():
		l.unsent.Add(1)
		go func() {
			<-answered
			l.unsent.Add(-1)
		}()
		return nil, failure("call a tool", ctx.Err())
	}
}

func notCalled(reason string) error { return errors.New("headsmcp: call a tool: " + reason) }

// get returns the session to call the tool in. Without one it connects, or waits for
// the attempt of another call.
func (l *link) get(ctx context.Context, tool string) (*mcp.ClientSession, error) {
	for {
		session, trying, err := l.look(tool)
		if session != nil || err != nil {
			return session, err
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, failure("connect again", ctx.Err())
		}
	}
}

// look returns the session, or the attempt under way. It begins one if it is time to.
func (l *link) look(tool string) (*mcp.ClientSession, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil {
		if reason := l.refused[tool]; reason != "" {
			return nil, nil, notCalled(reason)
		}
		return l.session, nil, nil
	}
	if l.trying == nil {
		if wait := time.Until(l.earliest); wait > 0 {
			return nil, nil, l.notYet(wait)
		}
		l.trying = make(chan struct{})
		go l.try(l.trying)
	}
	return nil, l.trying, nil
}

func (l *link) notYet(wait time.Duration) error {
	next := max(wait.Round(time.Second), time.Second)
	if l.err != nil {
		return fmt.Errorf("%w; the next attempt is made in %v or later", l.err, next)
	}
	return fmt.Errorf("headsmcp: call a tool: %w before a call was answered; the next attempt to connect is made in %v or later", mcp.ErrConnectionClosed, next)
}

// try connects once.
func (l *link) try(ended chan struct{}) {
	ctx, end := context.WithCancel(l.base)
	session, refused, err := l.open(ctx, end)
	if err != nil {
		end()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait = min(max(2*l.wait, firstWait), longestWait)
	l.earliest = time.Now().Add(l.wait)
	l.session, l.refused, l.err, l.end = session, refused, err, end
	l.trying = nil
	close(ended)
	if session != nil {
		go l.watch(session)
	}
}

// open connects and compares the tools. It calls end if that takes too long.
func (l *link) open(ctx context.Context, end func()) (*mcp.ClientSession, map[string]string, error) {
	limit := time.AfterFunc(connectTimeout, end)
	session, err := l.tryConnect(ctx)
	if err == nil && session == nil {
		err = errNoSession
	}
	if err != nil {
		return nil, nil, failure("connect again", err)
	}
	refused, err := l.compare(ctx, session)
	if !limit.Stop() { // ctx has ended
		err = failure("connect again", context.DeadlineExceeded)
	}
	if err != nil {
		go func() { _ = session.Close() }() // may wait for a process
		return nil, nil, err
	}
	return session, refused, nil
}

// tryConnect calls connect and returns a panic of it as an error.
func (l *link) tryConnect(ctx context.Context) (session *mcp.ClientSession, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return l.connect(ctx)
}

// compare returns why tools are not called in a new session: the arguments of a head
// fit the schemas that it was told.
func (l *link) compare(ctx context.Context, session *mcp.ClientSession) (map[string]string, error) {
	offered, err := listTools(ctx, session)
	if err != nil {
		return nil, err
	}
	refused := map[string]string{}
	for name := range l.tools {
		refused[name] = "the server, connected again, no longer has the tool; register the tools that it has now"
	}
	for _, t := range offered {
		before, ok := l.tools[t.Name]
		if !ok {
			continue
		}
		now, err := decodeDocument(t.InputSchema)
		if err != nil || text(now) != text(before) {
			refused[t.Name] = "the server, connected again, has another input schema for the tool; add its tools to a new handler and register them"
			continue
		}
		delete(refused, t.Name)
	}
	return refused, nil
}

// watch waits for the end of a session.
func (l *link) watch(session *mcp.ClientSession) {
	_ = session.Wait()
	l.lose(session)
}

// lose makes the next call connect again.
func (l *link) lose(session *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != session {
		return
	}
	l.session = nil
	l.end()
	go func() { _ = session.Close() }() // may wait for a process
}

// works resets the wait before the next connection: a server that answers does not die
// at every start.
func (l *link) works(session *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == session {
		l.wait, l.earliest = 0, time.Time{}
	}
}
