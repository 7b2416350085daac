package headstest

import (
	"encoding/json"
	"net/http"
)

// getSettings is not in the contract.
func (c *core) getSettings(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.run.head(r.PathValue("headId"))
	if err != nil {
		return reply{}, err
	}
	wrapped := document{"conversationSettings": h["conversationSettings"]}
	return jsonReply(http.StatusOK, wrapped.encode()), nil
}

func (c *core) putSettings(r *http.Request) (reply, error) {
	sent, err := object(r)
	if err != nil {
		return reply{}, err
	}
	settings, ok := decode(sent["conversationSettings"]).(map[string]any)
	if !ok {
		return reply{}, refuse(http.StatusBadRequest, "the body must hold the settings as an object under conversationSettings")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.run.checkTools(settings); err != nil {
		return reply{}, err
	}
	h, err := c.changing(r, r.PathValue("headId"))
	if err != nil {
		return reply{}, err
	}
	h["conversationSettings"] = sent["conversationSettings"]
	h.touch()
	return c.changed(r, h), nil
}

// AddTool adds a tool to a head, under the same rules as the operation that
// replaces the settings. The definition is one item of the operation's tools.
func (e *Emulator) AddTool(headID string, definition json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notify()
	return e.run.addTool(headID, definition)
}
