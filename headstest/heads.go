package headstest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func (c *core) getHead(r *http.Request) (reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.st.head(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, c.st.encodedHead(r.PathValue("id"), h)), nil
}

// encodedHead encodes a head once for all reads between two changes, since a head
// has many fields.
func (st *state) encodedHead(id string, h document) []byte {
	body, ok := st.encoded[id]
	if !ok {
		body = h.encode()
		st.encoded[id] = body
	}
	return body
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
	if err := c.merge(h, sent); err != nil {
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

// checkFields returns an error that names every invalid field.
func checkFields(sent document) error {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(sent)) {
		value := decode(sent[key])
		if rule, known := writable[key]; known && !rule.accepts(value) {
			wrong = append(wrong, key+" must be "+rule.wants)
		} else if holdsPlaceholder(value) {
			wrong = append(wrong, key+" holds a placeholder value")
		}
	}
	if len(wrong) > 0 {
		return refuse(http.StatusBadRequest, "%s", strings.Join(wrong, "; "))
	}
	return nil
}

// merge replaces the fields of the head with those that were sent. Fields that are
// not in the contract are stored unchanged.
func (c *core) merge(h, sent document) error {
	if len(sent) == 0 {
		return nil
	}
	next := maps.Clone(h)
	maps.Copy(next, sent)
	if _, changed := sent["promptConfig"]; changed {
		next["promptConfig"] = mergePrompt(h["promptConfig"], sent["promptConfig"])
	}
	_, provider := sent["ttsProvider"]
	_, voice := sent["ttsVoice"]
	if h.is("videoStreaming") && (provider || voice) {
		if err := c.voiceStreams(next.str("ttsProvider"), next.str("ttsVoice")); err != nil {
			return err
		}
	}
	next.touch()
	maps.Copy(h, next)
	return nil
}

// mergePrompt keeps the prompt's id, which is read-only.
func mergePrompt(before, sent json.RawMessage) json.RawMessage {
	var old, next document
	_ = json.Unmarshal(before, &old) // empty for null, and for anything else that a test has set
	_ = json.Unmarshal(sent, &next)  // checkFields has made sure that it is an object
	delete(next, "id")
	if old == nil {
		old = document{}
	}
	maps.Copy(old, next)
	return old.encode()
}
