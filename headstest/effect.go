package headstest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

type effectKey struct{}

// withEffect returns a copy of a request in which its operation records the effect.
func withEffect(r *http.Request) (*http.Request, *effect) {
	e := &effect{}
	return r.WithContext(context.WithValue(r.Context(), effectKey{}, e)), e
}

// effectOf returns the effect of a request, or nil without a console.
func effectOf(r *http.Request) *effect {
	e, _ := r.Context().Value(effectKey{}).(*effect)
	return e
}

// headOf returns the id of the head that a request is about: that of its path, of the
// webhook in its path, of its query or of its body. It is "" without a console, and if
// there is no such head.
func (c *core) headOf(r *http.Request, body []byte) string {
	if !c.cfg.console {
		return ""
	}
	var sent document
	_ = json.Unmarshal(body, &sent) // not an object: it names no head
	c.mu.Lock()
	defer c.mu.Unlock()
	named := append(strings.Split(r.URL.Path, "/"), r.URL.Query().Get("headId"), sent.str("id"), sent.str("headId"))
	if id, ok := strings.CutPrefix(r.URL.Path, "/head-events/"); ok {
		if w, err := c.run.webhook(id); err == nil {
			named = append(named, w.headID)
		}
	}
	for _, id := range named {
		if _, ok := c.run.heads[id]; ok {
			return id
		}
	}
	return ""
}

// changing returns the head that a request is about to change. Like changed, it is
// called under the lock.
func (c *core) changing(r *http.Request, id string) (document, error) {
	h, err := c.run.headToChange(id)
	if e := effectOf(r); e != nil && err == nil {
		e.headID, e.before = id, maps.Clone(h)
	}
	return h, err
}

// changed answers a request that has changed a head.
func (c *core) changed(r *http.Request, h document) reply {
	if e := effectOf(r); e != nil {
		e.changes, e.before = difference(e.before, h), nil
	}
	return c.undocumented(h)
}

// putSwitch serves a PUT whose query turns a field of a head on or off. It calls
// set if that is a change.
func (c *core) putSwitch(r *http.Request, field string, set func(h document, on bool) error) (reply, error) {
	on, err := switchQuery(r, field)
	if err != nil {
		return reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.changing(r, r.PathValue("headId"))
	if err != nil {
		return reply{}, err
	}
	if h.is(field) != on {
		if err := set(h, on); err != nil {
			return reply{}, err
		}
	}
	return c.changed(r, h), nil
}

// undocumented returns the answer of an operation whose answer the contract does
// not document. It is called under the lock, before the record can change again.
func (c *core) undocumented(record document) reply {
	switch c.cfg.responses {
	case ResponsesRecord:
		return jsonReply(http.StatusOK, record.encode())
	case ResponsesBool:
		return jsonReply(http.StatusOK, []byte("true"))
	default:
		return reply{status: http.StatusOK, header: http.Header{}}
	}
}
