package heads

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/headsapi/heads-go/internal/rawjson"
)

var (
	errEmptyAnswer error = answerFault("it is empty")
	errNullAnswer  error = answerFault("it is null")
)

// A type that reads its own JSON has a method decode, and one that writes its own
// has a method document. UnmarshalJSON and MarshalJSON only call them. Requests
// are written by document too. All other types have tags for encoding/json.

// rawKeeper is a resource that keeps the document it was read from.
type rawKeeper interface{ keepRaw(document []byte) }

// proveID compares the id in an answer with the one in the request. what names
// the document in the error, which shows neither id.
func proveID(what, found, asked string) error {
	switch {
	case found == "":
		return answerFault("it holds no id, so it is not the " + what + " that was asked for")
	case !strings.EqualFold(found, asked):
		return answerFault("it is not the " + what + " that was asked for: its id differs")
	}
	return nil
}

// tolerant is a resource with fields whose type the contract leaves open.
type tolerant interface {
	// untyped reports whether the contract leaves the type of a field open.
	// The field is given as a path such as "organisation.slots".
	untyped(path string) bool
}

// mendable is a resource that also arrives in forms other than the contract's.
type mendable interface {
	// mend returns the document in the contract's form, or nil if it can't.
	mend(document []byte) []byte
}

// decodeAnswer reads a document of the service into v, a pointer to a struct or
// slice. The caller may reuse data afterwards.
func decodeAnswer(data []byte, v any) error {
	document := data
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		return errEmptyAnswer
	case string(trimmed) == "null":
		if document = mended(trimmed, v); document == nil {
			return errNullAnswer
		}
	}
	err := json.Unmarshal(document, v)
	if err != nil {
		err = decodeTolerantly(document, v, err)
	}
	if err != nil {
		return err
	}
	if keeper, ok := v.(rawKeeper); ok {
		keeper.keepRaw(bytes.Clone(data))
	}
	return nil
}

// mended returns the document in the contract's form if v knows how, or else
// nil.
func mended(document []byte, v any) []byte {
	if m, ok := v.(mendable); ok {
		return m.mend(document)
	}
	return nil
}

func newDecodeError(operation string, document []byte, err error) *DecodeError {
	return &DecodeError{Operation: operation, Body: NewRaw(document[:min(len(document), maxDecodeBody)]), Err: err}
}

// decodeTolerantly decodes again: first in the contract's form, then without the
// open field that failed, until none fails, since encoding/json names only the
// first.
func decodeTolerantly(data []byte, v any, err error) error {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err // it is not JSON
	}
	if better := mended(data, v); better != nil {
		data = better
		reflect.ValueOf(v).Elem().SetZero()
		if err = json.Unmarshal(data, v); err == nil {
			return nil
		}
	}
	t, ok := v.(tolerant)
	if !ok {
		return err
	}
	for {
		if !errors.As(err, &mismatch) || !t.untyped(mismatch.Field) {
			return err
		}
		rest, removed := withoutField(data, strings.Split(mismatch.Field, "."))
		if !removed {
			return err
		}
		data = rest
		reflect.ValueOf(v).Elem().SetZero()
		if err = json.Unmarshal(data, v); err == nil {
			return nil
		}
	}
}

// withoutField returns a JSON object without the member at path; all other bytes
// stay as they are. If a value on the path is not an object, that value is
// removed.
func withoutField(data []byte, path []string) (rest []byte, removed bool) {
	if len(path) == 0 {
		return nil, false
	}
	rest = data
	for m := range rawjson.Members(data) {
		if strings.EqualFold(string(m.Key), path[0]) {
			inner, _ := withoutField(m.Value, path[1:]) // nil removes the member
			rest, removed = rawjson.With(rest, string(m.Key), inner), true
		}
	}
	if !removed {
		// encoding/json puts the names of embedded structs into its paths.
		return withoutField(data, path[1:])
	}
	return rest, true
}
