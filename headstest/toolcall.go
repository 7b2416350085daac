package headstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	heads "github.com/headsapi/heads-go"
)

// metadataKey is the only key of a tool call that is not an argument.
const metadataKey = "session_metadata"

// ToolCall is one call of a tool. If the reply does not have the contract's form, Message is
// empty and Problem tells what was expected and what was received, as in
// `expected {"message": "…"}, the reply has "result"`.
type ToolCall struct {
	URL     string
	Body    []byte // as sent
	Status  int    // 0 without a reply
	Message string
	Problem string // "" for a reply in the contract's form
	Reply   []byte // the first 4 KiB of what the tool sent
}

// CallTool calls a tool as the service does, in a new session: the arguments are
// top-level keys, and session_metadata has the shape that was seen in the field.
// CallTool returns an error only if nothing could be sent: the head is unknown, not
// active, can't be loaded or is not in mode oc; the tool is not configured or its
// URL is not allowed; an argument can't be encoded as JSON or is named
// session_metadata; or the context has ended. A bad reply is not an error.
func (e *Emulator) CallTool(ctx context.Context, headID, tool string, args map[string]any) (*ToolCall, error) {
	return e.StartSession(headID).CallTool(ctx, tool, args)
}

// CallTool calls a tool like [Emulator.CallTool], but within this session.
func (s *Session) CallTool(ctx context.Context, tool string, args map[string]any) (*ToolCall, error) {
	t, metadata, err := s.prepareTool(tool)
	if err != nil {
		return nil, err
	}
	body, err := toolBody(args, metadata)
	if err != nil {
		return nil, err
	}
	call, at := &ToolCall{URL: t.URL, Body: body}, time.Now()
	reply, header, err := s.core.postTool(ctx, call)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, fmt.Errorf("headstest: calling tool %q: %w", tool, cause)
	}
	if err != nil {
		call.Problem = "no whole reply: " + err.Error()
	} else {
		call.Message, call.Problem = readReply(call.Status, header, reply)
	}
	call.Reply = reply[:min(len(reply), maxReply)]
	s.called(tool, call, at)
	return call, nil
}

// called logs a tool call and records it for the console.
func (s *Session) called(tool string, call *ToolCall, at time.Time) {
	line := s.core.cfg.logger.With("head", s.headID, "session", s.id, "tool", tool, "status", call.Status, "took", time.Since(at))
	if call.Problem == "" {
		line.Info("tool call")
	} else {
		line.Warn("tool call failed", "problem", call.Problem)
	}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.addEntry(logEntry{
		Kind: entryToolCall, At: at, Took: duration(time.Since(at)), Tool: tool, Sent: string(conceal("", call.Body)),
		toolOutcome: toolOutcome{call.Status, concealText(call.Message), call.Problem, concealReply(string(call.Reply))},
	})
}

// prepareTool reads everything that a call needs from the emulator's state.
func (s *Session) prepareTool(name string) (tool, document, error) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	h, err := s.accessible()
	if err != nil {
		return tool{}, nil, err
	}
	if mode := h.str("operationMode"); mode != string(heads.OperationModeOC) {
		return tool{}, nil, fmt.Errorf("headstest: the head is in operation mode %q; only a head in mode %q calls tools", mode, string(heads.OperationModeOC))
	}
	t, ok := findTool(h, name)
	if !ok {
		return tool{}, nil, fmt.Errorf("headstest: the head has no tool %q", name)
	}
	if err := s.run.checkOutbound(t.URL); err != nil {
		return tool{}, nil, fmt.Errorf("headstest: the URL of tool %q %w", name, err)
	}
	return t, s.metadata(h), nil
}

// metadata has the shape that was seen in the field; the contract documents none.
func (s *Session) metadata(h document) document {
	hash := sha256.Sum256([]byte(s.id))
	return newDocument(map[string]any{
		"session_id": s.id, "user_id": s.userID, "username": "anonymous",
		"head_id": s.headID, "org_id": h.str("orgId"), "public_head_id": h.str("publicId"), "public_org_id": h.str("orgPublicId"),
		"timestamp": time.Now().UTC().Format(s.core.cfg.timestampLayout),
		"request_metadata": map[string]any{
			"essential": map[string]any{
				"origin_domain": "www.example.test",
				"device_info":   map[string]any{"device_type": "desktop", "browser_family": "headstest"},
				"language_pref": h.str("language"),
			},
			"technical": map[string]any{"session_hash": hex.EncodeToString(hash[:16]), "request_secure": true},
		},
	})
}

// toolBody returns an object that has the arguments and the metadata as keys.
func toolBody(args map[string]any, metadata document) ([]byte, error) {
	body := document{metadataKey: metadata.encode()}
	for name, value := range args {
		if name == metadataKey {
			return nil, errors.New("headstest: an argument can't be named " + metadataKey)
		}
		raw, err := encodeJSON(value)
		if err != nil {
			return nil, fmt.Errorf("headstest: argument %q can't be encoded as JSON: %w", name, err)
		}
		body[name] = raw
	}
	return body.encode(), nil
}

// postTool sends the call, sets its status and returns the reply.
func (c *core) postTool(ctx context.Context, call *ToolCall) (reply []byte, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.toolTimeout)
	defer cancel()
	defer context.AfterFunc(c.lifetime, cancel)()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		return nil, nil, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "headstest")
	resp, reply, err := exchange(c.client, req, maxToolReply+1) //nolint:bodyclose // exchange has closed it
	if resp != nil {
		call.Status, header = resp.StatusCode, resp.Header
	}
	return reply, header, err
}
