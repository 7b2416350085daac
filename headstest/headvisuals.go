package headstest

import (
	"net/http"

	heads "github.com/headsapi/heads-go"
)

// visual has its mode beside its document, since a test may hide or rename the
// mode.
type visual struct {
	mode  heads.VisualMode
	shown document
}

func (c *core) getVisual(r *http.Request) (reply, error) {
	id := r.PathValue("headVisualId")
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.st.visuals[id]
	if !ok {
		return reply{}, refuse(http.StatusNotFound, "there is no head visual %q", id)
	}
	return jsonReply(http.StatusOK, v.shown.encode()), nil
}
