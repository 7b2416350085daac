package main

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headsapi/heads-go/headstest"
)

// index says what there is.
func (c *control) index(*http.Request) (any, error) {
	var requests []string
	for pattern := range c.actions() {
		requests = append(requests, strings.TrimSuffix(pattern, "{$}"))
	}
	slices.SortFunc(requests, func(a, b string) int { return cmp.Compare(pathOf(a), pathOf(b)) })
	return map[string]any{"about": "The control API of the emulator; docs/emulator.md describes it.", "requests": requests}, nil
}

// pathOf is what comes after the method, and then the method.
func pathOf(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	return path + " " + method
}

func (c *control) health(*http.Request) (any, error) {
	return map[string]string{"status": "ok"}, nil
}

func (c *control) openAPI(*http.Request) (any, error) { return rawJSON(openAPI), nil }

// stateView lists what it shows, so that no secret of a record that is new
// gets out. The operations answer whole records to those who have the token.
type stateView struct {
	Heads         []headView         `json:"heads"`
	Visuals       []visualView       `json:"visuals"`
	Registrations []registrationView `json:"registrations"`
	Sessions      []sessionView      `json:"sessions"`
	Faults        faultsView         `json:"faults"`
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

type registrationView struct {
	ID       int64    `json:"id"`
	HeadID   string   `json:"headId"`
	Receiver string   `json:"receiver"` // scheme and host alone
	Events   []string `json:"events"`
}

func (c *control) state(*http.Request) (any, error) {
	s := c.emulator.Snapshot()
	return stateView{
		Heads:         views(s.Heads, viewHead),
		Visuals:       views(s.Visuals, viewVisual),
		Registrations: views(s.Webhooks, viewRegistration),
		Sessions:      c.sessions.list(),
		Faults:        viewFaults(s),
	}, nil
}

// views is a list even when it is empty.
func views[T any](records []json.RawMessage, view func(json.RawMessage) T) []T {
	list := make([]T, len(records))
	for i, r := range records {
		list[i] = view(r)
	}
	return list
}

// viewHead leaves a field zero that a seed has given another type.
func viewHead(record json.RawMessage) headView {
	var h struct {
		headView
		PublicURL            string
		ConversationSettings struct{ Tools []struct{ Name string } }
	}
	_ = json.Unmarshal(record, &h)
	h.Tools = []string{}
	for _, t := range h.ConversationSettings.Tools {
		h.Tools = append(h.Tools, t.Name)
	}
	h.Address = ""
	if u, err := url.Parse(h.PublicURL); err == nil {
		h.Address = origin(h.PublicURL) + u.EscapedPath()
	}
	return h.headView
}

func viewVisual(record json.RawMessage) visualView {
	var v visualView
	_ = json.Unmarshal(record, &v)
	return v
}

func viewRegistration(record json.RawMessage) registrationView {
	var w struct {
		registration
		ID int64
	}
	_ = json.Unmarshal(record, &w)
	view := registrationView{ID: w.ID, HeadID: w.HeadID, Receiver: origin(w.WebhookURL), Events: []string{}}
	for _, e := range w.events() {
		view.Events = append(view.Events, string(e))
	}
	slices.Sort(view.Events)
	return view
}

// origin leaves out everything of an address that may hold a secret.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// seed adds what the body holds to what is there.
func (c *control) seed(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the seed is larger than %d bytes, or broke off", maxControlBody)
	}
	s, err := parseSeed(text)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	done, err := s.apply(c.emulator)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v; what stands before it was added", err)
	}
	return done, nil
}

// reset goes back to what the emulator started with.
func (c *control) reset(*http.Request) (any, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.sessions.forget()
	c.emulator.Reset()
	return c.start.apply(c.emulator)
}

// splitter turns on text splitting, which no operation of the contract does.
func (c *control) splitter(r *http.Request) (any, error) {
	if err := c.emulator.EnableSplitter(r.PathValue("id")); err != nil {
		return nil, refuse(http.StatusNotFound, "%v", err)
	}
	for _, h := range c.emulator.Snapshot().Heads {
		if view := viewHead(h); view.ID == r.PathValue("id") {
			return view, nil
		}
	}
	return nil, refuse(http.StatusConflict, "the emulator was reset")
}

// knows says whether there is such a head.
func knows(e *headstest.Emulator, headID string) error {
	for _, id := range e.Heads() {
		if id == headID {
			return nil
		}
	}
	return refuse(http.StatusNotFound, "there is no head %q", headID)
}
