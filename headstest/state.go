package headstest

import (
	"fmt"
	"maps"
)

// state has the records of an emulator and changes them under the rules of the contract.
// It knows no HTTP, no events and no sessions. It is used under the emulator's lock.
type state struct {
	cfg          *config
	ids          *ids
	organisation document
	visuals      map[string]*visual
	heads        map[string]document
	encoded      map[string][]byte // the heads that were read since their last change, in JSON
	webhooks     map[int64]*webhook
}

func newState(cfg *config) *state {
	st := &state{
		cfg:      cfg,
		ids:      newIDs(cfg.seed, idStream),
		visuals:  map[string]*visual{},
		heads:    map[string]document{},
		encoded:  map[string][]byte{},
		webhooks: map[int64]*webhook{},
	}
	st.organisation = newDocument(map[string]any{
		"id": st.ids.uuid(), "createdAt": now(), "updatedAt": now(), "apiKey": st.ids.hex(16),
		"name": "MyOrg", "publicId": st.ids.orgPublicID(), "alias": "my-org",
		"subscriptionType": "business", "slots": 10, "streaming": true, "isActive": true,
	})
	return st
}

// clone returns a copy to which records can be added without a change of st.
func (st *state) clone() *state {
	c := *st
	c.ids, c.visuals, c.webhooks = st.ids.clone(), maps.Clone(st.visuals), maps.Clone(st.webhooks)
	c.heads, c.encoded = make(map[string]document, len(st.heads)), map[string][]byte{}
	for id, h := range st.heads {
		c.heads[id] = maps.Clone(h)
	}
	return &c
}

// errorKind is the kind of a stateError.
type errorKind int

const (
	badValue   errorKind = iota // a value breaks the contract
	noRecord                    // there is no such record
	wrongMode                   // the mode of the head's visual does not allow the change
	cantStream                  // the voice does not allow the change
)

// stateError is why a record can't be read or changed.
type stateError struct {
	kind    errorKind
	message string
}

func (e *stateError) Error() string { return e.message }

func stateErrorf(kind errorKind, format string, args ...any) error {
	return &stateError{kind, fmt.Sprintf(format, args...)}
}

// head returns a head, to be read.
func (st *state) head(id string) (document, error) {
	h, ok := st.heads[id]
	if !ok {
		return nil, stateErrorf(noRecord, "there is no head %q", id)
	}
	return h, nil
}

// headToChange returns a head, to be changed.
func (st *state) headToChange(id string) (document, error) {
	delete(st.encoded, id)
	return st.head(id)
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
