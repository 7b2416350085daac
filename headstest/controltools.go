package headstest

import (
	"context"
	"encoding/json"
	"net/http"
)

// toolCall is the request to call a tool. The arguments are sent byte for byte.
type toolCall struct {
	Tool      string                     `json:"tool"`
	Arguments map[string]json.RawMessage `json:"arguments"`
}

// toolReply does not show the URL, since the path of a tool may hold a secret.
type toolReply struct {
	Tool    string          `json:"tool"`
	Sent    json.RawMessage `json:"sent"`
	Status  int             `json:"status"` // 0 without a reply
	Message string          `json:"message"`
	Problem string          `json:"problem"` // "" for a reply in the contract's form
	Reply   string          `json:"reply"`   // the first 4 KiB of what the tool sent
}

// callTool calls a tool in a new session.
func (c *control) callTool(r *http.Request) (any, error) {
	var sent struct {
		HeadID string `json:"headId"`
		toolCall
	}
	if err := decodeBody(r, &sent); err != nil {
		return nil, err
	}
	if err := c.requireHead(sent.HeadID); err != nil {
		return nil, err
	}
	return sent.call(r.Context(), c.emulator.StartSession(sent.HeadID))
}

func (c *control) callToolInSession(r *http.Request) (any, error) {
	var sent toolCall
	if err := decodeBody(r, &sent); err != nil {
		return nil, err
	}
	s, err := c.findSession(r)
	if err != nil {
		return nil, err
	}
	return sent.call(r.Context(), s)
}

func (t toolCall) call(ctx context.Context, s *Session) (any, error) {
	args := map[string]any{}
	for name, value := range t.Arguments {
		args[name] = value
	}
	called, err := s.CallTool(ctx, t.Tool, args)
	if err != nil {
		return nil, err
	}
	return toolReply{
		Tool: t.Tool, Sent: conceal("", called.Body), Status: called.Status,
		Message: concealText(called.Message), Problem: called.Problem, Reply: concealReply(string(called.Reply)),
	}, nil
}
