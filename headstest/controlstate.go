package headstest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/headsapi/heads-go/internal/exactjson"
)

// stateView lists the fields that it shows, so a new field of a record is not
// shown by accident. The operations return whole records to callers with the token.
type stateView struct {
	Heads         []headView    `json:"heads"`
	Visuals       []visualView  `json:"visuals"`
	Registrations []webhookView `json:"registrations"`
	Sessions      []sessionView `json:"sessions"`
	Faults        faultsView    `json:"faults"`
}

type headView struct {
	ID             string   `json:"id"`
	Name           string   `json:"name"`
	PublicID       string   `json:"publicId"`
	HeadVisualID   string   `json:"headVisualId"`
	OperationMode  string   `json:"operationMode"`
	TTSProvider    string   `json:"ttsProvider"`
	TTSVoice       string   `json:"ttsVoice"`
	VideoStreaming bool     `json:"videoStreaming"`
	Splitter       bool     `json:"splitter"`
	EnableEvents   bool     `json:"enableEvents"`
	IsActive       bool     `json:"isActive"`
	Address        string   `json:"address"` // without its key
	Tools          []string `json:"tools"`   // their names
}

type visualView struct {
	ID   string `json:"id"`
	Mode string `json:"mode"`
}

type webhookView struct {
	ID       int64    `json:"id"`
	HeadID   string   `json:"headId"`
	Receiver string   `json:"receiver"` // scheme and host only
	Events   []string `json:"events"`
	Note     string   `json:"note,omitempty"` // what the real service may do differently
}

func (c *control) state(*http.Request) (any, error) { return c.viewState(), nil }

func (c *control) viewState() stateView {
	s := c.emulator.Snapshot()
	c.emulator.mu.Lock()
	defer c.emulator.mu.Unlock()
	registrations := views(s.Webhooks, viewWebhook)
	for i, r := range registrations {
		if w, ok := c.emulator.run.webhooks[r.ID]; ok && w.early {
			registrations[i].Note = madeEarly
		}
	}
	return stateView{
		Heads:         views(s.Heads, viewHead),
		Visuals:       views(s.Visuals, viewVisual),
		Registrations: registrations,
		Sessions:      c.emulator.run.sessionViews(),
		Faults:        c.emulator.run.viewFaults(),
	}
}

// views returns a list, even an empty one, and never nil.
func views[T any](records []json.RawMessage, view func(json.RawMessage) T) []T {
	list := make([]T, len(records))
	for i, r := range records {
		list[i] = view(r)
	}
	return list
}

// ofAnyType makes exactjson.Decode ignore a field of another type.
var ofAnyType = exactjson.Rules{Open: func(string) bool { return true }}

func viewHead(record json.RawMessage) headView {
	var view headView
	var d document
	_ = exactjson.Decode(record, &view, ofAnyType)
	_ = json.Unmarshal(record, &d)
	view.Address, view.Tools = withoutKey(d.str("publicUrl")), []string{}
	for _, t := range toolsOf(d) {
		view.Tools = append(view.Tools, t.str("name"))
	}
	return view
}

// withoutKey removes the query of an access URL, which holds its key.
func withoutKey(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return origin(address) + u.EscapedPath()
}

func viewVisual(record json.RawMessage) visualView {
	var v visualView
	_ = exactjson.Decode(record, &v, ofAnyType)
	return v
}

func viewWebhook(record json.RawMessage) webhookView {
	var d document
	_ = json.Unmarshal(record, &d)
	view := webhookView{HeadID: d.str("headId"), Receiver: origin(d.str("webhookUrl")), Events: []string{}}
	_ = json.Unmarshal(d["id"], &view.ID)
	for _, f := range eventFlags {
		if d.is(f.name) {
			view.Events = append(view.Events, string(f.event))
		}
	}
	slices.Sort(view.Events)
	return view
}
