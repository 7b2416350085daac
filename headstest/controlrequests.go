package headstest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// requestRow is one request in a list.
type requestRow struct {
	ID     int       `json:"id"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Status int       `json:"status"` // 0 if the connection was cut without an answer
	At     time.Time `json:"at"`
	Took   duration  `json:"took"`
	HeadID string    `json:"headId"` // of the head that it is about, or ""
}

// requestView is one request in full, without its header, which holds the token.
type requestView struct {
	requestRow
	Query   string       `json:"query"`
	Body    string       `json:"body"`
	Changes []changeView `json:"changes"` // of that head
	Ignored []fieldView  `json:"ignored"` // the read-only fields of the body
}

// changeView has null if the head did not have the field.
type changeView struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

type fieldView struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value"`
}

func rowOfRequest(r Request) requestRow {
	return requestRow{ID: r.ID, Method: r.Method, Path: concealPath(r.Path), Status: r.Status, At: r.At.UTC(), Took: duration(r.Duration), HeadID: r.headID}
}

func viewRequest(r Request) requestView {
	v := requestView{requestRow: rowOfRequest(r), Query: concealQuery(r.Query), Body: concealBody(r.Body), Changes: []changeView{}, Ignored: []fieldView{}}
	if r.effect == nil {
		return v
	}
	for _, change := range r.effect.changes {
		v.Changes = append(v.Changes, changeView{change.name, concealOrNull(change.name, change.before), concealOrNull(change.name, change.after)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.effect.ignored)) {
		v.Ignored = append(v.Ignored, fieldView{name, conceal(name, r.effect.ignored[name])})
	}
	return v
}

func concealOrNull(name string, raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return conceal(name, raw)
}

// listRequests returns the requests of the journal, oldest first.
func (c *control) listRequests(r *http.Request) (any, error) {
	var p page
	headID := ""
	for key, values := range r.URL.Query() {
		value := values[len(values)-1]
		if key == "headId" {
			headID = value
		} else if p.set(key, value) != nil {
			return nil, refuse(http.StatusBadRequest, "the query takes headId, and before and limit, above 0; %s is not right", key)
		}
	}
	c.emulator.mu.Lock()
	found := c.emulator.run.requests.newest(p.before, cmp.Or(p.limit, c.emulator.cfg.journalSize), func(r Request) bool { return headID == "" || r.headID == headID })
	c.emulator.mu.Unlock()
	rows := make([]requestRow, len(found))
	for i, r := range found {
		rows[i] = rowOfRequest(r)
	}
	return rows, nil
}

func (c *control) getRequest(r *http.Request) (any, error) {
	found, err := find(c.emulator.core, func(rn *run) *journal[Request] { return &rn.requests }, r.PathValue("id"), "request")
	if err != nil {
		return nil, err
	}
	return viewRequest(found), nil
}
