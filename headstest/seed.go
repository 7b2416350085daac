package headstest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	heads "github.com/headsapi/heads-go"
	"github.com/headsapi/heads-go/internal/exactjson"
)

// Seed holds the records with which an emulator starts. Its JSON form is that of a
// file for the flag -seed-file of heads-emulator. [ParseSeed] reads one and refuses
// unknown fields.
type Seed struct {
	// As GET /head_visual/{headVisualId} answers them. Further fields may be in an object "extra".
	Visuals []json.RawMessage `json:"visuals"`
	// As GET /head/{id} answers them. Fields that a head does not have in the contract are in an
	// object "extra".
	Heads []json.RawMessage `json:"heads"`
	// Items of conversationSettings.tools with a headId.
	Tools []json.RawMessage `json:"tools"`
	// Webhooks: bodies of POST /head-events, optionally with a sharedKey.
	Registrations []json.RawMessage `json:"registrations"`
}

// Added are the ids of the records that a seed has added.
type Added struct {
	Heads         []string `json:"heads"`
	Visuals       []string `json:"visuals"`
	Registrations []int64  `json:"registrations"`
}

// ParseSeed reads a seed file. Its error names the first invalid record. Import
// checks whether the records fit together.
func ParseSeed(text []byte) (Seed, error) {
	var s Seed
	if err := decodeStrictly(text, &s); err != nil {
		return Seed{}, err
	}
	_, err := s.records()
	return s, err
}

// seedRecords are the decoded records of a seed.
type seedRecords struct {
	visuals       []Visual
	heads         []Head
	tools         []seedTool
	registrations []document
}

type seedTool struct {
	headID     string
	definition json.RawMessage
}

func (s Seed) records() (r seedRecords, err error) {
	if r.visuals, err = each("visuals", s.Visuals, document.visual); err != nil {
		return r, err
	}
	if r.heads, err = each("heads", s.Heads, document.head); err != nil {
		return r, err
	}
	if r.tools, err = each("tools", s.Tools, document.tool); err != nil {
		return r, err
	}
	r.registrations, err = each("registrations", s.Registrations, document.registration)
	return r, err
}

// each decodes the records of one list. Its error names the invalid record.
func each[T any](list string, records []json.RawMessage, read func(document) (T, error)) ([]T, error) {
	var all []T
	for i, raw := range records {
		var d document
		if err := json.Unmarshal(raw, &d); err != nil || d == nil {
			return nil, fmt.Errorf("%s[%d] must be a JSON object", list, i)
		}
		if err := exactjson.Unique(raw); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", list, i, err)
		}
		v, err := read(d)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", list, i, err)
		}
		all = append(all, v)
	}
	return all, nil
}

func (d document) visual() (Visual, error) {
	id, err := d.take("id")
	if err != nil {
		return Visual{}, err
	}
	mode, err := d.take("mode")
	if err != nil {
		return Visual{}, err
	}
	extra, err := d.takeExtra()
	if err != nil {
		return Visual{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, given := d[name]; given || name == "id" || name == "mode" {
			return Visual{}, fmt.Errorf("a visual has the field %q already, which does not belong in extra", name)
		}
	}
	maps.Copy(d, extra)
	return Visual{ID: id, Mode: heads.VisualMode(mode), Fields: d.values()}, nil
}

func (d document) head() (Head, error) {
	id, err := d.take("id")
	if err != nil {
		return Head{}, err
	}
	if id != "" && !uuid.MatchString(id) {
		return Head{}, fmt.Errorf("the id %q is not a UUID; leave it out to have one generated", id)
	}
	visual, err := d.take("headVisualId")
	if err != nil {
		return Head{}, err
	}
	extra, err := d.takeExtra()
	if err != nil {
		return Head{}, err
	}
	h := Head{ID: id, HeadVisualID: visual, Fields: d.values(), Extra: extra.values()}
	return h, h.Validate()
}

func (d document) tool() (seedTool, error) {
	headID, err := d.take("headId")
	return seedTool{headID, d.encode()}, err
}

// webhook refuses keys that the operation does not have.
func (d document) registration() (document, error) {
	known := []string{"headId", "webhookUrl", "sharedKey"}
	for _, f := range eventFlags {
		known = append(known, f.name)
	}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("a registration has no field %q", name)
		}
	}
	if raw, ok := d["sharedKey"]; ok && (!isA[string](decode(raw)) || d.str("sharedKey") == "") {
		return nil, errors.New("sharedKey must be a string that is not empty; leave it out to have one generated")
	}
	return d, nil
}

// take removes a string and returns it. A missing string or null is empty.
func (d document) take(name string) (string, error) {
	var s string
	if raw, ok := d[name]; ok && json.Unmarshal(raw, &s) != nil {
		return "", fmt.Errorf("%s must be a string", name)
	}
	delete(d, name)
	return s, nil
}

// takeExtra removes the object with the fields that the service has added since, and
// returns it.
func (d document) takeExtra() (extra document, err error) {
	if raw, ok := d["extra"]; ok && json.Unmarshal(raw, &extra) != nil {
		return nil, errors.New("extra must be an object")
	}
	delete(d, "extra")
	return extra, nil
}

func (d document) values() map[string]any {
	values := map[string]any{}
	for name, raw := range d {
		values[name] = raw
	}
	return values
}

// add adds records after those that they refer to, and stops at the first one that
// is refused.
func (st *state) add(r seedRecords) (Added, error) {
	added := Added{Heads: []string{}, Visuals: []string{}, Registrations: []int64{}}
	for _, v := range r.visuals {
		added.Visuals = append(added.Visuals, st.addVisual(v))
	}
	for _, h := range r.heads {
		added.Heads = append(added.Heads, st.addHead(h))
	}
	for i, t := range r.tools {
		if err := st.addTool(t.headID, t.definition); err != nil {
			return added, fmt.Errorf("tools[%d]: %w", i, err)
		}
	}
	for i, d := range r.registrations {
		w, err := st.addWebhook(d)
		if err != nil {
			return added, fmt.Errorf("registrations[%d]: %w", i, err)
		}
		w.sharedKey = cmp.Or(d.str("sharedKey"), w.sharedKey)
		added.Registrations = append(added.Registrations, w.id)
	}
	return added, nil
}
