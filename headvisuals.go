package heads

import (
	"bytes"
	"context"
	"net/http"

	"github.com/headsapi/heads-go/internal/exactjson"
	"github.com/headsapi/heads-go/internal/rawjson"
	"github.com/headsapi/heads-go/internal/transport"
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

// HeadVisual is the appearance of a head. The contract describes its mode but does not
// name the field. Mode is read from "mode", and is "" if the answer has no such
// text. All other fields are in Raw.
type HeadVisual struct {
	ID   string     `json:"id"`
	Mode VisualMode `json:"mode"`
	Raw  Raw        `json:"-"` // the document as received
}

var opHeadVisualsGet = transport.NewOperation("HeadVisuals.Get", http.MethodGet, "/head_visual/{headVisualId}")

// Get reads a head visual.
//
// GET /head_visual/{headVisualId}. The id is a head's HeadVisualID. Get returns
// an InvalidError for an empty one, "." and "..". An answer without this id is a
// DecodeError.
func (s *HeadVisualsService) Get(ctx context.Context, visualID string) (*HeadVisual, error) {
	if err := checkPathID(opHeadVisualsGet.Name, "head visual id", visualID); err != nil {
		return nil, err
	}
	return do[HeadVisual](ctx, s.core, opHeadVisualsGet, payload{param: visualID})
}

// UnmarshalJSON reads the document of a visual and keeps it in Raw. The contract
// has no types for its fields: one that can't be read is empty. Names are exact, and
// a field that occurs twice is an error.
func (v *HeadVisual) UnmarshalJSON(document []byte) error { return unmarshal(document, v.decode) }

func (v *HeadVisual) decode(document []byte) error {
	if err := decodeObject(document, v, exactjson.Rules{Open: anyField, Mend: textOfNumber}); err != nil {
		return err
	}
	v.Raw = rawOf(bytes.Clone(document))
	return nil
}

// textOfNumber reads an id that is a number as its digits.
func textOfNumber(path string, value []byte) []byte {
	if path != "id" || rawjson.Kind(value) != "number" {
		return nil
	}
	return rawjson.String(string(value))
}

func (v *HeadVisual) checkID(id string) error { return sameID("head visual", v.ID, id) }
