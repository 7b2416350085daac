package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/headstest"
)

// demo is the seed of a start without a seed file.
//
//go:embed demo.json
var demo []byte

// seed is what the emulator starts with, and what can be added later. Its
// records have the shape that the operations give them.
type seed struct {
	visuals       []headstest.Visual
	heads         []headstest.Head
	tools         []seedTool
	registrations []registration
}

type seedTool struct {
	headID     string
	definition json.RawMessage
}

// registration is the body of POST /head-events.
type registration struct {
	HeadID              string `json:"headId"`
	WebhookURL          string `json:"webhookUrl"`
	StartConversation   bool   `json:"startConversation"`
	EndConversation     bool   `json:"endConversation"`
	TimeoutConversation bool   `json:"timeoutConversation"`
	InactivityWarning   bool   `json:"inactivityWarning"`
}

// fields are those of a JSON object.
type fields map[string]json.RawMessage

// parseSeed refuses what it does not know, so that a misspelt key is not lost
// without a word. Whether records fit together is found by apply.
func parseSeed(text []byte) (*seed, error) {
	var file struct {
		Visuals       []fields       `json:"visuals"`
		Heads         []fields       `json:"heads"`
		Registrations []registration `json:"registrations"`
		Tools         []fields       `json:"tools"`
	}
	if err := decodeStrictly(bytes.NewReader(text), &file); err != nil {
		return nil, err
	}
	s := &seed{registrations: file.Registrations}
	var err error
	if s.visuals, err = each("visuals", file.Visuals, fields.visual); err != nil {
		return nil, err
	}
	if s.heads, err = each("heads", file.Heads, fields.head); err != nil {
		return nil, err
	}
	s.tools, err = each("tools", file.Tools, fields.tool)
	return s, err
}

// each reads the records of one list and names the one that is wrong.
func each[T any](list string, records []fields, read func(fields) (T, error)) ([]T, error) {
	var all []T
	for i, f := range records {
		if f == nil {
			return nil, fmt.Errorf("%s[%d] must be an object", list, i)
		}
		v, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", list, i, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// decodeStrictly reads exactly one JSON value.
func decodeStrictly(r io.Reader, v any) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("the JSON can't be used: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is something after the JSON value")
	}
	return nil
}

func (f fields) visual() (headstest.Visual, error) {
	id, err := f.take("id")
	if err != nil {
		return headstest.Visual{}, err
	}
	mode, err := f.take("mode")
	return headstest.Visual{ID: id, Mode: heads.VisualMode(mode), Fields: f.rest()}, err
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (f fields) head() (headstest.Head, error) {
	id, err := f.take("id")
	if err != nil {
		return headstest.Head{}, err
	}
	if id != "" && !uuid.MatchString(id) {
		return headstest.Head{}, fmt.Errorf("the id %q is not a UUID; leave it out to have one made up", id)
	}
	visual, err := f.take("headVisualId")
	if err != nil {
		return headstest.Head{}, err
	}
	extra, err := f.extra()
	if err != nil {
		return headstest.Head{}, err
	}
	h := headstest.Head{ID: id, HeadVisualID: visual, Fields: f.rest(), Extra: extra}
	return h, h.Validate()
}

// extra takes the fields that the contract doesn't give a head.
func (f fields) extra() (map[string]any, error) {
	var extra fields
	if raw, ok := f["extra"]; ok && json.Unmarshal(raw, &extra) != nil {
		return nil, errors.New("extra must be an object")
	}
	delete(f, "extra")
	return extra.rest(), nil
}

func (f fields) tool() (seedTool, error) {
	headID, err := f.take("headId")
	if err != nil {
		return seedTool{}, err
	}
	definition, err := json.Marshal(f)
	return seedTool{headID, definition}, err
}

// take removes a string. One that is missing or null is empty.
func (f fields) take(name string) (string, error) {
	var s string
	if raw, ok := f[name]; ok && json.Unmarshal(raw, &s) != nil {
		return "", fmt.Errorf("%s must be a string", name)
	}
	delete(f, name)
	return s, nil
}

func (f fields) rest() map[string]any {
	rest := map[string]any{}
	for name, raw := range f {
		rest[name] = raw
	}
	return rest
}

// seeded are the ids of what a seed has added.
type seeded struct {
	Heads         []string `json:"heads"`
	Visuals       []string `json:"visuals"`
	Registrations []int64  `json:"registrations"`
}

// apply adds everything in an order in which references are met, and stops at
// the first record that the emulator refuses.
func (s *seed) apply(e *headstest.Emulator) (seeded, error) {
	done := seeded{Heads: []string{}, Visuals: []string{}, Registrations: []int64{}}
	for _, v := range s.visuals {
		done.Visuals = append(done.Visuals, e.AddVisual(v))
	}
	for _, h := range s.heads {
		done.Heads = append(done.Heads, e.AddHead(h))
	}
	for i, t := range s.tools {
		if err := e.AddTool(t.headID, t.definition); err != nil {
			return done, fmt.Errorf("tools[%d]: %w", i, err)
		}
	}
	for i, r := range s.registrations {
		id, _, err := e.AddWebhook(r.HeadID, r.WebhookURL, r.events()...)
		if err != nil {
			return done, fmt.Errorf("registrations[%d]: %w", i, err)
		}
		done.Registrations = append(done.Registrations, id)
	}
	return done, nil
}

func (r registration) events() []heads.EventType {
	var events []heads.EventType
	for event, on := range map[heads.EventType]bool{
		heads.EventStartConversation: r.StartConversation, heads.EventEndConversation: r.EndConversation,
		heads.EventTimeoutConversation: r.TimeoutConversation, heads.EventInactivityWarning: r.InactivityWarning,
	} {
		if on {
			events = append(events, event)
		}
	}
	return events
}
