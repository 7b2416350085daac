package heads

import (
	"context"
	"net/http"

	"github.com/headsapi/heads-go/internal/rawjson"
)

// HeadVisualsService reads head visuals.
type HeadVisualsService struct{ service }

// VisualMode is the mode of a head visual. The service knows more values than
// the constants. Only a head whose visual is in mode default can stream.
type VisualMode string

// The visual modes that the contract names. Expressive heads have
// VisualModeTwoLoops.
const (
	VisualModeDefault  VisualMode = "default"
	VisualModeTwoLoops VisualMode = "two_loops"
)

// HeadVisual is the look of a head. The contract describes its mode but does not
// name the field. Mode is read from "mode", and is "" if the answer has no such
// text. All other fields are in Raw.
type HeadVisual struct {
	ID   string     `json:"id"`
	Mode VisualMode `json:"mode"`
	Raw  Raw        `json:"-"` // the document as received
}

var opHeadVisualsGet = newOperation("HeadVisuals.Get", http.MethodGet, "/head_visual/{headVisualId}")

// Get reads a head visual.
//
// GET /head_visual/{headVisualId}. The id is a head's HeadVisualID. Get returns
// an InvalidError for an empty one, "." and "..". An answer without this id is a
// DecodeError.
func (s *HeadVisualsService) Get(ctx context.Context, visualID string) (*HeadVisual, error) {
	if err := checkPathID(opHeadVisualsGet.name, "head visual id", visualID); err != nil {
		return nil, err
	}
	return do[HeadVisual](ctx, s.c, opHeadVisualsGet, payload{param: visualID})
}

func (v *HeadVisual) keepRaw(document []byte) { v.Raw = rawOf(document) }

// prove also accepts an id that is a number.
func (v *HeadVisual) prove(id string) error {
	if number, _ := rawjson.Value(v.Raw.bytes(), "id"); v.ID == "" && rawjson.Kind(number) == "number" {
		v.ID = string(number)
	}
	return proveID("head visual", v.ID, id)
}

// untyped reports true for every field, since the contract has no types for
// them.
func (v *HeadVisual) untyped(path string) bool { return path != "" }
