package heads

import (
	"context"
	"net/http"

	"github.com/headsapi/heads-go/internal/transport"
)

// HeadsService reads and changes heads.
type HeadsService struct{ service }

var (
	opHeadsGet    = transport.NewOperation("Heads.Get", http.MethodGet, "/head/{id}")
	opHeadsUpdate = transport.NewOperation("Heads.Update", http.MethodPut, "/head/update")
)

// Get reads the complete configuration of a head.
//
// GET /head/{id}. The id is the head's UUID. Get returns an InvalidError for a
// public id.
//
// An answer that is not the document of this head, such as a maintenance page or
// another head, is a DecodeError. So is a field whose JSON type differs from the
// contract. If the contract leaves the type open, the field is zero instead, and
// its value is only in Raw. A tool of another shape is read as far as possible;
// see Tool.
func (s *HeadsService) Get(ctx context.Context, headID string) (*Head, error) {
	if err := checkHeadID(opHeadsGet.Name, headID); err != nil {
		return nil, err
	}
	return do[Head](ctx, s.core, opHeadsGet, payload{param: headID})
}

// Update changes the fields that u sets, and nothing else.
//
// PUT /head/update. Update returns an InvalidError for an id that is not a UUID,
// and the error of Validate, and sends nothing if there is one. The contract does
// not describe the answer; any status from 200 to 299 is success.
func (s *HeadsService) Update(ctx context.Context, headID string, u *HeadUpdate) error {
	p, err := updatePayload(headID, u)
	if err != nil {
		return err
	}
	return doQuiet(ctx, s.core, opHeadsUpdate, p)
}

// update is Update, and returns the answer.
func (s *HeadsService) update(ctx context.Context, headID string, u *HeadUpdate) (*Response, error) {
	p, err := updatePayload(headID, u)
	if err != nil {
		return nil, err
	}
	return doPlain(ctx, s.core, opHeadsUpdate, p)
}

func updatePayload(headID string, u *HeadUpdate) (payload, error) {
	var faults faultList
	faults.add(checkHeadID(opHeadsUpdate.Name, headID))
	body, err := u.body(headID)
	faults.add(err)
	return payload{body: body}, faults.join()
}

// Modify reads a head, calls change with it and sends only the fields that
// change has changed. It returns the changed head, with Raw as it was
// read. If nothing changed, nothing is sent.
//
// GET /head/{id}, PUT /head/update. A changed voice or provider brings its
// partner. Modify returns an InvalidError for a field that an update can't
// change, and names the method that does change it. It also returns an
// InvalidError if change has removed the prompt. An error of change is returned
// as it is, and nothing is sent.
//
// If the answer to the update has an unknown shape, such as a page of a proxy,
// Modify reads the head again. It returns an error unless the head shows the
// change.
//
// One client runs one Modify of a head at a time. So change must not modify the
// same head through the same client: it would wait for itself until the context
// ends. The service has no versions. If another program writes the same fields
// between the read and the write, its values are overwritten.
func (s *HeadsService) Modify(ctx context.Context, headID string, change func(*Head) error) (*Head, error) {
	const operation = "Heads.Modify"
	faults := faultList{}
	faults.add(checkHeadID(operation, headID))
	if change == nil {
		faults.add(invalid(operation, "change", "is nil", "give a function that changes the head"))
	}
	if err := faults.join(); err != nil {
		return nil, err
	}
	unlock, err := s.core.lock(ctx, operation, headLock("configuration", headID))
	if err != nil {
		return nil, err
	}
	defer unlock()
	before, err := s.Get(ctx, headID)
	if err != nil {
		return nil, err
	}
	after := new(Head)
	if err := decodeAnswer(before.Raw.Bytes(), after); err != nil {
		return nil, newDecodeError(operation, before.Raw.Bytes(), err)
	}
	if err := change(after); err != nil {
		return nil, err
	}
	u, err := diffHeads(operation, before, after)
	if err != nil {
		return nil, err
	}
	if u.last == nil {
		return after, nil
	}
	answer, err := s.update(ctx, headID, u)
	if err != nil {
		return nil, err
	}
	read := func() (*Head, error) { return s.Get(ctx, headID) }
	if err := confirm(operation, answer, headID, read, u.shownBy); err != nil {
		return nil, err
	}
	return after, nil
}
