package heads

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

var (
	errEmptyAnswer error = answerFault("it is empty")
	errNullAnswer  error = answerFault("it is null")
)

// rawKeeper is a resource that keeps the document it was read from.
type rawKeeper interface{ keepRaw(document []byte) }

// checked is a resource with more demands on its document than its types.
type checked interface{ check() error }

// tolerant is a resource with fields whose type the contract does not give.
type tolerant interface {
	// untyped says whether the field at a path such as "organisation.slots"
	// may hold anything.
	untyped(path string) bool
}

// decodeAnswer reads a document of the service into v, a pointer to a struct
// or slice. The buffer that data stands in may be used again afterwards.
func decodeAnswer(data []byte, v any) error {
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		return errEmptyAnswer
	case string(trimmed) == "null":
		return errNullAnswer
	}
	err := json.Unmarshal(data, v)
	if err != nil {
		err = decodeTolerantly(data, v, err)
	}
	if err != nil {
		return err
	}
	if c, ok := v.(checked); ok {
		if err := c.check(); err != nil {
			return err
		}
	}
	if keeper, ok := v.(rawKeeper); ok {
		keeper.keepRaw(bytes.Clone(data))
	}
	return nil
}

// decodeTolerantly decodes again, each time without the one untyped field that
// was in the way, since encoding/json names only the first.
func decodeTolerantly(data []byte, v any, err error) error {
	t, ok := v.(tolerant)
	if !ok {
		return err
	}
	for {
		var mismatch *json.UnmarshalTypeError
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

// withoutField returns a JSON object without the member at path, all other
// bytes as they were. Where the path leads into something that is no object,
// that itself is taken out.
func withoutField(data []byte, path []string) (rest []byte, removed bool) {
	if len(path) == 0 {
		return nil, false
	}
	rest = data
	for m := range members(data) {
		if strings.EqualFold(string(m.key), path[0]) {
			inner, _ := withoutField(m.value, path[1:]) // nil takes the member out
			rest, removed = withMember(rest, string(m.key), inner), true
		}
	}
	if !removed {
		// encoding/json puts the names of embedded structs into its paths.
		return withoutField(data, path[1:])
	}
	return rest, true
}
