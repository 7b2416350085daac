package headstest

import (
	"net/http"
)

func (c *core) getVisual(r *http.Request) (reply, error) {
	id := r.PathValue("headVisualId")
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.run.visuals[id]
	if !ok {
		return reply{}, refuse(http.StatusNotFound, "there is no head visual %q", id)
	}
	return jsonReply(http.StatusOK, v.shown.encode()), nil
}

// AddVisual adds a visual, or replaces the one with the same id, and returns the
// id. It panics if a value of Fields can't be encoded as JSON.
func (e *Emulator) AddVisual(v Visual) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notify()
	return e.run.addVisual(v)
}
