package headstest

import (
	"maps"
	"net/http"
	"slices"
)

func (c *core) getHead(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.run.head(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, c.run.encodedHead(r.PathValue("id"), h)), nil
}

// updateHead checks the whole update before it changes anything.
func (c *core) updateHead(r *http.Request) (reply, error) {
	sent, err := object(r)
	if err != nil {
		return reply{}, err
	}
	id, err := updateID(sent)
	if err != nil {
		return reply{}, err
	}
	dropIgnored(r, sent)
	if err := checkFields(sent); err != nil {
		return reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.changing(r, id)
	if err != nil {
		return reply{}, err
	}
	if err := c.run.merge(h, sent); err != nil {
		return reply{}, err
	}
	return c.changed(r, h), nil
}

// dropIgnored removes the read-only fields of an update.
func dropIgnored(r *http.Request, sent document) {
	dropped := document{}
	for name, value := range sent {
		if _, ok := ignored[name]; ok {
			dropped[name] = value
			delete(sent, name)
		}
	}
	if e := effectOf(r); e != nil {
		e.ignored = dropped
	}
}

// updateID removes the id from an update and returns it. The update must have
// another field, too.
func updateID(sent document) (string, error) {
	raw, ok := sent["id"]
	if !ok {
		return "", refuse(http.StatusBadRequest, "id is missing; give the UUID of the head to update")
	}
	id, ok := decode(raw).(string)
	if !ok || id == "" || isPlaceholder(id) {
		return "", refuse(http.StatusBadRequest, "id must be the UUID of a head")
	}
	delete(sent, "id")
	if len(sent) == 0 {
		return "", refuse(http.StatusBadRequest, "the update holds an id and no field to change")
	}
	return id, nil
}

// AddHead adds a head, or replaces the one with the same id, and returns the id. If
// there is no visual HeadVisualID, AddHead adds one in default mode. It panics if
// Validate returns an error.
func (e *Emulator) AddHead(h Head) string {
	if err := h.Validate(); err != nil {
		panic("headstest: AddHead: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notify()
	return e.run.addHead(h)
}

// Heads returns the ids of all heads, in the order of the ids.
func (e *Emulator) Heads() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.run.heads))
}
